"""tridiagonal_solve: X with A X = B, A given by its three diagonals; linear in B.

Row i of A X is lower[i] x[i-1] + main[i] x[i] + upper[i] x[i+1]; lower[0] and upper[N-1] are not
read. Elimination with partial pivoting between neighbouring rows, row after row: O(N) work, all
lanes and right-hand sides together. A singular matrix gives infinities and NaN.

The expansion serves the CPU as well: NumPy has no such routine, and a compiled loop takes a row in
a fraction of the time of a NumPy call. Eager evaluation runs the same steps in NumPy.
Source: Golub & Van Loan 4e, §4.3.6, with pivoting as LAPACK's gtsv; derivative: Giles 2008, §2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType
from rune.errors import ShapeError
from rune.ops.arithmetic import add, div, le, mul, neg, select, sub
from rune.ops.family import Batched, broadcast, same_dtype, size_value, types_text
from rune.ops.linalg.lu_expand import size
from rune.ops.linalg.lu_numpy import size as size_in_numpy
from rune.ops.matrix_helpers import (
    batch_leading,
    number,
    put,
    require_matrices,
    steps,
    window,
    zeros,
)
from rune.ops.movement import pad


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


def _reference(
    lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray
) -> np.ndarray:
    n = main.shape[-1]
    if n == 0:
        return b
    # The rows come first: a step works on one row of all lanes.
    lower, main, upper = (np.moveaxis(x, -1, 0)[..., None] for x in (lower, main, upper))
    sides = np.moveaxis(b, -2, 0)
    pivots, first = np.empty((n, 3, *main.shape[1:]), b.dtype), np.empty_like(sides)
    here, right, side = main[0], upper[0], sides[0]
    for i in range(n - 1):
        keeps = size_in_numpy(lower[i + 1]) <= size_in_numpy(here)
        above = (here, right, np.zeros_like(here))
        below = (lower[i + 1], main[i + 1], upper[i + 1])
        pivots[i] = [np.where(keeps, p, q) for p, q in zip(above, below, strict=True)]
        rest = [np.where(keeps, q, p) for p, q in zip(above, below, strict=True)]
        first[i] = np.where(keeps, side, sides[i + 1])
        factor = rest[0] / pivots[i, 0]
        here, right = rest[1] - factor * pivots[i, 1], rest[2] - factor * pivots[i, 2]
        side = np.where(keeps, sides[i + 1], side) - factor * first[i]
    out = np.empty_like(first)
    out[n - 1] = side / here
    for i in reversed(range(n - 1)):
        after = pivots[i, 2] * out[i + 2] if i + 2 < n else 0
        out[i] = (first[i] - pivots[i, 1] * out[i + 1] - after) / pivots[i, 0]
    return np.moveaxis(out, 0, -2)


# --- expansion --------------------------------------------------------------------------------


def _expand(lower: Any, main: Any, upper: Any, b: Any) -> Any:
    """As the reference: a row that is pending, and the next one."""
    n = type_of(main).shape[-1]
    if n == 0:
        return b

    def eliminate(i: Any, here: Any, right: Any, side: Any, *done: Any) -> list[Any]:
        after = add(i, np.int32(1))
        below = [window(x, -1, after, 1) for x in (lower, main, upper)]
        keeps = le(size(below[0]), size(here))
        above = [here, right, zeros(here)]
        pivots = [select(keeps, p, q) for p, q in zip(above, below, strict=True)]
        rest = [select(keeps, q, p) for p, q in zip(above, below, strict=True)]
        next_side, both = window(b, -2, after, 1), _beside(keeps, side)
        first = select(both, side, next_side)
        factor = div(rest[0], pivots[0])
        here, right = (sub(rest[k], mul(factor, pivots[k])) for k in (1, 2))
        side = sub(select(both, next_side, side), mul(_beside(factor, side), first))
        kept = [put(x, -1, i, p) for x, p in zip(done[:3], pivots, strict=True)]
        return [here, right, side, *kept, put(done[3], -2, i, first)]

    start = np.int32(0)
    carry = [window(main, -1, start, 1), window(upper, -1, start, 1), window(b, -2, start, 1)]
    here, _, side, *done = steps(n - 1, eliminate, *carry, *(zeros(main),) * 3, zeros(b))
    last = div(side, _beside(here, side))
    return _substituted(done, last, n)


def _substituted(done: Sequence[Any], last: Any, n: Any) -> Any:
    """From the last row to the first."""
    final = n - 2

    def substitute(k: Any, one: Any, two: Any, out: Any) -> list[Any]:
        i = sub(size_value(final, np.dtype(np.int32)), k)
        pivots = [_beside(window(x, -1, i, 1), one) for x in done[:3]]
        rest = sub(window(done[3], -2, i, 1), mul(pivots[1], one))
        found = div(sub(rest, mul(pivots[2], two)), pivots[0])
        return [found, one, put(out, -2, i, found)]

    at_end = put(zeros(done[3]), -2, size_value(n - 1, np.dtype(np.int32)), last)
    _, _, out = steps(n - 1, substitute, last, zeros(last), at_end)
    return out


def _beside(x: Any, side: Any) -> Any:
    """A number of each lane beside its row of right-hand sides. [*B, 1] -> [*B, 1, K]."""
    shape = type_of(side).shape
    return broadcast(x, shape=shape, axes=tuple(range(len(shape) - 1)))


# --- derivative -------------------------------------------------------------------------------


def _jvp(tangents: Sequence[Any], primals: Sequence[Any], x: Any) -> Any:
    diagonals = primals[:3]
    change = tangents[3]
    for offset, tangent in zip((-1, 0, 1), tangents, strict=False):
        if tangent is not None:
            moved = neg(mul(_columns(tangent, x), _shifted(x, offset, -2)))
            change = moved if change is None else add(change, moved)
    return tridiagonal_solve(*diagonals, change)


def _columns(diagonal: Any, x: Any) -> Any:
    shape = type_of(x).shape
    return broadcast(diagonal, shape=shape, axes=tuple(range(len(shape) - 1)))


def _shifted(x: Any, offset: int, axis: int) -> Any:
    """Element i + offset as element i; zeros from outside."""
    ndim = type_of(x).ndim
    low = tuple(-offset if i == axis % ndim else 0 for i in range(ndim))
    high = tuple(-p for p in low)
    return pad(x, number(0, x), low=low, high=high, interior=(0,) * ndim)


def _transpose(
    ct: Any, linear: Batched, lower: Any, main: Any, upper: Any, b: Any
) -> list[Any]:
    found = tridiagonal_solve(_shifted(upper, -1, -1), main, _shifted(lower, 1, -1), ct)
    return [None, None, None, found]


tridiagonal_solve: Primitive = Primitive(
    "tridiagonal_solve", "linalg", _type, _reference,
    jvp=Joint(_jvp),
    transpose=_transpose,
    batch=batch_leading(lambda: tridiagonal_solve),
    lower=Library(lambda *types: False), expand=_expand,
)  # fmt: skip
