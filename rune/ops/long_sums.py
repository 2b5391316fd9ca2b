"""Sums of NumPy arrays whose error does not grow with their length.

NumPy adds in pairs along the axes that are next to each other in memory, and one by one along all
others and in a running sum: there a count of ones in f32 stops at 2**24, and a million random
numbers lose two digits. Long sums have many accumulators here, each of few numbers. The product of
two vectors is a routine's, with an accumulator for each lane: a long one is a sum of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rune import dtypes

BLOCK = 128  # additions to one accumulator of a long sum: of equal f32 they lose 1e-6
LONGEST = 1024  # additions to one accumulator of any other: blocks would cost 30 µs of Python
OPEN = 1 << 22  # numbers assumed of a sum of unknown length
LONG_PRODUCT = 1 << 16  # elements of vectors whose product is a sum of products
PRODUCT_BLOCK = 1 << 12  # elements of one of these: about a microsecond of work


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


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The product of matrices, or of stacks of them."""
    size = x.shape[-1]
    if size <= LONG_PRODUCT or x.shape[-2] * y.shape[-1] > 1 or x.dtype not in dtypes.INEXACT:
        return np.matmul(x, y)
    cut = size - size % PRODUCT_BLOCK
    rows = _split(x[..., :cut], x.ndim - 1, PRODUCT_BLOCK).swapaxes(-2, -3)
    columns = _split(y[..., :cut, :], y.ndim - 2, PRODUCT_BLOCK)
    products = total(np.matmul(rows, columns), (x.ndim - 2,), x.dtype)
    return products + np.matmul(x[..., cut:], y[..., cut:, :])


def running_total(x: np.ndarray, axis: int, dtype: np.dtype) -> np.ndarray:
    """The running sum along an axis, in `dtype`."""
    size = x.shape[axis]
    depth = len(block_sizes(size)) if dtype in dtypes.INEXACT else 0
    if depth == 0:
        return np.add.accumulate(x, axis=axis, dtype=dtype)
    every, cut = (slice(None),) * axis, size - size % BLOCK
    result = np.empty(x.shape, dtype)
    # Views: an axis can be split without a copy, whatever its stride.
    blocks, sums = (_split(a[*every, :cut], axis, BLOCK) for a in (x, result))
    np.add.accumulate(blocks, axis=axis + 1, dtype=dtype, out=sums)
    np.add.accumulate(x[*every, cut:], axis=axis, dtype=dtype, out=result[*every, cut:])
    # One more, since the numbers that fill no block follow all blocks.
    before = _sums_before(_longer(sums[*every, :, -1], axis, 1), axis, depth - 1)
    sums[*every, 1:] += np.expand_dims(before[*every, 1:-1], axis + 1)
    result[*every, cut:] += before[*every, -1:]
    return result


def _sums_before(x: np.ndarray, axis: int, depth: int) -> np.ndarray:
    """The sum of all numbers before each one. depth: how many sizes the blocks have."""
    every = (slice(None),) * axis
    if depth == 0:
        result = np.zeros_like(x)
        np.add.accumulate(x[*every, :-1], axis=axis, out=result[*every, 1:])
        return result
    size = x.shape[axis]
    blocks = _split(_longer(x, axis, -size % BLOCK), axis, BLOCK)
    within = _sums_before(blocks, axis + 1, 0)
    totals = within[*every, :, -1] + blocks[*every, :, -1]
    sums = np.expand_dims(_sums_before(totals, axis, depth - 1), axis + 1) + within
    return sums.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])[*every, :size]


def _longer(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    """`x` with zeros at the end of an axis."""
    return np.concatenate([x, np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)], axis)


def block_sizes(size: int) -> list[int]:
    """The sizes of the blocks in which a running sum of `size` numbers is added, the largest first.

    >>> block_sizes(1024), block_sizes(1025), block_sizes(1_000_003)
    ([], [128], [16384, 128])
    """
    sizes: list[int] = []
    if size <= LONGEST:
        return sizes
    while size > BLOCK:
        sizes.insert(0, BLOCK ** (len(sizes) + 1))
        size = -(-size // BLOCK)
    return sizes


def _split(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    """`x` with an axis in runs of `count`: two axes in its place."""
    return x.reshape(*x.shape[:axis], -1, count, *x.shape[axis + 1 :])
