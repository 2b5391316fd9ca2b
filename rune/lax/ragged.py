"""Products by groups of consecutive rows, and products of block-scaled operands.

Each element of the ragged axis belongs to one group, determined by the sizes of the groups.
Elements of other groups count as zero: a product over G groups computes G times as many products.
Source: XLA operation semantics, RaggedDot and ScaledDot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal_like, type_of
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ShapeError
from rune.lax.products import DotDimensionNumbers, PrecisionLike, dot_general
from rune.numpy.arguments import laid_out, value
from rune.records import dataclass
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes `ragged_dot_general` sums over, and which it divides into groups.

    dot_dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs))
    lhs_ragged_dimensions: the one axis of lhs whose elements are in groups
    rhs_group_dimensions: the axis of rhs that counts groups, if the ragged axis is neither
                          contracted nor a batch axis; otherwise none

    >>> from rune import lax
    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Rows of `lhs` times the matrix of their group in `rhs`.

    group_sizes:  how many consecutive rows each group has; rows beyond their sum give zeros
    group_offset: None; one device holds all groups
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Each row is multiplied by every matrix, with rows of other groups as zeros: M·G·K·N products.
    Shapes: lhs [M, K], rhs [G, K, N], group_sizes int[G] -> [M, N].
    Types:  as dot_general.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools, and for bools and
            complex numbers as `group_sizes`; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> matrices = rnp.array([[[1.0]], [[10.0]]])
    >>> lax.ragged_dot(rnp.ones((3, 1)), matrices, rnp.array([2, 1]))[:, 0]
    Array([ 1.,  1., 10.], f32[3], cpu:0)
    """
    _require_all_groups("ragged_dot", group_offset)
    a, b, sizes = (value("ragged_dot", x) for x in (lhs, rhs, group_sizes))
    ta, tb = type_of(a), type_of(b)
    if ta.ndim != 2 or tb.ndim != 3 or type_of(sizes).shape != tb.shape[:1]:
        raise ShapeError(
            f"ragged_dot: cannot multiply {ta} by {tb} in groups of {type_of(sizes)} "
            "([m, k], [groups, k, n] and [groups] required)"
        )
    rows = _by_group(a, sizes, 0)
    product = dot_general(rows, b, (((0, 2), (0, 1)), ((), ())), precision, preferred_element_type)
    return laid_out(product, out_sharding)


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """dot_general with an axis of `lhs` in groups, whose meaning depends on the kind of axis.

    a free axis:       each element is multiplied by the matrix of its group in `rhs`
    a contracted axis: each group is summed separately; the result's first axis counts groups
    a batch axis:      groups change nothing

    group_sizes:  how many consecutive elements each group has; those beyond their sum count as zero
    group_offset: None; one device holds all groups
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: group_sizes int[G]; the result's axes are G (contracted), the batch axes, the others of
            lhs, the others of rhs.
    Types:  numeric, as dot_general.
    Errors: ArgumentError unless there is exactly one ragged axis, and a group axis of rhs just
            where one is needed; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> a = rnp.ones((3, 1))
    >>> lax.ragged_dot_general(a, a, rnp.array([2, 1]), numbers).ravel()
    Array([2., 1.], f32[2], cpu:0)
    """
    name = "ragged_dot_general"
    _require_all_groups(name, group_offset)
    a, b, sizes = (value(name, x) for x in (lhs, rhs, group_sizes))
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise ArgumentError(
            f"ragged_dot_general: cannot use {ragged_dot_dimension_numbers!r} (RaggedDotDimensionNumbers required)"
        )
    (ca, cb), (ba, bb) = ragged_dot_dimension_numbers.dot_dimension_numbers
    axis, groups = _ragged_axes(ragged_dot_dimension_numbers, type_of(a))
    how = (precision, preferred_element_type)
    if axis in ba:
        return laid_out(dot_general(a, b, ((ca, cb), (ba, bb)), *how), out_sharding)
    if type_of(sizes).ndim != 1:
        raise ShapeError(f"{name}: cannot use group sizes {type_of(sizes)} ([groups] required)")
    rows = _by_group(a, sizes, axis)
    contraction = [k + 1 for k in ca]  # the axis of groups comes before those of lhs
    if axis not in ca:
        # An element belongs to one group, so the sum over groups has one term that is not zero.
        numbers = (((0, *contraction), (*groups, *cb)), ([k + 1 for k in ba], bb))
        return laid_out(dot_general(rows, b, numbers, *how), out_sharding)
    product = dot_general(rows, b, ((contraction, cb), ([k + 1 for k in ba], bb)), *how)
    return laid_out(ops.movement.move_axis(product, len(ba), 0), out_sharding)


def _require_all_groups(name: str, group_offset: object) -> None:
    if group_offset is not None:
        raise ArgumentError(f"{name}: cannot use group_offset= (one device has all groups)")


def _ragged_axes(numbers: RaggedDotDimensionNumbers, lhs: ArrayType) -> tuple[int, tuple[int, ...]]:
    """The ragged axis of lhs, and the group axis of rhs, or an empty tuple."""
    (ca, _), (ba, _) = numbers.dot_dimension_numbers
    ragged_axes, groups = tuple(numbers.lhs_ragged_dimensions), tuple(numbers.rhs_group_dimensions)
    if len(ragged_axes) != 1 or not 0 <= ragged_axes[0] < lhs.ndim:
        raise ArgumentError(
            f"ragged_dot_general: cannot use lhs_ragged_dimensions={ragged_axes} (one axis of {lhs} required)"
        )
    count = 0 if ragged_axes[0] in (*ca, *ba) else 1  # rhs has groups of its own unless lhs sums over them
    if len(groups) != count:
        raise ArgumentError(
            f"ragged_dot_general: cannot use rhs_group_dimensions={groups} ({'one axis' if count else '()'} required)"
        )
    return ragged_axes[0], groups


def _by_group(a: Array, sizes: Array, axis: int) -> Array:
    """[G, *shape of a]: for each group its elements along an axis, and zeros."""
    ta, count = type_of(a), type_of(sizes).shape[0]
    shape = (count, ta.shape[axis])
    ends = ops.cumsum(sizes, axis=0, reverse=False)
    place = ops.iota(shape=shape, axis=1, dtype=type_of(ends).dtype)
    last = ops.broadcast(ends, shape=shape, axes=(0,))
    first = ops.broadcast(ops.sub(ends, sizes), shape=shape, axes=(0,))
    inside = ops.logical_and(ops.ge(place, first), ops.lt(place, last))
    spread = (count, *ta.shape)
    # Selected, not multiplied by 0 or 1: 0 times an infinity is NaN.
    return ops.select(
        ops.broadcast(inside, shape=spread, axes=(0, axis + 1)),
        ops.broadcast(a, shape=spread, axes=tuple(range(1, ta.ndim + 1))),
        literal_like(0, a),
    )


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of operands first multiplied by scales, one for each block of elements.

    lhs_scale, rhs_scale: a number for each block along the contracted axis and each element along
                          the others; None means all 1
    dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs)); of matrices by default

    Products and sums are f32.
    Shapes: lhs [*B, M, K], lhs_scale [*B, M, K / block]; as dot_general otherwise.
    Types:  real operands and scales -> bf16, or preferred_element_type.
    Errors: ShapeError for scales whose shape does not divide that of the operand.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> halves = rnp.full((1, 2), 0.5)
    >>> lax.scaled_dot(rnp.ones((1, 4)), rnp.ones((4, 1)), lhs_scale=halves).item()
    2.0
    """
    a, b = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
    numbers = (((1,), (0,)), ((), ())) if dimension_numbers is None else dimension_numbers
    result_dtype = dtypes.bf16 if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    return ops.cast(dot_general(a, b, numbers), result_dtype)


def _scaled(x: ArrayLike, scale: ArrayLike | None) -> Array:
    """The operand as f32, times its scales."""
    values = ops.cast(value("scaled_dot", x), dtypes.f32)
    if scale is None:
        return values
    scales = ops.cast(value("scaled_dot", scale), dtypes.f32)
    shape, blocks = type_of(values).shape, type_of(scales).shape
    if len(blocks) != len(shape) or any(not n or size % n != 0 for size, n in zip(shape, blocks, strict=True)):
        raise ShapeError(
            f"scaled_dot: cannot scale {type_of(values)} by {type_of(scales)} (whole blocks along each axis required)"
        )
    split: list[Any] = [n for size, count in zip(shape, blocks, strict=True) for n in (count, size // count)]
    spread = ops.broadcast(scales, shape=tuple(split), axes=tuple(range(0, len(split), 2)))
    return ops.mul(values, ops.reshape(spread, shape=shape))
