"""Scatters of rows: the windows are whole rows of the operand, addressed by row numbers.

    operand [*S, *W]  ->  rows [S, W]       updates [*U, *W]  ->  rows [U, W]
    indices [*U, k]   ->  places [U], i32   the number of a row; S for updates that are dropped

The device decides how the rows are changed (lowering/scatters).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.ops.arithmetic import add, cast, ge, logical_and, logical_not, lt, max, min, mul, select
from rune.ops.creation import iota
from rune.ops.family import fit, reshape, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_values import signed
from rune.ops.movement import inverse, slice_, transpose

if TYPE_CHECKING:
    from rune.array import Array

Change = Callable[[Value, Value, Value], Value]  # rows [S, W], places [U], updates [U, W] -> rows


def scattered_axes(dims: IndexDims) -> tuple[int, ...]:
    """The axes of the operand that index components address."""
    return tuple(sorted({*dims.start_map, *dims.operand_batching}))


def is_of_rows(operand: ArrayType, dims: IndexDims, slice_sizes: Shape) -> bool:
    """Whether every window is one row: size 1 along the addressed axes, whole along the others."""
    axes = scattered_axes(dims)
    return all(
        size == 1 and a not in dims.window_axes(operand.ndim) if a in axes else size == length
        for a, (size, length) in enumerate(zip(slice_sizes, operand.shape, strict=True))
    )


def changed_rows(
    change: Change, operand: Value, indices: Value, updates: Value, *, dims: IndexDims, slice_sizes: Shape, mode: str
) -> Value:
    """The operand with rows changed by updates, for windows that are rows.

    change: receives the operand as rows [S, W], the row number of each update [U] (S for an update
            that is dropped), and the updates [U, W].
    """
    shape = type_of(operand).shape
    axes = scattered_axes(dims)
    window = tuple(a for a in range(len(shape)) if a not in axes)
    order = (*axes, *window)
    rows = _as_rows(transpose(operand, permutation=order), len(axes))
    batch = tuple(a for a in range(type_of(updates).ndim) if a not in dims.offset)
    new_rows = _as_rows(transpose(updates, permutation=(*batch, *dims.offset)), len(batch))
    places = _places(shape, axes, indices, dims, mode)
    new_operand = change(rows, places, new_rows)
    in_order = reshape(new_operand, shape=tuple(shape[a] for a in order))
    return transpose(in_order, permutation=inverse(order))


def _as_rows(x: Value, axes: int) -> Value:
    shape = type_of(x).shape
    return reshape(x, shape=(product(shape[:axes]), product(shape[axes:])))


def _places(shape: Shape, axes: tuple[int, ...], indices: Value, dims: IndexDims, mode: str) -> Value:
    """The row number of each update [U] as i32; the number of rows for an update that is
    dropped.
    """
    batch = type_of(indices).shape[:-1]
    place, inside = fit(_i32(0), batch), fit(np.asarray(True), batch)
    for axis in axes:
        size = size_value(shape[axis], dtypes.i32)
        if axis in dims.operand_batching:
            along = dims.indices_batching[dims.operand_batching.index(axis)]
            at = iota(shape=batch, axis=along, dtype=dtypes.i32)
        else:
            raw = signed(component(indices, dims.start_map.index(axis)), shape[axis])
            at, is_within = _within(raw, shape[axis])
            inside = logical_and(inside, is_within)
        place = add(mul(place, size), at)
    count = size_value(product(shape[a] for a in axes), dtypes.i32)
    numbers = place if mode == "clip" else select(inside, place, count)
    return reshape(numbers, shape=(product(batch),))


def component(indices: Value, number: int) -> Value:
    """A component of each index vector [*U]."""
    *batch, _ = type_of(indices).shape
    start, limit = (0,) * len(batch), tuple(batch)
    column = slice_(indices, start=(*start, number), limit=(*limit, number + 1), stride=(1,) * (len(batch) + 1))
    return reshape(column, shape=limit)


def _within(raw: Value, size: Size) -> tuple[Array, Array]:
    """Positions clamped to 0…size-1 as i32, and where they were in bounds."""
    dtype = type_of(raw).dtype
    last = size_value(size - 1, dtype)
    zero = literal(0, dtype)
    inside = logical_and(ge(raw, zero), logical_not(lt(last, raw)))
    return cast(max(min(raw, last), zero), dtypes.i32), inside


def _i32(value: int) -> np.ndarray:
    return literal(value, dtypes.i32)
