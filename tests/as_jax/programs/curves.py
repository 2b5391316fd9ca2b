"""Whole programs of curves and turns: rotations, warped time, splines, implicit fixed points."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _r(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def _f(x):
    return jnp.asarray(x, dtype=jnp.result_type(float))


def quaternions(n=5):
    q = _f(_r(1, n, 4))
    v = _f(_r(2, n, 3))

    def mul(a, b):
        w, x = (a[0], a[1:])
        y, z = (b[0], b[1:])
        return jnp.concatenate([jnp.array([w * y - x @ z]), w * z + y * x + jnp.cross(x, z)])

    unit = lambda q: q / jnp.linalg.norm(q)

    def rotate(q, v):
        q = unit(q)
        c = q * jnp.array([1.0, -1, -1, -1])
        return mul(mul(q, jnp.concatenate([jnp.zeros(1), v])), c)[1:]

    def slerp(a, b, t):
        a, b = (unit(a), unit(b))
        d = jnp.clip(a @ b, -1, 1)
        b = jnp.where(d < 0, -b, b)
        d = jnp.abs(d)
        th = jnp.arccos(d)
        s = jnp.sin(th)
        return jnp.where(
            s < 0.0001, a + (b - a) * t, (jnp.sin((1 - t) * th) * a + jnp.sin(t * th) * b) / jnp.where(s < 0.0001, 1, s)
        )

    def prog(q, v):
        r = jax.vmap(rotate)(q, v)
        tot = lax.associative_scan(jax.vmap(mul), jax.vmap(unit)(q))
        rev = lax.associative_scan(jax.vmap(mul), jax.vmap(unit)(q), reverse=True)
        s = jax.vmap(slerp, (0, 0, None))(q, jnp.roll(q, 1, 0), 0.3)
        g = jax.grad(lambda q: (jax.vmap(rotate)(q, v) ** 2 @ jnp.array([1.0, 2, 3])).sum())(q)
        same = slerp(q[0], q[0], 0.5)
        return dict(r=r, tot=tot, rev=rev, s=s, g=g, same=same, jac=jax.jacfwd(lambda t: slerp(q[0], q[-1], t))(0.25))

    return jax.jit(prog)(q, v)


def soft_dtw(n=7):
    x = _f(np.cumsum(_r(3, n)))
    y = _f(np.cumsum(_r(4, n + 2)))

    def loss(x, y, gamma):
        d = (x[:, None] - y[None]) ** 2
        m = y.shape[0]

        def row(prev, drow):

            def cell(west, inp):
                up, diag, c = inp
                z = -jnp.array([west, up, diag]) / gamma
                v = c - gamma * jax.nn.logsumexp(z)
                return (v, v)

            _, cur = lax.scan(cell, jnp.inf, (prev[1:], prev[:-1], drow))
            return (jnp.concatenate([jnp.array([jnp.inf]), cur]), cur)

        first = jnp.concatenate([jnp.zeros(1), jnp.full(m, jnp.inf)])
        last, _ = lax.scan(row, first, d)
        return last[-1]

    def hard(x, y):
        d = jnp.abs(x[:, None] - y[None])

        def row(prev, drow):

            def cell(west, inp):
                up, diag, c = inp
                v = c + jnp.minimum(jnp.minimum(west, up), diag)
                return (v, v)

            _, cur = lax.scan(cell, jnp.inf, (prev[1:], prev[:-1], drow))
            return (jnp.concatenate([jnp.array([jnp.inf]), cur]), None)

        last, _ = lax.scan(row, jnp.concatenate([jnp.zeros(1), jnp.full(y.shape[0], jnp.inf)]), d)
        return last[-1]

    v, g = jax.jit(jax.value_and_grad(loss, (0, 1)))(x, y, 0.5)
    return (
        v,
        g,
        jax.jit(jax.vmap(loss, (None, None, 0)))(x, y, _f([0.1, 1.0, 10.0])),
        jax.jit(hard)(x, y),
        jax.jit(jax.grad(hard))(x, y),
    )


def splines(n=1):
    t = _f(np.linspace(0, 1, n + 4))
    y = _f(_r(22, n + 4))
    q = _f(np.linspace(-0.1, 1.1, 9))

    def thomas(a, b, c, d):

        def fw(s, r):
            a, b, c, d = r
            w = b - a * s[0]
            return ((c / w, (d - a * s[1]) / w), (c / w, (d - a * s[1]) / w))

        _, (cp, dp) = lax.scan(fw, (jnp.zeros(()), jnp.zeros(())), (a, b, c, d))
        return lax.scan(lambda x, r: (r[1] - r[0] * x,) * 2, jnp.zeros(()), (cp, dp), reverse=True)[1]

    def cubic(y):
        N = y.shape[0]
        h = t[1] - t[0]
        d = jnp.concatenate([jnp.zeros(1), 6 * (y[2:] - 2 * y[1:-1] + y[:-2]) / h**2, jnp.zeros(1)])
        e = jnp.concatenate([jnp.zeros(1), jnp.ones(N - 2), jnp.zeros(1)])
        M = thomas(e, jnp.where(e > 0, 4.0, 1.0), e, d)
        i = jnp.clip(jnp.searchsorted(t, q, side="right") - 1, 0, N - 2)
        u = (q - t[i]) / h
        return (1 - u) * y[i] + u * y[i + 1] + h * h / 6 * (((1 - u) ** 3 - (1 - u)) * M[i] + (u**3 - u) * M[i + 1])

    def deboor(x, c, k=3):
        kn = jnp.concatenate([jnp.zeros(k), jnp.linspace(0, 1, c.shape[0] - k + 1), jnp.ones(k)])
        i = jnp.clip(jnp.searchsorted(kn, x, side="right") - 1, k, c.shape[0] - 1)
        d = lax.dynamic_slice(c, (i - k,), (k + 1,))
        for r in range(1, k + 1):
            for j in range(k, r - 1, -1):
                al = (x - kn[j + i - k]) / jnp.where(
                    kn[j + 1 + i - r] - kn[j + i - k] == 0, 1, kn[j + 1 + i - r] - kn[j + i - k]
                )
                d = d.at[j].set((1 - al) * d[j - 1] + al * d[j])
        return d[k]

    return (
        jax.jit(cubic)(y),
        jax.jit(jax.jacrev(cubic))(y),
        jax.jit(jax.vmap(deboor, (0, None)))(jnp.clip(q, 0, 1), y),
        jax.jit(jax.vmap(jax.grad(jax.grad(deboor)), (0, None)))(jnp.clip(q, 0.01, 0.99), y),
        jax.jit(lambda: jnp.interp(q, t, y, period=0.7))(),
        jax.jit(jax.grad(lambda y: jnp.interp(q, t, y).sum()))(y),
        jnp.polyval(jnp.polyfit(t, y, 3), q),
    )


def implicit_fixed_points(n=5):
    w = _f(0.3 * _r(11, n, n) / n**0.5)
    b = _f(_r(12, n))

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed(f, theta, x0):

        def body(c):
            return (f(theta, c[0]), c[0], c[2] + 1)

        return lax.while_loop(
            lambda c: (jnp.abs(c[0] - c[1]).max() > 1e-06) & (c[2] < 200), body, (f(theta, x0), x0, 0)
        )[0]

    def fwd(f, theta, x0):
        x = fixed(f, theta, x0)
        return (x, (theta, x))

    def bwd(f, res, ct):
        theta, x = res
        _, pt = jax.vjp(lambda t: f(t, x), theta)
        _, px = jax.vjp(lambda x: f(theta, x), x)
        u = fixed(lambda _, u: ct + px(u)[0], None, ct)
        return (pt(u)[0], jnp.zeros_like(x))

    fixed.defvjp(fwd, bwd)
    f = lambda t, x: jnp.tanh(t["w"] @ x + t["b"])
    t = dict(w=w, b=b)
    loss = lambda t, x0: (fixed(f, t, x0) ** 2).sum()
    g = jax.jit(jax.grad(loss))(t, jnp.zeros(n))
    gv = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(t, _f(_r(13, 3, n)))
    root = lambda a: lax.custom_root(
        lambda x: x**3 + x - a,
        jnp.zeros_like(a),
        lambda f, x0: lax.fori_loop(0, 30, lambda i, x: x - f(x) / (3 * x * x + 1), x0),
        lambda g, y: y / g(jnp.ones_like(y)),
    )
    return (
        g,
        gv,
        jax.jit(jax.vmap(jax.value_and_grad(root)))(b),
        jax.jit(jax.vmap(jax.grad(jax.grad(root))))(b),
        jax.jvp(root, (b[0],), (jnp.ones_like(b[0]),)),
    )
