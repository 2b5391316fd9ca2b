"""Sums of NumPy arrays whose error does not grow with their length.

NumPy adds in pairs along the axes that are next to each other in memory, and one by one along all
others and in a running sum: there a count of ones in f32 stops at 2**24, and a million random
numbers lose two digits. Long sums have many accumulators here, each of few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rune import dtypes

BLOCK = 128  # additions to one accumulator of a long sum
LONGEST = 512  # additions to one accumulator that are no long sum


def total(x: np.ndarray, axes: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The sum over `axes`, in `dtype`."""
    serial = _serial_axes(x, axes) if dtype in dtypes.INEXACT else []
    rounds = prod(x.shape[a] for a in serial)
    if rounds <= LONGEST:
        return np.add.reduce(x, axis=tuple(axes), dtype=dtype)  # np.sum, without its Python
    axis = max(serial, key=lambda a: x.shape[a])
    size, every = x.shape[axis], (slice(None),) * axis
    count = size // max(1, BLOCK * size // rounds)
    cut = size - size % count
    # Neighbours go to different accumulators, so that NumPy's inner loop runs over all of them.
    lanes = _split(x[*every, :cut], axis, count)
    sums = total(lanes, [a + (a > axis) for a in axes], dtype)
    result = total(sums, (axis - sum(a < axis for a in axes),), dtype)
    return result if cut == size else result + total(x[*every, cut:], axes, dtype)


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


def running_total(x: np.ndarray, axis: int, dtype: np.dtype) -> np.ndarray:
    """The running sum along an axis, in `dtype`."""
    is_exact = dtype not in dtypes.INEXACT
    return _running_total(x, axis, dtype, 0 if is_exact else len(block_sizes(x.shape[axis])))


def _running_total(x: np.ndarray, axis: int, dtype: np.dtype, depth: int) -> np.ndarray:
    """The running sum in blocks, blocks of blocks and so on. depth: how many sizes blocks have."""
    if depth == 0:
        return np.add.accumulate(x, axis=axis, dtype=dtype)
    every, cut = (slice(None),) * axis, x.shape[axis] - x.shape[axis] % BLOCK
    result = np.empty(x.shape, dtype)
    # Views: an axis can be split without a copy, whatever its stride.
    blocks, sums = (_split(a[*every, :cut], axis, BLOCK) for a in (x, result))
    np.add.accumulate(blocks, axis=axis + 1, dtype=dtype, out=sums)
    totals = _running_total(sums[*every, :, -1], axis, dtype, depth - 1)
    sums[*every, 1:] += np.expand_dims(totals[*every, :-1], axis + 1)
    np.add.accumulate(x[*every, cut:], axis=axis, dtype=dtype, out=result[*every, cut:])
    result[*every, cut:] += totals[*every, -1:]
    return result


def block_sizes(size: int) -> list[int]:
    """The sizes of the blocks in which a running sum of `size` numbers is added, the largest first.

    >>> block_sizes(512), block_sizes(513), block_sizes(9_000_000)
    ([], [128], [2097152, 16384, 128])
    """
    sizes: list[int] = []
    while size > LONGEST:
        sizes.insert(0, BLOCK ** (len(sizes) + 1))
        size = -(-size // BLOCK)
    return sizes


def _split(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    """`x` with an axis in runs of `count`: two axes in its place."""
    return x.reshape(*x.shape[:axis], -1, count, *x.shape[axis + 1 :])
