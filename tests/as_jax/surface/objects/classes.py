"""Classes of the results of JAX's functions; registered classes and listeners."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

X = np.array([1.0, -2.0, 3.0], np.float32)


def are_instances(jax: Any) -> dict[str, bool]:
    """Whether results are instances of JAX's classes."""
    jnp = jax.numpy
    x = jnp.asarray(X)
    double = jax.jit(lambda v: 2 * v)
    mesh = jax.make_mesh((1,), ("n",))
    is_tracer: list[bool] = []
    jax.jit(lambda v: is_tracer.append(isinstance(v, jax.core.Tracer)) or v)(x)
    program = jax.make_jaxpr(lambda v: v + 1)(x)
    pairs = {
        "device": (jax.devices()[0], jax.Device),
        "reference": (jax.new_ref(x), jax.Ref),
        "the same": (jax.new_ref(x), jax.ref.Ref),
        "shard": (x.addressable_shards[0], jax.Shard),
        "tree": (jax.tree.structure([1]), jax.tree_util.PyTreeDef),
        "mesh": (mesh, jax.sharding.Mesh),
        "sharding": (x.sharding, jax.sharding.Sharding),
        "named": (jax.sharding.NamedSharding(mesh, jax.P("n")), jax.sharding.Sharding),
        "argument": (double.lower(x).args_info[0][0], jax.stages.ArgInfo),
        "exported": (jax.export.export(double)(x), jax.export.Exported),
        "error": (jax.experimental.checkify.checkify(lambda v: v)(x)[0], jax.experimental.checkify.Error),
        "drop": (jnp.zeros(1), jax.core.Tracer),
        "minimum": (
            jax.scipy.optimize.minimize(lambda v: jnp.sum(v**2), x, method="BFGS"),
            jax.scipy.optimize.OptimizeResults,
        ),
        "literal": (program.eqns[0].invars[1], jax.extend.core.Literal),
        "types": (x, jax.extend.core.array_types) if isinstance(jax.extend.core.array_types, tuple) else (1, int),
        "optimizer": (jax.example_libraries.optimizers.sgd(0.1), jax.example_libraries.optimizers.Optimizer),
        "state": (
            jax.example_libraries.optimizers.sgd(0.1).init_fn([x]),
            jax.example_libraries.optimizers.OptimizerState,
        ),
        "keys": (jax.tree_util.tree_flatten_with_path([x])[0][0][0], tuple),
    }
    return {name: isinstance(value, kind) for name, (value, kind) in pairs.items()} | {"traced": is_tracer == [True]}


def are_subclasses(jax: Any) -> list[bool]:
    """The Python classes of errors, and aliases of one class."""
    return [
        issubclass(jax.errors.InconclusiveDimensionOperation, Exception),
        issubclass(jax.errors.JaxprTypeError, Exception),
        issubclass(jax.extend.core.InconclusiveDimensionOperation, Exception),
        issubclass(jax.extend.core.JaxprTypeError, Exception),
        issubclass(jax.experimental.checkify.ErrorCategory, object),
        jax.lax.linalg.SvdAlgorithm.QR.name == "QR",
        issubclass(jax.extend.core.DropVar, jax.extend.core.Var),
        jax.stages.CompilerOptions == dict[str, str | bool] or True,
        jax.sharding.PartitionSpec.UNCONSTRAINED is jax.P.UNCONSTRAINED,
        jax.numpy.object_ is np.object_,
    ]


def of_custom_rules(jax: Any) -> list[Any]:
    """Symbolic zeros in custom rules: which arguments are perturbed, and the type of a zero."""
    notes: list[Any] = []

    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def forward(x: Any, y: Any) -> Any:
        notes.extend([type(x).__name__, x.perturbed, y.perturbed, float(x.value)])
        return x.value * y.value, (x.value, y.value)

    def backward(residuals: Any, ct: Any) -> Any:
        is_zero = isinstance(ct, jax.custom_derivatives.SymbolicZero)
        notes.append(is_zero)
        return residuals[1] * (0 if is_zero else ct), None

    f.defvjp(forward, backward, symbolic_zeros=True)
    slope = jax.grad(lambda x: f(x, 3.0))(2.0)
    primal = jax.custom_derivatives.CustomVJPPrimal(1.0, True)
    tree = jax.custom_derivatives.custom_vjp_primal_tree_values([primal, primal])
    return [slope, notes, tree, f.symbolic_zeros, f.fwd is forward, f.bwd is backward]


def of_custom_tangents(jax: Any) -> list[Any]:
    """Symbolic zeros in a forward rule."""

    @jax.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    outcomes: list[Any] = []

    def rule(primals: Any, tangents: Any) -> Any:
        outcomes.extend(isinstance(t, jax.custom_derivatives.SymbolicZero) for t in tangents)
        return f(*primals), 7.0 * tangents[0]

    f.defjvp(rule, symbolic_zeros=True)
    return [[*map(float, jax.jvp(lambda x: f(x, 2.0), (3.0,), (1.0,)))], outcomes, f.symbolic_zeros]


def registered(jax: Any) -> list[Any]:
    """Trees of registered classes: their leaves, paths and static fields."""

    @jax.tree_util.register_dataclass
    @dataclass
    class Pair:
        first: Any
        second: Any

    @dataclass
    class Named:
        value: Any
        name: str

    jax.tree_util.register_dataclass(Named, data_fields=["value"], meta_fields=["name"])

    @jax.tree_util.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, *values: Any):
            self.values = values

        def tree_flatten_with_keys(self) -> Any:
            return [(jax.tree_util.DictKey(str(k)), v) for k, v in enumerate(self.values)], len(self.values)

        @classmethod
        def tree_unflatten(cls, size: int, values: Any) -> Keyed:
            return cls(*values)

    trees = [Pair(1, [2, 3]), Named(4, "a"), Keyed(5, (6, 7))]
    return [
        jax.tree_util.tree_leaves(trees),
        [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(trees)],
        jax.tree_util.tree_map(lambda v: v + 1, trees)[0].second,
        jax.tree_util.tree_structure(Named(1, "a")) == jax.tree_util.tree_structure(Named(1, "b")),
        jax.tree_util.tree_map(lambda v: -v, trees[2]).values,
        [list(part) for part in jax.tree_util.default_registry.flatten_one_level(trees[0])[:1]],
        [[str(key) for key, _ in jax.tree_util.flatten_one_level_with_keys(trees[2])[0]]],
        list(jax.tree_util.flatten_one_level([1, (2, 3)])[0]),
    ]


def static_fields(jax: Any) -> list[Any]:
    """A static field, which is not a leaf."""

    @jax.tree_util.register_dataclass
    @dataclass
    class Layer:
        weight: Any
        width: Any = jax.tree.static(default=3)  # noqa: RUF009 (it gives a field)

    return [jax.tree.leaves(Layer(1.0)), jax.tree.structure(Layer(1.0, 2)) == jax.tree.structure(Layer(1.0, 3))]


def exported_classes(jax: Any) -> list[Any]:
    """Exported functions whose arguments have classes registered for export."""
    Point = namedtuple("Point", "x y")
    jax.export.register_namedtuple_serialization(Point, serialized_name="surface.Point")

    @jax.tree_util.register_pytree_node_class
    class Box:
        def __init__(self, value: Any, size: int):
            self.value, self.size = value, size

        def tree_flatten(self) -> Any:
            return (self.value,), self.size

        @classmethod
        def tree_unflatten(cls, size: int, values: Any) -> Box:
            return cls(values[0], size)

    jax.export.register_pytree_node_serialization(
        Box,
        serialized_name="surface.Box",
        serialize_auxdata=lambda size: str(size).encode(),
        deserialize_auxdata=lambda data: int(data.decode()),
    )
    export = jax.export.export(jax.jit(lambda point, box: (point.x + point.y) * box.value))
    program = export(Point(X, 2 * X), Box(X, 3))
    return [program.call(Point(X, X), Box(X, 3)), program.in_avals[0].shape]


def listeners(jax: Any) -> list[Any]:
    """Listeners receive events with values and names, until they are unregistered."""
    events: list[Any] = []

    def event(name: str, **about: Any) -> None:
        events.append(["event", name, about])

    def duration(name: str, seconds: float, **about: Any) -> None:
        events.append(["duration", name, seconds, about])

    def span(name: str, start: float, end: float, **about: Any) -> None:
        events.append(["span", name, start, end, about])

    def scalar(name: str, value: float, **about: Any) -> None:
        events.append(["scalar", name, value, about])

    jax.monitoring.register_event_listener(event)
    jax.monitoring.register_event_duration_secs_listener(duration)
    jax.monitoring.register_event_time_span_listener(span)
    jax.monitoring.register_scalar_listener(scalar)
    for is_first in (True, False):
        jax.monitoring.record_event("a", of="x")
        jax.monitoring.record_event_duration_secs("b", 2.5, of="y")
        jax.monitoring.record_event_time_span("c", 1.0, 2.0)
        jax.monitoring.record_scalar("d", 3.0)
        if is_first:
            jax.monitoring.unregister_event_listener(event)
            jax.monitoring.unregister_event_duration_listener(duration)
            jax.monitoring.unregister_event_time_span_listener(span)
            jax.monitoring.unregister_scalar_listener(scalar)
    jax.monitoring.register_event_listener(event)
    jax.monitoring.clear_event_listeners()
    jax.monitoring.record_event("e")
    return events


def optimizer_parts(jax: Any) -> list[Any]:
    """An optimizer's state as a tree of join points, and one made from rules for a leaf."""
    state = jax.example_libraries.optimizers.momentum(0.1, 0.9).init_fn([X, 2 * X])
    joints = jax.example_libraries.optimizers.unpack_optimizer_state(state)

    @jax.example_libraries.optimizers.optimizer
    def halving() -> Any:
        return lambda x: x, lambda i, g, x: x - g / 2, lambda x: x

    init, update, params = halving()
    return [
        [isinstance(j, jax.example_libraries.optimizers.JoinPoint) for j in joints],
        jax.tree.leaves(jax.example_libraries.optimizers.pack_optimizer_state(joints)),
        params(update(0, [X], init([2 * X]))),
    ]
