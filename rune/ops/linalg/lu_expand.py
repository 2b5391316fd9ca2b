"""LU factorisation in rune's own primitives: by blocks of columns, or written out if tiny.

A block is eliminated column by column, its rows exchanged through masks. Then one gather applies
the block's permutation to the matrix, a solve with the unit lower triangle gives the rows of U to
the right of the block, and their product with L is subtracted from the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import abs as absolute
from rune.ops.arithmetic import add, div, eq, ge, gt, logical_and, logical_or, mul, ne, select, sub
from rune.ops.complex_numbers import imag, real
from rune.ops.creation import iota
from rune.ops.family import fit, reduce_sum, reshape, stretch
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import (
    columns,
    corner,
    elements,
    from_elements,
    full,
    grown,
    is_static,
    keep,
    matmul,
    next_multiple,
    number,
    permuted_rows,
    put,
    rows,
    smaller,
    steps,
    window,
)
from rune.ops.movement import concatenate, part
from rune.ops.reduction import argmax

if TYPE_CHECKING:
    from rune.array import Array

Eliminate = Callable[[Value, Value], Sequence[Value]]

BLOCK = 32


def by_loops(a: Value) -> list[Array]:
    """lu, pivots, permutation."""
    m, n = type_of(a).shape[-2:]
    count = smaller(m, n)
    if is_static((m, n)) and count > BLOCK:
        return by_blocks(a, count, BLOCK, lambda panel, start: _eliminated(panel, start, BLOCK))
    return _eliminated(a, np.int32(0), count)


def size(x: Value) -> Array:
    """|re| + |im|, by which pivots are compared."""
    if type_of(x).dtype not in dtypes.COMPLEX:
        return absolute(x)
    return add(absolute(real(x)), absolute(imag(x)))


# --- columns ----------------------------------------------------------------------------------


def _eliminated(a: Value, start: Value, count: Size) -> list[Array]:
    """The first `count` columns eliminated from row `start` on.

    Shapes: a [*B, M, N] -> lu [*B, M, N], pivots [*B, count], permutation [*B, M].
    """
    shape = type_of(a).shape
    *lead, m, _ = shape
    row, column = rows(shape), columns(shape)
    order = iota(shape=(*lead, m, 1), axis=len(lead), dtype=dtypes.i32)
    pivots = full(np.int32(0), (*lead, count, 1))

    def step(k: Value, work: Value, pivots: Value, order: Value) -> list[Value]:
        top_row = add(start, k)
        pivot_row = _pivot_row(window(work, -1, k, 1), top_row)
        work, order = _exchanged(work, top_row, pivot_row), _exchanged(order, top_row, pivot_row)
        top = window(work, -2, top_row, 1)
        pivot = window(top, -1, k, 1)
        safe = select(eq(pivot, number(0, pivot)), number(1, pivot), pivot)
        below = logical_and(gt(row, top_row), eq(column, k))
        work = select(below, div(work, stretch(safe, shape)), work)
        # Selected, not multiplied by zeros: these would make NaN beside elements that are not
        # finite.
        change = mul(stretch(window(work, -1, k, 1), shape), stretch(top, shape))
        work = select(logical_and(gt(row, top_row), gt(column, k)), sub(work, change), work)
        return [work, put(pivots, -2, k, pivot_row), order]

    lu, pivots, order = steps(count, step, a, pivots, order)
    return [lu, reshape(pivots, shape=(*lead, count)), reshape(order, shape=(*lead, m))]


def _pivot_row(column: Value, start: Value) -> Array:
    """The row of the largest element from row `start` on. Shapes: [*B, M, 1] -> i32[*B, 1, 1]."""
    shape = type_of(column).shape
    sizes = size(column)
    candidates = select(ge(rows(shape), start), sizes, number(-1, sizes))
    row = argmax(candidates, axis=len(shape) - 2, dtype=dtypes.i32)
    return reshape(row, shape=(*shape[:-2], 1, 1))


def _exchanged(x: Value, start: Value, pivot: Value) -> Array:
    """Rows `start` and `pivot` exchanged; each lane has its own pivot."""
    shape = type_of(x).shape
    row = rows(shape)
    is_chosen = eq(row, stretch(pivot, shape))
    first = window(x, -2, start, 1)
    second = reduce_sum(keep(is_chosen, x), axes=(len(shape) - 2,))
    second = reshape(second, shape=type_of(first).shape)
    half = select(is_chosen, stretch(first, shape), x)
    return select(eq(row, start), stretch(second, shape), half)


# --- blocks -----------------------------------------------------------------------------------


def by_blocks(a: Value, count: Size, block: int, eliminate: Eliminate) -> list[Array]:
    """lu, pivots, permutation, by blocks of `block` columns.

    eliminate: a function of a panel [*B, M, block] and the row where it starts
    """
    *lead, m, n = type_of(a).shape
    reach = next_multiple(count, block)
    height, width = max(m, reach), max(n, reach)
    order = iota(shape=(*lead, height, 1), axis=len(lead), dtype=dtypes.i32)
    pivots = full(np.int32(0), (*lead, reach, 1))

    def step(k: Value, work: Value, pivots: Value, order: Value) -> list[Value]:
        start = mul(k, np.int32(block))
        panel, swaps, permutation = eliminate(window(work, -1, start, block), start)
        matrix = put(permuted_rows(work, permutation), -1, start, panel)
        swaps = reshape(swaps, shape=(*lead, block, 1))
        return [_updated(matrix, start, panel), put(pivots, -2, start, swaps), permuted_rows(order, permutation)]

    lu, pivots, order = steps(reach // block, step, grown(a, height, width), pivots, order)
    pivots = reshape(part(pivots, -2, 0, count), shape=(*lead, count))
    return [corner(lu, m, n), pivots, reshape(part(order, -2, 0, m), shape=(*lead, m))]


def _updated(work: Value, start: Value, panel: Value) -> Value:
    """Rows of U to the right of the block, and the rows below minus L times these."""
    block = type_of(panel).shape[-1]
    end = add(start, np.int32(block))
    block_rows = window(work, -2, start, block)
    right = ge(columns(type_of(block_rows).shape), end)
    triangle = window(panel, -2, start, block)
    upper = triangular_solve(triangle, block_rows, lower=True, unit_diagonal=True)
    work = put(work, -2, start, select(right, upper, block_rows))
    shape = type_of(work).shape
    is_behind = logical_and(ge(rows(shape), end), ge(columns(shape), end))
    return select(is_behind, sub(work, matmul(panel, upper)), work)


# --- tiny matrices ----------------------------------------------------------------------------


def written_out(a: Value) -> list[Any]:
    """The same for tiny matrices, with every element as one expression over the lanes."""
    *lead, m, n = type_of(a).shape
    work = elements(a)
    order = [[np.asarray(i, np.int32)] for i in range(m)]
    pivots: list[Value] = []
    for k in range(min(m, n)):
        pivot_row = _greatest([row[k] for row in work[k:]], k)
        pivots.append(pivot_row)
        for i in range(k + 1, m):
            is_chosen = eq(pivot_row, np.int32(i))
            _exchange(is_chosen, work[k], work[i])
            _exchange(is_chosen, order[k], order[i])
        _eliminate(work, k)
    lu = from_elements(work, tuple(lead)) if m and n else a
    return [lu, _joined(pivots, tuple(lead)), _joined([x for (x,) in order], tuple(lead))]


def _joined(numbers: list[Value], lead: tuple) -> Array:
    """i32[*B, K] of K numbers, each over the lanes."""
    if not numbers:
        return full(np.int32(0), (*lead, 0))
    return concatenate(*(reshape(fit(x, lead), shape=(*lead, 1)) for x in numbers), axis=len(lead))


def _greatest(column: list[Array], first: int) -> Value:
    """The position, counted from `first`, of the largest element."""
    best, place = size(column[0]), np.asarray(first, np.int32)
    for i, x in enumerate(map(size, column[1:]), first + 1):
        # NaN counts as largest, as in NumPy's argmax.
        is_more = logical_or(gt(x, best), logical_and(ne(x, x), eq(best, best)))
        place, best = select(is_more, np.asarray(i, np.int32), place), select(is_more, x, best)
    return place


def _exchange(where: Value, first: list[Any], second: list[Any]) -> None:
    for j, (p, q) in enumerate(zip(first, second, strict=True)):
        first[j], second[j] = select(where, q, p), select(where, p, q)


def _eliminate(work: list[list[Any]], k: int) -> None:
    pivot = work[k][k]
    safe = select(eq(pivot, number(0, pivot)), number(1, pivot), pivot)
    for row in work[k + 1 :]:
        row[k] = div(row[k], safe)
        row[k + 1 :] = [sub(x, mul(row[k], y)) for x, y in zip(row[k + 1 :], work[k][k + 1 :])]
