"""Constructors that give the primitives of one family their shared rules.

Elementwise operands have one dtype, and one shape or rank 0 (a scalar beside arrays). The jvp
rules of a family member are written as if all shapes were equal: `elementwise` broadcasts a
rank-0 tangent to the result, and sums a cotangent that belongs to a rank-0 operand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.jax_names import Names, always
from rune.core.lower import Lowering, Piece, Position, Reduction, Scalar, Source, View
from rune.core.primitive import NOT_DIFFERENTIABLE, JvpRule, Primitive, Rule, Zero
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, V, Value
from rune.dims import Size, at_most, flat_index, product
from rune.errors import DimensionError, DtypeError, ShapeError, TransformError
from rune.ops import long_sums
from rune.ops.scalars import holds

if TYPE_CHECKING:
    from rune.array import Array

Batched = Sequence[bool]


def types_text(types: Sequence[ArrayType]) -> str:
    """`f32[3], i32[4]`: operand types for messages."""
    return ", ".join(map(str, types))


def require(name: str, allowed: frozenset[np.dtype], kind: str, *types: ArrayType) -> None:
    """Raise DtypeError unless every type's dtype is allowed."""
    for type in types:
        if type.dtype not in allowed:
            raise DtypeError(f"{name}: cannot take {types_text(types)} ({kind} dtype required)")


def same_dtype(name: str, *types: ArrayType) -> np.dtype:
    """The dtype that all operands share. Errors: DtypeError if they differ."""
    if any(t.dtype != types[0].dtype for t in types):
        raise DtypeError(
            f"{name}: cannot combine {types_text(types)} (dtypes differ)",
            hint="rune.numpy promotes; primitives take operands of one dtype",
        )
    return types[0].dtype


def joint_shape(name: str, types: Sequence[ArrayType]) -> Shape:
    """The shape that all operands share, except those of rank 0. Errors: ShapeError names the
    axis.
    """
    shapes = [t.shape for t in types if t.shape]
    for shape in shapes[1:]:
        if shape != shapes[0]:
            raise ShapeError(f"{name}: cannot combine {types_text(types)} ({_conflict(shapes[0], shape)})")
    return shapes[0] if shapes else ()


def _conflict(a: Shape, b: Shape) -> str:
    if len(a) != len(b):
        return f"{len(a)} axes against {len(b)}"
    axis = next(i for i, (m, n) in enumerate(zip(a, b, strict=True)) if m != n)
    return f"axis {axis}: {a[axis]} against {b[axis]}"


def not_linear(operation: str, why: str) -> TransformError:
    """The error for transposing an operation that is not linear; `operation` contains its types."""
    return TransformError(
        f"transpose: cannot transpose {operation} ({why})",
        hint="the rule of a custom_jvp function must be linear in the tangents",
    )


def fit(value: V, shape: Shape) -> V:
    """`value`, broadcast to `shape` if it is rank 0 and `shape` is not."""
    if type_of(value).shape == shape:
        return value
    return broadcast(value, shape=shape, axes=())


def stretch(x: Operand, shape: Shape) -> Array:
    """`x` with the leading axes of `shape`, repeated along its last ones and where x has size 1.

    Shapes: [*A] -> [*A, *B].
    """
    return broadcast(x, shape=shape, axes=tuple(range(type_of(x).ndim)))


def unfit(cotangent: V, type: ArrayType) -> V:
    """The cotangent of an operand that `fit` may have broadcast: summed to rank 0."""
    cotangent_type = type_of(cotangent)
    if cotangent_type.shape == type.shape:
        return cotangent
    return reduce_sum(cotangent, axes=tuple(range(cotangent_type.ndim)))


def align_batches(batched: Batched, size: Size, args: Sequence[Value]) -> list[Value]:
    """The arguments of an elementwise operation, with batch axes leading and ranks made equal."""
    inner = [type_of(a).shape[1:] if b else type_of(a).shape for a, b in zip(args, batched)]
    rank = max(map(len, inner))
    shape = next(s for s in inner if len(s) == rank)
    return [_align(a, b, s, shape, size) for a, b, s in zip(args, batched, inner)]


def _align(arg: Value, batched: bool, inner: Shape, shape: Shape, size: Size) -> Value:
    if batched and len(inner) == len(shape):
        return arg
    if batched:
        return broadcast(arg, shape=(size, *shape), axes=(0,))
    if not inner:
        return arg
    return broadcast(arg, shape=(size, *shape), axes=tuple(range(1, 1 + len(shape))))


def _batch_elementwise(primitive: Callable[[], Primitive]) -> Rule:
    def batch(batched: Batched, size: Size, *args: Value, **params: object) -> tuple[Array, bool]:
        return primitive()(*align_batches(batched, size, args), **params), True

    return batch


def _fitted(rule: JvpRule) -> JvpRule:
    if isinstance(rule, Zero | NOT_DIFFERENTIABLE):
        return rule

    def fitted(tangent: Value, *values: Value, **params: object) -> Value | None:
        product = rule(tangent, *values, **params)
        return None if product is None else fit(product, type_of(values[-1]).shape)

    return fitted


def _unfitted(rule: Rule) -> Rule:
    def unfitted(cotangent: Value, linear: Batched, *inputs: Any, **params: object) -> list[Array | None]:
        cts = rule(cotangent, linear, *inputs, **params)
        return [
            unfit(ct, type) if is_linear and ct is not None else None
            for ct, type, is_linear in zip(cts, inputs, linear, strict=True)
        ]

    return unfitted


def elementwise(
    name: str,
    family: str,
    type_rule: Rule,
    reference: Rule,
    jvp: tuple[JvpRule, ...],
    transpose: Rule | None = None,
    lower: Lowering | None = None,
    expand: Rule | None = None,
    linear_in: tuple[tuple[int, ...], ...] = (),
    solves: bool = False,
    jax_order: tuple[int, ...] | None = None,
    jax_names: Names | None = None,
) -> Primitive:
    """An elementwise primitive; it lowers to the scalar operation of the same name."""
    primitive = Primitive(
        name,
        family,
        type_rule,
        reference,
        tuple(map(_fitted, jvp)),
        _unfitted(transpose) if transpose else None,
        _batch_elementwise(lambda: primitive),
        (lower or Scalar(name)) if expand is None else None,
        expand,
        linear_in=linear_in,
        solves=solves,
        jax_order=jax_order,
        jax_names=jax_names,
    )
    return primitive


def same_type(name: str, allowed: frozenset[np.dtype], kind: str) -> Rule:
    """Type rule: operands of one allowed dtype, a result of the same dtype."""

    def type_rule(*types: ArrayType) -> ArrayType:
        require(name, allowed, kind, *types)
        dtype = same_dtype(name, *types)
        return ArrayType(joint_shape(name, types), dtype, all(t.weak for t in types))

    return type_rule


def bool_type(name: str, allowed: frozenset[np.dtype], kind: str) -> Rule:
    """Type rule: operands of one allowed dtype, a bool result."""

    def type_rule(*types: ArrayType) -> ArrayType:
        require(name, allowed, kind, *types)
        same_dtype(name, *types)
        return ArrayType(joint_shape(name, types), dtypes.bool_)

    return type_rule


KINDS: dict[str, frozenset[np.dtype]] = {
    "floating": dtypes.FLOATING,
    "inexact": dtypes.INEXACT,
    "integer": dtypes.INTEGER,
    "numeric": dtypes.NUMERIC,
    "bool or integer": dtypes.INTEGER | {dtypes.bool_},
    "any": dtypes.ANY,
    "any or key": dtypes.ANY | dtypes.KEYS,
    "real": dtypes.INTEGER | dtypes.FLOATING,
    "ordered": dtypes.ANY - dtypes.COMPLEX,
}


# --- movement and summation, on which every family's rules rest -------------------------------


def _broadcast_type(x: ArrayType, *, shape: Shape, axes: tuple[int, ...]) -> ArrayType:
    ascending = list(axes) == sorted(set(axes)) and all(0 <= a < len(shape) for a in axes)
    fits = ascending and len(axes) == x.ndim
    if not fits or any(d != shape[a] and d != 1 for d, a in zip(x.shape, axes, strict=True)):
        raise ShapeError(f"broadcast: cannot broadcast {x} to {shape} (axes {axes})")
    return ArrayType(shape, x.dtype, x.weak)


def broadcasting(sizes: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...]) -> Rule:
    """Broadcasting for one shape, as a function of NumPy arrays."""
    spread = [1] * len(shape)
    for size, axis in zip(sizes, axes, strict=True):
        spread[axis] = size

    def copy(x: np.ndarray) -> np.ndarray:
        out = np.empty(shape, x.dtype)
        out[...] = x.reshape(spread)
        return out

    return copy if is_copied(shape) else lambda x: np.broadcast_to(x.reshape(spread), shape)


def is_copied(shape: Shape) -> bool:
    """Whether broadcasting to this shape makes a copy, in C order, in place of a view."""
    # Up to so many elements a copy takes less time than NumPy takes to make a view.
    return math.prod(d if isinstance(d, int) else _MANY for d in shape) < _MANY


_MANY = 1025


def _broadcast_transpose(
    ct: Value, linear: Batched, x: ArrayType, *, shape: Shape, axes: tuple[int, ...]
) -> list[Array]:
    axes_of_x = {a for a, d in zip(axes, x.shape, strict=True) if d == shape[a]}
    total = reduce_sum(ct, axes=tuple(i for i in range(len(shape)) if i not in axes_of_x))
    return [total if type_of(total).shape == x.shape else reshape(total, shape=x.shape)]


def _broadcast_batch(
    batched: Batched, size: Size, x: Value, *, shape: Shape, axes: tuple[int, ...]
) -> tuple[Array, bool]:
    batched_axes = (0, *(a + 1 for a in axes))
    return broadcast(x, shape=(size, *shape), axes=batched_axes), True


def view_of(indices: tuple) -> Source:
    """The element of operand 0 at `indices`, without any condition."""
    return Source((Piece(0, indices),))


def _broadcast_view(indices: tuple, x: ArrayType, *, shape: Shape, axes: tuple[int, ...]) -> Source:
    from_axis = (0 if d == 1 else indices[a] for d, a in zip(x.shape, axes, strict=True))
    return view_of(tuple(from_axis))


broadcast = Primitive(
    "broadcast",
    "movement",
    _broadcast_type,
    lambda x, *, shape, axes: broadcasting(np.shape(x), shape, axes)(x),
    jvp=(lambda dx, x, y, **params: broadcast(dx, **params),),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    lower=View(_broadcast_view),
    jax_names={"broadcast_dimensions": "axes", "sharding": always(None)},
)


def reduced_type(name: str, x: ArrayType, axes: tuple[int, ...]) -> ArrayType:
    """`x` without `axes`. Errors: ShapeError for an axis that is out of range or repeated."""
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"{name}: cannot reduce {x} (axes {axes})")
    return x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in axes))


def _sum_type(x: ArrayType, *, axes: tuple[int, ...]) -> ArrayType:
    require("reduce_sum", dtypes.NUMERIC, "numeric", x)
    return reduced_type("reduce_sum", x, axes)


_NARROW = dtypes.FLOATING - {dtypes.f32, dtypes.f64}


def wide(dtype: np.dtype) -> np.dtype:
    """The accumulator of a sum or product: f32 for the half types, else the dtype itself."""
    return dtypes.f32 if dtype in _NARROW else dtype


def _sum_reference(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
    sums = long_sums.total(x, axes, wide(x.dtype))
    return np.asarray(sums).astype(x.dtype, copy=False)


def summing(x: ArrayType, *, axes: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray] | None:
    """`reduce_sum` of arrays of one type, as a function of NumPy; None for dtypes that accumulate
    in a wider dtype, and for sums in blocks.
    """
    count = product(x.shape[a] for a in axes)
    is_long = x.dtype in dtypes.INEXACT and at_most(count, long_sums.LONGEST) is not True
    if is_long or wide(x.dtype) != x.dtype:
        return None
    return functools.partial(np.add.reduce, axis=axes, dtype=x.dtype)


def _sum_transpose(ct: Value, linear: Batched, x: ArrayType, *, axes: tuple[int, ...]) -> list[Array]:
    remaining = tuple(i for i in range(x.ndim) if i not in axes)
    return [broadcast(ct, shape=x.shape, axes=remaining)]


def batch_reduction(primitive: Callable[[], Primitive]) -> Rule:
    """The batch rule of a reduction: its axes move by one."""

    def batch(batched: Batched, size: Size, x: Value, *, axes: tuple[int, ...]) -> tuple[Array, bool]:
        return primitive()(x, axes=tuple(a + 1 for a in axes)), True

    return batch


reduce_sum = Primitive(
    "reduce_sum",
    "reduction",
    _sum_type,
    _sum_reference,
    jvp=(lambda dx, x, y, *, axes: reduce_sum(dx, axes=axes),),
    transpose=_sum_transpose,
    batch=batch_reduction(lambda: reduce_sum),
    lower=Reduction("add"),
    jax_names={"out_sharding": always(None)},
)


def _reshape_type(x: ArrayType, *, shape: Shape) -> ArrayType:
    if product(x.shape) != product(shape):
        raise ShapeError(
            f"reshape: cannot reshape {x} to {shape} ({product(x.shape)} against {product(shape)} elements)"
        )
    return x.with_shape(shape)


def _reshape_view(indices: tuple, x: ArrayType, *, shape: Shape) -> Source:
    if 0 in x.shape:
        return view_of((0,) * x.ndim)  # there is no element to read
    index: list[Size] = []
    for sizes, places in _groups(x.shape, shape):
        flat, digits = flat_index(indices[places], shape[places]), list[Size]()
        for size in reversed(x.shape[sizes]):
            digits.append(0 if size == 1 else flat % size)
            flat = flat // size
        index += reversed(digits)
    return view_of(tuple(index))


def _groups(before: Shape, after: Shape) -> Iterator[tuple[slice, slice]]:
    """The axes of two shapes, in groups with equally many elements.

    (6, 20, 7) and (3, 2, 20, 7) have three: division needs no index of the other groups.
    """
    places = {count: axis for axis, count in enumerate(_counts(after))}
    start, at = 0, 0
    for end, count in enumerate(_counts(before)):
        if count in places and end > start and places[count] >= at:
            yield slice(start, end), slice(at, places[count])
            start, at = end, places[count]


def _counts(shape: Shape) -> list[Size]:
    """For each axis the number of elements from there on, and 1 at the end."""
    return [product(shape[axis:]) for axis in range(len(shape) + 1)]


reshape = Primitive(
    "reshape",
    "movement",
    _reshape_type,
    lambda x, *, shape: x.reshape(shape),
    jvp=(lambda dx, x, y, *, shape: reshape(dx, shape=shape),),
    transpose=lambda ct, linear, x, *, shape: [reshape(ct, shape=x.shape)],
    batch=lambda batched, size, x, *, shape: (reshape(x, shape=(size, *shape)), True),
    lower=View(_reshape_view),
    jax_names={"new_sizes": "shape", "dimensions": always(None), "sharding": always(None)},
)


def zeros_of(type: ArrayType) -> Any:
    """Zeros of this shape and dtype, as a broadcast literal."""
    return fit(literal(0, type.dtype), type.shape)


def zeros_like(x: Operand) -> Array:
    """Zeros of the shape and dtype of `x`, as a broadcast literal."""
    return zeros_of(type_of(x))


size_of_axis = Primitive(
    "size",
    "creation",
    lambda *, size, dtype: ArrayType((), dtype),
    lambda *, size, dtype: np.asarray(size).astype(dtype),
    jvp=(),
    lower=Position(lambda indices, *, size, dtype: size),
)


def size_value(count: Size, dtype: np.dtype) -> Value:
    """A size as a rank-0 value: a literal, or an equation if it is symbolic.

    Errors: DimensionError if integers of `dtype` cannot hold it; for a symbolic size, when the
            program runs.
    """
    if isinstance(count, int):
        require_room("size", count, dtype)
        return np.asarray(count).astype(dtype)
    return size_of_axis(size=count, dtype=dtype)


def position_dtype(*sizes: Size) -> np.dtype:
    """The dtype that holds positions on axes of these sizes, and the sizes, whatever x64 is.

    i32, or i64 if a size is certainly beyond it. `dtypes.canonical` of it is that of a result.
    """
    return dtypes.i64 if any(at_most(size, 2**31 - 1) is False for size in sizes) else dtypes.i32


def index_dtype() -> np.dtype:
    """The dtype of positions that functions return: i32, or i64 under `enable_x64`."""
    return dtypes.canonical(dtypes.i64)


def require_room(name: str, number: Size, dtype: np.dtype, hint: str | None = None) -> None:
    """Errors: DimensionError for a position or size that integers of `dtype` cannot hold."""
    if isinstance(number, int) and dtype in dtypes.INTEGER and not holds(dtype, number):
        raise DimensionError(f"{name}: cannot count to {number} in {dtypes.short(dtype)}", hint=hint)


def require_positions(name: str, size: Size, dtype: np.dtype) -> None:
    """Errors: DimensionError if positions among so many elements do not fit `dtype`."""
    hint = "positions have 64 bits under rune.enable_x64()" if dtype == dtypes.i32 else None
    require_room(name, size - 1, dtype, hint=hint)
