"""Whole programs of people who fit, steer and solve systems."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _mulhilo(a, b):
    al, ah, bl, bh = a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16
    low, mid = al * bl, ah * bl + (al * bl >> 16)
    cross = (mid & 0xFFFF) + al * bh
    return ah * bh + (mid >> 16) + (cross >> 16), (cross << 16) | (low & 0xFFFF)


def _twist(mt):
    def one(i, mt):
        y = (mt[i] & jnp.uint32(0x80000000)) | (mt[(i + 1) % 13] & jnp.uint32(0x7FFFFFFF))
        return mt.at[i].set(mt[(i + 7) % 13] ^ (y >> 1) ^ jnp.where(y & 1 == 1, jnp.uint32(0x9908B0DF), jnp.uint32(0)))

    mt = lax.fori_loop(0, 13, one, mt)
    y = mt ^ (mt >> 11)
    y = y ^ ((y << 7) & jnp.uint32(0x9D2C5680))
    y = y ^ ((y << 15) & jnp.uint32(0xEFC60000))
    return mt, y ^ (y >> 18)


def generators_in_unsigned_words():
    """xorshift, PCG, splitmix, Philox, LFSR and a Mersenne twist, bit for bit."""
    u = jnp.uint32

    def xorshift(s):
        t = s[0] ^ (s[0] << 11)
        w = s[3] ^ (s[3] >> 19) ^ t ^ (t >> 8)
        return jnp.stack([s[1], s[2], s[3], w]), w

    def pcg(state, _):
        word = ((state >> ((state >> 28) + 4)) ^ state) * u(277803737)
        return state * u(747796405) + u(2891336453), (word >> 22) ^ word

    def splitmix(z):
        z = z + u(0x9E3779B9)
        z = (z ^ (z >> 16)) * u(0x85EBCA6B)
        z = (z ^ (z >> 13)) * u(0xC2B2AE35)
        return z ^ (z >> 16)

    def philox(counter, key):
        def one(i, c):
            x, k = c
            h0, l0 = _mulhilo(u(0xD2511F53), x[0])
            h1, l1 = _mulhilo(u(0xCD9E8D57), x[2])
            x = jnp.stack([h1 ^ x[1] ^ k[0], l1, h0 ^ x[3] ^ k[1], l0])
            return x, k + jnp.array([0x9E3779B9, 0xBB67AE85], jnp.uint32)

        return lax.fori_loop(0, 10, one, (counter, key))[0]

    def lfsr(s, _):
        bit = (s ^ (s >> 2) ^ (s >> 3) ^ (s >> 5)) & jnp.uint16(1)
        s = (s >> 1) | (bit << 15)
        return s, bit.astype(jnp.uint8)

    s = jnp.array([1, 2, 3, 4000000000], jnp.uint32)
    xs = lax.scan(lambda s, _: xorshift(s), s, length=37)[1]
    counters = jnp.stack([jnp.arange(7, dtype=u), jnp.zeros(7, u), jnp.full(7, 9, u), jnp.ones(7, u)], -1)
    key = jnp.array([0xDEADBEEF, 12345], jnp.uint32)
    bits = lax.scan(lfsr, jnp.uint16(0xACE1), length=67)[1]
    adler = lax.scan(lambda c, b: (((c[0] + b) % 65521, (c[1] + c[0] + b) % 65521), None), (1, 0), bits.astype(int))[0]
    gray = jnp.arange(19, dtype=jnp.uint8)
    gray = gray ^ (gray >> 1)
    rotate = lambda x, k: (x << k) | (x >> (32 - k))
    return {
        "xorshift": xs,
        "uniform": (xs >> 8).astype(jnp.float32) * 2.0**-24,
        "pcg": jax.jit(lambda s: lax.scan(pcg, s, length=41))(u(42)),
        "splitmix": jax.vmap(splitmix)(jnp.arange(17, dtype=u) * u(0x10001)),
        "philox": jax.jit(jax.vmap(philox, (0, None)))(counters, key),
        "mulhilo": _mulhilo(xs, xs[::-1]),
        "lfsr": jnp.packbits(bits),
        "twist": lax.scan(lambda m, _: _twist(m), splitmix(jnp.arange(13, dtype=u)), length=3),
        "adler": adler,
        "gray": gray,
        "rotated": [rotate(xs, k) for k in (1, 7, 31)],
        "counts": (lax.population_count(xs), lax.clz(xs >> 3)),
        "signed": xs.view(jnp.int32) >> 5,
        "reversed": jnp.packbits(jnp.unpackbits(xs.view(jnp.uint8)).reshape(-1, 8)[:, ::-1]),
    }


def roots_of_polynomials():
    c = jnp.array([1.0, -2.5, 0.3, 4.0, -1.2, 0.7])
    n = c.size - 1
    start = jnp.complex64(0.4 + 0.9j) ** jnp.arange(n)

    def durand_kerner(c):
        def step(z, _):
            gap = z[:, None] - z[None] + jnp.eye(n)
            z = z - jnp.polyval(c, z) / jnp.prod(gap, 1)
            return z, jnp.abs(jnp.polyval(c, z)).max()

        return lax.scan(step, start, length=40)[0]

    def aberth(c):
        d = jnp.polyder(c)

        def body(z):
            q = jnp.polyval(c, z) / jnp.polyval(d, z)
            others = jnp.sum(jnp.where(jnp.eye(n) == 1, 0, 1 / (z[:, None] - z[None] + jnp.eye(n))), 1)
            return z - q / (1 - q * others)

        return lax.fori_loop(0, 25, lambda _, z: body(z), start)

    order = lambda z: z[jnp.lexsort((jnp.round(z.imag, 2), jnp.round(z.real, 2)))]
    z = order(jax.jit(durand_kerner)(c))

    @functools.partial(jax.custom_jvp)
    def root(c, z0):
        return lax.fori_loop(0, 30, lambda _, z: z - jnp.polyval(c, z) / jnp.polyval(jnp.polyder(c), z), z0)

    @root.defjvp
    def _(primals, tangents):
        z = root(*primals)
        return z, -jnp.polyval(tangents[0], z) / jnp.polyval(jnp.polyder(primals[0]), z)

    real = lambda c: root(c, jnp.float32(-1.4))
    newton = jnp.stack([real(c), *jax.grad(real)(c)])
    chain = jnp.convolve(jnp.convolve(c, jnp.array([1.0, 2.0])), c)
    quotient, remainder = jnp.polydiv(chain, c)
    return (
        z,
        order(jax.jit(aberth)(c)),
        newton,
        jax.hessian(real)(c),
        chain,
        quotient,
        jnp.round(remainder, 3) + 0.0,
        jnp.poly(jnp.array([1.0, -2.0, 3.0])),
    )


def model_predictive_control():
    dt, H, nx, nu = 0.1, 11, 4, 1

    def dynamics(x, u):
        p, v, a, w = x
        s, c = jnp.sin(a), jnp.cos(a)
        temp = (u[0] + 0.1 * w**2 * s) / 1.1
        alpha = (9.8 * s - c * temp) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
        return x + dt * jnp.stack([v, temp - 0.05 * alpha * c, w, alpha])

    A, B = jax.jacfwd(dynamics, (0, 1))(jnp.zeros(nx), jnp.zeros(nu))
    Q, R = jnp.diag(jnp.array([1.0, 0.1, 10.0, 0.1])), jnp.array([[0.01]])

    def riccati(P, _):
        K = jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        return P, K

    P, Ks = lax.scan(riccati, Q, length=40)
    K = Ks[-1]
    powers = lax.scan(lambda M, _: (A @ M, M), jnp.eye(nx), length=H + 1)[1]
    S = jnp.zeros((H, nx, H, nu))
    for i in range(H):
        for j in range(i + 1):
            S = S.at[i, :, j, :].set(powers[i - j] @ B)
    S = S.reshape(H * nx, H * nu)
    W = jax.scipy.linalg.block_diag(*[Q] * (H - 1), P)
    hess = S.T @ W @ S + 0.01 * jnp.eye(H)
    chol = jax.scipy.linalg.cho_factor(hess + jnp.eye(H))

    def plan(x):
        free = (powers[1:] @ x).reshape(-1)
        q = S.T @ (W @ free)

        def admm(c, _):
            u, z, y = c
            u = jax.scipy.linalg.cho_solve(chol, z - y - q)
            z = jnp.clip(u + y, -2.0, 2.0)
            return (u, z, y + u - z), jnp.linalg.norm(u - z)

        (_, z, _), gaps = lax.scan(admm, (jnp.zeros(H),) * 3, length=25)
        return z, gaps

    def closed(x, _):
        u = plan(x)[0][:1]
        x = dynamics(x, u)
        return x, (x, u)

    starts = jnp.array([[0.0, 0.0, 0.2, 0.0], [0.5, -0.1, -0.1, 0.3]])
    runs = jax.jit(jax.vmap(lambda x: lax.scan(closed, x, length=9)[1]))(starts)
    cost = lambda K: lax.scan(lambda x, _: (dynamics(x, -K @ x), x @ Q @ x), starts[0], length=13)[1].sum()
    return P, K, runs, plan(starts[0]), jax.grad(cost)(K)


def waves_in_a_cavity():
    """Maxwell's equations on a staggered grid, with absorbing rims and a source that is fitted."""
    N, M, T = 27, 31, 45
    rim = lambda n: jnp.where(jnp.minimum(jnp.arange(n), n - 1 - jnp.arange(n)) < 4, 0.9, 1.0)
    loss = jnp.outer(rim(N), rim(M))

    def run(source, eps):
        def step(c, s):
            ez, hx, hy = c
            hx = (hx - 0.5 * jnp.diff(ez, axis=1, append=0)) * loss
            hy = (hy + 0.5 * jnp.diff(ez, axis=0, append=0)) * loss
            curl = jnp.diff(hy, axis=0, prepend=0) - jnp.diff(hx, axis=1, prepend=0)
            ez = (ez + 0.5 * curl / eps) * loss
            ez = ez.at[9, 11].add(s)
            return (ez, hx, hy), ez[20, 5::5]

        zero = jnp.zeros((N, M))
        return lax.scan(step, (zero, zero, zero), source)

    t = jnp.arange(T)
    source = jnp.exp(-(((t - 12) / 5.0) ** 2)) * jnp.sin(0.6 * t)
    eps = jnp.ones((N, M)).at[15:19, 3:-7].set(2.5)
    (ez, hx, hy), probe = jax.jit(run)(source, eps)
    misfit = lambda s, e: jnp.sum((run(s, e)[1] - probe) ** 2)
    slopes = jax.jit(jax.grad(misfit, (0, 1)))(source * 0.8, jnp.ones((N, M)))
    energy = jnp.sum(eps * ez**2) + jnp.sum(hx**2 + hy**2)
    return ez, probe, slopes, energy, jnp.abs(jnp.fft.rfft(probe, 64, axis=0))[:20]


def splines_and_tridiagonal_systems():
    n = 11
    x = jnp.cumsum(jnp.asarray(np.random.default_rng(13).uniform(0.3, 1.2, n), jnp.float32))
    y = jnp.sin(x) + 0.1 * x
    at = jnp.linspace(x[0] - 0.5, x[-1] + 0.5, 37)

    def moments(x, y):
        h = jnp.diff(x)
        low = jnp.concatenate([jnp.zeros(1), h[:-1], jnp.zeros(1)])
        main = jnp.concatenate([jnp.ones(1), 2 * (h[:-1] + h[1:]), jnp.ones(1)])
        up = jnp.concatenate([jnp.zeros(1), h[1:], jnp.zeros(1)])
        rhs = jnp.pad(6 * jnp.diff(jnp.diff(y) / h), 1)
        return lax.linalg.tridiagonal_solve(low, main, up, rhs[:, None])[:, 0], (low, main, up, rhs)

    def thomas(low, main, up, rhs):
        def down(c, r):
            a, b, u, d = r
            w = b - a * c[0]
            return (u / w, (d - a * c[1]) / w), (u / w, (d - a * c[1]) / w)

        _, (cp, dp) = lax.scan(down, (0.0, 0.0), (low, main, up, rhs))
        return lax.scan(lambda s, r: (r[1] - r[0] * s,) * 2, 0.0, (cp, dp), reverse=True)[1]

    def spline(x, y, at):
        m, _ = moments(x, y)
        k = jnp.clip(jnp.searchsorted(x, at, side="right") - 1, 0, n - 2)
        h, a, b = x[k + 1] - x[k], x[k + 1] - at, at - x[k]
        cubic = (m[k] * a**3 + m[k + 1] * b**3) / (6 * h)
        return cubic + (y[k] / h - m[k] * h / 6) * a + (y[k + 1] / h - m[k + 1] * h / 6) * b

    m, system = moments(x, y)
    knots = jnp.concatenate([jnp.zeros(3), jnp.arange(6.0), jnp.full(3, 5.0)])

    def basis(t):
        b = ((knots[:-1] <= t) & (t < knots[1:])).astype(jnp.float32)
        for p in range(1, 4):
            d0, d1 = knots[p:-1] - knots[: -p - 1], knots[p + 1 :] - knots[1:-p]
            below = jnp.where(d0 > 0, (t - knots[: -p - 1]) / jnp.where(d0 > 0, d0, 1), 0)
            right = jnp.where(d1 > 0, (knots[p + 1 :] - t) / jnp.where(d1 > 0, d1, 1), 0)
            b = below * b[:-1] + right * b[1:]
        return b

    t = jnp.linspace(0.05, 4.95, 19)
    design = jax.vmap(basis)(t)
    fit = jnp.linalg.lstsq(design, jnp.cos(t))[0]
    slope = jax.vmap(jax.grad(lambda q: spline(x, y, q)))(at)
    bend = jax.vmap(jax.grad(jax.grad(lambda q: spline(x, y, q))))(at)
    return m, thomas(*system), spline(x, y, at), slope, bend, jax.jacrev(spline, 1)(x, y, at[::9]), design, fit


def homography_by_consensus():
    n = 37
    H = jnp.array([[1.1, 0.1, 0.3], [-0.05, 0.9, -0.2], [0.02, -0.03, 1.0]])
    p = jnp.asarray(np.random.default_rng(15).uniform(-1, 1, (n, 2)), jnp.float32)

    def apply(H, p):
        q = jnp.concatenate([p, jnp.ones((*p.shape[:-1], 1))], -1) @ H.T
        return q[..., :2] / q[..., 2:]

    q = apply(H, p) + 0.002 * _normal(16, n, 2)
    q = q.at[::4].add(0.7 * _normal(17, len(range(0, n, 4)), 2))

    def direct(p, q):
        zero, one = jnp.zeros_like(p[:, 0]), jnp.ones_like(p[:, 0])
        x, y, u, v = *p.T, *q.T
        rows = jnp.stack(
            [
                jnp.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1),
                jnp.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1),
            ],
            1,
        ).reshape(-1, 8)
        h = jnp.linalg.lstsq(rows, q.reshape(-1))[0] if rows.shape[0] > 8 else jnp.linalg.solve(rows, q.reshape(-1))
        return jnp.append(h, 1.0).reshape(3, 3)

    def trial(key):
        at = random.choice(key, n, (4,), replace=False)
        error = jnp.sum((apply(direct(p[at], q[at]), p) - q) ** 2, -1)
        return at, jnp.sum(error < 1e-3)

    at, votes = jax.jit(jax.vmap(trial))(random.split(random.key(6), 29))
    best = direct(p[at[votes.argmax()]], q[at[votes.argmax()]])
    error = jnp.sum((apply(best, p) - q) ** 2, -1)
    inside = jnp.nonzero(error < 1e-3, size=24, fill_value=int(jnp.argmin(error)))[0]
    refined = direct(p[inside], q[inside])

    def huber(h):
        r = jnp.sqrt(jnp.sum((apply(jnp.append(h, 1).reshape(3, 3), p) - q) ** 2, -1) + 1e-9)
        return jnp.sum(jnp.where(r < 0.02, r**2 / 2, 0.02 * (r - 0.01)))

    g = jax.grad(huber)(refined.reshape(-1)[:8] + 0.05)
    return (
        at,
        votes,
        inside,
        refined,
        g,
        jax.vmap(jnp.linalg.det)(jax.vmap(jax.jacfwd(lambda x: apply(refined, x)))(p[:5])),
    )


def levenberg_marquardt_with_bounds():
    t = jnp.linspace(0, 4, 23)
    true = jnp.array([2.0, 0.7, 3.1, 0.4, 0.5])
    model = lambda p, t: p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3]) + p[4]
    y = model(true, t) + 0.02 * _normal(3, 23)
    low, high = jnp.array([0.0, 0.0, 1.0, -1.0, -1.0]), jnp.array([5.0, 2.0, 5.0, 1.0, 0.45])

    def residual(p):
        return model(p, t) - y

    def body(c):
        p, damping, k, history = c
        r, J = residual(p), jax.jacfwd(residual)(p)
        A = J.T @ J
        step = jnp.linalg.solve(A + damping * jnp.diag(jnp.diag(A)), -J.T @ r)
        q = jnp.clip(p + step, low, high)
        better = jnp.sum(residual(q) ** 2) < jnp.sum(r**2)
        p = jnp.where(better, q, p)
        damping = lax.select(better, damping / 3, damping * 2)
        return p, damping, k + 1, history.at[k].set(jnp.sum(residual(p) ** 2))

    def fit(p):
        return lax.while_loop(lambda c: c[2] < 12, body, (p, 0.01, 0, jnp.zeros(12)))

    starts = jnp.array([[1.5, 0.5, 3.0, 0.2, 0.0], [2.5, 1.0, 3.3, 0.0, 0.3]])
    p, _, steps, history = jax.jit(jax.vmap(fit))(starts)
    J = jax.jacrev(residual)(p[0])
    influence = jax.jvp(lambda q: model(q, t), (p[0],), (jnp.ones(5),))[1]
    return p, steps, history, jnp.linalg.inv(J.T @ J + 1e-2 * jnp.eye(5)), influence
