"""Whole programs of people who like algorithms."""

import jax
import jax.numpy as jnp
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import numpy as np
from jax import lax


def sieve_and_primes():
    n = 131

    def body(i, s):
        m = (jnp.arange(n) % i == 0) & (jnp.arange(n) > i)
        return jnp.where(s[i] & m, False, s)

    s = lax.fori_loop(2, 12, body, jnp.ones(n, bool).at[:2].set(False))
    return (
        s.sum(),
        jnp.nonzero(s, size=40, fill_value=-1)[0],
        jnp.flatnonzero(s)[-3:],
        jnp.gcd(jnp.arange(20), 12),
        jnp.lcm(jnp.arange(1, 9), 6),
    )


def game_of_life():
    rng = np.random.default_rng(11)
    g = jnp.asarray(rng.random((17, 23)) < 0.3)

    def step(g, _):
        n = sum(
            jnp.roll(g.astype(jnp.int8), (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        g = (n == 3) | (g & (n == 2))
        return g, g.sum()

    g, c = lax.scan(step, g, length=25)
    k = jnp.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    return (
        g,
        c,
        jax.scipy.signal.convolve2d(g.astype(jnp.float32), k, mode="same"),
        jnp.packbits(g, axis=1),
        jnp.unpackbits(jnp.packbits(g, axis=0), axis=0, count=17),
    )


def bubble_and_bitonic_sort():
    rng = np.random.default_rng(11)
    x = jnp.asarray(rng.integers(-50, 50, 33))

    def bubble(x):
        n = x.shape[0]

        def outer(i, x):
            def inner(j, x):
                a, b = x[j], x[j + 1]
                return x.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))

            return lax.fori_loop(0, n - 1 - i, inner, x)

        return lax.fori_loop(0, n - 1, outer, x)

    o = jnp.lexsort((x, x % 7))
    return (
        jax.jit(bubble)(x),
        jnp.argsort(x, stable=True),
        jnp.sort(x, descending=True),
        o,
        jnp.partition(x, 5)[5],
        lax.sort((x % 5, x, jnp.arange(33)), num_keys=2),
    )


def dijkstra_and_floyd():
    rng = np.random.default_rng(11)
    n = 14
    w = jnp.asarray(np.where(rng.random((n, n)) < 0.3, rng.integers(1, 20, (n, n)), 10**6))
    w = jnp.where(jnp.eye(n, dtype=bool), 0, w)

    def floyd(k, d):
        return jnp.minimum(d, d[:, k, None] + d[None, k, :])

    def dijkstra(src):
        def body(s):
            d, done = s
            u = jnp.argmin(jnp.where(done, 10**7, d))
            return jnp.minimum(d, d[u] + w[u]), done.at[u].set(True)

        d0 = jnp.full(n, 10**6).at[src].set(0)
        return lax.while_loop(lambda s: ~s[1].all(), body, (d0, jnp.zeros(n, bool)))[0]

    a = lax.fori_loop(0, n, floyd, w)
    b = jax.jit(jax.vmap(dijkstra))(jnp.arange(n))
    return jnp.minimum(a, 10**6), b


def mandelbrot_and_newton():
    c = jnp.linspace(-2, 0.6, 31)[None] + 1j * jnp.linspace(-1.1, 1.1, 23)[:, None]

    def body(s):
        z, n, i = s
        z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
        return z, n + (jnp.abs(z) < 2), i + 1

    z, n, _ = lax.while_loop(lambda s: s[2] < 12, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32), 0))
    f = lambda z: z**3 - 1
    df = jax.vmap(jax.grad(f, holomorphic=True))
    w = (c + 0.1).ravel()
    for _ in range(12):
        w = w - f(w) / df(w)
    roots = jnp.exp(2j * jnp.pi * jnp.arange(3) / 3)
    return n, jnp.abs(w[:, None] - roots).argmin(1)


def edit_distance_and_alignment():
    rng = np.random.default_rng(11)
    a, b = jnp.asarray(rng.integers(0, 4, 19)), jnp.asarray(rng.integers(0, 4, 23))

    def row(prev, x):
        i, ch = x
        sub = prev[:-1] + (b != ch)
        dele = prev[1:] + 1
        best = jnp.minimum(sub, dele)

        def cell(west, c):
            v = jnp.minimum(west + 1, c)
            return v, v

        _, r = lax.scan(cell, i + 1, best)
        r = jnp.concatenate([jnp.array([i + 1]), r])
        return r, r

    _, rows = lax.scan(row, jnp.arange(24), (jnp.arange(19), a))
    g = 0.5

    def soft(theta):
        def srow(p, ai):
            def cell(l, c):
                d, u, s = c
                v = theta[ai, s] + g * jax.nn.logsumexp(jnp.stack([l - 1, u - 1, d]) / g)
                return v, v

            first = p[0] - 1
            _, r = lax.scan(cell, first, (p[:-1], p[1:], b))
            return jnp.concatenate([first[None], r]), None

        return lax.scan(srow, -jnp.arange(24.0), a)[0][-1]

    return rows[-1, -1], rows, jax.value_and_grad(soft)(jnp.eye(4) * 2 - 1)


def k_means_and_nearest():
    rng = np.random.default_rng(11)
    x = jnp.asarray(rng.normal(size=(97, 3)), jnp.float32) + jnp.asarray(
        rng.integers(0, 3, 97)[:, None] * 4.0, jnp.float32
    )

    def step(s):
        c, old, i = s
        a = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
        n = jnp.bincount(a, length=3)
        return jnp.zeros_like(c).at[a].add(x) / jnp.maximum(n, 1)[:, None], c, i + 1

    c, _, it = lax.while_loop(lambda s: jnp.any(jnp.abs(s[0] - s[1]) > 1e-6), step, (x[:3], x[:3] + 1, 0))
    d, i = lax.top_k(-((x[:, None] - x) ** 2).sum(-1), 5)
    return jnp.sort(c, axis=0), it, -d[:, 1:], jnp.digitize(x[:, 0], jnp.linspace(-2, 10, 7))


def hashing_and_bits():
    x = jnp.arange(67, dtype=jnp.uint32)

    def fnv(h, b):
        return (h ^ b) * jnp.uint32(16777619), None

    h = lax.scan(fnv, jnp.full(67, 2166136261, jnp.uint32), jnp.stack([(x >> s) & 0xFF for s in (0, 8, 16, 24)]))[0]
    murmur = x
    for m, s in ((0x85EBCA6B, 16), (0xC2B2AE35, 13), (1, 16)):
        murmur = (murmur ^ (murmur >> s)) * jnp.uint32(m)
    crc = jnp.arange(256, dtype=jnp.uint32)
    for _ in range(8):
        crc = jnp.where(crc & 1, jnp.uint32(0xEDB88320) ^ (crc >> 1), crc >> 1)
    return (
        h,
        murmur,
        crc,
        lax.population_count(h),
        lax.clz(murmur),
        h.astype(jnp.int32) // 7,
        h.astype(jnp.int32) % 7,
        lax.shift_right_arithmetic(h.astype(jnp.int32), 3),
        (h >> 3).astype(jnp.int8),
        jnp.bitwise_count(h),
    )


def sudoku_like_constraint_propagation():
    grid = np.zeros((9, 9), int)
    for i, j, v in [
        (0, 0, 5),
        (0, 1, 3),
        (0, 4, 7),
        (1, 0, 6),
        (1, 3, 1),
        (1, 4, 9),
        (1, 5, 5),
        (2, 1, 9),
        (2, 2, 8),
        (2, 7, 6),
        (3, 0, 8),
        (3, 4, 6),
        (3, 8, 3),
        (4, 0, 4),
        (4, 3, 8),
        (4, 5, 3),
        (4, 8, 1),
        (5, 0, 7),
        (5, 4, 2),
        (5, 8, 6),
        (6, 1, 6),
        (6, 6, 2),
        (6, 7, 8),
        (7, 3, 4),
        (7, 4, 1),
        (7, 5, 9),
        (7, 8, 5),
        (8, 4, 8),
        (8, 7, 7),
        (8, 8, 9),
    ]:
        grid[i, j] = v
    c = jnp.where(jnp.asarray(grid)[..., None] == 0, True, jnp.arange(1, 10) == jnp.asarray(grid)[..., None])

    def step(s):
        c, _ = s
        one = c & (c.sum(-1, keepdims=True) == 1)
        row, col = one.any(1, keepdims=True), one.any(0, keepdims=True)
        box = one.reshape(3, 3, 3, 3, 9).any((1, 3))
        box = jnp.repeat(jnp.repeat(box, 3, 0), 3, 1)
        n = c & (one | ~(row | col | box))
        for ax in (0, 1):
            n = jnp.where(
                (n.sum(ax, keepdims=True) == 1) & n,
                True,
                jnp.where(((n.sum(ax, keepdims=True) == 1) & n).any(-1, keepdims=True), False, n),
            )
        return n, c

    c, _ = lax.while_loop(lambda s: (s[0] != s[1]).any(), step, (c, ~c))
    return jnp.where(c.sum(-1) == 1, c.argmax(-1) + 1, 0)


def union_find_and_components():
    rng = np.random.default_rng(11)
    e = jnp.asarray(rng.integers(0, 40, (29, 2)))

    def body(s):
        p, _ = s
        q = p.at[e[:, 0]].min(p[e[:, 1]]).at[e[:, 1]].min(p[e[:, 0]])
        return q[q], p

    p, _ = lax.while_loop(lambda s: (s[0] != s[1]).any(), body, (jnp.arange(40), jnp.full(40, -1)))
    u, inv, cnt = jnp.unique(p, return_inverse=True, return_counts=True)
    return p, u, inv, cnt


def run_length_and_prefix():
    rng = np.random.default_rng(11)
    x = jnp.asarray(rng.integers(0, 3, 71))
    new = jnp.concatenate([jnp.array([True]), x[1:] != x[:-1]])
    seg = jnp.cumsum(new) - 1
    lens = jnp.bincount(seg, length=71)
    last = lax.associative_scan(lambda a, b: jnp.where(b >= 0, b, a), jnp.where(new, jnp.arange(71), -1))
    aff = lax.associative_scan(
        lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.linspace(0.5, 1, 71), x.astype(jnp.float32)), reverse=True
    )
    return (
        seg,
        lens,
        last,
        aff,
        lax.cummax(x),
        lax.cumlogsumexp(x.astype(jnp.float32)),
        jnp.diff(x, 2),
        jnp.trapezoid(x, dx=0.5),
        jnp.repeat(x[:9], jnp.arange(9), total_repeat_length=40),
        jnp.cumulative_sum(x, include_initial=True),
    )


def beam_search():
    rng = np.random.default_rng(11)
    W = jnp.asarray(rng.normal(size=(9, 9)), jnp.float32)
    lp = jax.nn.log_softmax(W)

    def step(s, t):
        seqs, sc, done = s
        last = seqs[:, t]
        c = sc[:, None] + jnp.where(done[:, None], jnp.where(jnp.arange(9) == 0, 0, -jnp.inf), lp[last])
        v, i = lax.top_k(c.ravel(), 4)
        b, tok = jnp.divmod(i, 9)
        seqs = seqs[b].at[:, t + 1].set(tok)
        return (seqs, v, done[b] | (tok == 0)), None

    s = (jnp.ones((4, 11), jnp.int32), jnp.array([0.0, -jnp.inf, -jnp.inf, -jnp.inf]), jnp.zeros(4, bool))
    return lax.scan(step, s, jnp.arange(10))[0]


def simplex_bisection_brent():
    f = lambda x: jnp.cos(x) - x**3

    def bis(s):
        a, b = s
        m = (a + b) / 2
        return lax.cond(f(a) * f(m) <= 0, lambda: (a, m), lambda: (m, b))

    a, b = lax.while_loop(lambda s: s[1] - s[0] > 1e-6, bis, (0.0, 1.0))
    root = lax.custom_root(
        lambda x: x**2 - 2.0,
        1.0,
        lambda f, x0: lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.grad(f)(x), x0),
        lambda g, y: y / g(1.0),
    )
    d = jax.grad(
        lambda t: lax.custom_root(
            lambda x: x**3 - t,
            1.0,
            lambda f, x0: lax.fori_loop(0, 30, lambda _, x: x - f(x) / jax.grad(f)(x), x0),
            lambda g, y: y / g(1.0),
        )
    )(5.0)
    gold = (jnp.sqrt(5.0) - 1) / 2
    lo, hi = jnp.array(0.0), jnp.array(3.0)
    g = lambda x: (x - 1.3) ** 2
    for _ in range(20):
        c, e = hi - gold * (hi - lo), lo + gold * (hi - lo)
        lo, hi = jnp.where(g(c) < g(e), lo, c), jnp.where(g(c) < g(e), e, hi)
    return (
        a,
        root,
        d,
        jnp.round((lo + hi) / 2, 2),
        jax.scipy.optimize.minimize(
            lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 4 + x**2), jnp.zeros(2), method="BFGS"
        ).x,
    )


def polynomials_and_interpolation():
    c = jnp.array([1.0, -6, 11, -6])
    x = jnp.linspace(0, 4, 13)
    xp = jnp.array([0.0, 1, 2.5, 4])
    fp = jnp.array([1.0, -1, 3, 0])
    V = jnp.vander(x, 4)
    return (
        jnp.polyval(c, x),
        jnp.sort(jnp.roots(c).real),
        jnp.polyfit(x, jnp.polyval(c, x), 3),
        jnp.interp(x, xp, fp, left=-9),
        jnp.polymul(c, c),
        jnp.polydiv(jnp.polymul(c, jnp.array([1.0, 2])), c),
        jnp.polyder(c, 2),
        jnp.polyint(c),
        V,
        jax.grad(lambda q: jnp.interp(q, xp, fp))(1.7),
        jax.scipy.interpolate.RegularGridInterpolator((xp, jnp.arange(3.0)), jnp.arange(12.0).reshape(4, 3) ** 2)(
            jnp.array([[0.5, 0.5], [3.0, 1.9]])
        ),
        jax.scipy.ndimage.map_coordinates(
            jnp.arange(20.0).reshape(4, 5) ** 1.5,
            [jnp.array([0.3, 2.9, -1.0]), jnp.array([1.1, 3.5, 2.0])],
            order=1,
            mode="nearest",
        ),
    )
