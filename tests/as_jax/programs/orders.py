"""Whole programs of order: ties, places written twice, strings."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _r(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def _f(x):
    return jnp.asarray(x, dtype=jnp.result_type(float))


def _i(seed, low, high, *shape, dt="int32"):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dt)


def ties(n=33):
    v = np.round(_r(17, n) * 2) / 2
    x = _f(v)
    y = _f(np.where(np.arange(n) % 4 == 1, np.inf, v))
    z = _f(np.where(np.arange(n) % 5 == 2, -np.inf, v))
    w = _f(np.arange(1.0, n + 1))
    G = lambda f, *a: jax.jit(jax.grad(lambda *a: jnp.sum(f(*a))))(*a)
    out = dict(
        sort=G(lambda x: jnp.sort(x) * w, x),
        med=G(jnp.median, x),
        medy=G(jnp.median, y),
        q=G(lambda x: jnp.quantile(x, _f([0.0, 0.25, 0.5, 1.0])), x),
        lse=G(jax.nn.logsumexp, y),
        lsez=G(jax.nn.logsumexp, z),
        sm=G(lambda x: jax.nn.softmax(x) * w, z),
        mx=G(jnp.max, x),
        mxy=G(jnp.max, y),
        mn=G(jnp.min, y),
        am=jnp.argmax(x),
        amn=jnp.argmin(z),
        top=G(lambda x: lax.top_k(x, min(3, n))[0] ** 2, x),
        clip=G(lambda x: jnp.clip(x, -0.5, 0.5) * w, x),
        maxi=G(lambda x: jnp.maximum(x, jnp.roll(x, 1)) * w, x),
        ptp=G(jnp.ptp, x),
        rank=jnp.argsort(jnp.argsort(x)),
        part=jnp.sort(jnp.partition(x, n // 2)[: n // 2]),
        pct=jnp.percentile(x, _f([10, 50, 90]), method="nearest"),
        pl=jnp.percentile(x, 37.0, method="lower"),
        ph=jnp.percentile(x, 37.0, method="higher"),
        pm=jnp.percentile(x, 37.0, method="midpoint"),
        nq=jnp.nanquantile(jnp.where(jnp.isinf(y), jnp.nan, y), 0.4),
        nm=G(jnp.nanmedian, jnp.where(jnp.isinf(y), jnp.nan, y)),
        sd=jnp.searchsorted(jnp.sort(x), x, side="right"),
        sl=jnp.searchsorted(jnp.sort(z), z),
        var=G(jnp.var, x),
        std0=G(jnp.std, jnp.zeros(n)),
        abs=G(jnp.abs, x),
        sgn=G(jnp.sign, x),
        srt2=jax.jit(lambda x: lax.sort((x, jnp.arange(n), -x), num_keys=1))(x),
        lex=jnp.lexsort((jnp.arange(n)[::-1], x)),
        uniq=jnp.unique(x, size=n + 2, fill_value=9.0, return_inverse=True, return_counts=True, return_index=True),
    )
    return out


def scatters(n=7):
    i = jnp.asarray(_i(13, -3, n + 3, 2 * n + 3))
    v = _f(_r(14, 2 * n + 3))
    x = _f(_r(15, n))
    iv = jnp.asarray(_i(16, -100, 100, 2 * n + 3))

    def prog(x, i, v, iv):
        o = dict(
            add=x.at[i].add(v),
            mul=x.at[i].multiply(v),
            mx=x.at[i].max(v),
            mn=x.at[i].min(v),
            dropadd=x.at[i].add(v, mode="drop"),
            clip=x.at[i].add(v, mode="clip"),
            get=x.at[i].get(mode="fill", fill_value=7.0),
            getd=x[i],
            take=jnp.take(x, i),
            tc=jnp.take(x, i, mode="clip"),
            tw=jnp.take(x, i, mode="wrap"),
            iadd=jnp.zeros(n, jnp.int8).at[i].add(iv.astype(jnp.int8)),
            ior=jnp.zeros(n, jnp.uint32).at[i].max(iv.view(jnp.uint32)),
            ap=x.at[i[:1]].apply(jnp.sin),
            div=x.at[jnp.arange(n)[::-1]].divide(v[:n]),
            pw=jnp.abs(x).at[jnp.arange(n)].power(2.0),
            bs=jnp.zeros(n, bool).at[i].set(True),
            sl=x.at[::-2].set(9.0),
            sl2=x.at[1:-1].add(1.0) if n > 2 else x,
            el=x.at[...].multiply(2.0),
            ds=lax.dynamic_slice(x, (i[0],), (max(1, n // 2),)),
            du=lax.dynamic_update_slice(x, v[: max(1, n // 2)], (i[1],)),
            g=jax.grad(lambda x, v: (x.at[i].add(v) ** 2).sum(), (0, 1))(x, v),
            gm=jax.grad(lambda x, v: (x.at[i].max(v) * jnp.arange(n)).sum(), (0, 1))(x, v),
            gg=jax.grad(lambda x: (x[i] * v).sum())(x),
            gt=jax.grad(lambda x: jnp.nansum(jnp.take(x, i) * v))(x),
            gs=jax.grad(lambda x, v: (x.at[jnp.arange(n)[::-1]].set(v[:n]) * x).sum(), (0, 1))(x, v),
        )
        m = jnp.stack([x, 2 * x, -x])
        o["mat"] = m.at[jnp.array([0, 2, 0]), :].add(1.0)
        o["mat2"] = m.at[:, i].add(v)
        o["mat3"] = m.at[jnp.array([[0], [5]]), jnp.arange(n)[None]].set(3.0)
        o["mat4"] = m[jnp.array([0, -1, 7]), jnp.array([0, 0, 0])]
        o["msk"] = jnp.where(m > 1, 0.0, m)
        o["vm"] = jax.vmap(lambda m, i: m.at[i].add(1.0))(m, jnp.array([0, n, -1]))
        o["tal"] = jnp.take_along_axis(m, jnp.argsort(m, 1), 1)
        o["pal"] = jnp.put_along_axis(m, jnp.argmax(m, 1, keepdims=True), 9.0, 1, inplace=False)
        return o

    return jax.jit(prog)(x, i, v, iv)


def _lev(a, b):

    def row(prev, c):
        ins = prev[0] + 1
        sub = prev[:-1] + (b != c)
        dele = prev[1:] + 1
        best = jnp.minimum(sub, dele)
        cur = jnp.concatenate([ins[None], best])
        m = b.shape[0]
        cur = lax.cummin(cur - jnp.arange(m + 1)) + jnp.arange(m + 1)
        return (cur, cur[-1])

    return lax.scan(row, jnp.arange(b.shape[0] + 1), a)


def _lcs(a, b):

    def row(prev, c):
        d = prev[:-1] + (b == c)
        cur = lax.cummax(jnp.maximum(d, prev[1:]))
        return (jnp.concatenate([jnp.zeros(1, cur.dtype), cur]), None)

    return lax.scan(row, jnp.zeros(b.shape[0] + 1, jnp.int32), a)[0][-1]


def _suffix(s):
    N = s.shape[0]
    r = s
    k = 1
    while k < max(N, 2):
        nxt = jnp.where(jnp.arange(N) + k < N, jnp.roll(r, -k), -1)
        o = jnp.lexsort((nxt, r))
        ch = jnp.concatenate(
            [jnp.zeros(1, jnp.int32), ((r[o][1:] != r[o][:-1]) | (nxt[o][1:] != nxt[o][:-1])).astype(jnp.int32)]
        )
        r = jnp.zeros(N, jnp.int32).at[o].set(jnp.cumsum(ch).astype(jnp.int32))
        k *= 2
    return (jnp.argsort(r), r)


def _mtf(s):

    def st(t, c):
        p = jnp.argmax(t == c)
        t = jnp.where(jnp.arange(4) <= p, jnp.roll(t, 1), t).at[0].set(c)
        return (t, p)

    return lax.scan(st, jnp.arange(4), s)[1]


def strings(n=9):
    a = jnp.asarray(_i(18, 0, 4, n))
    b = jnp.asarray(_i(19, 0, 4, n + 1))
    P = jnp.asarray([1, 0, 1])

    def kmp(s):

        def st(c, x):
            m = jnp.array([c[1], c[2], x])
            return (m, (m == P).all())

        return lax.scan(st, jnp.array([-1, -1, -1]), s)[1]

    def z_and_borders(s):
        N = s.shape[0]
        run = lambda i: jnp.cumprod(
            jnp.where(jnp.arange(N) + i < N, s[(jnp.arange(N) + i) % N] == s, False).astype(jnp.int32)
        ).sum()
        return jax.vmap(run)(jnp.arange(N))

    def rle(s):
        ch = jnp.concatenate([jnp.ones(1, bool), s[1:] != s[:-1]])
        idx = jnp.nonzero(ch, size=n, fill_value=n)[0]
        return (idx, jnp.where(idx < n, s[jnp.minimum(idx, n - 1)], -1), jnp.diff(idx, append=n))

    h = lambda s: lax.associative_scan(
        lambda p, q: (p[0] * q[0] % 101, (p[1] * q[0] + q[1]) % 101), (jnp.full(s.shape, 7), s)
    )
    return (
        jax.jit(_lev)(a, b),
        jax.jit(_lcs)(a, b),
        jax.jit(_suffix)(a),
        jax.jit(kmp)(b),
        jax.jit(z_and_borders)(a),
        jax.jit(_mtf)(a),
        jax.jit(rle)(a),
        jax.jit(h)(a),
        jax.jit(jax.vmap(_lev, (None, 0)))(a, jnp.stack([b, b[::-1]]))[0],
    )
