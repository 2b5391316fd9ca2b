"""Positions along an axis as signed integers; a position out of bounds stays out of bounds.

Unsigned positions beyond the signed dtype become its largest number. Indices that arrive as 64-bit
NumPy arrays have known values, so they are narrowed where these allow it.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.values import Value
from rune.dims import Size, bounds
from rune.ops.arithmetic import add, cast, lt, min, rem, select, zero_like
from rune.ops.family import position_dtype, size_value
from rune.ops.scalars import int_bounds

_MOST = int_bounds(dtypes.i32)[1]


def signed(positions: Value, size: Size) -> Value:
    """Positions along an axis of `size` in i32, or in i64 where that may be needed."""
    if isinstance(positions, np.ndarray):
        return clipped(positions, position_dtype(size))
    dtype = type_of(positions).dtype
    target = _target(dtype, size)
    if dtype in dtypes.UNSIGNED and dtype.itemsize >= target.itemsize:
        positions = min(positions, literal_like(int_bounds(target)[1], positions))
    return cast(positions, target)


def _target(dtype: np.dtype, size: Size) -> np.dtype:
    is_wide = dtype in (dtypes.i64, dtypes.u64) or (dtype == dtypes.u32 and not _is_short(size))
    return dtypes.i64 if is_wide else position_dtype(size)


def _is_short(size: Size) -> bool:
    """Whether i32 holds every position and the one after the last."""
    most = bounds(size)[1]
    return most is not None and most <= _MOST


def clipped(positions: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """NumPy integers in a dtype; values beyond it become its nearest."""
    if positions.dtype.itemsize < dtype.itemsize:
        return positions.astype(dtype)
    low, high = int_bounds(dtype)
    low = low if positions.dtype in dtypes.SIGNED else 0
    return np.clip(positions, *np.array([low, high], positions.dtype)).astype(dtype, copy=False)


def from_end(positions: Value, size: Size) -> Value:
    """Signed positions; negative ones count from the end."""
    places = signed(positions, size)
    if type_of(positions).dtype in dtypes.UNSIGNED:
        return places
    if isinstance(places, np.ndarray) and isinstance(size, int):
        return np.where(places < 0, places + np.asarray(size).astype(places.dtype), places)
    from_front = add(places, size_value(size, type_of(places).dtype))
    return select(lt(places, zero_like(places)), from_front, places)


def modulo(positions: Value, size: Size) -> Value:
    """Positions modulo the size of their axis."""
    if isinstance(positions, np.ndarray) and isinstance(size, int):
        wide = positions if positions.dtype == dtypes.u64 else positions.astype(np.int64)
        return signed((wide % np.asarray(size, wide.dtype)).astype(np.int64), size)
    dtype = type_of(positions).dtype
    if dtype in (dtypes.u32, dtypes.u64) and (dtype == dtypes.u64 or _is_short(size)):
        return signed(rem(positions, size_value(size, dtype)), size)
    places = signed(positions, size)
    count = size_value(size, type_of(places).dtype)
    remainder = rem(places, count)
    return select(lt(remainder, zero_like(remainder)), add(remainder, count), remainder)
