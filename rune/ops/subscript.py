"""x[index] and x.at[index]: NumPy's basic and advanced indexing as slices, gathers and scatters.

Basic parts (integers, slices, None, ...) are static movement. Integer arrays, traced integers and
constant boolean masks become one gather over index vectors, broadcast together as NumPy does. A
negative index wraps once; what is still out of bounds is clamped on reading and dropped on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import Tracer, literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.types import Shape
from rune.dims import Dim, Size, product
from rune.errors import (
    ArgumentError,
    AxisError,
    DtypeError,
    MissingRule,
    NonConcreteBooleanIndexError,
)
from rune.ops.arithmetic import add, cast, lt, mul, neg, select, zero_like
from rune.ops.arithmetic import max as higher
from rune.ops.arithmetic import min as lower
from rune.ops.conventions import power, true_divide
from rune.ops.creation import iota
from rune.ops.family import reshape, size_value
from rune.ops.indexing import IndexDims, gather, scatter, scatter_add
from rune.ops.movement import concatenate, reverse, slice_
from rune.ops.promote import apply, as_type, broadcast_shape, broadcast_to, operand
from rune.ops.scalars import int_bounds


def read(x: Any, index: Any, mode: str = "promise_in_bounds", fill: Any = 0) -> Any:
    """x[index]; an index out of bounds is clamped, or reads `fill` with mode "fill".

    Errors: AxisError for too many indices, DtypeError for a float index.
    """
    entries = _entries(x, index)
    if mode == "fill":
        entries = [_beyond(e, d) for e, d in _with_sizes(entries, type_of(x).shape)]
    if any(map(_is_advanced, entries)):
        return _gather(x, entries, mode, fill)
    return _read_basic(x, entries)


def absent(x: Any, fill_value: Any = None) -> Any:
    """What an index out of bounds reads: unless given, NaN, the least signed or the largest
    unsigned integer, True."""
    dtype = type_of(x).dtype
    if fill_value is not None:
        return as_type(operand("fill", fill_value), dtype)
    if dtype == dtypes.bool_:
        return np.asarray(True)
    if dtype in dtypes.INTEGER:
        low, high = int_bounds(dtype)
        return np.asarray(low if dtype in dtypes.SIGNED else high).astype(dtype)
    return literal_like(np.nan, x)


def _with_sizes(entries: Sequence[Any], shape: Shape) -> list[tuple[Any, Size]]:
    sizes = iter(shape)
    return [(e, 0 if e is None else next(sizes)) for e in entries]


def _beyond(entry: Any, size: Size) -> Any:
    """A static integer out of bounds as an index array, which a gather can leave unread."""
    inside = not isinstance(entry, int) or not isinstance(size, int) or -size <= entry < size
    return entry if inside else np.asarray(entry, np.int32)


# --- what an index is made of -----------------------------------------------------------------


def _entries(x: Any, index: Any) -> list[Any]:
    """One entry per axis (plus None): ... filled up with full slices, masks turned to integers."""
    given = list(index) if isinstance(index, tuple) else [index]
    given = [e for g in given for e in _normal_entry(g)]
    ndim = type_of(x).ndim
    used = sum(e is not None and e is not Ellipsis for e in given)
    if sum(e is Ellipsis for e in given) > 1:
        raise AxisError("index: cannot use more than one ellipsis")
    if used > ndim:
        raise AxisError(
            f"index: cannot index {type_of(x)} with {used} indices (it has {ndim} axes)"
        )
    fill = [slice(None)] * (ndim - used)
    if not any(e is Ellipsis for e in given):
        return given + fill
    at = next(i for i, e in enumerate(given) if e is Ellipsis)
    return given[:at] + fill + given[at + 1 :]


def _normal_entry(entry: Any) -> list[Any]:
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return [entry]
    if isinstance(entry, list):
        raise DtypeError("index: cannot index with a list", hint="use rune.numpy.array(...)")
    if type(entry) is int or isinstance(entry, np.integer):
        return [int(entry)]
    found = operand("index", entry)
    dtype = type_of(found).dtype
    if dtype == dtypes.bool_ and type_of(found).shape:
        return _mask_entries(found)
    if dtype not in dtypes.INTEGER:
        raise DtypeError(f"index: cannot index with {type_of(found)} (integer dtype required)")
    return [found]


def _mask_entries(mask: Any) -> list[Any]:
    if isinstance(mask, Tracer):
        raise NonConcreteBooleanIndexError(
            f"index: cannot index with a traced mask {type_of(mask)} "
            "(the result's shape would depend on its values)",
            hint="use rune.numpy.where(mask, x, other)",
        )
    return [np.asarray(i, np.int32) for i in np.nonzero(np.asarray(mask))]


def _is_advanced(entry: Any) -> bool:
    return not (entry is None or isinstance(entry, slice | int))


# --- basic ------------------------------------------------------------------------------------


def _bounds(entry: Any, size: Size, axis: int) -> tuple[Size, Size, int, bool]:
    """(start, limit, stride, flipped) of one axis."""
    if isinstance(entry, int):
        at = entry + size if entry < 0 else entry
        if size == 0:
            raise AxisError(f"index: cannot read element {entry} of axis {axis} (size 0)")
        at = min(max(at, 0), size - 1) if isinstance(size, int) else at
        return at, at + 1, 1, False
    if isinstance(size, Dim):
        return _symbolic_bounds(entry, size)
    start, stop, step = entry.indices(size)
    if step > 0:
        return start, max(start, stop), step, False
    count = max(0, (start - stop - step - 1) // -step)
    first = start + (count - 1) * step if count else 0
    return first, (start + 1 if count else 0), -step, True


def _symbolic_bounds(entry: slice, size: Dim) -> tuple[Size, Size, int, bool]:
    step = entry.step or 1
    start = 0 if entry.start is None else entry.start
    stop = size if entry.stop is None else entry.stop
    start = start + size if isinstance(start, int) and start < 0 else start
    stop = stop + size if isinstance(stop, int) and stop < 0 else stop
    return start, stop, abs(step), step < 0


def _sliced(x: Any, entries: Sequence[Any]) -> Any:
    """The operand with every slice and static integer applied; integers leave size-1 axes."""
    shape = type_of(x).shape
    parts = [_bounds(e, d, i) for i, (e, d) in enumerate(zip(entries, shape, strict=True))]
    whole = all(p == (0, d, 1, False) for p, d in zip(parts, shape, strict=True))
    if not whole:
        start, limit, stride = (tuple(p[k] for p in parts) for k in range(3))
        x = slice_(x, start=start, limit=limit, stride=stride)
    flipped = tuple(i for i, p in enumerate(parts) if p[3])
    return reverse(x, axes=flipped) if flipped else x


def _read_basic(x: Any, entries: Sequence[Any]) -> Any:
    out = _sliced(x, [e for e in entries if e is not None])
    sizes = iter(type_of(out).shape)
    shape: list[Size] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        size = next(sizes)
        if not isinstance(entry, int):
            shape.append(size)
    return out if tuple(shape) == type_of(out).shape else reshape(out, shape=tuple(shape))


# --- advanced ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vectors:
    """An advanced index over an operand whose slices were already taken."""

    indices: Any  # [*batch, number of indexed axes]
    batch: Shape
    axes: tuple[int, ...]  # indexed axes of the operand
    position: int  # where the batch axes stand among the axes of the result

    def dims(self, ndim: int) -> IndexDims:
        """The gather (or scatter) that reads one element per index vector."""
        rank = len(self.batch) + ndim - len(self.axes)
        taken = range(self.position, self.position + len(self.batch))
        return IndexDims(tuple(i for i in range(rank) if i not in taken), self.axes, self.axes)

    def window(self, shape: Shape) -> Shape:
        """Window sizes: 1 on indexed axes, the whole axis elsewhere."""
        return tuple(1 if i in self.axes else d for i, d in enumerate(shape))


def _split(x: Any, entries: Sequence[Any]) -> tuple[Any, Vectors]:
    """The operand with None axes inserted and slices taken, and the vectors for the rest."""
    if any(e is None for e in entries):
        sizes = iter(type_of(x).shape)
        x = reshape(x, shape=tuple(1 if e is None else next(sizes) for e in entries))
        entries = [slice(None) if e is None else e for e in entries]
    x = _sliced(x, [e if isinstance(e, slice) else slice(None) for e in entries])
    return x, _vectors(type_of(x).shape, entries)


def _vectors(shape: Shape, entries: Sequence[Any]) -> Vectors:
    axes = tuple(i for i, e in enumerate(entries) if not isinstance(e, slice))
    arrays = [_wrapped(entries[i], shape[i]) for i in axes]
    batch = broadcast_shape("index", *(type_of(i).shape for i in arrays))
    columns = [reshape(broadcast_to("index", i, batch), shape=(*batch, 1)) for i in arrays]
    adjacent = axes == tuple(range(axes[0], axes[0] + len(axes)))
    vectors = columns[0] if len(columns) == 1 else concatenate(*columns, axis=len(batch))
    return Vectors(vectors, batch, axes, axes[0] if adjacent else 0)


def _wrapped(index: Any, size: Size) -> Any:
    """Indices as i32 (i64 if they are wide), with negative ones counted from the end."""
    wide = type_of(index).dtype in (dtypes.i64, dtypes.u64, dtypes.u32)
    dtype = dtypes.i64 if wide else dtypes.i32
    found = cast(np.asarray(index) if isinstance(index, int) else index, dtype)
    return select(lt(found, zero_like(found)), add(found, size_value(size, dtype)), found)


def _gather(x: Any, entries: Sequence[Any], mode: str, fill: Any) -> Any:
    x, vectors = _split(x, entries)
    shape = type_of(x).shape
    return gather(
        x, vectors.indices, as_type(fill, type_of(x).dtype),
        dims=vectors.dims(len(shape)), slice_sizes=vectors.window(shape), mode=mode,
    )  # fmt: skip


# --- updates ----------------------------------------------------------------------------------


class At:
    """x.at: `x.at[index]` names elements to update in a copy.

    >>> import rune.numpy as rnp
    >>> rnp.zeros(3).at[1].set(2.0)
    Array([0., 2., 0.], f32[3], cpu:0)
    """

    __slots__ = ("_x",)

    def __init__(self, x: Any):
        self._x = x

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self._x, index)


class AtIndex:
    """x.at[index]: a copy with the named elements changed.

    mode: "drop" (also "fill", the default) leaves indices out of bounds unwritten; "clip" and
          "promise_in_bounds" write the nearest element.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any):
        self._x, self._index = x, index

    def get(self, mode: str | None = None, fill_value: Any = None) -> Any:
        """x[index]; with mode "fill" an index out of bounds reads `fill_value`, see `absent`."""
        return read(self._x, self._index, _reading_mode(mode), absent(self._x, fill_value))

    def set(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the elements replaced; of duplicates the last one wins."""
        return self._write(scatter, self._values(values), mode)

    def add(self, values: Any, mode: str | None = None) -> Any:
        """A copy with `values` added; duplicates accumulate."""
        return self._write(scatter_add, self._values(values), mode)

    def subtract(self, values: Any, mode: str | None = None) -> Any:
        """A copy with `values` subtracted; duplicates accumulate."""
        return self._write(scatter_add, neg(self._values(values)), mode)

    def multiply(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the elements multiplied. Errors: as `apply`."""
        return self.apply(lambda x: apply(mul, x, values), mode)

    def divide(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the elements divided. Errors: as `apply`."""
        return self.apply(lambda x: true_divide(x, values), mode)

    def power(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the elements raised to a power. Errors: as `apply`."""
        return self.apply(lambda x: power(x, values), mode)

    def min(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the smaller of element and value. Errors: as `apply`."""
        return self.apply(lambda x: apply(lower, x, values), mode)

    def max(self, values: Any, mode: str | None = None) -> Any:
        """A copy with the larger of element and value. Errors: as `apply`."""
        return self.apply(lambda x: apply(higher, x, values), mode)

    def apply(self, function: Callable[[Any], Any], mode: str | None = None) -> Any:
        """A copy with function(elements) in the place of the elements.

        Errors: MissingRule for indices that may repeat: an element would be changed once, not
                once for every time that it is named.
        """
        if not self._is_distinct():
            raise MissingRule(
                f"at: cannot change elements of {type_of(self._x)} at indices that may repeat",
                hint="only set, add and subtract take repeated or traced index arrays",
            )
        kept = read(self._x, self._index)
        return self._write(scatter, self._values(function(kept)), mode)

    def _values(self, values: Any) -> Any:
        return as_type(operand("at", values), type_of(self._x).dtype)

    def _is_distinct(self) -> bool:
        """Whether no element is named twice: by slices, by one index, or by known numbers."""
        arrays = [e for e in _entries(self._x, self._index) if _is_advanced(e)]
        if all(type_of(e).shape == () for e in arrays):
            return True
        if any(isinstance(e, Tracer) for e in arrays):
            return False
        rows = np.stack([np.ravel(e) for e in np.broadcast_arrays(*map(np.asarray, arrays))], 1)
        return len(np.unique(rows, axis=0)) == len(rows)

    def _write(self, primitive: Primitive, values: Any, mode: str | None) -> Any:
        """Scatter into the flat operand, at the positions that the same index reads."""
        shape = type_of(self._x).shape
        total = product(shape)
        where = iota(shape=(total,), axis=0, dtype=dtypes.i32)
        kind = "fill" if mode in (None, "drop") else _reading_mode(mode)
        at = read(reshape(where, shape=shape), self._index, kind, -1)
        target = type_of(at).shape
        updates = broadcast_to("at", values, target)
        count = product(target)
        out = primitive(
            reshape(self._x, shape=(total,)),
            reshape(at, shape=(count, 1)),
            reshape(updates, shape=(count,)),
            dims=IndexDims((), (0,), (0,)), slice_sizes=(1,), mode="fill",
        )  # fmt: skip
        return reshape(out, shape=shape)


def _reading_mode(mode: str | None) -> str:
    if mode not in (None, "clip", "fill", "promise_in_bounds"):
        raise ArgumentError(f"at: cannot use mode={mode!r} (drop, fill, clip or promise_in_bounds)")
    return mode or "promise_in_bounds"
