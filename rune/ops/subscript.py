"""x[index]: NumPy's basic and advanced indexing, read by slices and gathers (updates: at.py).

`parse` turns an index into one entry per axis, and None for a new axis:

    slice, int   basic: static movement; an integer is in 0..size-1
    Slice        a window of known size anywhere (sized_slices.py)
    array        advanced: integer arrays, traced integers and constant boolean masks; all of them
                 broadcast together, and one gather (or scatter) takes their index vectors

A negative index wraps once. An index still out of bounds is clamped, or kept so that it can be
filled or dropped: `outside` keeps static integers out of bounds, as arrays. Integers alone
(`are_numbers`) are clamped for derivatives too, as in JAX; index arrays out of bounds have the
tangents of the elements they read, and their cotangents are dropped.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import config, dtypes
from rune.core.interpreter import Tracer, literal_like, type_of
from rune.core.types import Shape
from rune.core.values import Operand, Value
from rune.dims import Dim, Size, UndecidedComparison, maximum, minimum
from rune.errors import ArgumentError, AxisError, DimensionError, DtypeError, TracerIntegerConversionError
from rune.ops.arithmetic import cast
from rune.ops.family import position_dtype, reshape, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_masks import axes_taken, is_advanced, is_mask, is_scalar_mask, mask_positions, opened
from rune.ops.index_values import from_end, modulo, signed
from rune.ops.indexing import gather
from rune.ops.movement import concatenate, reverse, slice_
from rune.ops.promote import as_type, broadcast_shape, broadcast_to, operand, unrounded
from rune.ops.scalars import int_bounds
from rune.ops.sized_slices import Slice, within
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

Entries = Sequence[Any]


def read(
    x: Operand, index: object, mode: str = "promise_in_bounds", fill: Value | None = None, wrap: bool = True
) -> Any:
    """x[index]; an index out of bounds is clamped or, with mode "fill", reads `fill` (0 for None).

    wrap: whether a negative index counts from the end.
    Errors: AxisError for too many indices, DtypeError for a float index or a list.
    """
    if type(index) is slice and (ndim := type_of(x).ndim):  # the most frequent index; nothing else to check
        return sliced(x, (index, *(slice(None),) * (ndim - 1)))
    x, index = without_scalar_masks(x, index)
    is_promise = mode == "promise_in_bounds"
    entries = parse(x, index, wrap, outside=mode == "fill", is_promise=is_promise)
    if is_promise and are_numbers(entries) and not config.current().check_bounds:
        mode = "clip"
    if not any(map(is_gathered, entries)):
        return _read_basic(x, entries)
    x, entries = with_new_axes(x, entries)
    x = sliced(x, [e if isinstance(e, slice) else slice(None) for e in entries])
    shape = type_of(x).shape
    vectors = index_vectors(shape, entries)
    return gather(
        x,
        vectors.indices,
        literal_like(0, x) if fill is None else as_type(fill, type_of(x).dtype),
        dims=vectors.dims(len(shape)),
        slice_sizes=vectors.window(shape),
        mode=mode,
    )


def absent(x: Operand, fill_value: Operand | None = None) -> Value:
    """The element read out of bounds: `fill_value`, or by default NaN, the least signed or the
    largest unsigned integer, True, the key of largest words.
    """
    dtype = type_of(x).dtype
    if fill_value is not None:
        return as_type(unrounded("fill", fill_value), dtype)
    if dtype == dtypes.bool_:
        return np.asarray(True)
    if dtype in dtypes.INTEGER:
        low, high = int_bounds(dtype)
        return np.asarray(low if dtype in dtypes.SIGNED else high).astype(dtype)
    if dtype in dtypes.KEYS:
        return dtypes.stored_keys([np.uint32(0xFFFFFFFF)] * 2, dtype)
    return literal_like(np.nan, x)


# --- what an index is made of -----------------------------------------------------------------


def parse(x: Operand, index: object, wrap: bool = True, outside: bool = False, is_promise: bool = False) -> list[Any]:
    """The entries of an index, wrapped.

    outside:    whether integers out of bounds are kept, as arrays
    is_promise: whether the caller promises that none is out of bounds: they are kept if bounds are
                checked, and beside index arrays and steps
    """
    sizes, raw = iter(enumerate(type_of(x).shape)), raw_entries(x, index)
    checks_bounds = config.current().check_bounds or not are_numbers(raw)
    outside = outside or (is_promise and checks_bounds)
    return [e if e is None else _placed(e, *next(sizes), wrap, outside) for e in raw]


def are_numbers(entries: Entries) -> bool:
    """Whether the index consists of integers, known or traced, and slices without steps."""
    return all(map(_is_number_or_run, entries))


def _is_number_or_run(entry: object) -> bool:
    if isinstance(entry, slice):
        return not isinstance(entry.step, Tracer) and entry.step in (None, 1)
    return not is_advanced(entry) or type_of(entry).ndim == 0


def is_gathered(entry: object) -> bool:
    """Whether an entry is read by a gather, and written by a scatter."""
    return is_advanced(entry) or isinstance(entry, Slice)


def raw_entries(x: Operand, index: object) -> list[Any]:
    """One entry per axis (plus None): `...` expanded to full slices, masks to integers."""
    shape = type_of(x).shape
    items = [_item(x, _positions(e)) for e in index] if isinstance(index, tuple) else [_item(x, index)]
    count = sum(map(axes_taken, items))
    ellipses = sum(e is Ellipsis for e in items)
    if ellipses > 1:
        raise AxisError("index: cannot use more than one ellipsis")
    if count > len(shape):
        raise AxisError(f"index: cannot index {type_of(x)} with {count} indices (its rank is {len(shape)})")
    entries: list[Any] = []
    axis = 0
    for item in items if ellipses else (*items, Ellipsis):
        if item is Ellipsis:
            item_entries = [slice(None)] * (len(shape) - count)
        else:
            item_entries = mask_positions(x, item, axis) if is_mask(item) else [item]
        entries += item_entries
        axis += sum(e is not None for e in item_entries)
    return entries


def modular(x: Operand, index: object) -> tuple[Any, ...]:
    """An index whose positions are those of `index` modulo the sizes of the axes."""
    sizes = iter(type_of(x).shape)
    return tuple(e if e is None else _modular(e, next(sizes)) for e in raw_entries(x, index))


def without_scalar_masks(x: Operand, index: object) -> tuple[Operand, object]:
    """An operand and an index that read the same elements, without masks of rank 0
    (index_masks.py).
    """
    items = index if isinstance(index, tuple) else (index,)
    return opened(x, tuple(map(_positions, items))) if any(map(is_scalar_mask, items)) else (x, index)


def _modular(entry: Value | slice | Slice, size: Size) -> object:
    if isinstance(entry, slice):
        return entry
    if isinstance(entry, Slice):
        return Slice(modulo(_start(entry.start, size, wrap=False), size), entry.size, entry.stride)
    if size == 0:
        raise AxisError("index: cannot wrap positions around an axis of size 0")
    if isinstance(entry, int) and isinstance(size, int):
        return entry % size
    return modulo(size_value(entry, position_dtype(size)) if isinstance(entry, int) else entry, size)


def _positions(entry: object) -> object:
    """An entry of a tuple; a sequence becomes an array of positions, or of bools."""
    if not isinstance(entry, list | tuple):
        return entry
    if any(isinstance(e, list | tuple | Tracer) for e in entry):
        rows = [cast(operand("index", _positions(e)), dtypes.i32) for e in entry]  # type: ignore[arg-type]
        return concatenate(*[reshape(row, shape=(1, *type_of(row).shape)) for row in rows], axis=0)
    return np.asarray([np.asarray(e) for e in entry] or np.zeros(0, np.int32))


def _item(x: Operand, entry: Any) -> Any:
    """None, ..., a slice, an int, an integer array or a mask. Errors: for any other entry."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice | Slice):
        return entry
    if isinstance(entry, list | tuple):
        raise DtypeError(
            f"index: cannot index with a {type(entry).__name__} into {type_of(x)}", hint="use rune.numpy.array(...)"
        )
    if isinstance(entry, str | bytes):
        raise ArgumentError(
            f"index: cannot index with {entry!r} into {type_of(x)}", hint="a dict or a NamedTuple of arrays has names"
        )
    if type(entry) is int or isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, np.ndarray) and entry.dtype in (dtypes.i64, dtypes.u64):
        return entry  # narrowed later, according to the size of its axis
    array = operand("index", entry)
    type_ = type_of(array)
    if type_.dtype not in dtypes.INTEGER and not (type_.dtype == dtypes.bool_ and type_.shape):
        raise DtypeError(
            f"index: cannot index with {type_} into {type_of(x)} (integer dtype required)",
            hint="divide by // to get an integer, or convert with .astype('int32')",
        )
    return array


def _placed(entry: Any, axis: int, size: Size, wrap: bool, outside: bool) -> Any:
    """An entry with negative positions wrapped; an integer out of bounds is clamped or kept."""
    if isinstance(entry, slice):
        return entry
    if isinstance(entry, Slice):
        window = within(entry, axis, size)
        return Slice(_start(entry.start, size, wrap), entry.size) if isinstance(window, Slice) else window
    if not isinstance(entry, int):
        if size == 0 and not outside and type_of(entry).ndim == 0:
            raise _nothing(type_of(entry), axis)
        return from_end(entry, size) if wrap else signed(entry, size)
    if isinstance(size, Dim):
        return entry if wrap or entry >= 0 else _beyond(-1, 0, outside)
    at = entry + size if wrap and entry < 0 else entry
    if 0 <= at < size:
        return at
    if size == 0 and not outside:
        raise _nothing(entry, axis)
    return _beyond(at, 0 if at < 0 else size - 1, outside)


def _start(start: Operand, size: Size, wrap: bool) -> Value:
    """The start of a window, with a negative start wrapped."""
    position = np.asarray(start) if isinstance(start, int) else operand("index", start)
    type_ = type_of(position)
    if type_.shape or type_.dtype not in dtypes.INTEGER:
        raise DtypeError(f"index: cannot begin a slice at {type_} (an integer of rank 0 required)")
    return from_end(position, size) if wrap else signed(position, size)


def _nothing(entry: object, axis: int) -> AxisError:
    return AxisError(f"index: cannot read element {entry} of axis {axis} (size 0)")


def _beyond(at: int, nearest: int, outside: bool) -> int | np.ndarray:
    return np.asarray(np.clip(at, *int_bounds(dtypes.i32)), np.int32) if outside else nearest


# --- basic ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """The elements start, start + stride, ... before limit; in reverse order if `flipped`."""

    start: Size
    limit: Size
    stride: int = 1
    flipped: bool = False

    @property
    def size(self) -> Size:
        """The number of these elements."""
        return (self.limit - self.start + self.stride - 1) // self.stride


def ranges(shape: Shape, entries: Entries) -> tuple[Range, ...]:
    """The range of each axis that basic entries (without None) select."""
    return tuple(_range(e, d) for e, d in zip(entries, shape, strict=True))


def _range(entry: Any, size: Size) -> Range:
    if isinstance(entry, int):
        at = entry + size if entry < 0 else entry
        return Range(at, at + 1)
    parts = [_static(p, size) for p in (entry.start, entry.stop, entry.step)]
    if isinstance(size, Dim) or any(isinstance(p, Dim) for p in parts):
        return _symbolic_range(parts, size)
    start, stop, step = slice(*parts).indices(size)
    if step > 0:
        return Range(start, max(start, stop), step)
    count = max(0, (start - stop - step - 1) // -step)
    first = start + (count - 1) * step if count else 0
    return Range(first, start + 1 if count else 0, -step, True)


def _static(part: Any, size: Size) -> Any:
    """A bound of a slice. Errors: AxisError for a traced one; TypeError unless it is an integer."""
    try:
        return part if part is None or isinstance(part, Dim) else operator.index(part)
    except TracerIntegerConversionError as error:
        raise AxisError(
            f"index: cannot slice an axis of {size} elements with a traced bound {type_of(part)} "
            "(the result's shape would depend on its value)",
            hint="rune.lax.dynamic_slice_in_dim takes a traced start and a size; "
            "an argument of jit is known if static_argnums names it",
        ) from error


def _symbolic_range(parts: Sequence[Size | None], size: Size) -> Range:
    start, stop, step = (*parts[:2], 1 if parts[2] is None else parts[2])
    if step == -1 and start is None and stop is None:
        return Range(0, size, 1, True)
    if not isinstance(step, int) or step < 1:
        raise DimensionError(f"index: cannot step by {step} from {start} to {stop} of {size}")
    try:
        first = _symbolic_place(0 if start is None else start, size)
        last = _symbolic_place(size if stop is None else stop, size)
        return Range(first, maximum(first, last), step)
    except UndecidedComparison as error:
        range_text = ":".join("" if p is None else str(p) for p in (start, stop))
        error.during("index", f"[{range_text}] of an axis of size {size}")
        raise


def _symbolic_place(at: Size, size: Size) -> Size:
    at = at + size if at < 0 else at  # an error if the sign depends on the size
    return at if at is size else maximum(0, minimum(at, size))


def sliced(x: Operand, entries: Entries) -> Any:
    """The operand with every slice and static integer applied; integers leave size-1 axes."""
    shape = type_of(x).shape
    parts = ranges(shape, entries)
    if any([p.start != 0 or p.limit != d or p.stride != 1 or p.flipped for p, d in zip(parts, shape)]):
        start, limit = tuple(p.start for p in parts), tuple(p.limit for p in parts)
        x = slice_(x, start=start, limit=limit, stride=tuple(p.stride for p in parts))
    axes = tuple(i for i, p in enumerate(parts) if p.flipped)
    return reverse(x, axes=axes) if axes else x


def _read_basic(x: Operand, entries: Entries) -> Array:
    out = sliced(x, [e for e in entries if e is not None])
    shape = basic_shape(type_of(out).shape, entries)
    return out if shape == type_of(out).shape else reshape(out, shape=shape)


def basic_shape(window: Shape, entries: Entries) -> Shape:
    """The shape that basic entries read from a window: new axes are included, those of integers are
    not.
    """
    sizes = iter(window)
    entry_sizes = [(e, 1 if e is None else next(sizes)) for e in entries]
    return tuple(size for e, size in entry_sizes if not isinstance(e, int))


# --- advanced ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vectors:
    """Index vectors into some axes of an operand; the other axes are windows.

    `parts` has the part of an axis that the window covers, if not the whole; its start is one
    component of every vector.
    """

    indices: Array  # [*batch, number of axes + number of parts]
    batch: Shape
    axes: tuple[int, ...]  # indexed axes of the operand
    position: int  # the position of the batch axes among the axes of the result
    parts: dict[int, Range | Slice]

    def dims(self, ndim: int) -> IndexDims:
        """The gather (or scatter) that reads one window per index vector."""
        rank = len(self.batch) + ndim - len(self.axes)
        batch_axes = range(self.position, self.position + len(self.batch))
        offset = tuple(i for i in range(rank) if i not in batch_axes)
        return IndexDims(offset, self.axes, (*self.axes, *self.parts))

    def window(self, shape: Shape) -> Shape:
        """Window sizes: 1 on indexed axes, the part or the whole of the others."""
        sizes = {i: p.size for i, p in self.parts.items()}
        return tuple(1 if i in self.axes else sizes.get(i, d) for i, d in enumerate(shape))


def with_new_axes(x: Operand, entries: Entries) -> tuple[Any, Entries]:
    """The operand with an axis of size 1 for each None, which becomes a full slice."""
    if all(e is not None for e in entries):
        return x, entries
    sizes = iter(type_of(x).shape)
    shape = tuple(1 if e is None else next(sizes) for e in entries)
    return reshape(x, shape=shape), [slice(None) if e is None else e for e in entries]


def index_vectors(shape: Shape, entries: Entries, parts: Mapping[int, Range | Slice] | None = None) -> Vectors:
    """The vectors of all entries except slices, broadcast together, and the starts of `parts`."""
    parts = {**(parts or {}), **{i: e for i, e in enumerate(entries) if isinstance(e, Slice)}}
    axes = tuple(i for i, e in enumerate(entries) if not isinstance(e, slice | Slice))
    arrays = [_as_array(entries[i], shape[i]) for i in axes]
    batch = broadcast_shape("index", (), *(type_of(i).shape for i in arrays))
    dtype = dtypes.i64 if any(type_of(i).dtype == dtypes.i64 for i in arrays) else dtypes.i32
    starts = [p.start if isinstance(p, Slice) else size_value(p.start, dtype) for p in parts.values()]
    arrays = [cast(i, dtype) for i in (*arrays, *starts)]
    columns = [reshape(broadcast_to("index", i, batch), shape=(*batch, 1)) for i in arrays]
    first = axes[0] if axes else 0
    adjacent = axes == tuple(range(first, first + len(axes)))
    vectors = columns[0] if len(columns) == 1 else concatenate(*columns, axis=len(batch))
    return Vectors(vectors, batch, axes, first if adjacent else 0, parts)


def _as_array(entry: Value, size: Size) -> Value:
    if not isinstance(entry, int):
        return entry
    return size_value(entry + size if entry < 0 else entry, position_dtype(size))
