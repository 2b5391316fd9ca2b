"""Windows of static sizes at positions known at run time.

A start that would make a window leave the array is clamped; negative starts count from the end,
unless `allow_negative_indices` is false.
Source: XLA operation semantics, DynamicSlice and DynamicUpdateSlice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.lax.arguments import alike, given_axes
from rune.lax.movement import expand_dims, squeeze
from rune.numpy.arguments import listed, shape_of, value
from rune.ops.index_values import from_end, signed
from rune.typing import ArrayLike


def _starts(name: str, x: ArrayLike, start_indices: object, negative: bool | Sequence[bool]) -> list[Value]:
    """One start per axis as rank-0 integers, negative ones counted from the end if allowed."""
    type = type_of(x)
    indices = listed(name, "start_indices", start_indices)
    if len(indices) != type.ndim:
        raise ShapeError(f"{name}: cannot start in {type} at {len(indices)} indices (one per axis)")
    flags = [negative] * type.ndim if isinstance(negative, bool) else list(negative)
    if len(flags) != type.ndim:
        raise ArgumentError(f"{name}: cannot use {len(flags)} of allow_negative_indices for {type} (one per axis)")
    starts = zip(indices, type.shape, flags, strict=True)
    return [(from_end if back else signed)(value(name, s), d) for s, d, back in starts]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: object,
    slice_sizes: Sequence[Size],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A window of static sizes that begins at `start_indices`.

    allow_negative_indices: whether starts below 0 count from the end; otherwise they count as 0.
    Shapes: operand [*S], start_indices int[] of each axis -> slice_sizes.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array; ShapeError for any other rank.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_slice(rnp.arange(5), (3,), (2,))
    Array([3, 4], i32[2], cpu:0)
    """
    x = value("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x, start_indices, allow_negative_indices)
    return ops.dynamic_slice(x, *starts, sizes=shape_of("dynamic_slice", slice_sizes))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: object,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The array with the window that begins at `start_indices` replaced.

    allow_negative_indices: whether starts below 0 count from the end; otherwise they count as 0.
    Shapes: operand [*S], update within it, start_indices int[] of each axis -> [*S].
    Types:  unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_slice(rnp.zeros(3), rnp.ones(1), (1,))
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    x, new = value("dynamic_update_slice", operand), value("dynamic_update_slice", update)
    starts = _starts("dynamic_update_slice", x, start_indices, allow_negative_indices)
    return ops.dynamic_update_slice(x, new, *starts)


def _at_axis(name: str, x: ArrayLike, index: ArrayLike, axis: int) -> tuple[list[int], int]:
    (place,) = given_axes(name, x, (axis,))
    starts: list[Any] = [0] * type_of(x).ndim
    starts[place] = index
    return starts, place


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """`slice_size` positions along one axis, from `start_index` on.

    Shapes: [*A, N, *B] -> [*A, slice_size, *B].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array, `start_index` is not an integer or
            `slice_size` is not an integer; ShapeError for no elements; AxisError for an axis out of
            range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_slice_in_dim(rnp.arange(5), 1, 2)
    Array([1, 2], i32[2], cpu:0)
    """
    x = value("dynamic_slice_in_dim", operand)
    starts, place = _at_axis("dynamic_slice_in_dim", x, start_index, axis)
    sizes = list(type_of(x).shape)
    sizes[place] = slice_size
    return dynamic_slice(x, tuple(starts), sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """One position along an axis, which keeps size 1 unless `keepdims` is false.

    Shapes: [*A, N, *B] -> [*A, 1, *B] or [*A, *B]; index int[].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array or `index` is not an integer; ShapeError
            for no elements; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_index_in_dim(rnp.arange(5), 2, keepdims=False)
    Array(2, i32[], cpu:0)
    """
    window = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return window if keepdims else squeeze(window, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The array with positions along one axis replaced, from `start_index` on.

    Shapes: operand [*A, N, *B], update [*A, K, *B] -> that of `operand`. Types: unchanged.
    Errors: ArgumentError if an argument is not an array or `start_index` is not an integer;
            DtypeError for operands of different dtypes; ShapeError if the shapes do not match;
            AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_slice_in_dim(rnp.zeros(3), rnp.ones(2), 1, axis=0)
    Array([0., 1., 1.], f32[3], cpu:0)
    """
    x = value("dynamic_update_slice_in_dim", operand)
    starts, _ = _at_axis("dynamic_update_slice_in_dim", x, start_index, axis)
    return dynamic_update_slice(x, update, tuple(starts), allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The array with one position along an axis replaced.

    Shapes: operand [*A, N, *B], update [*A, 1, *B] or [*A, *B] -> that of `operand`.
    Types:  that of `operand`, into which the update is converted.
    Errors: ArgumentError if an argument is not an array or `index` is not an integer; ShapeError
            for any other rank; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dynamic_update_index_in_dim(rnp.zeros(3), 7.0, 1, axis=0)
    Array([0., 7., 0.], f32[3], cpu:0)
    """
    x, (new,) = value("dynamic_update_index_in_dim", operand), alike("update", update)
    new = ops.cast(new, type_of(x).dtype)
    if type_of(new).ndim == type_of(x).ndim - 1:
        new = expand_dims(new, (axis,))
    return dynamic_update_slice_in_dim(x, new, index, axis, allow_negative_indices=allow_negative_indices)
