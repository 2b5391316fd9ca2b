"""NumPy's conventions of order: any axis, reversed if descending; positions of true elements.

Array methods share this with the functions of the same names in `rune.numpy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.arithmetic import add, cast, lt, select, sub
from rune.ops.conventions import normalised_axis, reshape, same_dtype
from rune.ops.creation import iota
from rune.ops.family import index_dtype, position_dtype, size_value
from rune.ops.movement import move_axis, reverse
from rune.ops.promote import broadcast_to, operand
from rune.ops.reduction import cumsum
from rune.ops.sorting import argsort as _argsort
from rune.ops.sorting import search_sorted, take_last
from rune.ops.sorting import sort as _sort

if TYPE_CHECKING:
    from rune.array import Array


def running_count(mask: Operand) -> Array:
    """The number of true elements of a flat mask up to each: i32, or i64 beyond its range."""
    dtype = position_dtype(type_of(mask).shape[0])
    return cumsum(cast(mask, dtype), axis=0, reverse=False)


def along_last(name: str, x: Value, axis: int | None) -> tuple[Array, int]:
    """`x` with `axis` last, flattened for None, and the position where that axis belongs."""
    if axis is None:
        return reshape(x, -1), 0
    at = normalised_axis(name, axis, type_of(x))
    return move_axis(x, at, type_of(x).ndim - 1), at


def back(x: Value, axis: int) -> Array:
    """`x` with its last axis moved to `axis`."""
    return move_axis(x, type_of(x).ndim - 1, axis)


def _from_the_end(x: Value) -> Array:
    return reverse(x, axes=(type_of(x).ndim - 1,))


def sort(x: Value, axis: int | None = -1, descending: bool = False) -> Array:
    """`x` in order along an axis: NaN last, or first if descending; flattened for None."""
    rows, at = along_last("sort", operand("sort", x), axis)
    (ascending,) = _sort(rows, num_keys=1)
    return back(_from_the_end(ascending) if descending else ascending, at)


def argsort(x: Value, axis: int | None = -1, descending: bool = False) -> Array:
    """The positions that sort `x` along an axis; ties keep their order."""
    rows, at = along_last("argsort", operand("argsort", x), axis)
    if descending:
        # The stable order of the reversed row, read backwards, is the stable descending order.
        backward = _from_the_end(_argsort(_from_the_end(rows)))
        last = size_value(type_of(rows).shape[-1] - 1, dtypes.i32)
        return back(cast(sub(last, backward), index_dtype()), at)
    return back(cast(_argsort(rows), index_dtype()), at)


def searchsorted(x: Operand, values: Value, side: str = "left", sorter: Value | None = None) -> Array:
    """How many elements of the sorted `x` come before each value.

    Shapes: x [N], values [*V] -> [*V].
    Errors: ShapeError unless x has one axis.
    """
    x, values = same_dtype("searchsorted", x, values)
    _require_row("searchsorted", type_of(x))
    if sorter is not None:
        x = take_last(x, operand("searchsorted", sorter))
    shape = type_of(values).shape
    positions = search_sorted(x, reshape(values, -1), side=side)
    return cast(reshape(positions, shape), dtypes.canonical(position_dtype(type_of(x).shape[0])))


def _require_row(name: str, type: ArrayType) -> None:
    if type.ndim != 1:
        raise ShapeError(f"{name}: cannot search {type} (one axis required)")


def true_positions(mask: Operand, size: Size, fill: Value) -> Array:
    """The i32 positions of the first `size` true elements of a flat mask, then `fill`.

    Shapes: mask [N], fill [] or [size] -> [size]. Types: fill i32.
    """
    (count,) = type_of(mask).shape
    so_far = running_count(mask)
    number = add(iota(shape=(size,), axis=0, dtype=dtypes.i32), literal(1, dtypes.i32))
    positions = search_sorted(so_far, number, side="left")
    is_there = lt(positions, size_value(count, dtypes.i32))
    return select(is_there, positions, broadcast_to("nonzero", fill, (size,)))
