"""What collectives mean to the devices of a group: the operands of all -> a result for each.

The meaning in NumPy, computed by the host for executors that have no other way to exchange values.
Results never share memory with operands, which belong to running plans.

Invariant: sums and extremes are taken in one fixed tree, so they do not depend on who came first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]
Permutation = Sequence[tuple[int, int]]


def in_tree(combine: Callable[[np.ndarray, np.ndarray], np.ndarray], arrays: Arrays) -> np.ndarray:
    """The arrays combined two by two, neighbours first; a copy of a single one."""
    level = list(arrays)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return np.array(level[0]) if len(arrays) == 1 else np.asarray(level[0])


def psum(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The sum, for everyone."""
    return [in_tree(np.add, arrays)] * len(arrays)


def pmax(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The largest, for everyone; NaN if one is."""
    return [in_tree(np.maximum, arrays)] * len(arrays)


def pmin(arrays: Arrays, *, axis_name: Hashable) -> list[np.ndarray]:
    """The smallest, for everyone; NaN if one is."""
    return [in_tree(np.minimum, arrays)] * len(arrays)


def all_gather(arrays: Arrays, *, axis: int, lanes: int, axis_name: Hashable) -> list[np.ndarray]:
    """All of them along a new axis, for everyone."""
    return [np.stack(list(arrays), axis)] * len(arrays)


def psum_scatter(arrays: Arrays, *, scatter_axis: int, lanes: int, axis_name: Hashable) -> list[np.ndarray]:
    """The sum of the parts that are for each."""
    return [in_tree(np.add, parts) for parts in _parts(arrays, scatter_axis)]


def all_to_all(
    arrays: Arrays, *, split_axis: int, concat_axis: int, lanes: int, axis_name: Hashable
) -> list[np.ndarray]:
    """The parts that are for each, along a new axis."""
    return [np.stack(parts, concat_axis) for parts in _parts(arrays, split_axis)]


def _parts(arrays: Arrays, axis: int) -> list[list[np.ndarray]]:
    """For each receiver what each sender has for it."""
    return [[np.moveaxis(x, axis, 0)[receiver] for x in arrays] for receiver in range(len(arrays))]


def ppermute(arrays: Arrays, *, permutation: Permutation, axis_name: Hashable) -> list[np.ndarray]:
    """What each is sent; zeros for those to whom nobody sends."""
    sender = {receiver: sender for sender, receiver in permutation}
    return [np.array(arrays[sender[n]]) if n in sender else np.zeros_like(arrays[n]) for n in range(len(arrays))]
