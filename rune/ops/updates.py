"""Writing values where a parsed index (subscript.py) points: into a window, or by a scatter.

Basic entries select a window of distinct elements; it is put back by static movement, in place
where possible. Index arrays use one scatter, whose windows may be parts of the axes that are
sliced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rune import dtypes
from rune.core.interpreter import Tracer, type_of
from rune.core.primitive import Primitive
from rune.core.types import Shape
from rune.core.values import Operand, V, Value
from rune.dims import Dim, Size, product
from rune.ops.arithmetic import convert, select, zero_like
from rune.ops.family import fit, position_dtype, reshape, size_value
from rune.ops.index_dims import result_shape
from rune.ops.index_masks import is_advanced
from rune.ops.index_values import clipped
from rune.ops.movement import pad, reverse
from rune.ops.promote import broadcast_shape, broadcast_to
from rune.ops.subscript import Entries, Range, basic_shape, index_vectors, ranges, raw_entries, sliced, with_new_axes
from rune.ops.windows import dynamic_update_slice

if TYPE_CHECKING:
    from rune.array import Array


def change_window(x: V, entries: Entries, combine: Primitive | None, values: Operand) -> V:
    """x with values, or combine(window, values), in the window that basic entries select."""
    indices = [e for e in entries if e is not None]
    parts = ranges(type_of(x).shape, indices)
    sizes = tuple(p.size for p in parts)
    shape = basic_shape(sizes, entries)
    values = broadcast_to("at", values, shape)
    if combine is not None:
        values = combine(_reshaped(sliced(x, indices), shape), values)
    return _as_weak_as(x, _put_back(x, parts, _reshaped(values, sizes)))


def _as_weak_as(x: V, result: Operand) -> V:
    """The changed array, weak if x is, even where all elements come from a value that is not."""
    x_type, changed_type = type_of(x), type_of(result)
    if x_type.weak == changed_type.weak and not isinstance(result, np.ndarray | np.generic):
        return cast("V", result)
    return cast("V", convert(result, dtype=changed_type.dtype, weak=x_type.weak))


def _reshaped(x: V, shape: Shape) -> V:
    return x if type_of(x).shape == shape else reshape(x, shape=shape)


def _put_back(x: Operand, parts: Sequence[Range], window: Operand) -> Any:
    """x with a window put back at the place that it was sliced from."""
    shape, sizes = type_of(x).shape, type_of(window).shape
    axes = tuple(i for i, p in enumerate(parts) if p.flipped)
    window = reverse(window, axes=axes) if axes else window
    if sizes == shape:
        return window
    if 0 in sizes:
        return x
    if all(p.stride == 1 for p in parts):
        dtype = position_dtype(*shape)
        starts = [size_value(p.start, dtype) for p in parts]
        return dynamic_update_slice(x, window, *starts)
    spread = [(n - 1) * p.stride + 1 for n, p in zip(sizes, parts, strict=True)]
    low = tuple(p.start for p in parts)
    high = tuple(d - lo - n for d, lo, n in zip(shape, low, spread, strict=True))
    place = {"low": low, "high": high, "interior": tuple(p.stride - 1 for p in parts)}
    mask = pad(fit(np.array(True), sizes), np.array(False), **place)
    return select(mask, pad(window, zero_like(window), **place), x)


def writing_mode(shape: Shape, mode: str) -> str:
    """The mode in which an array is written: no index meets an element of an empty one."""
    return "fill" if 0 in shape else mode


def scattered(
    scatter: Primitive | Callable[..., Array], x: Operand, entries: Entries, values: Operand, mode: str
) -> Any:
    """x updated by `scatter` (a primitive, or a composition) at index arrays and slices."""
    operand, entries = with_new_axes(x, entries)
    return _reshaped(_scattered(scatter, operand, entries, values, mode), type_of(x).shape)


def _scattered(
    scatter: Primitive | Callable[..., Array], x: Value, entries: Entries, values: Operand, mode: str
) -> Array:
    shape = type_of(x).shape
    basic = [e if isinstance(e, slice) else slice(None) for e in entries]
    slices = ranges(shape, basic)
    if any(p.stride != 1 or p.flipped for p in slices):
        # Windows of a scatter have no steps: the range that the slices select is updated and put
        # back.
        arrays = [slice(None) if isinstance(e, slice) else e for e in entries]
        part = _scattered(scatter, sliced(x, basic), arrays, values, mode)
        return _put_back(x, slices, part)
    parts = {i: p for i, p in enumerate(slices) if p != Range(0, shape[i])}
    vectors = index_vectors(shape, entries, parts)
    dims, window = vectors.dims(len(shape)), vectors.window(shape)
    target = result_shape(type_of(vectors.indices), dims, window)
    updates = broadcast_to("at", values, target)
    mode = writing_mode(shape, mode)
    return scatter(x, vectors.indices, updates, dims=dims, slice_sizes=window, mode=mode)


def most_times(x: Operand, index: object, wrap: bool, clip: bool) -> tuple[Size, bool]:
    """(How often x[index] selects one element, True), or (the number of indices, False).

    wrap: negative indices count from the end. clip: those out of bounds select the nearest.
    """
    entries = [e for e in raw_entries(x, index) if e is not None]
    advanced = [(e, d) for e, d in zip(entries, type_of(x).shape, strict=True) if is_advanced(e)]
    arrays, sizes = [e for e, _ in advanced], [d for _, d in advanced]
    count = product(broadcast_shape("index", (), *(type_of(e).shape for e in arrays)))
    if count in (0, 1):
        return 1, True
    if any(isinstance(d, Dim) for d in sizes) or any(isinstance(e, Tracer) for e in arrays):
        return count, False
    at = [_nearest(np.asarray(e), d, wrap, clip) for e, d in advanced]
    at = np.broadcast_arrays(*at)
    inside = np.logical_and.reduce([(i >= 0) & (i < d) for i, d in zip(at, sizes, strict=True)])
    flat = np.ravel_multi_index(tuple(i[inside] for i in at), tuple(sizes))
    if product(tuple(sizes)) <= 16 * flat.size:
        return int(np.bincount(flat).max(initial=1)), True
    return int(np.unique(flat, return_counts=True)[1].max(initial=1)), True


def _nearest(index: np.ndarray, size: Any, wrap: bool, clip: bool) -> np.ndarray:
    at = clipped(index, dtypes.i64)
    at = np.where(at < 0, at + size, at) if wrap else at
    return np.clip(at, 0, size - 1) if clip else at
