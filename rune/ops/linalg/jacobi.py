"""Jacobi's rotations of disjoint pairs of columns, all at once: what eigh and svd are made of.

The columns of a matrix of even size are two rows of players of a tournament, the first half against
the second. A step turns every pair; then all but the first player move on by one seat, so that
after n - 1 steps every two have met, and sit where they sat. No step depends on the matrix, and
every lane of a batch takes the same ones.

Source: Golub & Van Loan 4e, §8.5 (rotations, the parallel ordering); Brent & Luk 1985,
        SIAM J. Sci. Stat. Comput. 6(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.dims import Size
from rune.ops.arithmetic import (
    abs,
    add,
    cast,
    div,
    eq,
    ge,
    is_finite,
    logical_and,
    logical_not,
    logical_or,
    lt,
    mul,
    select,
    sub,
)
from rune.ops.family import broadcast, reduce_sum, size_value
from rune.ops.matrix_helpers import (
    as_dtype_of,
    columns,
    conjugate,
    nan_like,
    number,
    part,
    permuted_rows,
    real_part,
    rows,
    scaled_columns,
)
from rune.ops.movement import concatenate
from rune.ops.reduction import reduce_max
from rune.ops.transcendental import sqrt

SWEEPS = 24  # more than any matrix was seen to need: convergence is quadratic


def even_size(n: Size) -> Size:
    """The number of players for n columns: even, and where n is symbolic at least 4."""
    return max(n + n % 2, 2) if isinstance(n, int) else n // 2 * 2 + 4


# --- a step -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """Rotations [[1 - d, s], [-s*, 1 - d]] that make [[p, x], [x*, q]] diagonal: p - e and q + e.

    What a small rotation leaves as it is gets no rounding, since only differences are kept.
    """

    d: Any  # 1 - cos, real
    s: Any  # sin times the direction of x
    e: Any  # what goes from p to q, real


def rotations(p: Any, q: Any, x: Any) -> Turn:
    """The small angles. Types: p, q real and x real or complex, of one shape [*B, N/2]."""
    length = abs(x)
    nothing = eq(length, number(0, length))
    safe = select(nothing, number(1, length), length)
    one = number(1, safe)
    tau = div(sub(q, p), mul(number(2, safe), safe))
    root = sqrt(add(mul(tau, tau), one))
    t = select(ge(tau, number(0, tau)), div(one, add(tau, root)), div(one, sub(tau, root)))
    c = div(one, sqrt(add(mul(t, t), one)))
    sine = select(nothing, number(0, t), mul(t, c))
    lost = div(mul(sine, sine), add(one, c))
    direction = div(x, as_dtype_of(safe, x))
    return Turn(lost, mul(as_dtype_of(sine, x), direction), mul(t, length))


def halves(a: Any) -> tuple[Any, Any]:
    """The first and the second half of the columns."""
    n = type_of(a).shape[-1]
    return part(a, -1, 0, n // 2), part(a, -1, n // 2, n)


def turned(a: Any, turn: Turn) -> Any:
    """Every pair of columns turned by its rotation. Shapes: [*B, M, N] -> [*B, M, N]."""
    left, right = halves(a)
    d = as_dtype_of(turn.d, a)
    from_left = add(scaled_columns(left, d), scaled_columns(right, conjugate(turn.s)))
    to_right = sub(scaled_columns(left, turn.s), scaled_columns(right, d))
    return concatenate(sub(left, from_left), add(right, to_right), axis=type_of(a).ndim - 1)


def moved_on(a: Any) -> Any:
    """All columns but the first on the next seat: down the second row, back along the first."""
    n, axis = type_of(a).shape[-1], type_of(a).ndim - 1
    half = n // 2
    if half == 1:
        return a
    left, right = halves(a)
    first = concatenate(
        part(left, -1, 0, 1), part(right, -1, 0, 1), part(left, -1, 1, half - 1), axis=axis
    )
    second = concatenate(part(right, -1, 1, half), part(left, -1, half - 1, half), axis=axis)
    return concatenate(first, second, axis=axis)


def is_pair(shape: Shape) -> Any:
    """Where a matrix has the products of the two columns of a pair."""
    row, column = rows(shape), columns(shape)
    half = number_of(shape[-1] // 2)
    return logical_or(eq(add(row, half), column), eq(add(column, half), row))


def number_of(size: Size) -> Any:
    """A size as an i32 value."""
    return size_value(size, dtypes.i32)


# --- scale and order --------------------------------------------------------------------------


def unit_scale(a: Any) -> Any:
    """The greatest |element| of every matrix, 1 of zeros, NaN where it is not finite. [*B]"""
    n = type_of(a).ndim
    if any(isinstance(d, int) and d == 0 for d in type_of(a).shape[-2:]):
        lengths = abs(a)
        return add(reduce_sum(lengths, axes=(n - 2, n - 1)), number(1, lengths))
    found = reduce_max(abs(a), axes=(n - 2, n - 1))
    found = select(is_finite(found), found, nan_like(found))
    return select(eq(found, number(0, found)), number(1, found), found)


def over_matrices(x: Any, shape: Shape) -> Any:
    """A number for each matrix at every place of it. Shapes: [*B] -> [*B, M, N]."""
    return broadcast(x, shape=shape, axes=tuple(range(len(shape) - 2)))


def ascending(w: Any) -> Any:
    """The positions of the elements in ascending order, equal ones as they stand; i32[*B, N].

    Every element is compared with every other: n² steps, of algorithms that take n³. NaN is
    equal to all, so lanes must be of numbers alone or of NaN alone.
    """
    *lead, n = type_of(w).shape
    shape = (*lead, n, n)
    own = broadcast(w, shape=shape, axes=tuple(range(len(shape) - 1)))
    other = broadcast(w, shape=shape, axes=(*range(len(lead)), len(lead) + 1))
    row, column = rows(shape), columns(shape)
    tie = logical_and(logical_not(lt(own, other)), lt(column, row))
    rank = reduce_sum(cast(logical_or(lt(other, own), tie), dtypes.i32), axes=(len(lead) + 1,))
    seat = broadcast(rank, shape=shape, axes=(*range(len(lead)), len(lead) + 1))
    return reduce_sum(select(eq(seat, row), column, np.int32(0)), axes=(len(lead) + 1,))


def in_order(w: Any, order: Any) -> Any:
    """The elements at these positions. Shapes: [*B, N], i32[*B, N] -> [*B, N]."""
    shape = type_of(w).shape
    made = permuted_rows(broadcast(w, shape=(*shape, 1), axes=tuple(range(len(shape)))), order)
    return reduce_sum(made, axes=(len(shape),))


# --- lengths ----------------------------------------------------------------------------------


def squared_column_lengths(a: Any) -> Any:
    """Shapes: [*B, M, N] -> [*B, N]; real."""
    return reduce_sum(real_part(mul(conjugate(a), a)), axes=(type_of(a).ndim - 2,))


def column_lengths(a: Any) -> Any:
    """Shapes: [*B, M, N] -> [*B, N]; real."""
    return sqrt(squared_column_lengths(a))
