"""The layout of an operation's result from the layouts of its operands, or a refusal.

Rules are by primitive, and otherwise by the lowering of the primitive, as letters are; an operation
without a rule has results of unknown layout. They are those of JAX's types: an elementwise result
is split as any operand is, and two operands that are split differently are refused.
Source: https://docs.jax.dev/en/latest/notebooks/explicit-sharding.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from rune import ops
from rune.core.axes import Name
from rune.core.lower import Bitcast, Contraction, Convert, Cumulative, Library, Parts, Position, Reduction, Scalar
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Params
from rune.errors import Frame, ShardingTypeError
from rune.ops.indexing import gather
from rune.ops.memory import in_memory
from rune.ops.reduction import argmax, argmin
from rune.ops.sorting import sort, top_k
from rune.records import dataclass
from rune.sharding import Mesh
from rune.transforms.sharding.constraint import CONSTRAINTS
from rune.transforms.sharding.explicit.known import FREE, UNKNOWN, Known, Loose, explicit_layout, type_text
from rune.transforms.sharding.explicit.reshapes import divides, reshaped
from rune.transforms.sharding.reshard import Layout, constrained_layout, uncut

RESHARD = "reshard an operand: rune.device_put(x, NamedSharding(mesh, spec)), jax.sharding.reshard(x, spec)"
SAY = "say how the result is split: out_sharding=P(...)"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on operands of these types and layouts.

    results: the types of its results
    frame:   the user's line; None for the current one
    """

    primitive: Primitive
    types: Sequence[ArrayType]
    layouts: Sequence[Known]
    params: Params
    results: Sequence[ArrayType]
    mesh: Mesh
    frame: Frame | None = None

    @property
    def sizes(self) -> Mapping[Name, int]:
        """The number of devices along each mesh axis."""
        return self.mesh.shape

    def layout(self, number: int) -> Layout:
        """The layout of an operand; a free one is whole."""
        known = self.layouts[number]
        return uncut(self.types[number].ndim) if isinstance(known, Loose) else known

    def refuse(self, problem: str, hint: str = RESHARD) -> NoReturn:
        """Errors: ShardingTypeError, always."""
        operands = ", ".join(map(type_text, self.types, self.layouts))
        raise ShardingTypeError(f"{self.primitive.name}: cannot lay out {operands} ({problem})", hint, self.frame)


Rule = Callable[[Operation], Layout]


def layouts_of(operation: Operation) -> list[Known]:
    """What is known of each result. Errors: ShardingTypeError for operands that do not fit."""
    primitive, layouts = operation.primitive, operation.layouts
    if primitive in CONSTRAINTS:
        return [_constrained(operation)]
    arrays = [known for known, type in zip(layouts, operation.types, strict=True) if type.shape]
    rule = _RULES.get(primitive) or _by_lowering(primitive)
    if rule is None or UNKNOWN in layouts:
        return [UNKNOWN] * len(operation.results)
    if all(known is FREE for known in arrays):
        return [FREE] * len(operation.results)
    layout = rule(operation)
    _require_once(operation, layout)
    return [layout] * len(operation.results)


def _by_lowering(primitive: Primitive) -> Rule | None:
    match primitive.lower:
        case Scalar() | Convert() | Bitcast() | Parts():
            return _joined
        case Reduction():
            return _reduced
        case Cumulative():
            return _accumulated
        case Contraction():
            return _contracted
        case Position():
            return _joined
        case Library() if primitive.family == "linalg":
            return _of_matrices
    return None


def _require_once(operation: Operation, layout: Layout) -> None:
    """Errors: ShardingTypeError if a mesh axis splits two axes of the result."""
    names = [name for axis_names in layout for name in axis_names]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        result = type_text(operation.results[0], layout)
        operation.refuse(f"{twice!r} would split two axes of the result {result}")


def _constrained(operation: Operation) -> Known:
    sharding, known = operation.params["sharding"], operation.layouts[0]
    if sharding.mesh != operation.mesh:
        return UNKNOWN
    ndim = operation.types[0].ndim
    if isinstance(known, Loose) and any(map(sharding.spec.is_open, range(ndim))):
        return UNKNOWN
    return explicit_layout(operation.mesh, constrained_layout(sharding.spec, operation.layout(0)))


# --- elementwise ------------------------------------------------------------------------------


def _joined(operation: Operation) -> Layout:
    """Each axis is split as in the operands that split it, which must agree."""
    ndim = operation.results[0].ndim
    arrays = [operation.layout(n) for n, t in enumerate(operation.types) if t.ndim == ndim]
    return tuple(_agreed(operation, axis, [x[axis] for x in arrays]) for axis in range(ndim))


def _agreed(operation: Operation, axis: int, names: Sequence[tuple[Name, ...]]) -> tuple[Name, ...]:
    splits = [*dict.fromkeys(n for n in names if n)]
    if len(splits) > 1:
        operation.refuse(f"axis {axis} is split by {_names(splits[0])} and by {_names(splits[1])}")
    return splits[0] if splits else ()


def _names(names: tuple[Name, ...]) -> str:
    return " and ".join(map(repr, names)) if names else "nothing"


def _equal(operation: Operation) -> Layout:
    """All operands but numbers are split alike; free ones are laid out as the others."""
    layouts = [x for x, t in zip(operation.layouts, operation.types, strict=True) if t.shape and x is not FREE]
    first = layouts[0]
    assert not isinstance(first, Loose)
    for other in layouts[1:]:
        assert not isinstance(other, Loose)
        axis = next((n for n, (a, b) in enumerate(zip(first, other, strict=True)) if a != b), None)
        if axis is not None:
            operation.refuse(f"axis {axis} is split by {_names(first[axis])} and by {_names(other[axis])}")
    return first


# --- movement ---------------------------------------------------------------------------------


def _turned(operation: Operation) -> Layout:
    layout = operation.layout(0)
    return tuple(layout[axis] for axis in operation.params["permutation"])


def _broadcast(operation: Operation) -> Layout:
    axes, shape = operation.params["axes"], operation.params["shape"]
    pairs = zip(axes, operation.layout(0), operation.types[0].shape, strict=True)
    names = {axis: axis_names for axis, axis_names, size in pairs if size == shape[axis]}
    return tuple(names.get(axis, ()) for axis in range(len(shape)))


def _reshaped(operation: Operation) -> Layout:
    shape, target = operation.types[0].shape, operation.results[0].shape
    layout = reshaped(shape, operation.layout(0), target, operation.sizes)
    if layout is None:
        sizes = ",".join(map(str, target))
        operation.refuse(f"its split axes have no place in the shape [{sizes}]", SAY)
    return layout


def _resized(operation: Operation) -> Layout:
    """As the first operand; an axis whose size changes must still be divided evenly."""
    layout, before, after = operation.layout(0), operation.types[0].shape, operation.results[0].shape
    for axis, (names, size, new) in enumerate(zip(layout, before, after, strict=True)):
        if size != new and not divides(names, new, operation.sizes):
            operation.refuse(f"the {new} elements along axis {axis} cannot be split by {_names(names)}")
    return layout


def _concatenated(operation: Operation) -> Layout:
    layout, axis = _equal(operation), operation.params["axis"]
    if not divides(layout[axis], operation.results[0].shape[axis], operation.sizes):
        operation.refuse(f"the parts along axis {axis} cannot be split by {_names(layout[axis])}")
    return layout


def _as_first(operation: Operation) -> Layout:
    return operation.layout(0)


def _updated(operation: Operation) -> Layout:
    first, update = operation.layouts[:2]
    axis = next((n for n, (a, b) in enumerate(zip(operation.layout(0), operation.layout(1))) if a != b), None)
    if first is not FREE and update is not FREE and axis is not None:
        operation.refuse(f"axis {axis} of the update is not split as that of the operand")
    return operation.layout(0 if first is not FREE else 1)


# --- sums, orders, products -------------------------------------------------------------------


def _reduced(operation: Operation) -> Layout:
    axes = operation.params["axes"]
    return tuple(names for axis, names in enumerate(operation.layout(0)) if axis not in axes)


def _argument(operation: Operation) -> Layout:
    return tuple(n for axis, n in enumerate(operation.layout(0)) if axis != operation.params["axis"])


def _accumulated(operation: Operation) -> Layout:
    return _whole_along(operation, operation.layout(0), operation.params["axis"])


def _sorted(operation: Operation) -> Layout:
    return _whole_along(operation, _joined(operation), operation.types[0].ndim - 1)


def _whole_along(operation: Operation, layout: Layout, axis: int) -> Layout:
    if layout[axis]:
        operation.refuse(f"axis {axis}, along which it works, is split by {_names(layout[axis])}")
    return layout


def _contracted(operation: Operation) -> Layout:
    (contracted_a, contracted_b), (batch_a, batch_b) = operation.params["dimension_numbers"]
    a, b = operation.layout(0), operation.layout(1)
    for n, m in zip((*contracted_a, *batch_a), (*contracted_b, *batch_b), strict=True):
        _agreed(operation, n, [a[n], b[m]])
    for n, m in zip(contracted_a, contracted_b, strict=True):
        if a[n] and b[m]:
            operation.refuse(f"both are split by {_names(a[n])} along the axis of the sum", SAY)
    free_a = [x for n, x in enumerate(a) if n not in (*contracted_a, *batch_a)]
    free_b = [x for n, x in enumerate(b) if n not in (*contracted_b, *batch_b)]
    # As in JAX, the first operand decides of the batch axes.
    return (*(a[n] for n in batch_a), *free_a, *free_b)


def _of_matrices(operation: Operation) -> Layout:
    """Matrices are whole, and all operands and results have the same leading axes."""
    shared = frozenset(operation.primitive.lower.shared(*operation.types, **operation.params))  # type: ignore[union-attr]
    layouts = [operation.layout(n) for n in range(len(operation.types))]
    for layout in layouts:
        axis = next((n for n, names in enumerate(layout) if names and n not in shared), None)
        if axis is not None:
            operation.refuse(f"axis {axis} of a matrix is split by {_names(layout[axis])}")
    lanes = [_agreed(operation, n, [x[n] for x in layouts if n < len(x)]) for n in sorted(shared)]
    return tuple(lanes)


# --- indices ----------------------------------------------------------------------------------


def _gathered(operation: Operation) -> Layout:
    """Axes of whole windows stay as they are; those that indices address must be whole."""
    dims, window = operation.params["dims"], operation.params["slice_sizes"]
    operand, indices = operation.layout(0), [*operation.layout(1)]
    for n, m in zip(dims.operand_batching, dims.indices_batching, strict=True):
        indices[m] = _agreed(operation, n, [operand[n], indices[m]])
    _require_addressed_whole(operation, operand, dims.start_map, window)
    for axis, names in enumerate(indices):
        if names and axis not in dims.indices_batching:
            operation.refuse(f"axis {axis} of the indices is split by {_names(names)}", SAY)
    windows, lanes = iter(dims.window_axes(len(operand))), iter(indices)
    axes = range(operation.results[0].ndim)
    return tuple(operand[next(windows)] if axis in dims.offset else next(lanes) for axis in axes)


def _require_addressed_whole(operation: Operation, operand: Layout, axes: Sequence[int], window: Sequence) -> None:
    shape = operation.types[0].shape
    axis = next((n for n in axes if operand[n] and window[n] != shape[n]), None)
    if axis is not None:
        operation.refuse(f"axis {axis}, which indices address, is split by {_names(operand[axis])}", SAY)


def _scattered(operation: Operation) -> Layout:
    """As the operand, whose addressed axes are whole; the updates are split as their windows."""
    dims = operation.params["dims"]
    operand, updates = [*operation.layout(0)], operation.layout(2)
    _require_addressed_whole(operation, operation.layout(0), dims.start_map, operation.params["slice_sizes"])
    lanes = [n for n in range(len(updates)) if n not in dims.offset]
    batches = {lanes[m]: n for n, m in zip(dims.operand_batching, dims.indices_batching, strict=True)}
    windows = dict(zip(dims.offset, dims.window_axes(len(operand)), strict=True))
    for axis, names in enumerate(updates):
        target = windows.get(axis, batches.get(axis))
        if target is not None:
            operand[target] = _agreed(operation, target, [operand[target], names])
        elif names:
            operation.refuse(f"axis {axis} of the updates is split by {_names(names)}", SAY)
    return tuple(operand)


_RULES: Mapping[Primitive, Rule] = {
    ops.select: _equal,
    ops.transpose: _turned,
    ops.broadcast: _broadcast,
    ops.reshape: _reshaped,
    ops.slice_: _resized,
    ops.pad: _resized,
    ops.reverse: _as_first,
    ops.stop_gradient: _as_first,
    in_memory: _as_first,
    ops.concatenate: _concatenated,
    ops.dynamic_slice: _resized,
    ops.dynamic_update_slice: _updated,
    argmax: _argument,
    argmin: _argument,
    sort: _sorted,
    top_k: _sorted,
    gather: _gathered,
    ops.scatter: _scattered,
    ops.scatter_add: _scattered,
    ops.scatter_mul: _scattered,
    ops.scatter_min: _scattered,
    ops.scatter_max: _scattered,
}
