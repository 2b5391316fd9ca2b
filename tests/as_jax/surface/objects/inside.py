"""Internal names of JAX that libraries use: tracers, wrapped functions, layouts, keys of paths."""

from __future__ import annotations

from typing import Any

import numpy as np

X = np.array([1.0, -2.0, 3.0], np.float32)


def tracers(jax: Any) -> list[bool]:
    """The class of a traced value, during its trace."""
    outcomes: list[bool] = []

    def note(kind: Any) -> Any:
        return lambda x: outcomes.append(isinstance(x, kind)) or x

    jax.jvp(note(jax.interpreters.ad.JVPTracer), (X,), (X,))
    jax.jit(note(jax.interpreters.partial_eval.DynamicJaxprTracer))(X)
    jax.jit(note(jax.core.Tracer))(X)
    outcomes.append(isinstance(X, jax.interpreters.partial_eval.JaxprTracer))
    outcomes.append(isinstance(X, jax.interpreters.ad.JVPTracer))
    return outcomes


def tables_of_rules(jax: Any) -> list[bool]:
    """Tables in which a primitive's rules are registered."""
    p = jax.extend.core.Primitive("surface")
    jax.interpreters.ad.primitive_transposes[p] = lambda ct: [ct]
    jax.interpreters.batching.axis_primitive_batchers[p] = lambda *_: None
    jax.interpreters.batching.fancy_primitive_batchers[p] = lambda *_: None
    return [
        jax.interpreters.ad.get_primitive_transpose(p)(1) == [1],
        jax.interpreters.batching.fancy_primitive_batchers[p] is not None,
    ]


def wrapped_functions(jax: Any) -> list[Any]:
    """Functions in JAX's wrapper, and a second result that is read too early."""
    about = jax.api_util.debug_info("surface", lambda x: x, (1,), {})
    f = jax.extend.linear_util.wrap_init(lambda x: 2 * x, debug_info=about)

    @jax.extend.linear_util.transformation_with_aux2
    def paired(inner: Any, store: Any, x: Any) -> Any:
        store.store("aux")
        return inner(x) + 1

    g, aux = paired(f)
    try:
        early = aux()
    except jax.extend.linear_util.StoreException:
        early = "early"
    value = g.call_wrapped(3)
    _, other_aux = paired(f)
    merge = jax.extend.linear_util.merge_linear_aux(aux, other_aux)
    calls: list[Any] = []
    cache = jax.extend.linear_util.cache(lambda h, k: calls.append(k) or k)
    numbers = [cache(f, 1), cache(f, 1)]
    is_wrapped = isinstance(f, jax.extend.linear_util.WrappedFun)
    return [early, value, aux(), merge, numbers, len(calls), is_wrapped]


def layouts(jax: Any) -> list[Any]:
    """The row-major layout, and a format with it."""
    layout = jax.experimental.layout.Layout(major_to_minor=(0, 1))
    form = jax.experimental.layout.Format(layout, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    return [layout.major_to_minor, form.layout == layout, form.sharding.num_devices]


def parts_of_programs(jax: Any) -> list[Any]:
    """Classes and helpers for reading and making programs."""
    (equation,) = jax.make_jaxpr(jax.numpy.sin)(X).eqns
    return [
        isinstance(equation.params, dict),
        issubclass(jax.extend.core.Effect, object),
        jax.extend.core.nonempty_axis_env_DO_NOT_USE(),
        jax.jit(lambda x: x * int(jax.extend.core.nonempty_axis_env_DO_NOT_USE()))(X),
        isinstance(equation.params, getattr(jax.core.ParamDict, "__origin__", jax.core.ParamDict)),
        isinstance(jax.tree_util.tree_leaves_with_path([X])[0][0], jax.tree_util.KeyPath.__origin__),
        jax.export.symbolic_args_specs((X,), "n")[0].shape[0] is not None,
    ]


def evaluating(jax: Any) -> Any:
    """Within a trace, operations on known values are computed at once."""

    def f(x: Any) -> Any:
        with jax.core.eval_context():
            known = float(jax.numpy.sin(1.0))
        return x * known

    return jax.jit(f)(X)


def names_of_variables(jax: Any) -> list[bool]:
    """New variables are all different."""
    new = jax.extend.core.gensym()
    aval = jax.typeof(jax.numpy.asarray(X))
    first, second = new(aval), new(aval)
    return [first is not second, first.aval == aval, isinstance(first, jax.extend.core.Var)]
