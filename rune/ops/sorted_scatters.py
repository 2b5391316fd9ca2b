"""A scatter by sorting: in parallel over updates, for devices on which one thread is slow.

The updates are put in the order of the elements that they change, ties as they are. Then those of
one element stand together and are combined pairwise, over distances 1, 2, 4, …; the last of them
holds what they all make, and every element of the operand looks for it.

    elements  2 0 2      sorted  0 2 2     updates  b a c     combined  b a (a+c)

The result is the same on every run. Sums associate as a tree; what overwrites is the last.

Cost: that of sorting, and O(u log u) combinations in log u steps, for u updates.
Source: segmented scan by doubling, Hillis & Steele, "Data parallel algorithms", CACM 29 (1986).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, bounds, product
from rune.ops.arithmetic import add, cast, eq, ge, logical_and, logical_not, lt, max, min, mul, select, shl, sub
from rune.ops.creation import iota
from rune.ops.family import broadcast, fit, reshape, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_values import signed
from rune.ops.indexing import gather
from rune.ops.movement import inverse, slice_, transpose
from rune.ops.repeat import repeat
from rune.ops.sorting import positions_like, search_sorted, sort, take_last

if TYPE_CHECKING:
    from rune.array import Array

COMBINE: dict[str, Primitive] = {"add": add, "mul": mul, "max": max, "min": min}


def scattered_axes(dims: IndexDims) -> tuple[int, ...]:
    """The axes of the operand along which windows are placed."""
    return tuple(sorted({*dims.start_map, *dims.operand_batching}))


def is_of_rows(operand: ArrayType, dims: IndexDims, slice_sizes: Shape) -> bool:
    """Whether every window is one row: single along the axes where it is placed, whole along the
    others."""
    placed = scattered_axes(dims)
    return all(
        size == 1 and a not in dims.window_axes(operand.ndim) if a in placed else size == length
        for a, (size, length) in enumerate(zip(slice_sizes, operand.shape, strict=True))
    )


def scatter_by_sorting(
    combine: str | None,
    operand: Value,
    indices: Value,
    updates: Value,
    *,
    dims: IndexDims,
    slice_sizes: Shape,
    mode: str,
) -> Value:
    """What the scatter that combines in this way gives, for windows that are rows."""
    shape = type_of(operand).shape
    placed = scattered_axes(dims)
    window = tuple(a for a in range(len(shape)) if a not in placed)
    order = (*placed, *window)
    rows = _as_rows(transpose(operand, permutation=order), len(placed))
    batch = tuple(a for a in range(type_of(updates).ndim) if a not in dims.offset)
    new_rows = _as_rows(transpose(updates, permutation=(*batch, *dims.offset)), len(batch))
    places = _places(shape, placed, indices, dims, mode)
    changed = _combined_rows(combine, rows, places, new_rows)
    ordered = reshape(changed, shape=tuple(shape[a] for a in order))
    return transpose(ordered, permutation=inverse(order))


def _as_rows(x: Value, axes: int) -> Value:
    shape = type_of(x).shape
    return reshape(x, shape=(product(shape[:axes]), product(shape[axes:])))


def _places(shape: Shape, placed: tuple[int, ...], indices: Value, dims: IndexDims, mode: str) -> Value:
    """The number of each update's row [U] as i32; the number of rows for what is left out."""
    batch = type_of(indices).shape[:-1]
    place, inside = fit(_i32(0), batch), fit(np.asarray(True), batch)
    for axis in placed:
        size = size_value(shape[axis], dtypes.i32)
        if axis in dims.operand_batching:
            along = dims.indices_batching[dims.operand_batching.index(axis)]
            at = iota(shape=batch, axis=along, dtype=dtypes.i32)
        else:
            raw = signed(_component(indices, dims.start_map.index(axis)), shape[axis])
            at, is_within = _within(raw, shape[axis])
            inside = logical_and(inside, is_within)
        place = add(mul(place, size), at)
    count = size_value(product(shape[a] for a in placed), dtypes.i32)
    numbers = place if mode == "clip" else select(inside, place, count)
    return reshape(numbers, shape=(product(batch),))


def _component(indices: Value, number: int) -> Value:
    *batch, _ = type_of(indices).shape
    start, limit = (0,) * len(batch), tuple(batch)
    column = slice_(indices, start=(*start, number), limit=(*limit, number + 1), stride=(1,) * (len(batch) + 1))
    return reshape(column, shape=limit)


def _within(raw: Value, size: Size) -> tuple[Array, Array]:
    """Positions moved inside 0…size-1 as i32, and where they were there."""
    dtype = type_of(raw).dtype
    last = size_value(size - 1, dtype)
    zero = literal(0, dtype)
    inside = logical_and(ge(raw, zero), logical_not(lt(last, raw)))
    return cast(max(min(raw, last), zero), dtypes.i32), inside


def _combined_rows(combine: str | None, rows: Value, places: Value, updates: Value) -> Value:
    """Rows [S, W] changed by the rows `given` [U, W] at `places` [U]."""
    places, order = sort(places, positions_like(places), num_keys=1)
    updates = _rows_at(updates, order)
    if combine is not None:
        updates = _runs_combined(COMBINE[combine], places, updates)
    count = type_of(rows).shape[0]
    number = iota(shape=(count,), axis=0, dtype=dtypes.i32)
    last = sub(search_sorted(places, number, side="right"), _i32(1))
    last = max(last, fit(_i32(0), (count,)))
    changes = _like_rows(eq(take_last(places, last), number), rows)
    latest = _rows_at(updates, last)
    new = latest if combine is None else COMBINE[combine](rows, latest)
    return select(changes, new, rows)


def _runs_combined(combine: Primitive, places: Value, updates: Value) -> Value:
    """For every row what the rows of its place make, up to and with itself."""
    (count,) = type_of(places).shape
    number = iota(shape=(count,), axis=0, dtype=dtypes.i32)

    def step(i: Value, sums: Value) -> list[Value]:
        before = sub(number, shl(_i32(1), i))
        is_there = ge(before, _i32(0))
        before = max(before, _i32(0))
        same = logical_and(is_there, eq(take_last(places, before), places))
        joined = combine(_rows_at(sums, before), sums)
        return [select(_like_rows(same, sums), joined, sums)]

    most = bounds(count)[1]
    levels = 31 if most is None else (most - 1).bit_length()
    return repeat(levels, step, updates)[0] if levels else updates


def _like_rows(mask: Value, rows: Value) -> Value:
    return broadcast(mask, shape=type_of(rows).shape, axes=(0,))


def _rows_at(rows: Value, numbers: Value) -> Value:
    """The rows [N, W] of these numbers [M]: [M, W]."""
    count, width = type_of(numbers).shape[0], type_of(rows).shape[1]
    return gather(
        rows,
        reshape(numbers, shape=(count, 1)),
        literal(0, type_of(rows).dtype),
        dims=IndexDims((1,), (0,), (0,)),
        slice_sizes=(1, width),
        mode="promise_in_bounds",
    )


def _i32(value: int) -> np.ndarray:
    return literal(value, dtypes.i32)
