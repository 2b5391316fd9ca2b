"""Whole programs over grids, meshes and particles."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def multigrid_poisson():
    def program(f):
        f = f.at[0].set(0).at[-1].set(0).at[:, 0].set(0).at[:, -1].set(0)

        def lap(u, h):
            return (
                jnp.zeros_like(u)
                .at[1:-1, 1:-1]
                .set((u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) / h**2)
            )

        def smooth(u, f, h, n):
            return lax.fori_loop(0, n, lambda i, u: u + 0.8 * h * h / 4 * (lap(u, h) - f), u)

        def restrict(r):
            k = jnp.outer(jnp.array([1, 2, 1]), jnp.array([1, 2, 1])) / 16
            y = lax.conv_general_dilated(r[None, None], k[None, None].astype(r.dtype), (2, 2), ((1, 1), (1, 1)))[0, 0]
            return y.at[0].set(0).at[-1].set(0).at[:, 0].set(0).at[:, -1].set(0)

        def prolong(e):
            n = 2 * e.shape[0] - 1
            u = jnp.zeros((n, n)).at[::2, ::2].set(e)
            u = u.at[1::2, ::2].set((e[1:] + e[:-1]) / 2)
            return u.at[:, 1::2].set((u[:, 2::2] + u[:, :-2:2]) / 2)

        def v(u, f, h):
            u = smooth(u, f, h, 2)
            if u.shape[0] <= 3:
                return smooth(u, f, h, 5)
            r = restrict(f - lap(u, h))
            e = v(jnp.zeros_like(r), r, 2 * h)
            return smooth(u + prolong(e), f, h, 2)

        u = jnp.zeros_like(f)
        rs = []
        for _ in range(3):
            u = v(u, f, 1 / 16)
            rs.append(jnp.linalg.norm(f - lap(u, 1 / 16)))
        return (u, jnp.stack(rs))

    return jax.jit(program)(_normal(24, 17, 17))


def lattice_boltzmann_obstacle():
    def program(u0):
        c = jnp.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
        w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
        opp = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
        wall = jnp.hypot(*jnp.mgrid[-9:10, -9:10]) < 3

        def eq(r, u):
            cu = jnp.einsum("qd,xyd->qxy", c.astype(u.dtype), u)
            return w[:, None, None] * r * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(-1))

        f = eq(jnp.ones((19, 19)), jnp.stack([0.05 * jnp.tanh(u0), 0.02 * u0.T], -1))

        def st(f, _):
            r = f.sum(0)
            u = jnp.einsum("qd,qxy->xyd", c.astype(f.dtype), f) / r[..., None]
            g = f - (f - eq(r, u)) / 0.8
            g = jnp.where(wall, f[opp], g)
            g = jnp.stack(
                [
                    jnp.roll(g[q], (int(a), int(b)), (0, 1))
                    for q, (a, b) in enumerate(
                        np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
                    )
                ]
            )
            return (g, (r.sum(), jnp.abs(u).max()))

        f, t = lax.scan(st, f, None, length=5)
        return (f, t)

    return jax.jit(program)(_normal(25, 19, 19))


def adi_crank_nicolson_heat():
    def program(u0):
        n = 15
        u = jnp.outer(u0, jnp.cos(jnp.arange(n) * 0.3))
        r = 0.4
        lo = jnp.full(n, -r).at[0].set(0)
        up = jnp.full(n, -r).at[-1].set(0)
        di = jnp.full(n, 1 + 2 * r)

        def half(u):
            rhs = u * (1 - 2 * r) + r * (jnp.pad(u, ((0, 0), (1, 0)))[:, :-1] + jnp.pad(u, ((0, 0), (0, 1)))[:, 1:])
            return lax.linalg.tridiagonal_solve(lo, di, up, rhs)

        def thomas(d):

            def f(c, x):
                cp, dp = c
                a, b, cc, d = x
                m = b - a * cp
                cp, dp = (cc / m, (d - a * dp) / m)
                return ((cp, dp), (cp, dp))

            _, (cp, dp) = lax.scan(f, (0.0, jnp.zeros(n)), (lo, di, up, d))

            def b(x, y):
                c, d = y
                x = d - c * x
                return (x, x)

            return lax.scan(b, jnp.zeros(n), (cp, dp), reverse=True)[1]

        def st(u, _):
            u = half(half(u).T).T
            return (u, u.sum())

        a, t = lax.scan(st, u, None, length=4)
        return (a, t, thomas(u), lax.linalg.tridiagonal_solve(lo, di, up, u))

    return jax.jit(program)(_normal(26, 15))


def finite_elements_triangles():
    def program(k):
        n = 4
        ij = np.array([(i, j) for i in range(n) for j in range(n)])
        xy = jnp.asarray(ij / 3.0, jnp.float32) + 0.02 * jnp.tile(k, 4).reshape(16, 2)
        el = []
        for i in range(n - 1):
            for j in range(n - 1):
                a = i * n + j
                el += [(a, a + n, a + 1), (a + n, a + n + 1, a + 1)]
        el = jnp.array(el)

        def local(p):
            B = jnp.array([[p[1, 0] - p[0, 0], p[2, 0] - p[0, 0]], [p[1, 1] - p[0, 1], p[2, 1] - p[0, 1]]])
            g = jnp.linalg.solve(B.T, jnp.array([[-1.0, 1, 0], [-1, 0, 1]]))
            ar = jnp.linalg.det(B) / 2
            return (ar * g.T @ g, jnp.full(3, ar / 3), ar)

        K, f, ar = jax.vmap(local)(xy[el])
        G = jnp.zeros((16, 16)).at[el[:, :, None], el[:, None, :]].add(K)
        F = jnp.zeros(16).at[el].add(f)
        bd = np.flatnonzero((ij == 0).any(1) | (ij == 3).any(1))
        G = G.at[bd].set(0).at[bd, bd].set(1)
        F = F.at[bd].set(0)
        return (jnp.linalg.solve(G, F), G, F, ar, jnp.linalg.cond(G))

    return jax.jit(program)(_normal(27, 8))


def sph_density_and_forces():
    def program(x):
        h = 1.0

        def W(r):
            q = r / h
            return jnp.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, jnp.where(q < 2, 0.25 * (2 - q) ** 3, 0.0)) / jnp.pi

        def en(x):
            d = x[:, None] - x[None]
            r = jnp.sqrt((d**2).sum(-1) + 1e-09)
            rho = W(r).sum(1)
            return (jnp.sum(0.5 * (rho - 1) ** 2), rho)

        def st(c, _):
            x, v = c
            (e, rho), g = jax.value_and_grad(en, has_aux=True)(x)
            v = 0.95 * (v - 0.02 * g) + 0.02 * jnp.array([0, -1.0])
            x = x + 0.05 * v
            v = jnp.where(jnp.abs(x) > 2, -0.5 * v, v)
            return ((jnp.clip(x, -2, 2), v), (e, rho))

        return lax.scan(st, (x, jnp.zeros_like(x)), None, length=6)

    return jax.jit(program)(_normal(28, 11, 2))


def molecular_dynamics_periodic_cells():
    def program(seed):
        L = 4.0
        g = jnp.stack(jnp.meshgrid(*[jnp.arange(3)] * 2, jnp.arange(2), indexing="ij"), -1).reshape(
            -1, 3
        ) * 1.3 + 0.1 * jnp.tile(seed, (6, 1))
        n = 18

        def en(x):
            d = x[:, None] - x[None]
            d = d - L * jnp.round(d / L)
            r2 = (d**2).sum(-1) + jnp.eye(n) * 1000000.0
            s = 1 / jnp.maximum(r2, 0.8) ** 3
            return 2 * jnp.sum(jnp.where(r2 < 4, s * s - s, 0.0))

        F = lambda x: -jax.grad(en)(x)

        def st(c, _):
            x, v, f = c
            v = v + 0.0025 * f
            x = (x + 0.005 * v) % L
            fn = F(x)
            v = v + 0.0025 * fn
            return ((x, v, fn), (en(x), 0.5 * (v**2).sum()))

        c, t = lax.scan(st, (g % L, jnp.zeros((n, 3)), F(g)), None, length=5)
        cell = jnp.floor(c[0]).astype(int)
        cid = cell @ jnp.array([16, 4, 1])
        o = jnp.argsort(cid)
        cnt = jnp.zeros(64, int).at[cid].add(1)
        st_ = jnp.cumsum(cnt) - cnt
        slot = jnp.zeros((64, 6), int) - 1
        slot = slot.at[cid[o], jnp.arange(n) - st_[cid[o]]].set(o)
        return (c, t, cnt, slot)

    return jax.jit(program)(_normal(29, 3, 3))


def cellular_automata():
    def program(g):
        g = jnp.pad(g, ((4, 4), (3, 3)))

        def life(x, _):
            n = sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            y = ((n == 3) | (n == 2) & (x == 1)).astype(x.dtype)
            return (y, y.sum())

        a, pop = lax.scan(life, g, None, length=7)

        def rule(n):
            tab = n >> jnp.arange(8) & 1

            def s(x, _):
                i = 4 * jnp.roll(x, 1) + 2 * x + jnp.roll(x, -1)
                y = tab[i]
                return (y, y)

            return lax.scan(s, jnp.zeros(23, int).at[11].set(1), None, length=9)[1]

        r = jax.vmap(rule)(jnp.array([30, 90, 110, 184]))
        pk = jnp.packbits(r.astype(jnp.uint8), axis=-1)
        b = jnp.zeros(3, jnp.uint32) + jnp.uint32(2147549187)

        def w30(x, _):
            y = (x >> 1 | x << 31) ^ (x | (x << 1 | x >> 31))
            return (y, y)

        ant = lax.fori_loop(
            0,
            50,
            lambda i, s: (
                lambda G, p, d: (
                    lambda d: (
                        G.at[p[0], p[1]].set(1 - G[p[0], p[1]]),
                        (p + jnp.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[d]) % 11,
                        d,
                    )
                )((d + jnp.where(G[p[0], p[1]] == 0, 1, 3)) % 4)
            )(*s),
            (jnp.zeros((11, 11), jnp.int8), jnp.array([5, 5]), 0),
        )
        return (
            a,
            pop,
            r,
            pk,
            jnp.unpackbits(pk, axis=-1, count=23),
            lax.scan(w30, b, None, length=9)[1],
            ant,
            lax.conv_general_dilated(g[None, None].astype(jnp.int8), jnp.ones((1, 1, 3, 3), jnp.int8), (1, 1), "SAME"),
        )

    return jax.jit(program)(np.array([[0, 1, 0, 0, 1], [1, 1, 0, 1, 0], [0, 0, 1, 1, 1]], "uint8"))


def stencils_with_rolls_and_stacks():
    def program(x):
        st = jnp.stack([jnp.roll(x[i], (i - 3, 2 * i - 5), (0, 1)) for i in range(7)])
        cc = jnp.concatenate(
            [
                jnp.pad(x[0], ((1, 1), (2, 0))),
                jnp.pad(x[1], ((0, 2), (1, 1)), mode="edge"),
                jnp.pad(x[2], ((2, 0), (0, 2)), mode="wrap"),
            ],
            0,
        )
        up = jnp.stack([x[1:], x[:-1] * 2, jnp.flip(x[1:], 1), jnp.roll(x[1:], 1, 2)], -1).reshape(6, 11, 20)
        bl = jnp.block([[[x[0].T, x[1].T]], [[x[2].T * 2, jnp.zeros((5, 11))]]])
        q = x.at[1:4, 2:9:3, ::-2].set(jnp.roll(x[3:6, :3, :3], 1, 0)).at[-1].set(x[0][::-1]).at[:, 0].mul(2)
        d3 = jnp.pad(jnp.pad(x, 1)[1:, :-1], ((0, 2), (1, 0), (2, 2)), mode="reflect")
        g = jnp.concatenate([st, q], 1)[:, ::3]
        return (
            st,
            cc,
            up,
            bl,
            q,
            d3,
            g,
            jnp.tile(x[:2, :3], (2, 1, 3)),
            jnp.repeat(x[:, :2], jnp.array([1, 3]), axis=1, total_repeat_length=4),
            sum(
                (
                    jnp.roll(x, (a, b), (1, 2)) * w
                    for a, b, w in ((1, 0, 0.2), (-1, 0, 0.3), (0, 1, 0.1), (0, -1, 0.4), (2, -2, 0.5))
                )
            ),
        )

    return jax.jit(program)(_normal(30, 7, 11, 5))


def epidemic_rk4_and_chemistry_rosenbrock():
    def program(p):

        def f(t, y):
            S, E, I, Q = y
            return jnp.array([-p[0] * S * I, p[0] * S * I - p[1] * E, p[1] * E - p[2] * I, p[2] * I]) * 4

        def rk(c, _):
            t, y = c
            k1 = f(t, y)
            k2 = f(t, y + 0.05 * k1)
            k3 = f(t, y + 0.05 * k2)
            k4 = f(t, y + 0.1 * k3)
            y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return ((t + 0.1, y), y)

        _, Y = lax.scan(rk, (0.0, jnp.array([0.99, 0, 0.01, 0])), None, length=13)
        rob = lambda y: jnp.array(
            [
                -0.04 * y[0] + 100.0 * y[1] * y[2],
                0.04 * y[0] - 100.0 * y[1] * y[2] - 3000.0 * y[1] ** 2,
                3000.0 * y[1] ** 2,
            ]
        )

        def ros(y, _):
            h = 0.1
            J = jax.jacfwd(rob)(y)
            g = 1 / (2 + jnp.sqrt(2.0))
            Wm = jnp.eye(3) - g * h * J
            k1 = jnp.linalg.solve(Wm, rob(y))
            k2 = jnp.linalg.solve(Wm, rob(y + h * k1) - 2 * k1)
            y = y + h * (1.5 * k1 + 0.5 * k2)
            return (y, y)

        _, C = lax.scan(ros, jnp.array([1.0, 0, 0]) + 0 * p[0], None, length=9)
        return (Y, C, jax.jacfwd(lambda q: jnp.sum(q))(p))

    return jax.jit(program)(np.array([0.3, 0.1, 0.05, 0.02], np.float32))


def ray_marching_and_rasterising():
    def program(c):
        o = jnp.array([0.0, 0, -3.0])
        uv = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, 7), jnp.linspace(-1, 1, 5)), -1)
        d = jnp.concatenate([uv, jnp.full((5, 7, 1), 1.5)], -1)
        d = d / jnp.linalg.norm(d, axis=-1, keepdims=True)
        sdf = lambda p: (
            -jax.nn.logsumexp(-8 * jnp.concatenate([jnp.linalg.norm(p - 0.5 * c, axis=-1) - 0.4, (p[1] + 1)[None]])) / 8
        )

        def march(d):
            t = lax.fori_loop(0, 20, lambda i, t: jnp.where(sdf(o + t * d) > 0.001, t + 0.8 * sdf(o + t * d), t), 0.0)
            p = o + t * d
            n = jax.grad(sdf)(p)
            n = n / jnp.linalg.norm(n)
            sh = jnp.maximum(n @ jnp.array([0.5, 0.8, -0.3]), 0)
            return (t, jnp.where(t < 6, sh + 0.1, 0.0))

        t, im = jax.vmap(jax.vmap(march))(d)
        tri = c[:3, :2]
        e = lambda a, b, p: (b[0] - a[0]) * (p[..., 1] - a[1]) - (b[1] - a[1]) * (p[..., 0] - a[0])
        w = jnp.stack([e(tri[i], tri[(i + 1) % 3], uv * 2) for i in range(3)], -1)
        ins = (w >= 0).all(-1) | (w <= 0).all(-1)
        soft = jax.nn.sigmoid(w.min(-1) * 5)
        den = jax.nn.softplus(jnp.sin(3 * d).sum(-1))
        al = 1 - jnp.exp(-0.3 * den)
        T = jnp.cumprod(jnp.concatenate([jnp.ones((5, 1)), 1 - al[:, :-1]], 1), 1)
        return (t, im, ins, soft, T * al, jnp.where(ins, w.sum(-1), 0))

    return jax.jit(program)(_normal(31, 4, 3))


def unet_with_groupnorm():
    def program(x, w1, w2):
        conv = lambda x, w, s=1: lax.conv_general_dilated(x[None], w, (s, s), "SAME")[0]

        def gn(x, g=2):
            c, h, w = x.shape
            y = x.reshape(g, -1)
            y = (y - y.mean(1, keepdims=True)) * lax.rsqrt(y.var(1, keepdims=True) + 1e-05)
            return y.reshape(c, h, w)

        d1 = jax.nn.silu(gn(conv(x, w1)))
        d2 = jax.nn.silu(gn(conv(d1, jnp.tile(w1, (1, 2, 1, 1))[:, :4], 2)))
        mid = jnp.einsum("chw,dc->dhw", d2, w2)
        up = jax.image.resize(mid, (5, 8, 8), "nearest")
        up2 = jax.image.resize(mid, (5, 8, 8), "bilinear")
        cat = jnp.concatenate([up, up2, d1], 0)
        out = lax.conv_transpose(
            cat[None],
            jnp.ones((3, 3, 14, 2)) * 0.1 * jnp.arange(1, 3),
            (2, 2),
            "SAME",
            dimension_numbers=("NCHW", "HWIO", "NCHW"),
        )[0]
        return (out, mid, d2, lax.reduce_window(cat, -jnp.inf, lax.max, (1, 3, 3), (1, 2, 2), "VALID"))

    return jax.jit(program)(_normal(32, 3, 8, 8), _normal(33, 4, 3, 2, 2) * 0.5, _normal(34, 5, 4) * 0.5)
