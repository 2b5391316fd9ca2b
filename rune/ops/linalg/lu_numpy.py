"""LU factorisation in NumPy, which has none: all lanes at once, or columns by recursion."""

from __future__ import annotations

import math

import numpy as np

from rune.ops.linalg.small import lanes_first, lanes_last, prefers_lanes
from rune.ops.linalg.triangular import solve_in_numpy

LEAF = 16  # columns that are eliminated one by one


def factored(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """lu, pivots and permutation. Shapes: [*B, M, N] -> [*B, M, N], [*B, K], [*B, M]."""
    lead = a.shape[:-2]
    if prefers_lanes(a):
        work, pivots = _eliminated_lanes(lanes_last(a))
        lu, swaps = lanes_first(work, lead), lanes_first(pivots, lead)
    else:
        lu = np.array(a)
        swaps = np.zeros((*lead, min(a.shape[-2:])), np.int32)
        for lane in np.ndindex(*lead):
            _eliminate(lu[lane], swaps[lane])
    return lu, swaps, permutation_of(swaps, a.shape[-2])


def permutation_of(pivots: np.ndarray, rows: int) -> np.ndarray:
    """The permutation of the rows that the exchanges make. Shapes: [*B, K] -> [*B, M]."""
    lead = pivots.shape[:-1]
    flat = pivots.reshape(math.prod(lead), pivots.shape[-1])
    if len(flat) == 1:
        return _permutation(flat[0].tolist(), rows).reshape(*lead, rows)
    out = np.tile(np.arange(rows, dtype=np.int32), (len(flat), 1))
    lanes = np.arange(len(flat))
    for k in range(flat.shape[1]):
        first, second = out[:, k].copy(), out[lanes, flat[:, k]]
        out[:, k], out[lanes, flat[:, k]] = second, first
    return out.reshape(*lead, rows)


def _permutation(pivots: list[int], rows: int) -> np.ndarray:
    """For one matrix: elements of a list are exchanged faster than those of an array."""
    order = list(range(rows))
    for k, pivot in enumerate(pivots):
        order[k], order[pivot] = order[pivot], order[k]
    return np.array(order, np.int32)


def size(x: np.ndarray) -> np.ndarray:
    """|re| + |im|, by which pivots are compared."""
    return np.abs(np.real(x)) + np.abs(np.imag(x)) if np.iscomplexobj(x) else np.abs(x)


# --- all lanes at once ------------------------------------------------------------------------


def _eliminated_lanes(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In place, for a [M, N, B]; pivots [K, B]."""
    m, n, lanes = a.shape
    pivots = np.zeros((min(m, n), lanes), np.int32)
    all_lanes = np.arange(lanes)
    for k in range(min(m, n)):
        pivot_rows = k + np.argmax(size(a[k:, k]), axis=0)
        pivots[k] = pivot_rows
        row = a[pivot_rows, :, all_lanes].T
        a[pivot_rows, :, all_lanes] = a[k].T
        a[k] = row
        pivot = row[k]
        a[k + 1 :, k] /= np.where(pivot == 0, np.ones((), a.dtype), pivot)
        for i in range(k + 1, m):
            a[i, k + 1 :] -= a[i, k] * row[k + 1 :]
    return a, pivots


# --- one matrix -------------------------------------------------------------------------------


def _eliminate(a: np.ndarray, pivots: np.ndarray) -> None:
    """In place, for a [M, N]: the first K = min(M, N) columns, then those to their right."""
    count = len(pivots)
    _recurse(a[:, :count], pivots)
    if a.shape[1] > count:
        _exchange(a[:, count:], pivots)
        a[:, count:] = solve_in_numpy(a[:, :count], a[:, count:], lower=True, unit_diagonal=True)


def _recurse(a: np.ndarray, pivots: np.ndarray) -> None:
    """In place, for a [M, K], M >= K."""
    if a.shape[1] <= LEAF:
        _eliminate_leaf(a, pivots)
        return
    h = a.shape[1] // 2
    _recurse(a[:, :h], pivots[:h])
    _exchange(a[:, h:], pivots[:h])
    a[:h, h:] = solve_in_numpy(a[:h, :h], a[:h, h:], lower=True, unit_diagonal=True)
    a[h:, h:] -= a[h:, :h] @ a[:h, h:]
    _recurse(a[h:, h:], pivots[h:])
    _exchange(a[h:, :h], pivots[h:])
    pivots[h:] += h


def _exchange(a: np.ndarray, pivots: np.ndarray) -> None:
    order = permutation_of(pivots, a.shape[0])
    moved_rows = np.flatnonzero(order != np.arange(len(order)))
    a[moved_rows] = a[order[moved_rows]]


def _eliminate_leaf(a: np.ndarray, pivots: np.ndarray) -> None:
    columns = np.array(a.T, order="C")  # the elements of a column are adjacent
    for k in range(len(columns)):
        pivot_row = k + int(np.argmax(size(columns[k, k:])))
        pivots[k] = pivot_row
        if pivot_row != k:
            row = columns[:, k].copy()
            columns[:, k], columns[:, pivot_row] = columns[:, pivot_row], row
        pivot = columns[k, k]
        if pivot != 0:
            columns[k, k + 1 :] /= pivot
        columns[k + 1 :, k + 1 :] -= columns[k + 1 :, k, None] * columns[k, k + 1 :]
    a[...] = columns.T
