"""Whole programs of people who look at the machine: callbacks, meshes, exports, errors, prints."""

import contextlib
import functools
import io

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def _said(f):
    """What a function prints, and what it returns."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = f()
        jax.effects_barrier()
    return np.array(out.getvalue()), result


def a_notebook_that_prints(n=6):
    def cells():
        x = jnp.arange(n)
        print(x, x.dtype, x.shape, x.ndim, x.size, len(x), x.nbytes)
        print(jnp.linspace(0, 1, 5), jnp.zeros((2, 3)), jnp.array([1 + 2j, 3.5]))
        print(jnp.array([[1.5, jnp.nan], [jnp.inf, -0.0]]), jnp.ones((), jnp.bfloat16))
        print(jnp.array([True, False]), jnp.uint8(3), jnp.float32(2.5), f"{jnp.float32(1 / 3):.3f}")
        print(jnp.array([], jnp.float16), jnp.zeros((0, 3), jnp.int8), str(jnp.arange(3.0)[1]))
        print(f"{x[2]} {x[3]:03d} {x.sum()} {float(x.mean()):g} {x.mean():>8.2f}|{x.max():<4d}|")
        print(jax.ShapeDtypeStruct((2, 3), jnp.float32), jax.eval_shape(lambda a: (a @ a.T, a.sum()), jnp.ones((2, 3))))
        print({"loss": float(jnp.float32(0.25)), "step": jnp.int32(3).item()}, str(jnp.bool_(True)))
        print(
            jax.tree.structure({"a": [1, (2, None)], "b": {}}),
            jax.tree.map(jnp.shape, {"w": np.ones((2, 2)), "b": 1.0}),
        )
        print(jax.tree.leaves_with_path({"a": [1, 2]})[1][0], jax.tree_util.keystr((jax.tree_util.DictKey("a"),)))
        print(jnp.dtype("bfloat16"), jnp.result_type(jnp.int8, jnp.float16), jnp.promote_types("int32", "float16"))
        print(jnp.finfo(jnp.float32).eps, jnp.iinfo(jnp.int8).max, jnp.finfo(jnp.bfloat16).max, jnp.pi)
        print(jnp.where(x > 3, x, -x).tolist(), x.tolist(), jnp.float32(0.1).item(), [*map(int, x[:2])])
        print(
            jax.random.key_data(jax.random.key(3)),
            jax.random.PRNGKey(3),
            jax.random.key(3).dtype,
            jax.random.key(0).shape,
        )
        print(x.at[1].set(10), x.astype(float), -x // 4, x % 3 == 0, x**2 / 8, 7 / (x + 1), *divmod(x, 4))
        print(jnp.array([1e10, 1e-10, 1.0]), jnp.array([123456789, 1]), jnp.array([0.1, 0.123456789]), jnp.array(1e-8))
        with jnp.printoptions(precision=2, suppress=True):
            print(jnp.array([3.14159, 1e-5]))
        print(jnp.arange(2000), jnp.eye(3, dtype=int), jnp.ones((2, 2, 2), jnp.uint16))
        for i, row in enumerate(jnp.eye(2)):
            print(i, row, *row)
        print(sum(jnp.arange(4)), max(jnp.array([3, 9, 2])), *sorted(jnp.array([3, 1, 2])), any(jnp.zeros(2)), 3 in x)
        print(
            bool(jnp.array(1)),
            int(jnp.array(2.7)),
            complex(jnp.array(1.0)),
            x[jnp.array(1)],
            [10, 20, 30][jnp.array(1)],
        )
        print(P("x", None, ("y", "z")), P(), jax.jit(lambda a: a).lower(x).out_info, jax.default_backend())

    return _said(cells)


def calls_to_the_host(n=5):
    log = []

    def host_sort(a):
        log.append(("sort", a.shape, str(a.dtype)))
        return np.sort(a, axis=-1)[..., ::-1].copy()

    @jax.custom_jvp
    def descending(a):
        return jax.pure_callback(host_sort, jax.ShapeDtypeStruct(a.shape, a.dtype), a, vmap_method="sequential")

    @descending.defjvp
    def _(primals, tangents):
        (a,), (t,) = primals, tangents
        order = jnp.argsort(-a, axis=-1)
        return descending(a), jnp.take_along_axis(t, order, axis=-1)

    counter = {"n": 0}

    def next_number(step, scale):
        counter["n"] += 1
        return np.float32(counter["n"] * scale + step)

    @jax.jit
    def noisy(x):
        def body(i, c):
            r = io_callback(next_number, jax.ShapeDtypeStruct((), jnp.float32), i, 10.0, ordered=True)
            jax.debug.print("i={i} r={r:.1f} c={c}", i=i, r=r, c=c, ordered=True)
            return c + r

        total = lax.fori_loop(0, 3, body, jnp.zeros(2))
        lax.cond(x.sum() > 0, lambda: jax.debug.print("positive {}", x), lambda: jax.debug.print("not positive"))
        jax.debug.callback(lambda v, *, name: print(name, v.shape, float(v[0])), x, name="callback")
        return total

    def everything():
        a = jnp.asarray(np.random.default_rng(5).permutation(n * 3).reshape(3, n), jnp.float32)
        s = jax.jit(descending)(a)
        v = jax.vmap(descending)(a)
        e = jax.pure_callback(host_sort, jax.ShapeDtypeStruct((n,), jnp.float32), a[0], vmap_method="expand_dims")
        b = jax.vmap(
            lambda r, k: jax.pure_callback(
                lambda r, k: np.asarray(r * np.reshape(k, (-1, 1)), np.float32), r, r, k, vmap_method="broadcast_all"
            )
        )(a, jnp.arange(3.0))
        g = jax.grad(lambda a: jnp.sum(descending(a) * jnp.arange(n)))(a)
        t = noisy(jnp.ones(3))
        jax.vmap(lambda i: jax.debug.print("lane {i}", i=i, ordered=False))(jnp.arange(2))
        jax.grad(lambda z: (jax.debug.print("z={z}", z=z), z**2)[1])(3.0)
        jax.debug.print("{x} {y:>6} {z:.2e} {{braces}}", x=jnp.arange(3), y=7, z=jnp.float32(12345.678))
        return s, v, e, b, g, t

    said, result = _said(everything)
    said = np.array("\n".join(sorted(str(said).split("\n"))))  # what is not ordered comes in any order
    return said, result, np.array(str(log)), counter["n"]


def tries_and_excepts():
    """A student's page of what raises, by the classes that one can catch."""
    seen = []

    def attempt(name, f, *classes):
        try:
            r = f()
        except classes as e:
            seen.append(f"{name}: caught by {sum(isinstance(e, c) for c in classes)}")
        except Exception as e:
            seen.append(f"{name}: other {type(e).__name__}")
        else:
            seen.append(f"{name}: {jax.tree.map(lambda a: (jnp.shape(a), str(jnp.asarray(a).dtype)), r)}")

    x = jnp.arange(4.0)
    J, E = jax.jit, jax.errors
    attempt(
        "if",
        lambda: J(lambda v: 1 if v > 0 else 2)(1.0),
        E.TracerBoolConversionError,
        E.ConcretizationTypeError,
        TypeError,
    )
    attempt("range", lambda: J(lambda k: [0 for _ in range(k)])(3), E.TracerIntegerConversionError, TypeError)
    attempt("np", lambda: J(lambda v: np.sin(v))(x), E.TracerArrayConversionError, TypeError)
    attempt("mask", lambda: J(lambda v: v[v > 1])(x), E.NonConcreteBooleanIndexError, IndexError)
    attempt("float", lambda: J(float)(1.0), E.ConcretizationTypeError, TypeError)
    attempt("nonzero", lambda: J(jnp.nonzero)(x), E.ConcretizationTypeError)
    attempt("nonzero size", lambda: J(lambda v: jnp.nonzero(v, size=3, fill_value=-1))(x), Exception)
    attempt("unique", lambda: J(jnp.unique)(x), E.ConcretizationTypeError)
    attempt("setitem", lambda: x.__setitem__(0, 1.0), TypeError)
    attempt("list index", lambda: x[[0, 1]], TypeError)
    attempt("float index", lambda: x[1.0], TypeError, IndexError)
    attempt("too many", lambda: x[0, 0], IndexError)
    attempt("slice", lambda: J(lambda v, k: v[:k])(x, 2), IndexError)
    attempt("shapes", lambda: x + jnp.ones(3), TypeError)
    attempt("matmul", lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), TypeError)
    attempt("concat", lambda: jnp.concatenate([jnp.ones((2, 2)), jnp.ones((3, 3))]), TypeError)
    attempt("reshape", lambda: x.reshape(3, -1), TypeError)
    attempt("grad vector", lambda: jax.grad(jnp.sin)(x), TypeError)
    attempt("grad int", lambda: jax.grad(lambda i: i * 1.0)(3), TypeError)
    attempt("grad complex", lambda: jax.grad(lambda z: z * z)(1j), TypeError)
    attempt("allow_int", lambda: jax.grad(lambda i, y: y * i, argnums=1, allow_int=True)(3, 2.0), TypeError)
    attempt("holomorphic", lambda: jax.grad(lambda z: z * z, holomorphic=True)(1.0), TypeError)
    attempt("vmap sizes", lambda: jax.vmap(jnp.add)(x, jnp.ones(3)), ValueError)
    attempt("vmap scalar", lambda: jax.vmap(jnp.sin)(1.0), ValueError)
    attempt("vmap axes", lambda: jax.vmap(jnp.add, in_axes=(0,))(x, x), ValueError)
    attempt("out axes", lambda: jax.vmap(lambda a: a, out_axes=None)(x), ValueError)
    attempt("scan carry", lambda: lax.scan(lambda c, _: (jnp.stack([c, c]), None), 0.0, None, 3), TypeError)
    attempt("scan lengths", lambda: lax.scan(lambda c, s: (c, s), 0.0, (x, jnp.ones(3))), ValueError)
    attempt("scan dtype", lambda: lax.scan(lambda c, _: (c + 1.5, None), jnp.int32(0), None, 3), TypeError)
    attempt("scan weak", lambda: lax.scan(lambda c, _: (c * jnp.float32(2), None), 1, None, 3)[0], TypeError)
    attempt("while type", lambda: lax.while_loop(lambda c: c < 3, lambda c: (c, c), 0), TypeError)
    attempt("while cond", lambda: lax.while_loop(lambda c: c, lambda c: c, x), TypeError)
    attempt("cond types", lambda: lax.cond(True, lambda: 1.0, lambda: jnp.ones(2)), TypeError)
    attempt("cond trees", lambda: lax.cond(True, lambda: (1.0,), lambda: [1.0]), TypeError)
    attempt("cond pred", lambda: lax.cond(x, lambda: 1, lambda: 2), TypeError)
    attempt("switch none", lambda: lax.switch(0, []), ValueError)
    attempt(
        "reverse while",
        lambda: jax.grad(lambda v: lax.fori_loop(0, J(lambda: 3)(), lambda i, c: c * v, 1.0))(2.0),
        ValueError,
    )
    attempt("static unhashable", lambda: J(lambda v, s: v, static_argnums=1)(x, [1]), ValueError)
    attempt("static name", lambda: J(lambda v, s="a": v, static_argnames=["s"])(x, s="b"), ValueError)
    attempt("string", lambda: J(lambda v: v)("a"), TypeError)
    attempt("jnp string", lambda: jnp.array("a"), TypeError)
    attempt("jnp object", lambda: jnp.array([object()]), TypeError)
    attempt("list add", lambda: jnp.add(x, [1, 2, 3, 4]), TypeError)
    attempt("jnp.sum list", lambda: jnp.sum([1, 2]), TypeError)
    attempt("ragged", lambda: jnp.array([[1, 2], [3]]), ValueError)
    attempt("axis", lambda: jnp.sum(x, axis=1), ValueError)
    attempt("int power", lambda: jnp.arange(3) ** -1, TypeError)
    attempt("overflow", lambda: jnp.int32(2**40), OverflowError)
    attempt("key", lambda: jax.random.normal(jnp.arange(3)), TypeError)
    attempt("split shape", lambda: jax.random.split(jax.random.key(0), (2, 3)), Exception)
    attempt("custom_vjp", lambda: jax.jvp(J(jax.nn.relu), (x,), (x,)), TypeError)
    attempt("jvp dtype", lambda: jax.jvp(jnp.sin, (x,), (jnp.arange(4),)), TypeError)
    attempt("jvp tree", lambda: jax.jvp(lambda a: a, ((x,),), ([x],)), TypeError)
    attempt("vjp shape", lambda: jax.vjp(jnp.sum, x)[1](jnp.ones(2)), ValueError)
    attempt("tree", lambda: jax.tree.map(lambda a, b: a, [1, 2], (1, 2)), ValueError)
    attempt("tree none", lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}), ValueError)
    attempt("axis name", lambda: lax.psum(x, "i"), NameError)
    attempt("einsum", lambda: jnp.einsum("ij,jk", x, x), ValueError)
    attempt("bool of many", lambda: bool(x), ValueError)
    attempt("int of many", lambda: int(x), TypeError)
    attempt("len 0", lambda: len(jnp.float32(1)), TypeError)
    attempt("iter 0", lambda: list(jnp.float32(1)), TypeError)
    attempt("hash", lambda: hash(x), TypeError)
    attempt("inplace", lambda: x.sort(), AttributeError)
    attempt("hypot cplx", lambda: jnp.hypot(1j, 1.0), ValueError)
    attempt("shift", lambda: jnp.left_shift(x, 1), TypeError)
    attempt("dus", lambda: lax.dynamic_update_slice(x, jnp.ones(9), (0,)), TypeError)
    attempt("eval_shape", lambda: jax.eval_shape(jnp.dot, x, jnp.ones(3)), TypeError)
    attempt("clip", lambda: jnp.clip(x, 1, 2, 3), TypeError)
    attempt("nan", lambda: _nans(lambda: J(jnp.log)(-1.0)), FloatingPointError)
    leaked = []
    J(lambda v: leaked.append(v))(1.0)
    attempt("leak", lambda: leaked[0] + 1, E.UnexpectedTracerError)
    donated = jnp.ones(3)
    J(lambda v: v + 1, donate_argnums=0)(donated)
    attempt("deleted", lambda: donated + 1, RuntimeError)
    return np.array("\n".join(seen))


def _nans(f):
    with jax.debug_nans(True), contextlib.redirect_stdout(io.StringIO()):
        return f()


def meshes_of_one_device(b=8, d=6):
    from jax import shard_map

    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    also = Mesh(jax.devices()[:1], "i")
    w = jax.device_put(
        np.random.default_rng(0).normal(size=(d, d)).astype("float32"), NamedSharding(mesh, P(None, "model"))
    )
    x = jax.device_put(jnp.ones((b, d)) * jnp.arange(b)[:, None] / b, NamedSharding(mesh, P("data")))

    @functools.partial(jax.jit, out_shardings=NamedSharding(mesh, P("data", "model")))
    def dense(x, w):
        h = lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P("data", "model")))
        return h * 2

    @functools.partial(
        shard_map, mesh=mesh, in_specs=(P("data"), P(None, "model")), out_specs=(P("data", "model"), P())
    )
    def manual(x, w):
        y = x @ w
        n = lax.psum(1, "data")
        m = lax.pmean(lax.psum(jnp.sum(y), "model"), "data")
        r = lax.ppermute(y, "data", [(i, (i + 1) % n) for i in range(n)])
        g = lax.all_gather(r, "model", axis=1, tiled=True)
        return r + lax.axis_index("data"), m + lax.pmax(lax.stop_gradient(lax.psum(g.sum() * 0, "model")), "data")

    ring = jax.shard_map(
        lambda v: lax.psum_scatter(v, "i", tiled=True) + lax.axis_size("i"),
        mesh=also,
        in_specs=P("i"),
        out_specs=P("i"),
    )
    loss = lambda w: jnp.sum(jax.jit(manual)(x, w)[0] ** 2)
    pm = jax.pmap(lambda v, s: (lax.psum(v * s, "p"), lax.axis_index("p")), axis_name="p", in_axes=(0, None))
    both = jax.vmap(
        lambda v: (v - lax.pmean(v, "batch"), lax.all_gather(v, "batch").sum(), lax.psum(v, ("batch",))),
        axis_name="batch",
    )
    nested = jax.vmap(
        jax.vmap(lambda v: lax.psum(v, ("a", "b")) - lax.axis_index("a") + 10 * lax.axis_index("b"), axis_name="b"),
        axis_name="a",
    )

    def words():
        print(
            dict(mesh.shape),
            mesh.axis_names,
            mesh.size,
            also.devices.shape,
            w.sharding.spec,
            x.sharding.is_fully_replicated,
        )
        print(dense(x, w).sharding.spec, len(x.addressable_shards), x.addressable_shards[0].index, len(x.devices()))
        print(
            NamedSharding(mesh, P("data")).shard_shape((8, 2)),
            jax.typeof(x).shape,
            jax.device_count(),
            jax.process_index(),
        )

    said, _ = _said(words)
    return (
        said,
        dense(x, w),
        manual(x, w),
        ring(jnp.arange(4.0)),
        jax.grad(loss)(w),
        pm(x[None], 2.0),
        both(x),
        nested(x),
    )


def exports_and_stages(n=7):
    from jax import export

    @functools.partial(jax.jit, static_argnames="flip")
    def f(params, x, *, flip=False):
        y = jnp.tanh(x @ params["w"] + params["b"])
        return {"y": y[::-1] if flip else y, "n": jnp.sum(y > 0)}

    params = {"w": jnp.linspace(-1, 1, n * 3).reshape(n, 3), "b": jnp.array([0.1, -0.2, 0.3])}
    x = jnp.ones((2, n)) * jnp.array([[0.5], [-0.25]])
    exp = export.export(f)(params, jax.ShapeDtypeStruct((2, n), jnp.float32))
    (rows,) = export.symbolic_shape("b", constraints=["b >= 1"])
    poly = export.export(jax.jit(lambda a: a.reshape(-1, a.shape[0]).sum(0) * a.shape[0]))(
        jax.ShapeDtypeStruct((rows, n), jnp.float32)
    )
    vj = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((n,), jnp.float32))
    low = f.lower(params, x, flip=True)
    done = low.compile()
    traced = jax.jit(lambda a: a * 2).trace(x)
    shapes = jax.eval_shape(f, params, x)

    def words():
        print(
            [a.shape for a in exp.in_avals], [a.dtype for a in exp.out_avals], exp.nr_devices, exp.fun_name, exp.in_tree
        )
        print(
            [a.shape for a in (*poly.in_avals, *poly.out_avals)],
            shapes,
            traced.out_info if hasattr(traced, "out_info") else "",
        )
        print(
            low.in_tree, low.out_info, done.in_tree == low.in_tree, type(done.as_text()).__name__, f._cache_size() >= 0
        )
        print([e.primitive.name for e in jax.make_jaxpr(lambda a: jnp.sin(a) * 2.0 + 1)(x).eqns])
        print(
            [a.shape for a in jax.make_jaxpr(lambda a, b: (a @ b, a.sum(0), jnp.exp(a[0])))(x, params["w"]).out_avals]
        )

    said, _ = _said(words)
    return (
        said,
        exp.call(params, x),
        poly.call(x),
        poly.call(jnp.ones((5, n))),
        vj.call(x[0]),
        done(params, x),
        f(params, x),
    )
