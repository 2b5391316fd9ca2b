"""Joining, splitting and repeating. Like shapes.py, these only move elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Dim, Size, maximum, minimum
from rune.errors import ArgumentError, DimensionError, ShapeError
from rune.numpy.arguments import laid_out, members, rank, refuse, static_int, static_sizes, together, value
from rune.numpy.indexing import take
from rune.numpy.operands import operands_alone
from rune.numpy.shapes import atleast_1d, atleast_2d, atleast_3d
from rune.ops import conventions as c
from rune.ops.family import position_dtype
from rune.ops.movement import part
from rune.ops.ordering import searchsorted
from rune.ops.promote import broadcast_to
from rune.ops.statistics import cumsum
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike, Nested

SLICES = 16  # the most parts to join; for more of them, elements are gathered instead


def _joined(name: str, arrays: Sequence[ArrayLike], axis: int, dtype: DTypeLike | None) -> Array:
    if dtype is not None:
        arrays = [c.astype(x, dtypes.as_dtype(dtype)) for x in arrays]
    parts = c.same_dtype(name, *arrays)
    if not type_of(parts[0]).shape:
        raise ShapeError(f"{name}: cannot join arrays of rank 0", hint="use stack")
    at = c.normalised_axis(name, axis, type_of(parts[0]))
    return parts[0] if len(parts) == 1 else ops.concatenate(*parts, axis=at)


@operands_alone
def concatenate(arrays: object, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an existing axis; flattened first for None.

    Shapes: equal, except along `axis`. Types: promoted together.
    Errors: ShapeError when other axes differ; ArgumentError for no arrays.

    >>> import rune.numpy as rnp
    >>> rnp.concatenate([rnp.zeros(1), rnp.ones(2)])
    Array([0., 1., 1.], f32[3], cpu:0)
    """
    operands = together("concatenate", *members("concatenate", arrays))
    if axis is None:
        operands, axis = [c.reshape(x, -1) for x in operands], 0
    return _joined("concatenate", operands, axis, dtype)


@operands_alone
def concat(arrays: Nested, /, *, axis: int | None = 0) -> Array:
    """`concatenate` under the name of the array API standard.

    Shapes: equal, except along `axis`. Types: promoted together.
    Errors: AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.concat([rnp.zeros(1), rnp.ones(1)])
    Array([0., 1.], f32[2], cpu:0)
    """
    return concatenate(arrays, axis)


@tiered
def stack(arrays: object, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape joined along a new axis.

    Shapes: N of [*A, *B] -> [*A, N, *B]. Types: promoted together.
    Errors: ShapeError if the shapes differ; DtypeError for an unknown dtype; AxisError for an axis
            out of range.

    >>> import rune.numpy as rnp
    >>> rnp.stack([rnp.zeros(2), rnp.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    refuse("stack", out=out)
    operands = together("stack", *members("stack", arrays))
    shapes = [type_of(x).shape for x in operands]
    if any(s != shapes[0] for s in shapes):
        types = ", ".join(str(type_of(x)) for x in operands)
        raise ShapeError(
            f"stack: cannot stack {types} (one shape required)",
            hint="rune.numpy.pad makes rows of one length; concatenate joins along an axis that exists",
        )
    at = c.normalised_axis("stack", axis, type_of(operands[0]), 1)
    return _joined("stack", [c.expand_dims(x, at) for x in operands], at, dtype)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, as a tuple.

    Shapes: x [*A, N, *B] -> N of [*A, *B]. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.unstack(rnp.arange(2))
    (Array(0, i32[], cpu:0), Array(1, i32[], cpu:0))
    """
    x = value("unstack", x)
    at = c.normalised_axis("unstack", axis, type_of(x))
    count = static_int("unstack", "a size", type_of(x).shape[at])
    return tuple(c.squeeze(part(x, at, i, i + 1), at) for i in range(count))


def _stacked(name: str, arrays: Any, spread: Any, axis: int, dtype: DTypeLike | None) -> Array:
    operands = [spread(x) for x in together(name, *members(name, arrays))]
    return _joined(name, operands, axis if rank(operands[0]) > axis else 0, dtype)


def vstack(tup: object, dtype: DTypeLike | None = None) -> Array:
    """Rows on top of each other; a vector is one row.

    Shapes: each [M, *B] -> [sum of M, *B]; [N] is [1, N]. Types: promoted together.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.vstack([rnp.zeros(2), rnp.ones((1, 2))]).shape
    (2, 2)
    """
    return _stacked("vstack", tup, atleast_2d, 0, dtype)


def hstack(tup: object, dtype: DTypeLike | None = None) -> Array:
    """Arrays side by side, along axis 1; vectors along axis 0.

    Shapes: each [M, N, *B] -> [M, sum of N, *B], or [N] -> [sum of N]. Types: promoted together.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.hstack([rnp.zeros(2), rnp.ones(1)])
    Array([0., 0., 1.], f32[3], cpu:0)
    """
    return _stacked("hstack", tup, atleast_1d, 1, dtype)


def dstack(tup: Nested, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along axis 2.

    Shapes: each [M, N, K, *B] -> [M, N, sum of K, *B]; [N] is [1, N, 1], [M, N] is [M, N, 1].
    Types:  promoted together.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.dstack([rnp.zeros(2), rnp.ones(2)]).shape
    (1, 2, 2)
    """
    return _stacked("dstack", tup, atleast_3d, 2, dtype)


def column_stack(tup: Nested) -> Array:
    """Columns side by side; a vector is one column.

    Shapes: each [N] or [N, K] -> [N, sum of K]. Types: promoted together.
    Errors: ArgumentError if an argument is not a sequence of arrays; ShapeError for columns of
            different lengths.

    >>> import rune.numpy as rnp
    >>> rnp.column_stack([rnp.zeros(2), rnp.ones((2, 2))]).shape
    (2, 3)
    """

    def column(x: ArrayLike) -> ArrayLike:
        return x if rank(x) >= 2 else c.reshape(x, (-1, 1))

    return _stacked("column_stack", tup, column, 1, None)


@tiered
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` appended to `arr`, both flattened for axis None.

    Shapes: equal, except along `axis`; [M + N] for None. Types: promoted together.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.append(rnp.zeros(1), 1.0)
    Array([0., 1.], f32[2], cpu:0)
    """
    return concatenate([arr, values], axis)


# --- splitting --------------------------------------------------------------------------------


def _cuts(x: ArrayLike, axis: int, sections: Any, name: str, *, even: bool) -> list[Size]:
    """The starts of the parts, and the end of the last one."""
    size = type_of(x).shape[axis]
    if isinstance(sections, Sequence) or np.ndim(sections) != 0:
        inner = static_sizes(name, "a position", sections)
        return [0, *(_within(i, size) for i in inner), size]
    count = static_int(name, "a number of parts", sections)
    wide = size % count if count > 0 else None
    message = f"{name}: cannot split {type_of(x)} into {count} equal parts (axis {axis}: {size})"
    if isinstance(wide, Dim):
        if even:
            hint = f"declare a size that is a multiple, as {count}*k in in_dims"
            raise DimensionError(message, hint)
        parts = ((size + count - 1 - i) // count for i in range(count - 1))
        return [0, *accumulate(parts), size]
    if wide is None or (even and wide):
        raise ArgumentError(message, hint="array_split allows parts of unequal size")
    return [0, *accumulate(size // count + (i < wide) for i in range(count))]


def _within(at: Size, size: Size) -> Size:
    return minimum(maximum(at + size if at < 0 else at, 0), size)


def _split(name: str, x: ArrayLike, sections: Nested, axis: int, *, even: bool) -> list[Array]:
    x = value(name, x)
    at = c.normalised_axis(name, axis, type_of(x))
    cuts = _cuts(x, at, sections, name, even=even)
    return [part(x, at, low, maximum(low, high)) for low, high in pairwise(cuts)]


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Equal parts, or the parts between given positions.

    Shapes: ary [*A, N, *B] -> a list of [*A, K, *B]. Types: that of `ary`.
    Errors: ArgumentError if unequal.

    >>> import rune.numpy as rnp
    >>> rnp.split(rnp.arange(4), 2)
    [Array([0, 1], i32[2], cpu:0), Array([2, 3], i32[2], cpu:0)]
    """
    return _split("split", ary, indices_or_sections, axis, even=True)


@tiered
def array_split(ary: ArrayLike, indices_or_sections: Nested, axis: int = 0) -> list[Array]:
    """Like `split`; the first parts may be one longer.

    Shapes: ary [*A, N, *B] -> a list of [*A, K, *B]. Types: that of `ary`.
    Errors: ArgumentError if an argument is not an array or `indices_or_sections` is not an integer;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> [len(x) for x in rnp.array_split(rnp.arange(5), 2)]
    [3, 2]
    """
    return _split("array_split", ary, indices_or_sections, axis, even=False)


def vsplit(ary: ArrayLike, indices_or_sections: Nested) -> list[Array]:
    """`split` along axis 0.

    Shapes: ary [N, *B] -> a list of [K, *B]. Types: that of `ary`.
    Errors: ArgumentError if an argument is not an array or `indices_or_sections` is not an integer;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.vsplit(rnp.zeros((2, 3)), 2)]
    [(1, 3), (1, 3)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, even=True)


def hsplit(ary: ArrayLike, indices_or_sections: Nested) -> list[Array]:
    """`split` along axis 1, of a vector along axis 0.

    Shapes: ary [M, N, *B] -> a list of [M, n, *B], or [N] -> [n]. Types: that of `ary`.
    Errors: ArgumentError if an argument is not an array or `indices_or_sections` is not an integer;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.hsplit(rnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    axis = 0 if rank(value("hsplit", ary)) == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, even=True)


def dsplit(ary: ArrayLike, indices_or_sections: Nested) -> list[Array]:
    """`split` along axis 2.

    Shapes: ary [M, N, K, *B] -> a list of [M, N, k, *B]. Types: that of `ary`.
    Errors: ArgumentError if an argument is not an array or `indices_or_sections` is not an integer;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.dsplit(rnp.zeros((1, 1, 2)), 2)]
    [(1, 1, 1), (1, 1, 1)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, even=True)


# --- repetition -------------------------------------------------------------------------------


def repeat(
    a: ArrayLike,
    repeats: Nested,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Each element (slice along `axis`) repeated, the flattened array for None.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: a [*A, N, *B], repeats [] or [N] -> [*A, sum of repeats, *B]. Types: that of `a`.
    total_repeat_length: the size of the result along the axis, needed for traced `repeats`: any
                         excess is cut off, and missing places repeat the last element.
    Errors: ConcretizationTypeError for traced `repeats` without it: the size would depend on data.

    >>> import rune.numpy as rnp
    >>> rnp.repeat(rnp.arange(3), 2), rnp.repeat(rnp.arange(2), rnp.array([2, 1]))
    (Array([0, 0, 1, 1, 2, 2], i32[6], cpu:0), Array([0, 0, 1], i32[3], cpu:0))
    """
    x = value("repeat", a)
    if axis is None:
        x, axis = c.reshape(x, -1), 0
    at = c.normalised_axis("repeat", axis, type_of(x))
    if total_repeat_length is not None:
        total = static_int("repeat", "total_repeat_length", total_repeat_length)
        return laid_out(_repeated_to(x, value("repeat", repeats), at, total), out_sharding)
    counts = _counts(repeats)
    if (counts < 0).any():
        raise ArgumentError(f"repeat: cannot repeat {tuple(counts.tolist())} times (a count is negative)")
    if counts.size == 1:
        return laid_out(repeated(x, counts.item(), at), out_sharding)
    if counts.size != type_of(x).shape[at]:
        raise ShapeError(f"repeat: cannot repeat {type_of(x)} {counts.size} times along axis {at}")
    return laid_out(_repeated_by_counts(x, counts, at), out_sharding)


def _counts(repeats: Nested) -> np.ndarray:
    """Integers [N], or symbolic sizes as objects [N]. Errors: ArgumentError for other numbers."""
    # By exact type: isinstance also takes tracers for arrays.
    if type(repeats) in (Array, np.ndarray) and type_of(repeats).dtype in dtypes.INTEGER:
        return np.asarray(repeats).reshape(-1)
    counts = static_sizes("repeat", "a count", repeats)
    return np.array(counts, object if any(isinstance(n, Dim) for n in counts) else np.int64)


def _repeated_by_counts(x: Array, counts: np.ndarray, axis: int) -> Array:
    """Slice i of `axis` counts[i] times."""
    if counts.size > SLICES and counts.dtype != object:
        slices = np.repeat(np.arange(counts.size), counts.astype(np.int64))
        return take(x, slices.astype(position_dtype(counts.size)), axis)
    parts = [repeated(part(x, axis, i, i + 1), n, axis) for i, n in enumerate(counts.tolist())]
    return _joined("repeat", parts, axis, None) if parts else x


def _repeated_to(x: Array, counts: Array, axis: int, total: int) -> Array:
    """Place p holds the slice whose run contains p: the first run that ends after p."""
    counts_type, size = type_of(counts), type_of(x).shape[axis]
    if counts_type.dtype not in dtypes.INTEGER or counts_type.shape not in {(), (1,), (size,)}:
        raise ShapeError(f"repeat: cannot repeat {type_of(x)} {counts_type} times along axis {axis}")
    ends = cumsum(broadcast_to("repeat", counts, (size,)), axis=0)
    places = ops.iota(shape=(total,), axis=0, dtype=type_of(ends).dtype)
    runs = c.clip(searchsorted(ends, places, "right"), None, size - 1)
    return x[(*(slice(None),) * axis, runs)]


def repeated(x: ArrayLike, times: Size, axis: int) -> Array:
    """Every slice along `axis` `times` times in a row."""
    shape = type_of(x).shape
    spread = (*shape[: axis + 1], times, *shape[axis + 1 :])
    axes = tuple(i if i <= axis else i + 1 for i in range(len(shape)))
    return c.reshape(ops.broadcast(x, shape=spread, axes=axes), _scaled(shape, axis, times))


def _scaled(shape: tuple, axis: int, times: Size) -> tuple:
    return (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])


@tiered
def tile(A: ArrayLike, reps: object) -> Array:
    """The whole array repeated along each axis; missing axes are added in front.

    Shapes: [N, M, …] -> [a N, b M, …] for reps (a, b, …). Types: that of `A`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.tile(rnp.arange(2), (2, 2))
    Array([[0, 1, 0, 1],
           [0, 1, 0, 1]], i32[2,4], cpu:0)
    """
    x = value("tile", A)
    times = static_sizes("tile", "a count", reps)
    if any(t < 0 for t in times):
        raise ArgumentError(f"tile: cannot repeat {reps} times (a count is negative)")
    ndim = max(rank(x), len(times))
    times = (1,) * (ndim - len(times)) + tuple(times)
    shape = (1,) * (ndim - rank(x)) + type_of(x).shape
    spread = tuple(size for pair in zip(times, shape, strict=True) for size in pair)
    axes = tuple(2 * i + 1 for i in range(ndim))
    wide = ops.broadcast(c.reshape(x, shape), shape=spread, axes=axes)
    return c.reshape(wide, tuple(n * d for n, d in zip(times, shape, strict=True)))
