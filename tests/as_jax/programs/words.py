"""Whole programs of bits and integers, and of rules that programs rely on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def hashes_crc_and_generators():

    def program(seed, data):
        poly = jnp.uint32(3988292384)
        tab = lax.fori_loop(
            0, 8, lambda i, c: jnp.where(c & 1, c >> 1 ^ poly, c >> 1), jnp.arange(256, dtype=jnp.uint32)
        )
        crc = ~lax.fori_loop(0, data.shape[0], lambda i, c: tab[(c ^ data[i]) & 255] ^ c >> 8, jnp.uint32(4294967295))
        fnv = lax.scan(
            lambda h, b: ((h ^ b) * jnp.uint32(16777619), h), jnp.uint32(2166136261), data.astype(jnp.uint32)
        )

        def xs(s, _):
            s = s ^ s << 13
            s = s ^ s >> 17
            s = s ^ s << 5
            return (s, s)

        _, x = lax.scan(xs, seed, None, length=19)

        def pcg(s, _):
            w = (s >> (s >> 28) + 4 ^ s) * jnp.uint32(277803737)
            return (s * jnp.uint32(747796405) + jnp.uint32(2891336453), w >> 22 ^ w)

        _, p = lax.scan(pcg, seed, None, length=19)
        rotl = lambda x, r: x << r | x >> 32 - r

        def murmur(h, k):
            k = rotl(k * jnp.uint32(3432918353), 15) * jnp.uint32(461845907)
            h = rotl(h ^ k, 13) * 5 + jnp.uint32(3864292196)
            return (h, h)

        k = lax.bitcast_convert_type(data[:36].reshape(9, 4), jnp.uint32)
        m = lax.scan(murmur, seed, k)
        g = data ^ data >> 1
        pc = lax.population_count(p)
        rev = lax.fori_loop(0, 8, lambda i, c: (c[0] << 1 | c[1] & 1, c[1] >> 1), (jnp.zeros_like(data), data))[0]
        return (
            crc,
            fnv,
            x,
            p,
            m,
            g,
            pc,
            rev,
            lax.clz(p),
            data * data,
            data - 200,
            data.astype(jnp.int8) * 3 >> 1,
            x % jnp.uint32(1000),
            x // jnp.uint32(7),
            x.astype(jnp.float32),
            x.astype(jnp.int32) // 7,
            x.astype(jnp.int32) % -7,
        )

    return jax.jit(program)(np.uint32(12345), np.arange(37, dtype="uint8"))


def fixed_point_arithmetic():

    def program(q):
        F = 16
        one = 1 << F

        def mul(a, b):
            al, ah = (a & 65535, a >> 16)
            bl, bh = (b & 65535, b >> 16)
            return (
                (al.astype(jnp.uint32) * bl.astype(jnp.uint32) >> 16).astype(jnp.int32)
                + al * bh
                + ah * bl
                + (ah * bh << 16)
            )

        def sqrt(x):

            def b(i, c):
                r, n, bit = c
                t = n >= r + bit
                return (jnp.where(t, (r >> 1) + bit, r >> 1), jnp.where(t, n - r - bit, n), bit >> 2)

            return lax.fori_loop(0, 16, b, (jnp.zeros_like(x), x, jnp.full_like(x, 1 << 30)))[0]

        def cordic(ang):
            at = jnp.asarray(np.round(np.arctan(2.0 ** (-np.arange(15))) * one), jnp.int32)

            def b(i, c):
                x, y, z = c
                s = jnp.where(z >= 0, 1, -1)
                return (x - s * (y >> i), y + s * (x >> i), z - s * at[i])

            return lax.fori_loop(0, 15, b, (jnp.full_like(ang, 39797), jnp.zeros_like(ang), ang))

        ang = q % (2 * one) - one
        return (
            mul(q, q),
            sqrt(q),
            cordic(ang),
            q // -7,
            q % -7,
            lax.rem(q, -7),
            lax.div(-q, 7),
            -q >> 3,
            lax.shift_right_logical(-q, jnp.int32(3)),
            jnp.clip(q * 3, -one, one),
            q * -7,
            q.astype(jnp.int16),
            q.astype(jnp.uint8),
            jnp.divmod(-q, 1000),
        )

    return jax.jit(program)(np.arange(1, 8, dtype="int32") * 1000003)


def _bit_packing_and_gray(x, s):
    b = lax.bitcast_convert_type(x, jnp.uint32)
    sg, ex, mn = (b >> 31, b >> 23 & 255, b & 8388607)
    rec = lax.bitcast_convert_type(sg << 31 | ex << 23 | mn, jnp.float32)
    inv = lax.bitcast_convert_type(
        jnp.uint32(1597463007) - (lax.bitcast_convert_type(jnp.abs(x), jnp.uint32) >> 1), jnp.float32
    )
    inv = inv * (1.5 - 0.5 * jnp.abs(x) * inv * inv)
    srt = jnp.where(b >> 31, ~b, b | jnp.uint32(2147483648))
    o = jnp.argsort(srt)
    bf = b + 32767 + (b >> 16 & 1) >> 16
    bfx = lax.bitcast_convert_type(bf.astype(jnp.uint16), jnp.bfloat16)

    def part(v):
        v = (v | v << 8) & 16711935
        v = (v | v << 4) & 252645135
        v = (v | v << 2) & 858993459
        return (v | v << 1) & 1431655765

    m = part(jnp.arange(9, dtype=jnp.uint32) * s % 256) | part(jnp.arange(9, dtype=jnp.uint32)) << 1
    n4 = jnp.arange(16, dtype=jnp.uint8)
    pk = n4[::2] | n4[1::2] << 4
    up = jnp.stack([pk & 15, pk >> 4], -1).ravel()
    sw = b
    sw = (sw >> 1 & 1431655765) + (sw & 1431655765)
    l = jnp.int8(-128)
    lf = lambda v: lax.fori_loop(0, 16, lambda i, v: v >> 1 ^ jnp.where(v & 1, jnp.uint16(46080), jnp.uint16(0)), v)
    return (
        sg,
        ex,
        mn,
        rec,
        inv,
        srt[o],
        bfx == x.astype(jnp.bfloat16),
        m,
        pk,
        up,
        sw,
        -l,
        abs(l),
        l // jnp.int8(-1),
        lax.rem(l, jnp.int8(-1)),
        l % jnp.int8(-1),
        lf(b.astype(jnp.uint16)),
        jnp.left_shift(jnp.int32(1), jnp.arange(29, 36)),
        jnp.right_shift(jnp.int32(-5), jnp.arange(29, 36)),
        jnp.uint8(200) >> jnp.uint8(9),
        jnp.uint8(3) - jnp.uint8(5),
        (b % 7).astype(jnp.int8),
        b.astype(jnp.float32),
        b.astype(jnp.int32),
        x.astype(jnp.uint8),
        (x * 10000000000.0).astype(jnp.int32),
        (x * 1000.0).astype(jnp.int8),
        jnp.bitwise_count(b),
        lax.clz(mn),
        (x * 50).astype(jnp.uint32),
        jnp.iinfo(jnp.int32).min // jnp.int32(-1),
    )


def bit_packing_and_gray():
    return jax.jit(_bit_packing_and_gray)(_normal(51, 9), np.uint32(77))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _ap(f, x):
    return f(x)


@jax.custom_jvp
def _lg(x):
    return jnp.log1p(jnp.exp(x))


_lg.defjvps(lambda t, y, x: t * jax.nn.sigmoid(x))


def _custom_rules_of_every_kind(x):

    @_ap.defjvp
    def _(f, p, t):
        return (f(p[0]), 2 * t[0] * f(p[0]))

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def clipg(x, b):
        return x

    clipg.defvjp(lambda x, b: (x, None), lambda b, r, g: (jnp.clip(g, -b, b),))

    @jax.custom_vjp
    def dct(d, i):
        return d["a"] * i + d["b"]

    dct.defvjp(lambda d, i: (dct(d, i), (d, i)), lambda r, g: ({"a": g * r[1], "b": g * 2}, None))

    @jax.custom_gradient
    def cg(x):
        return (x**2, lambda g: g * 7)

    @jax.custom_batching.custom_vmap
    def cv(a, b):
        return a + b

    @cv.def_vmap
    def _(n, bt, a, b):
        return (a * b if bt[0] and bt[1] else a - b, True)

    @functools.partial(jax.custom_vjp)
    def ste(x):
        return jnp.round(x)

    ste.defvjp(lambda x: (jnp.round(x), x), lambda x, g: (jnp.where(jnp.abs(x) < 1, g, 0),))
    g = jax.grad
    s = lambda f: lambda *a: jnp.sum(f(*a))
    q = lax.custom_linear_solve(lambda v: 3 * v, x, lambda mv, b: b / 3, symmetric=True)
    return (
        _ap(jnp.sin, x),
        g(s(lambda x: _ap(jnp.sin, x)))(x),
        jax.vmap(g(_lg))(x),
        jax.jit(g(s(lambda x: clipg(x * 9, 0.5))))(x),
        g(s(lambda d: dct(d, 3)))({"a": x, "b": x}),
        g(s(cg))(x),
        jax.vmap(cv)(x, x),
        jax.vmap(cv, (0, None))(x, 2.0),
        cv(x[0], 1.0),
        g(s(lambda x: ste(x) ** 2))(x),
        jax.vmap(jax.jit(g(lambda a: clipg(a * a, 1.0))))(x),
        q,
        g(s(lambda b: lax.custom_linear_solve(lambda v: 3 * v, b, lambda mv, b: b / 3, symmetric=True)))(x),
        jax.jacfwd(lambda x: _ap(jnp.cos, x))(x),
        lax.scan(lambda c, v: (clipg(c * v, 0.1), _lg(c)), 1.0, x),
        g(lambda c: lax.scan(lambda c, v: (clipg(c * v, 0.1), _lg(c)), c, x)[1].sum())(1.0),
        lax.stop_gradient(x),
        g(lambda x: (x * lax.stop_gradient(x)).sum())(x),
    )


def custom_rules_of_every_kind():
    return _custom_rules_of_every_kind(jnp.asarray(_normal(52, 6)))


def _nested_transformations(x):
    f = lambda a, b: jnp.sin(a @ b) * jnp.exp(-a[0])
    v, g, J = jax.vmap, jax.grad, jax.jacobian
    o = v(v(g(f), (None, 0)), (0, None))(x, x)
    h = v(jax.hessian(f, (0, 1)), (0, 0))(x, x)
    r = jax.jacfwd(jax.jacrev(lambda a: f(a, a)))(x[0])
    jv = v(lambda t: jax.jvp(lambda a: f(a, x[1]), (x[0],), (t,)))(jnp.eye(3))
    t3 = jax.jacfwd(jax.jacfwd(jax.jacrev(lambda a: f(a, x[1]))))(x[0])
    w = v(lambda a: lax.while_loop(lambda c: c[1] < a[0], lambda c: (c[0] + a, c[1] + 0.3), (a, -1.0)))(x)
    wg = jax.jvp(
        lambda a: lax.while_loop(lambda c: c[1] < 1.0, lambda c: (c[0] * a, c[1] + 0.3), (a, -1.0))[0], (x,), (x,)
    )
    cc = v(
        v(
            lambda a, b: lax.cond(
                a > b,
                lambda: lax.cond(a > 0, lambda: a * b, lambda: a - b),
                lambda: lax.switch(jnp.int32(b * 3), [lambda: a, lambda: b, lambda: a + b]),
            ),
            (0, None),
        ),
        (None, 0),
    )(x[0], x[1])
    cg = v(g(lambda a: lax.cond(a > 0, jnp.sqrt, lambda u: u * 0, a)))(x[0])
    sc = v(lambda a, n: lax.fori_loop(0, n, lambda i, c: c.at[i % 3].add(a[i % 3] * i), a))(x, jnp.array([0, 3, 5, 2]))
    m = jax.jit(
        v(
            lambda k, n: lax.scan(
                lambda c, s: (jnp.where(s < n, c * 1.1 + random.normal(random.fold_in(k, s)), c), c), 0.0, jnp.arange(5)
            ),
            (0, 0),
        )
    )(random.split(random.key(0), 4), jnp.arange(4))
    ax = v(lambda a: lax.psum(a, "i") * lax.axis_index("i") + lax.pmax(a.max(), "i"), axis_name="i")(x)
    ag = v(
        lambda a: (lax.all_gather(a, "i").sum(), lax.ppermute(a, "i", [(0, 1), (1, 2), (2, 3), (3, 0)])), axis_name="i"
    )(x)
    so = v(lambda a: a * 2, in_axes=1, out_axes=1)(x)
    dd = v(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": None},))({"a": x, "b": x[0]})
    tt = g(
        lambda a: lax.scan(lambda c, _: (jax.jvp(jnp.tanh, (c,), (a,))[1] + c, c.sum()), a, None, length=3)[1].sum()
    )(x)
    lin = jax.linearize(lambda a: lax.cumsum(a * a, 0), x)[1](x)
    aux = jax.value_and_grad(lambda a: (a.sum(), {"y": a * 2}), has_aux=True)(x)
    ho = J(lambda a: a.reshape(2, 6) @ a.reshape(6, 2))(x)
    vj = jax.vjp(lambda a, b: (a @ b.T, a.sum()), x, x)
    first = (o, h, r, jv, t3, w, wg, cc, cg, sc, m, ax, ag, so, dd, tt, lin, aux, ho)
    return (
        first,
        vj[1]((jnp.ones((4, 4)), 1.0)),
        jax.jit(lambda a: jax.jit(lambda b: b * a)(a + 1))(x),
        v(jax.jit(lambda a, b: a * b, inline=True), (0, None))(x, 2.0),
        g(jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)).sum()))(x),
        v(lambda a: jnp.linalg.solve(jnp.outer(a, a) + jnp.eye(3), a))(x),
    )


def nested_transformations():
    return _nested_transformations(_normal(53, 4, 3))


def checkpoints_and_higher_derivatives():

    def program(x):

        @jax.checkpoint
        def blk(c, w):
            return (jnp.sin(c * w + jnp.roll(c, 1)), None)

        f = lambda x: lax.scan(blk, x, jnp.linspace(0.5, 1.5, 8))[0].sum()
        f2 = lambda x: lax.scan(
            jax.checkpoint(
                lambda c, w: (jnp.sin(c * w + jnp.roll(c, 1)), c.sum()), policy=jax.checkpoint_policies.dots_saveable
            ),
            x,
            jnp.linspace(0.5, 1.5, 8),
        )[1].sum()
        h = lambda x, v: jax.jvp(jax.grad(f), (x,), (v,))[1]
        g3 = jax.grad(lambda t: jax.grad(lambda t: jax.grad(lambda t: f(x * t))(t))(t))(1.0)
        y, lin = jax.linearize(f2, x)
        vj = jax.linear_transpose(lambda v: jnp.cumsum(v)[::2] * 3, x)(jnp.ones(5))
        from jax.experimental import jet

        return (
            f(x),
            jax.grad(f)(x),
            jax.grad(f2)(x),
            h(x, x),
            g3,
            y,
            lin(jnp.ones(9)),
            vj,
            jax.hessian(f2)(x)[:2],
            jax.jacrev(lambda x: lax.scan(blk, x, jnp.ones(3))[0])(x),
            jet.jet(jnp.sin, (x,), ((jnp.ones(9), jnp.zeros(9)),)),
        )

    return program(_normal(54, 9))
