"""What a collective means to the devices of a group: from all their operands to a result for each.

This is the meaning in NumPy, which the host computes for executors that cannot exchange values
themselves. Results never share memory with operands, which belong to running plans.

Invariant: sums and extrema are taken in one fixed tree, so they do not depend on which device
arrives first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]
Permutation = Sequence[tuple[int, int]]


def in_tree(combine: Callable[[np.ndarray, np.ndarray], np.ndarray], arrays: Arrays) -> np.ndarray:
    """The arrays combined in pairs, neighbours first; a copy if there is only one."""
    level = list(arrays)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return np.array(level[0]) if len(arrays) == 1 else np.asarray(level[0])


def psum(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The sum, on every device."""
    return [in_tree(np.add, arrays)] * len(arrays)


def pmax(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The elementwise maximum, on every device; NaN where any operand is NaN."""
    return [in_tree(np.maximum, arrays)] * len(arrays)


def pmin(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The elementwise minimum, on every device; NaN where any operand is NaN."""
    return [in_tree(np.minimum, arrays)] * len(arrays)


def all_gather(arrays: Arrays, *, axis: int, lanes: int, axis_name: Hashable) -> list[np.ndarray]:
    """All operands stacked along a new axis, on every device."""
    return [np.stack(list(arrays), axis)] * len(arrays)


def psum_scatter(arrays: Arrays, *, scatter_axis: int, lanes: int, axis_name: Hashable) -> list[np.ndarray]:
    """On each device, the sum of the parts addressed to it."""
    return [in_tree(np.add, parts) for parts in _parts(arrays, scatter_axis)]


def all_to_all(
    arrays: Arrays, *, split_axis: int, concat_axis: int, lanes: int, axis_name: Hashable
) -> list[np.ndarray]:
    """On each device, the parts addressed to it, stacked along a new axis."""
    return [np.stack(parts, concat_axis) for parts in _parts(arrays, split_axis)]


def _parts(arrays: Arrays, axis: int) -> list[list[np.ndarray]]:
    """For each receiver, the part that every sender has for it."""
    return [[np.moveaxis(x, axis, 0)[receiver] for x in arrays] for receiver in range(len(arrays))]


def ppermute(arrays: Arrays, *, permutation: Permutation, axis_name: Hashable) -> list[np.ndarray]:
    """On each device, the operand sent to it; zeros where no device sends."""
    sender = {receiver: sender for sender, receiver in permutation}
    return [np.array(arrays[sender[n]]) if n in sender else np.zeros_like(arrays[n]) for n in range(len(arrays))]
