"""Shapes and places: broadcasting, reshaping, slicing, padding, joining. Nothing is computed.

Sizes and axes are static; axes may count from the end. Source: XLA operation semantics.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.dims import Size, product
from rune.errors import ShapeError
from rune.lax.arguments import alike, given_axes, numbers
from rune.numpy import creation, joining, shapes
from rune.numpy.arguments import laid_out, listed, shape_of, static_int, static_ints, static_size, value, values
from rune.ops import conventions
from rune.ops.promote import broadcast_shape, broadcast_to
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike

Layout = Sharding | None  # None: the device of the operands

# --- broadcasting -----------------------------------------------------------------------------


def broadcast(operand: ArrayLike, sizes: Sequence[Size], *, out_sharding: Layout = None) -> Array:
    """The array repeated along new leading axes of these sizes.

    Shapes: operand [*S] -> [*sizes, *S].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.broadcast(rnp.ones(3), (2,)).shape
    (2, 3)
    """
    x = value("broadcast", operand)
    shape = (*shape_of("broadcast", sizes), *type_of(x).shape)
    return laid_out(broadcast_in_dim(x, shape, range(len(shape) - type_of(x).ndim, len(shape))), out_sharding)


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[Size], broadcast_dimensions: Sequence[int], *, out_sharding: Layout = None
) -> Array:
    """The array placed at these axes of `shape`, in ascending order; axes of size 1 stretch.

    Shapes: operand [*S] -> `shape`. Types: that of `operand`.
    Errors: ShapeError where a size is neither 1 nor that of its axis.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.broadcast_in_dim(rnp.arange(2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], i32[2,3], cpu:0)
    """
    x, target = value("broadcast_in_dim", operand), shape_of("broadcast_in_dim", shape)
    axes = static_ints("broadcast_in_dim", "an axis", tuple(broadcast_dimensions))
    sizes = type_of(x).shape
    fits = len(axes) == len(sizes) == len(set(axes))
    if not fits or not all(0 <= a < len(target) and d in (1, target[a]) for a, d in zip(axes, sizes, strict=False)):
        raise ShapeError(f"broadcast_in_dim: cannot broadcast {type_of(x)} to {target} at axes {axes}")
    if tuple(sorted(axes)) != axes:
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        x, axes, sizes = conventions.transpose(x, order), tuple(sorted(axes)), tuple(sizes[k] for k in order)
    equal_axes = [k for k, (a, d) in enumerate(zip(axes, sizes, strict=True)) if d == target[a]]
    if len(equal_axes) < len(sizes):
        x = ops.reshape(x, shape=tuple(sizes[k] for k in equal_axes))
    return laid_out(ops.broadcast(x, shape=target, axes=tuple(axes[k] for k in equal_axes)), out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """The array with leading axes of size 1, so that it has `rank` axes.

    Shapes: x [*S] -> [1, …, *S].
    Types:  that of `x`.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.broadcast_to_rank(rnp.ones(3), 2).shape
    (1, 3)
    """
    array = value("broadcast_to_rank", x)
    more = rank - type_of(array).ndim
    if more < 0:
        raise ShapeError(f"broadcast_to_rank: cannot give {type_of(array)} the rank {rank}")
    return ops.reshape(array, shape=(*(1,) * more, *type_of(array).shape))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """The array broadcast, by NumPy's rules, to the shape of another.

    Shapes: that of `like_arr`. Types: that of `arr`.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.broadcast_like(rnp.ones(3), rnp.ones((2, 3))).shape
    (2, 3)
    """
    x, like = value("broadcast_like", arr), value("broadcast_like", like_arr)
    return broadcast_to("broadcast_like", x, type_of(like).shape)


def broadcast_shapes(*shapes: Sequence[Size]) -> Shape:
    """The shape that arrays of these shapes broadcast to.

    Errors: ShapeError names the axis that conflicts.

    >>> from rune import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [shape_of("broadcast_shapes", s) for s in shapes]
    return broadcast_shape("broadcast_shapes", *sizes) if sizes else ()


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The array repeated `reps` times along its axes.

    Shapes: [*S] -> each size times its `reps`.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.tile(rnp.arange(2), (2,))
    Array([0, 1, 0, 1], i32[4], cpu:0)
    """
    return joining.tile(operand, numbers("tile", reps))


# --- shapes -----------------------------------------------------------------------------------


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[Size],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Layout = None,
) -> Array:
    """The elements, in row-major order, in another shape.

    dimensions: the order in which the axes of the operand are read, all of them.
    Shapes: any -> new_sizes, with the same number of elements.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shape does not match;
            AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.reshape(rnp.arange(4).reshape(2, 2), (4,), dimensions=(1, 0))
    Array([0, 2, 1, 3], i32[4], cpu:0)
    """
    x = value("reshape", operand) if dimensions is None else transpose(operand, dimensions)
    if out_sharding is not None:
        return shapes.reshape(x, new_sizes, out_sharding=out_sharding)
    return conventions.distinct(conventions.reshape(x, shape_of("reshape", new_sizes)), operand)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The axes from `start_dimension` up to, but not including, `stop_dimension`, as one.

    Shapes: [*A, *B, *C] -> [*A, ∏B, *C].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.collapse(rnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = value("collapse", operand)
    shape = type_of(x).shape
    first, last, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    return ops.reshape(x, shape=(*shape[:first], product(shape[first:last]), *shape[last:]))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array without the given axes, which must have size 1.

    Shapes: [*S] -> [*S] without the axes.
    Types:  that of `array`.
    Errors: ArgumentError if an argument is not an array; ShapeError for another rank; AxisError for
            an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.squeeze(rnp.ones((2, 1)), (1,)).shape
    (2,)
    """
    return shapes.squeeze(value("squeeze", array), numbers("squeeze", dimensions))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size 1 at the given places of the result.

    Shapes: [*S] -> [*S] with 1 at `dimensions`.
    Types:  that of `array`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.expand_dims(rnp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    return shapes.expand_dims(value("expand_dims", array), numbers("expand_dims", dimensions))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """The axes in another order: axis i of the result is axis permutation[i] of the operand.

    Shapes: [*S] -> S in the order of `permutation`.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.transpose(rnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return shapes.transpose(value("transpose", operand), numbers("transpose", permutation))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The elements in reverse order along these axes.

    Shapes: any, unchanged. Types: that of `operand`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.rev(rnp.arange(3), (0,))
    Array([2, 1, 0], i32[3], cpu:0)
    """
    x = value("rev", operand)
    return ops.reverse(x, axes=given_axes("rev", x, dimensions))


# --- slices -----------------------------------------------------------------------------------


def slice(
    operand: ArrayLike,
    start_indices: Sequence[Size],
    limit_indices: Sequence[Size],
    strides: Sequence[int] | None = None,
) -> Array:
    """Every `strides`-th element from `start_indices` up to, but not including, `limit_indices`.

    Shapes: ceil((limit - start) / stride) along each axis. Types: that of `operand`.
    Errors: ShapeError for a slice that leaves the array (NumPy would shorten it).

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.slice(rnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], i32[3], cpu:0)
    """
    x = value("slice", operand)
    steps = (1,) * type_of(x).ndim if strides is None else numbers("slice", listed("slice", "strides", strides))
    start = numbers("slice", listed("slice", "start_indices", start_indices))
    limit = numbers("slice", listed("slice", "limit_indices", limit_indices))
    return ops.slice_(x, start=start, limit=limit, stride=steps)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A slice along one axis; negative indices count from the end.

    Shapes: [*A, N, *B] -> [*A, K, *B].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array; ShapeError for no elements; AxisError for
            an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.slice_in_dim(rnp.arange(6), -3, None)
    Array([3, 4, 5], i32[3], cpu:0)
    """
    x = value("slice_in_dim", operand)
    (place,) = given_axes("slice_in_dim", x, (axis,))
    shape = type_of(x).shape
    first = _from_front(0 if start_index is None else start_index, shape[place])
    last = _from_front(shape[place] if limit_index is None else limit_index, shape[place])
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[place], limits[place], strides[place] = first, last, stride
    return slice(x, starts, limits, strides)


def _from_front(index: Any, size: Size) -> Any:
    return index + size if index < 0 else index


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One position along an axis, which keeps size 1 unless `keepdims` is false.

    Shapes: [*A, N, *B] -> [*A, 1, *B] or [*A, *B].
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array or `index` is not an integer; ShapeError
            for no elements; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.index_in_dim(rnp.arange(6), -1)
    Array([5], i32[1], cpu:0)
    """
    x = value("index_in_dim", operand)
    (place,) = given_axes("index_in_dim", x, (axis,))
    size = type_of(x).shape[place]
    at = _from_front(static_size("index_in_dim", "an index", index), size)
    if not 0 <= at < size:
        raise ShapeError(f"index_in_dim: cannot take {index} of {type_of(x)} (axis {place})")
    window = slice_in_dim(x, at, at + 1, axis=place)
    return window if keepdims else squeeze(window, (place,))


def pad(operand: ArrayLike, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """`padding_value` before, after and between the elements along each axis.

    padding_config: (low, high, interior) for each axis; low and high may be negative, which removes
                    elements.
    Shapes: N elements along an axis -> low + N + (N - 1)·interior + high; padding_value [].
    Types:  one dtype, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError for any other rank.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.pad(rnp.array([1, 2]), 0, [(1, 0, 1)])
    Array([0, 1, 0, 2], i32[4], cpu:0)
    """
    x, fill = alike("pad", operand, padding_value)
    entries = listed("pad", "padding_config", padding_config)
    config = [numbers("pad", listed("pad", "padding_config", c)) for c in entries]
    if len(config) != type_of(x).ndim or any(len(c) != 3 or c[2] < 0 for c in config):
        raise ShapeError(f"pad: cannot pad {type_of(x)} by {config} ((low, high, interior >= 0) for each axis)")
    low, high, interior = (tuple(c[k] for c in config) for k in range(3))
    high = tuple(map(ops.movement.behind, type_of(x).shape, high, interior))
    return ops.pad(x, fill, low=low, high=high, interior=interior)


# --- joining and splitting --------------------------------------------------------------------


def concatenate(operands: object, dimension: int) -> Array:
    """Arrays of one dtype and rank, joined along an axis.

    Shapes: operands [*A, N, *B] -> [*A, ΣN, *B]. Types: one dtype, unchanged.
    Errors: ShapeError where other axes differ; DtypeError for different dtypes; AxisError.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.concatenate([rnp.zeros(1), rnp.ones(2)], 0)
    Array([0., 1., 1.], f32[3], cpu:0)
    """
    arrays = values("concatenate", operands)
    (axis,) = given_axes("concatenate", arrays[0], (dimension,))
    return ops.concatenate(*arrays, axis=axis)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Pieces of the given sizes along an axis; together they fill it.

    Shapes: [*A, N, *B] -> [*A, size, *B] for each size. Types: that of `operand`.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shape does not match;
            AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.split(rnp.arange(3), (1, 2))
    [Array([0], i32[1], cpu:0), Array([1, 2], i32[2], cpu:0)]
    """
    x = value("split", operand)
    (place,) = given_axes("split", x, (axis,))
    sizes = numbers("split", sizes)
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    if not ends or ends[-1] != type_of(x).shape[place]:
        raise ShapeError(f"split: cannot split axis {place} of {type_of(x)} into {tuple(sizes)}")
    return [slice_in_dim(x, end - size, end, axis=place) for size, end in zip(sizes, ends, strict=True)]


def stack(operands: object, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis.

    Shapes: K of [*A, *B] -> [*A, K, *B]. Types: promoted together.
    Errors: AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.stack([rnp.zeros(2), rnp.ones(2)]).shape
    (2, 2)
    """
    return joining.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, which they lose.

    Shapes: [*A, N, *B] -> N of [*A, *B]. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> [int(x) for x in lax.unstack(rnp.arange(3))]
    [0, 1, 2]
    """
    return tuple(joining.unstack(x, axis=axis))


# --- creation ---------------------------------------------------------------------------------


def full(
    shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Layout = None
) -> Array:
    """An array of one value.

    Shapes: `shape`.
    Types:  `dtype`, or that of the value.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers and an
            unknown dtype.

    >>> from rune import lax
    >>> lax.full((2,), 1.5, "f32")
    Array([1.5, 1.5], f32[2], cpu:0)
    """
    return laid_out(creation.full(shape_of("full", shape), fill_value, dtype), sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    *,
    sharding: Layout = None,
) -> Array:
    """An array of one value, with the shape and dtype of `x` unless others are given.

    Shapes: that of `x`, or `shape`. Types: that of `x`, or `dtype`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.full_like(rnp.ones(2), 3)
    Array([3., 3.], f32[2], cpu:0)
    """
    return laid_out(creation.full_like(x, fill_value, dtype, shape), sharding)


def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: Layout = None) -> Array:
    """An array of zeros: nothing here is ever uninitialised.

    Shapes: `shape`. Types: `dtype`.
    Errors: DtypeError for an unknown dtype.

    >>> from rune import lax
    >>> lax.empty((2,), "i32")
    Array([0, 0], i32[2], cpu:0)
    """
    return laid_out(creation.zeros(shape_of("empty", shape), dtype), out_sharding)


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1, 2, …

    Shapes: [size]. Types: `dtype`, numeric.
    Errors: ArgumentError if `size` is not an integer; DtypeError for an unknown dtype.

    >>> from rune import lax
    >>> lax.iota("f32", 3)
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: Layout = None) -> Array:
    """0, 1, 2, … along one axis, the same along all others.

    Shapes: `shape`. Types: `dtype`, numeric.
    Errors: ArgumentError if `dimension` is not an integer; DtypeError for an unknown dtype.

    >>> from rune import lax
    >>> lax.broadcasted_iota("i32", (2, 2), 1)
    Array([[0, 1],
           [0, 1]], i32[2,2], cpu:0)
    """
    sizes, axis = shape_of("iota", shape), static_int("iota", "an axis", dimension)
    if not -len(sizes) <= axis < len(sizes):
        raise ShapeError(f"iota: cannot count along axis {axis} of the shape {sizes}")
    return laid_out(ops.iota(shape=sizes, axis=axis % len(sizes), dtype=dtypes.as_dtype(dtype)), out_sharding)
