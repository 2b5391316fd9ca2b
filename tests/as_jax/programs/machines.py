"""Whole programs with callbacks, exports and prints."""

import contextlib
import functools
import io

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.experimental import io_callback
from jax.sharding import PartitionSpec as P


def _output_and_result(f):
    """The output of a function, and its result."""
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

    return _output_and_result(cells)


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

    output, result = _output_and_result(everything)
    output = np.array("\n".join(sorted(str(output).split("\n"))))  # sets print in any order
    return output, result, np.array(str(log)), counter["n"]


def _nans(f):
    with jax.debug_nans(True), contextlib.redirect_stdout(io.StringIO()):
        return f()


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

    output, _ = _output_and_result(words)
    return (
        output,
        exp.call(params, x),
        poly.call(x),
        poly.call(jnp.ones((5, n))),
        vj.call(x[0]),
        done(params, x),
        f(params, x),
    )
