"""Sums of NumPy arrays whose error does not grow with their length.

NumPy adds in pairs along the axes that are next to each other in memory, and one by one along all
others and in a running sum: there a count of ones in f32 stops at 2**24, and a million random
numbers lose two digits. No accumulator gets more than BLOCK numbers here, and then sums of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rune import dtypes

BLOCK = 1024  # additions to one accumulator


def total(x: np.ndarray, axes: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The sum over `axes`, in `dtype`."""
    serial = _serial_axes(x, axes) if dtype in dtypes.INEXACT else []
    rounds = prod(x.shape[a] for a in serial)
    if rounds <= BLOCK:
        return np.add.reduce(x, axis=tuple(axes), dtype=dtype)  # np.sum, without its Python
    axis = max(serial, key=lambda a: x.shape[a])
    length = max(1, BLOCK * x.shape[axis] // rounds)
    # Summed in blocks again, since a sum of many parts loses digits as one of many numbers does.
    return total(
        np.stack([total(x[block], axes, dtype) for block in _blocks(x.shape[axis], axis, length)]), (0,), dtype
    )


def _serial_axes(x: np.ndarray, axes: Sequence[int]) -> list[int]:
    """The axes along which NumPy adds one by one: all but those of one innermost run of memory."""
    serial, run = [a for a in axes if x.shape[a] > 1], None
    for a in sorted(range(x.ndim), key=lambda a: abs(x.strides[a])):
        if x.shape[a] == 1:
            continue
        if a not in serial or x.strides[a] == 0 or run not in (None, abs(x.strides[a])):
            break
        serial.remove(a)
        run = abs(x.strides[a]) * x.shape[a]
    return serial


def _blocks(size: int, axis: int, length: int) -> list[tuple[slice, ...]]:
    """Indices that cut an axis into blocks."""
    return [(*(slice(None),) * axis, slice(first, first + length)) for first in range(0, size, length)]


def running_total(x: np.ndarray, axis: int, dtype: np.dtype) -> np.ndarray:
    """The running sum along an axis, in `dtype`."""
    size = x.shape[axis]
    if size <= BLOCK or dtype not in dtypes.INEXACT:
        return np.add.accumulate(x, axis=axis, dtype=dtype)
    every, cut = (slice(None),) * axis, size - size % BLOCK
    result = np.empty(x.shape, dtype)
    # Views: an axis can be split without a copy, whatever its stride.
    blocks, sums = (_split(a[*every, :cut], axis) for a in (x, result))
    np.add.accumulate(blocks, axis=axis + 1, dtype=dtype, out=sums)
    totals = np.add.accumulate(sums[*every, :, -1], axis=axis)
    sums[*every, 1:] += np.expand_dims(totals[*every, :-1], axis + 1)
    np.add.accumulate(x[*every, cut:], axis=axis, dtype=dtype, out=result[*every, cut:])
    result[*every, cut:] += totals[*every, -1:]
    return result


def _split(x: np.ndarray, axis: int) -> np.ndarray:
    """`x` with an axis in blocks: two axes in its place."""
    return x.reshape(*x.shape[:axis], -1, BLOCK, *x.shape[axis + 1 :])
