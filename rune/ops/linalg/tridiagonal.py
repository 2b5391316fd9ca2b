"""tridiagonal_solve: X with A X = B, A given by its three diagonals; linear in B.

Row i of A X is lower[i] x[i-1] + main[i] x[i] + upper[i] x[i+1]; lower[0] and upper[N-1] are not
read. Elimination with partial pivoting between neighbouring rows, row by row: O(N) work, all lanes
and right-hand sides together. A singular matrix gives infinities and NaN.

The expansion serves the CPU too: NumPy has no such routine, and a compiled loop takes a fraction of
the time of a NumPy call for each row. Eager evaluation runs the same steps in NumPy, or in Python
if a row has few numbers.

Source: Golub & Van Loan 4e, §4.3.6, with pivoting as LAPACK's gtsv; derivative: Giles 2008, §2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ShapeError
from rune.ops.arithmetic import add, div, le, mul, neg, select, sub
from rune.ops.family import Batched, reshape, same_dtype, stretch, types_text
from rune.ops.linalg.lu_expand import size
from rune.ops.linalg.lu_numpy import size as size_in_numpy
from rune.ops.matrix_helpers import batch_leading, number, require_matrices, scaled_rows, zeros
from rune.ops.movement import concatenate, move_axis, pad, part
from rune.ops.repeat import repeat_rows

if TYPE_CHECKING:
    from rune.array import Array

FEW = 128  # right-hand sides of all lanes up to which Python's numbers are faster than NumPy


def _type(lower: ArrayType, main: ArrayType, upper: ArrayType, b: ArrayType) -> ArrayType:
    types = (lower, main, upper, b)
    same_dtype("tridiagonal_solve", *types)
    require_matrices("tridiagonal_solve", b)
    if any(t.shape != b.shape[:-1] for t in types[:3]):
        raise ShapeError(
            f"tridiagonal_solve: cannot solve {types_text(types[:3])} for {b} "
            "(three diagonals as long as the right-hand sides required)"
        )
    return b.strong()


# --- reference --------------------------------------------------------------------------------


def _reference(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    if 0 in b.shape:
        return b
    if b.size <= FEW * main.shape[-1]:
        solution = _by_numbers(lower, main, upper, b)
        if solution is not None:
            return solution
    # Rows are the leading axis: a step works on one row of all lanes.
    lower, main, upper = (np.moveaxis(x, -1, 0)[..., None] for x in (lower, main, upper))
    return np.moveaxis(_by_rows(lower, main, upper, np.moveaxis(b, -2, 0)), 0, -2)


def _by_rows(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, sides: np.ndarray) -> np.ndarray:
    n = len(main)
    pivots, first = np.empty((n, 3, *main.shape[1:]), sides.dtype), np.empty_like(sides)
    pivot, right, side = main[0], upper[0], sides[0]
    for i in range(n - 1):
        keeps = size_in_numpy(lower[i + 1]) <= size_in_numpy(pivot)
        above = (pivot, right, np.zeros_like(pivot))
        below = (lower[i + 1], main[i + 1], upper[i + 1])
        pivots[i] = [np.where(keeps, p, q) for p, q in zip(above, below, strict=True)]
        row_below = [np.where(keeps, q, p) for p, q in zip(above, below, strict=True)]
        first[i] = np.where(keeps, side, sides[i + 1])
        factor = row_below[0] / pivots[i, 0]
        pivot, right = row_below[1] - factor * pivots[i, 1], row_below[2] - factor * pivots[i, 2]
        side = np.where(keeps, sides[i + 1], side) - factor * first[i]
    out = np.empty_like(first)
    out[n - 1] = side / pivot
    for i in reversed(range(n - 1)):
        after = pivots[i, 2] * out[i + 2] if i + 2 < n else 0
        out[i] = (first[i] - pivots[i, 1] * out[i + 1] - after) / pivots[i, 0]
    return out


def _by_numbers(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """The same on Python's numbers, lane by lane; None if a divisor is zero."""
    n = main.shape[-1]
    flat = [x.reshape(-1, n).tolist() for x in (lower, main, upper)]
    sides = b.reshape(-1, n, b.shape[-1])
    out = np.empty(sides.shape, b.dtype)
    try:
        for lane, (below, on_diagonal, above) in enumerate(zip(*flat, strict=True)):
            for k in range(b.shape[-1]):
                column = _one_by_one(below, on_diagonal, above, sides[lane, :, k].tolist())
                out[lane, :, k] = column
    except (ZeroDivisionError, OverflowError):
        return None
    return out.reshape(b.shape)


def _one_by_one(lower: list, main: list, upper: list, side: list) -> list:
    n, rows = len(main), []
    diagonal, right, value = main[0], upper[0], side[0]
    for i in range(1, n):
        below, on_diagonal, beyond = lower[i], main[i], upper[i]
        if abs(below) <= abs(diagonal):
            factor = below / diagonal
            rows.append((diagonal, right, 0, value))
            diagonal, right, value = on_diagonal - factor * right, beyond, side[i] - factor * value
        else:
            factor = diagonal / below
            rows.append((below, on_diagonal, beyond, side[i]))
            diagonal, right, value = (right - factor * on_diagonal, -factor * beyond, value - factor * side[i])
    out = [value / diagonal]
    one, two = out[0], 0
    for pivot, next_, second, value in reversed(rows):
        one, two = (value - next_ * one - second * two) / pivot, one
        out.append(one)
    return out[::-1]


# --- expansion --------------------------------------------------------------------------------


def _expand(lower: Value, main: Value, upper: Value, b: Value) -> Value:
    """The reference's algorithm: a row that is pending, and the next one."""
    n = type_of(main).shape[-1]
    if n == 0:
        return b
    first = type_of(main).ndim - 1
    rows = [move_axis(x, first, 0) for x in (lower, main, upper, b)]
    start = [_row(x, 0) for x in rows[1:]]
    (pivot, _, side), reduced_rows = repeat_rows(_eliminate, start, [part(x, 0, 1, n) for x in rows])
    last = div(side, stretch(pivot, type_of(side).shape))
    _, solution = repeat_rows(_substitute, [last, zeros(last)], reduced_rows, reverse=True)
    last = reshape(last, shape=(1, *type_of(last).shape))
    return move_axis(concatenate(*solution, last, axis=0), 0, first)


def _row(x: Value, k: int) -> Array:
    shape = type_of(x).shape
    return reshape(part(x, 0, k, k + 1), shape=shape[1:])


def _eliminate(pending: Sequence[Value], row: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """The larger pivot of the two comes first; diagonals [*B], right-hand sides [*B, K]."""
    (pivot, right, side), (*below, next_side) = pending, row
    keeps = le(size(below[0]), size(pivot))
    above = [pivot, right, zeros(pivot)]
    pivots = [select(keeps, p, q) for p, q in zip(above, below, strict=True)]
    row_below = [select(keeps, q, p) for p, q in zip(above, below, strict=True)]
    both = stretch(keeps, type_of(side).shape)
    first, second = select(both, side, next_side), select(both, next_side, side)
    factor = div(row_below[0], pivots[0])
    pivot, right = (sub(row_below[k], mul(factor, pivots[k])) for k in (1, 2))
    side = sub(second, scaled_rows(factor, first))
    return [pivot, right, side], [*pivots, first]


def _substitute(known: Sequence[Value], row: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    (one, two), (pivot, right, second, side) = known, row
    right_side = sub(sub(side, scaled_rows(right, one)), scaled_rows(second, two))
    solution = div(right_side, stretch(pivot, type_of(right_side).shape))
    return [solution, one], [solution]


# --- derivative -------------------------------------------------------------------------------


def _jvp(tangents: Sequence[Value], primals: Sequence[Value], x: Value) -> Value:
    diagonals = primals[:3]
    change = tangents[3]
    for offset, tangent in zip((-1, 0, 1), tangents, strict=False):
        if tangent is not None:
            from_diagonal = neg(scaled_rows(tangent, _shifted(x, offset, -2)))
            change = from_diagonal if change is None else add(change, from_diagonal)
    return tridiagonal_solve(*diagonals, change)


def _shifted(x: Value, offset: int, axis: int) -> Value:
    """Element i + offset as element i; zeros for elements outside."""
    ndim = type_of(x).ndim
    low = tuple(-offset if i == axis % ndim else 0 for i in range(ndim))
    high = tuple(-p for p in low)
    return pad(x, number(0, x), low=low, high=high, interior=(0,) * ndim)


def _transpose(ct: Value, linear: Batched, lower: Value, main: Value, upper: Value, b: Value) -> list[Array | None]:
    cotangent = tridiagonal_solve(_shifted(upper, -1, -1), main, _shifted(lower, 1, -1), ct)
    return [None, None, None, cotangent]


tridiagonal_solve: Primitive = Primitive(
    "tridiagonal_solve",
    "linalg",
    _type,
    _reference,
    jvp=Joint(_jvp),
    transpose=_transpose,
    linear_in=((3,),),
    solves=True,
    batch=batch_leading(lambda: tridiagonal_solve),
    lower=Library(lanes_of_matrices, lambda *types: False, columns=3),
    expand=_expand,
)
