"""Joining, splitting, repeating and padding. Movement only, like shapes.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, refuse, static_int, static_ints, value, values
from rune.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, cut_out
from rune.ops import conventions as c
from rune.ops import promote


def _joined(name: str, arrays: Sequence[Any], axis: int, dtype: Any) -> Any:
    if dtype is not None:
        arrays = [c.astype(x, dtypes.as_dtype(dtype)) for x in arrays]
    found = c.same_dtype(name, *arrays)
    if not type_of(found[0]).shape:
        raise ShapeError(f"{name}: cannot join arrays of rank 0", hint="use stack")
    at = c.normalised_axis(name, axis, rank(found[0]))
    return found[0] if len(found) == 1 else ops.concatenate(*found, axis=at)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an axis that they have; flattened first for None.

    Shapes: equal, except along `axis`. Types: promoted together.
    Errors: ShapeError when other axes differ; ArgumentError for no arrays.

    >>> import rune.numpy as rnp
    >>> rnp.concatenate([rnp.zeros(1), rnp.ones(2)])
    Array([0., 1., 1.], f32[3], cpu:0)
    """
    found = values("concatenate", arrays)
    if axis is None:
        found, axis = [c.reshape(x, -1) for x in found], 0
    return _joined("concatenate", found, axis, dtype)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """`concatenate` under the name of the array API standard.

    >>> import rune.numpy as rnp
    >>> rnp.concat([rnp.zeros(1), rnp.ones(1)])
    Array([0., 1.], f32[2], cpu:0)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.

    >>> import rune.numpy as rnp
    >>> rnp.stack([rnp.zeros(2), rnp.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    refuse("stack", out=out)
    found = values("stack", arrays)
    shapes = [type_of(x).shape for x in found]
    if any(s != shapes[0] for s in shapes):
        raise ShapeError(f"stack: cannot stack shapes {', '.join(map(str, shapes))}")
    at = c.normalised_axis("stack", axis, len(shapes[0]) + 1)
    return _joined("stack", [c.expand_dims(x, at) for x in found], at, dtype)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, as a tuple.

    >>> import rune.numpy as rnp
    >>> rnp.unstack(rnp.arange(2))
    (Array(0, i32[], cpu:0), Array(1, i32[], cpu:0))
    """
    x = value("unstack", x)
    at = c.normalised_axis("unstack", axis, rank(x))
    count = static_int("unstack", "a size", type_of(x).shape[at])
    return tuple(c.squeeze(cut_out(x, at, i, i + 1), at) for i in range(count))


def _stacked(name: str, arrays: Any, spread: Any, axis: int, dtype: Any) -> Any:
    found = [spread(x) for x in values(name, arrays)]
    return _joined(name, found, axis if rank(found[0]) > axis else 0, dtype)


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Rows on top of each other; a vector is one row.

    >>> import rune.numpy as rnp
    >>> rnp.vstack([rnp.zeros(2), rnp.ones((1, 2))]).shape
    (2, 2)
    """
    return _stacked("vstack", tup, atleast_2d, 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays side by side, along axis 1; vectors along axis 0.

    >>> import rune.numpy as rnp
    >>> rnp.hstack([rnp.zeros(2), rnp.ones(1)])
    Array([0., 0., 1.], f32[3], cpu:0)
    """
    return _stacked("hstack", tup, atleast_1d, 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along axis 2.

    >>> import rune.numpy as rnp
    >>> rnp.dstack([rnp.zeros(2), rnp.ones(2)]).shape
    (1, 2, 2)
    """
    return _stacked("dstack", tup, atleast_3d, 2, dtype)


def column_stack(tup: Any) -> Any:
    """Columns side by side; a vector is one column.

    >>> import rune.numpy as rnp
    >>> rnp.column_stack([rnp.zeros(2), rnp.ones((2, 2))]).shape
    (2, 3)
    """

    def column(x: Any) -> Any:
        return x if rank(x) >= 2 else c.reshape(x, (-1, 1))

    return _stacked("column_stack", tup, column, 1, None)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`values` joined behind `arr`, both flattened for axis None.

    >>> import rune.numpy as rnp
    >>> rnp.append(rnp.zeros(1), 1.0)
    Array([0., 1.], f32[2], cpu:0)
    """
    return concatenate([arr, values], axis)


# --- splitting --------------------------------------------------------------------------------


def _cuts(x: Any, axis: int, sections: Any, name: str, *, even: bool) -> list[int]:
    """Where the parts begin, and the end."""
    size = static_int(name, "a size", type_of(x).shape[axis])
    if np.ndim(sections) != 0:
        inner = static_ints(name, "a position", sections)
        places = [min(max(i + size if i < 0 else i, 0), size) for i in inner]
        return [0, *places, size]
    count = static_int(name, "a number of parts", sections)
    if count < 1 or (even and size % count):
        raise ArgumentError(
            f"{name}: cannot split {type_of(x)} into {count} equal parts (axis {axis}: {size})",
            hint="array_split allows parts of unequal size",
        )
    wide = size % count
    return [0, *np.cumsum([size // count + (i < wide) for i in range(count)]).tolist()]


def _split(name: str, x: Any, sections: Any, axis: int, *, even: bool) -> list[Any]:
    x = value(name, x)
    at = c.normalised_axis(name, axis, rank(x))
    cuts = _cuts(x, at, sections, name, even=even)
    return [cut_out(x, at, low, max(low, high)) for low, high in pairwise(cuts)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal parts, or parts that begin at the given positions. Errors: ArgumentError if unequal.

    >>> import rune.numpy as rnp
    >>> rnp.split(rnp.arange(4), 2)
    [Array([0, 1], i32[2], cpu:0), Array([2, 3], i32[2], cpu:0)]
    """
    return _split("split", ary, indices_or_sections, axis, even=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Like `split`; the first parts may be one longer.

    >>> import rune.numpy as rnp
    >>> [len(x) for x in rnp.array_split(rnp.arange(5), 2)]
    [3, 2]
    """
    return _split("array_split", ary, indices_or_sections, axis, even=False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 0.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.vsplit(rnp.zeros((2, 3)), 2)]
    [(1, 3), (1, 3)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, even=True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 1, of a vector along axis 0.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.hsplit(rnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    axis = 0 if rank(value("hsplit", ary)) == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, even=True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 2.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.dsplit(rnp.zeros((1, 1, 2)), 2)]
    [(1, 1, 1), (1, 1, 1)]
    """
    return _split("dsplit", ary, indices_or_sections, 2, even=True)


# --- repetition -------------------------------------------------------------------------------


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Any:
    """Each element (slice along `axis`) repeated, the flattened array for None.

    Errors: TracerError for traced `repeats`: the size would depend on data.

    >>> import rune.numpy as rnp
    >>> rnp.repeat(rnp.arange(3), 2), rnp.repeat(rnp.arange(2), rnp.array([2, 1]))
    (Array([0, 0, 1, 1, 2, 2], i32[6], cpu:0), Array([0, 0, 1], i32[3], cpu:0))
    """
    refuse("repeat", total_repeat_length=total_repeat_length)
    x = value("repeat", a)
    x, at = (
        (c.reshape(x, -1), 0) if axis is None else (x, c.normalised_axis("repeat", axis, rank(x)))
    )
    counts = static_ints("repeat", "a count", repeats)
    if any(n < 0 for n in counts):
        raise ArgumentError(f"repeat: cannot repeat {counts} times (a count is negative)")
    if len(counts) == 1:
        return _repeated(x, counts[0], at)
    if len(counts) != type_of(x).shape[at]:
        raise ShapeError(f"repeat: cannot repeat {type_of(x)} {len(counts)} times along axis {at}")
    parts = [_repeated(cut_out(x, at, i, i + 1), n, at) for i, n in enumerate(counts)]
    return _joined("repeat", parts, at, None) if parts else x


def _repeated(x: Any, times: int, axis: int) -> Any:
    shape = type_of(x).shape
    spread = (*shape[: axis + 1], times, *shape[axis + 1 :])
    kept = tuple(i if i <= axis else i + 1 for i in range(len(shape)))
    return c.reshape(ops.broadcast(x, shape=spread, axes=kept), _scaled(shape, axis, times))


def _scaled(shape: tuple, axis: int, times: int) -> tuple:
    return (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])


def tile(A: Any, reps: Any) -> Any:
    """The whole array repeated along each axis; missing axes lead.

    >>> import rune.numpy as rnp
    >>> rnp.tile(rnp.arange(2), (2, 2))
    Array([[0, 1, 0, 1],
           [0, 1, 0, 1]], i32[2,4], cpu:0)
    """
    x = value("tile", A)
    times = static_ints("tile", "a count", reps)
    ndim = max(rank(x), len(times))
    times = (1,) * (ndim - len(times)) + tuple(times)
    shape = (1,) * (ndim - rank(x)) + type_of(x).shape
    spread = tuple(size for pair in zip(times, shape, strict=True) for size in pair)
    kept = tuple(2 * i + 1 for i in range(ndim))
    wide = ops.broadcast(c.reshape(x, shape), shape=spread, axes=kept)
    return c.reshape(wide, tuple(n * d for n, d in zip(times, shape, strict=True)))


# --- padding ----------------------------------------------------------------------------------

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """`array` with elements added at both ends of each axis.

    pad_width: an integer, (before, after), or such a pair per axis.
    mode:      constant (constant_values=0), edge, reflect, symmetric, wrap.
    Errors:    ArgumentError for another mode or option.

    >>> import rune.numpy as rnp
    >>> rnp.pad(rnp.arange(3), (1, 2)), rnp.pad(rnp.arange(3), 2, mode="reflect")
    (Array([0, 0, 1, 2, 0, 0], i32[6], cpu:0), Array([2, 1, 0, 1, 2, 1, 0], i32[7], cpu:0))
    """
    x = value("pad", array)
    if mode not in _MODES:
        raise ArgumentError(f"pad: cannot use mode={mode!r} (one of {', '.join(_MODES)})")
    unknown = set(kwargs) - ({"constant_values"} if mode == "constant" else set())
    if unknown:
        raise ArgumentError(f"pad: cannot use {', '.join(sorted(unknown))} with mode={mode!r}")
    widths = np.broadcast_to(_pairs(pad_width), (rank(x), 2)).tolist()
    if any(w < 0 for pair in widths for w in pair):
        raise ArgumentError(f"pad: cannot pad by {pad_width} (a width is negative)")
    if mode == "constant":
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    for axis, (low, high) in enumerate(widths):
        x = _pad_axis(x, axis, low, high, mode)
    return x


def _pairs(pad_width: Any) -> np.ndarray:
    if isinstance(pad_width, dict):
        raise ArgumentError("pad: cannot use a dict as pad_width (pairs per axis required)")
    found = np.asarray(pad_width)
    if found.dtype.kind not in "iu":
        raise ArgumentError(f"pad: cannot use pad_width={pad_width!r} (integers required)")
    return found


def _pad_constant(x: Any, widths: list, fill: Any) -> Any:
    found = type_of(x)
    zeros = (0,) * found.ndim
    if np.ndim(fill) == 0:
        low, high = (tuple(pair[side] for pair in widths) for side in (0, 1))
        number = promote.as_type(fill, found.dtype, found.weak)
        return ops.pad(x, number, low=low, high=high, interior=zeros)
    fills = np.broadcast_to(np.asarray(fill), (found.ndim, 2))
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            at = tuple(width if i == axis else 0 for i in range(found.ndim))
            low, high = (at, zeros) if side == 0 else (zeros, at)
            number = fills[axis, side].astype(found.dtype)
            x = ops.pad(x, number, low=low, high=high, interior=zeros)
    return x


def _pad_axis(x: Any, axis: int, low: int, high: int, mode: Any) -> Any:
    """NumPy says which element goes where; runs of neighbours become slices of x."""
    if low == high == 0:
        return x
    size = static_int("pad", "a size", type_of(x).shape[axis])
    if size == 0:
        raise ShapeError(f"pad: cannot pad {type_of(x)} with mode={mode!r} (axis {axis} is empty)")
    source = np.pad(np.arange(size), (low, high), mode=mode).tolist()
    parts = [_run(x, axis, run) for run in _runs(source)]
    return parts[0] if len(parts) == 1 else ops.concatenate(*parts, axis=axis)


def _runs(source: list[int]) -> list[tuple[int, int, int]]:
    """(first, step, count) of maximal runs with a step of 1, -1 or 0."""
    runs: list[tuple[int, int, int]] = []
    for at in source:
        if runs:
            first, step, count = runs[-1]
            gap = at - (first + step * (count - 1))
            if (count == 1 and abs(gap) <= 1) or gap == step:
                runs[-1] = (first, gap, count + 1)
                continue
        runs.append((at, 1, 1))
    return runs


def _run(x: Any, axis: int, run: tuple[int, int, int]) -> Any:
    first, step, count = run
    if step == 0:
        return _repeated(cut_out(x, axis, first, first + 1), count, axis)
    if step == 1 or count == 1:
        return cut_out(x, axis, first, first + count)
    return ops.reverse(cut_out(x, axis, first - count + 1, first + 1), axes=(axis,))
