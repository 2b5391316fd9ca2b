"""Whole programs of numbers as machines keep them: residues, digits, words, rounding errors."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _r(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def _i(seed, low, high, *shape, dt="int32"):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dt)


def _mulmod(a, b, m):

    def st(i, c):
        r, a = c
        r = jnp.where(b >> i & 1 == 1, (r + a) % m, r)
        return (r, (a + a) % m)

    return lax.fori_loop(0, 16, st, (jnp.zeros_like(a), a % m))[0]


def _powmod(a, e, m):

    def body(s):
        r, a, e = s
        return (jnp.where(e & 1 == 1, _mulmod(r, a, m), r), _mulmod(a, a, m), e >> 1)

    return lax.while_loop(lambda s: s[2] > 0, body, (jnp.ones_like(a), a % m, e))[0]


def _miller(nn):
    d = (nn - 1) // (nn - 1 & ~(nn - 1) + 1)
    r = lax.population_count((nn - 1 & ~(nn - 1) + 1) - 1)

    def wit(b):
        x = _powmod(b % nn, d, nn)
        ok = (x == 1) | (x == nn - 1) | (b % nn == 0)

        def st(i, c):
            x, ok = c
            x = _mulmod(x, x, nn)
            return (x, ok | (x == nn - 1) & (i < r.astype(jnp.int32) - 1))

        return lax.fori_loop(0, 15, st, (x, ok))[1]

    return jax.vmap(wit)(jnp.array([2, 3, 5, 7], jnp.uint32)).all() & (nn % 2 == 1) | (nn == 2)


def _egcd(a, b):
    s = lax.while_loop(
        lambda s: s[1] != 0,
        lambda s: (s[1], s[0] % s[1], s[3], s[2] - s[0] // s[1] * s[3]),
        (a, b, jnp.ones_like(a), jnp.zeros_like(a)),
    )
    return (s[0], s[2])


def modular_numbers(n=9):
    a = jnp.asarray(_i(1, 2, 2**15, n), jnp.uint32)
    ai = a.astype(jnp.int32)
    return (
        jax.jit(jax.vmap(lambda a: _powmod(a, jnp.uint32(65537), jnp.uint32(32749))))(a),
        jax.jit(jax.vmap(_miller))(a | 1),
        jax.jit(jax.vmap(_egcd, (0, None)))(ai, 32749),
        jnp.gcd(ai, jnp.roll(ai, 1)),
        jnp.lcm(ai % 100, 7),
        jax.jit(lambda a: a * a // jnp.uint32(3) % jnp.uint32(1 << 20))(a),
        -ai // 7,
        -ai % 7,
        jnp.divmod(ai, -13),
        lax.rem(-ai, 7),
        jnp.fmod(-ai, 7),
        jnp.power(ai % 9, 3),
        ai**2 % 11,
        jnp.left_shift(1, ai % 40),
        jnp.right_shift(-ai, ai % 40),
        jnp.invert(a),
    )


def big_integers(n=9):
    a = jnp.asarray(_i(2, 0, 2**16, n), jnp.uint32)
    b = a[::-1]

    def norm(d):

        def st(c, x):
            s = x + c
            return (s >> 16, s & 65535)

        c, o = lax.scan(st, jnp.uint32(0), d)
        return jnp.append(o, c)

    add = lambda a, b: norm(a + b)

    def mul(a, b):
        lo = jnp.zeros(2 * n + 1, jnp.uint32)
        p = a[:, None] * b[None]
        i = jnp.arange(n)[:, None] + jnp.arange(n)[None]
        return norm(lo.at[i].add(p & 65535).at[i + 1].add(p >> 16))

    def divs(a, s):
        return lax.scan(lambda r, x: ((r << 16 | x) % s, (r << 16 | x) // s), jnp.uint32(0), a[::-1])

    carry = lax.associative_scan(
        lambda p, q: (q[0] | q[1] & p[0], q[1] & p[1]), ((a + b >> 16).astype(bool), a + b & 65535 == 65535)
    )
    cmp = lambda a, b: lax.scan(
        lambda c, x: (jnp.where(x[0] == x[1], c, jnp.where(x[0] > x[1], 1, -1)), None), 0, (a, b)
    )[0]
    return (jax.jit(add)(a, b), jax.jit(mul)(a, b), jax.jit(divs)(a, jnp.uint32(10007)), carry, jax.jit(cmp)(a, b))


_rot = lambda x, r: x << r | x >> 32 - r


def _chacha(key, ctr):
    s0 = jnp.concatenate([jnp.array([1634760805, 857760878, 2036477234, 1797285236], jnp.uint32), key, ctr])

    def qr(s, a, b, c, d):
        for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s = s.at[x].add(s[y])
            s = s.at[z].set(_rot(s[z] ^ s[x], r))
        return s

    def dbl(i, s):
        for t in (
            (0, 4, 8, 12),
            (1, 5, 9, 13),
            (2, 6, 10, 14),
            (3, 7, 11, 15),
            (0, 5, 10, 15),
            (1, 6, 11, 12),
            (2, 7, 8, 13),
            (3, 4, 9, 14),
        ):
            s = qr(s, *t)
        return s

    return lax.fori_loop(0, 10, dbl, s0) + s0


def _adler(m):
    a = jnp.cumsum(m.astype(jnp.uint32)) + 1
    return a.sum() % 65521 << 16 | a[-1] % 65521


def digests(n=1):
    K = np.array([int(abs(np.sin(i + 1)) * 2**32) for i in range(64)], np.uint32)
    S = np.array([[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]])[
        np.arange(64) // 16, np.arange(64) % 4
    ].astype(np.uint32)
    msg = jnp.asarray(_i(3, 0, 256, 16 * n * 4, dt="uint8"))

    def md5(msg):
        w = lax.bitcast_convert_type(msg.reshape(-1, 4), jnp.uint32).reshape(-1, 16)

        def block(h, m):

            def rnd(i, s):
                a, b, c, d = s
                f, g = lax.switch(
                    i // 16,
                    [
                        lambda: (b & c | ~b & d, i),
                        lambda: (d & b | ~d & c, (5 * i + 1) % 16),
                        lambda: (b ^ c ^ d, (3 * i + 5) % 16),
                        lambda: (c ^ (b | ~d), 7 * i % 16),
                    ],
                )
                f = f + a + jnp.asarray(K)[i] + m[g]
                return (d, b + _rot(f, jnp.asarray(S)[i]), b, c)

            s = lax.fori_loop(0, 64, rnd, tuple(h))
            return (h + jnp.stack(s), None)

        return lax.scan(block, jnp.array([1732584193, 4023233417, 2562383102, 271733878], jnp.uint32), w)[0]

    return (
        jax.jit(md5)(msg),
        jax.jit(jax.vmap(md5))(jnp.stack([msg, msg ^ 1])),
        jax.jit(jax.vmap(_chacha, (None, 0)))(
            jnp.arange(8, dtype=jnp.uint32), jnp.arange(4 * n, dtype=jnp.uint32).reshape(n, 4)
        ),
        jax.jit(_adler)(msg),
        jnp.packbits(msg >> 7),
        jnp.unpackbits(msg[:5]),
        jnp.unpackbits(msg[:5], bitorder="little", count=13),
    )


def compensated_sums(n=9):
    x = jnp.asarray(_r(4, n) * 10.0 ** _i(5, -6, 7, n), jnp.float32)

    def two(a, b):
        s = a + b
        t = s - a
        return (s, a - (s - t) + (b - t))

    def split(a):
        c = a * 4097.0
        h = c - (c - a)
        return (h, a - h)

    def prod(a, b):
        p = a * b
        ah, al = split(a)
        bh, bl = split(b)
        return (p, ah * bh - p + ah * bl + al * bh + al * bl)

    def kahan(x):

        def st(c, v):
            s, e = two(c[0], v)
            return ((s, c[1] + e), None)

        return lax.scan(st, (jnp.float32(0), jnp.float32(0)), x)[0]

    def neumaier(x):
        s, e = lax.associative_scan(
            lambda p, q: (two(p[0], q[0])[0], p[1] + q[1] + two(p[0], q[0])[1]), (x, jnp.zeros_like(x))
        )
        return s[-1] + e[-1]

    fma = lambda a, b, c: a * b + c
    return (
        jax.jit(kahan)(x),
        jax.jit(neumaier)(x),
        jax.jit(jax.vmap(two))(x, x[::-1]),
        jax.jit(prod)(x, x[::-1]),
        jax.jit(lambda x: fma(x, x, -x * x))(x),
        jnp.frexp(x),
        jnp.ldexp(x, 3),
        jnp.modf(x),
        jnp.nextafter(x, jnp.inf),
        lax.reduce_precision(x, 8, 7),
        x.view(jnp.int32),
        jnp.signbit(-x),
        jnp.copysign(x, -1.0),
        jnp.round(x, 2),
        jnp.trunc(x),
        jnp.rint(x),
    )


def morton_and_xorshift(n=17):
    x = jnp.asarray(np.random.default_rng(1).integers(0, 2**16, n), dtype=jnp.uint32)
    y = x[::-1] * 7 % 65536

    def spread(v):
        for s, m in ((8, 16711935), (4, 252645135), (2, 858993459), (1, 1431655765)):
            v = (v | v << s) & jnp.uint32(m)
        return v

    def compact(v):
        v = v & jnp.uint32(1431655765)
        for s, m in ((1, 858993459), (2, 252645135), (4, 16711935), (8, 65535)):
            v = (v | v >> s) & jnp.uint32(m)
        return v

    def prog(x, y):
        z = spread(x) | spread(y) << 1
        o = jnp.argsort(z)

        def xs(s, _):
            s ^= s << 13
            s ^= s >> 17
            s ^= s << 5
            return (s, s)

        _, r = lax.scan(xs, x + 1, None, length=5)
        pc = lax.population_count(r)
        clz = lax.clz(r | 1)
        rev = lax.fori_loop(0, 32, lambda i, c: (c[0] >> 1, c[1] << 1 | c[0] & 1), (z, jnp.zeros_like(z)))[1]
        par = lax.reduce(r, jnp.uint32(0), lax.bitwise_xor, (0,))
        hi = r.astype(jnp.uint32) * jnp.uint32(2654435761) >> 27
        return (
            z,
            o,
            compact(z) == x,
            r,
            pc,
            clz,
            rev,
            par,
            hi,
            r.view(jnp.int32) >> 3,
            lax.shift_right_arithmetic(r.view(jnp.int32), jnp.int32(31)),
            r.astype(jnp.float32),
            (r >> 8).astype(jnp.float32) * 2.0 ** (-24),
        )

    return jax.jit(prog)(x, y)
