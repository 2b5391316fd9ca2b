"""Jacobi's rotations of disjoint pairs of columns, all at once: what eigh and svd expand to.

A sweep is a round-robin tournament: in round r, column i is paired with column j if i + j = r
modulo the odd number of rounds. One column is left, which pairs with the last one if their number
is even. So every two columns meet once, the pairs of a round follow from its number, and all lanes
of a batch have the same pairs. A column knows its partner's number and rotates itself: what the two
compute of their rotation agrees bit by bit.

Source: Golub & Van Loan 4e, §8.5 (rotations, the parallel ordering); Brent & Luk 1985,
SIAM J. Sci. Stat. Comput. 6(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.core.values import Operand, Value
from rune.dims import Size
from rune.ops.arithmetic import (
    abs,
    add,
    cast,
    div,
    eq,
    gt,
    is_finite,
    logical_and,
    logical_not,
    logical_or,
    lt,
    mul,
    neg,
    rem,
    select,
    sub,
)
from rune.ops.creation import iota
from rune.ops.family import broadcast, reduce_sum, reshape, size_value, stretch
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather
from rune.ops.matrix_helpers import (
    as_dtype_of,
    columns,
    conjugate,
    nan_like,
    number,
    permuted_rows,
    real_part,
    rows,
    scaled_columns,
)
from rune.ops.memory import in_memory
from rune.ops.reduction import reduce_max
from rune.ops.transcendental import sqrt
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

SWEEPS = 24  # more than any matrix has needed: convergence is quadratic


# --- the tournament ---------------------------------------------------------------------------


def rounds(n: Size) -> Size:
    """The number of rounds in which each of n columns meets every other."""
    return n + n % 2 - 1 if n != 0 else 0


def partners(round: Value, n: Size) -> Array:
    """The partner of each of n columns; the column itself if it has none. i32[N]"""
    count = size_value(rounds(n), dtypes.i32)
    column = iota(shape=(n,), axis=0, dtype=dtypes.i32)
    last = size_value(n - 1, dtypes.i32)
    opposite = rem(sub(add(_spread(round, n), _spread(count, n)), column), _spread(count, n))
    # A column without a partner, i + i = round, is round times the inverse of two; so is the last's
    # partner.
    middle = rem(mul(round, size_value((n + n % 2) // 2, dtypes.i32)), count)
    partner = select(eq(column, opposite), last, opposite)
    is_last = eq(column, _spread(count, n))  # if their number is even
    partner = select(is_last, middle, partner)
    odd = n % 2
    if odd == 0:
        return partner
    rests = logical_and(eq(column, middle), eq(size_value(odd, dtypes.i32), np.int32(1)))
    return select(rests, column, partner)


def _spread(x: Operand, n: Size) -> Array:
    return broadcast(x, shape=(n,), axes=())


def elements_in_order(a: Value, axis: int, order: Value) -> Array:
    """The elements along one axis at positions that all lanes share. i32[N]"""
    shape = type_of(a).shape
    axis %= len(shape)
    others = tuple(i for i in range(len(shape)) if i != axis)
    dims = IndexDims(others, (axis,), (axis,))
    sizes = tuple(1 if i == axis else d for i, d in enumerate(shape))
    indices = reshape(order, shape=(*type_of(order).shape, 1))
    return gather(a, indices, number(0, a), dims=dims, slice_sizes=sizes, mode="promise_in_bounds")


# --- a round ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """The rotation of every column x with its partner y: x becomes x - (d x + s y).

    The inner products of a column with itself change by `e`. Only differences are stored, so that
    a value that a small rotation does not change is not rounded.
    """

    partner: Value  # i32[N]
    d: Value  # 1 - cos, real [*B, N]
    s: Value  # sin, times the phase of the product with the partner [*B, N]
    e: Value  # real [*B, N]


def rotations(squares: Value, product: Value, partner: Value) -> Turn:
    """The rotations by which the products of partners vanish; of two angles, the small one.

    squares:  the product of each column with itself, real [*B, N]
    product:  the product of each column, conjugated, with its partner [*B, N]
    """
    # Stored here and below, since every element of a column would compute its rotation again.
    squares, product = in_memory(squares), in_memory(product)
    shape = type_of(squares).shape
    place = iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)
    partner_column = broadcast(partner, shape=shape, axes=(len(shape) - 1,))
    length = abs(product)
    nothing = logical_or(eq(length, number(0, length)), eq(place, partner_column))
    safe, one = select(nothing, number(1, length), length), number(1, length)
    tau = div(sub(elements_in_order(squares, -1, partner), squares), mul(number(2, length), safe))
    size = abs(tau)
    t = div(one, add(size, sqrt(add(mul(tau, tau), one))))
    # In a pair with equal products one takes the positive angle and the other the negative one.
    zero = number(0, tau)
    up = logical_or(gt(tau, zero), logical_and(eq(tau, zero), lt(place, partner_column)))
    t = select(nothing, zero, select(up, t, neg(t)))
    c = div(one, sqrt(add(mul(t, t), one)))
    sine = mul(t, c)
    direction = conjugate(div(product, as_dtype_of(safe, product)))
    d = div(mul(sine, sine), add(one, c))
    sine = mul(as_dtype_of(sine, product), direction)
    return Turn(partner, in_memory(d), in_memory(sine), in_memory(mul(t, safe)))


def turned(a: Value, turn: Turn) -> Array:
    """Every column rotated with its partner. Shapes: [*B, M, N] -> [*B, M, N]."""
    cosine_part = scaled_columns(a, as_dtype_of(turn.d, a))
    sine_part = scaled_columns(elements_in_order(a, -1, turn.partner), turn.s)
    return sub(a, add(cosine_part, sine_part))


def is_pair(partner: Value, shape: Shape) -> Array:
    """Where a matrix has the product of a column with its partner."""
    partner_rows = broadcast(partner, shape=shape, axes=(len(shape) - 1,))
    return eq(rows(shape), partner_rows)


# --- scale and order --------------------------------------------------------------------------


def unit_scale(a: Value) -> Array:
    """The largest |element| of every matrix; 1 for zeros, NaN if any is not finite. [*B]"""
    n = type_of(a).ndim
    lengths = abs(a)
    if any(isinstance(d, int) and d == 0 for d in type_of(a).shape[-2:]):
        return add(reduce_sum(lengths, axes=(n - 2, n - 1)), number(1, lengths))
    greatest = reduce_max(lengths, axes=(n - 2, n - 1))
    greatest = select(is_finite(greatest), greatest, nan_like(greatest))
    return select(eq(greatest, number(0, greatest)), number(1, greatest), greatest)


def ascending(w: Value) -> Array:
    """The positions of the elements in ascending order, ties in their present order; i32[*B, N].

    Every element is compared with every other: n² steps, in algorithms that take n³. NaN is
    equal to all, so a lane must hold numbers only, or NaN only.
    """
    *lead, n = type_of(w).shape
    shape = (*lead, n, n)
    value = stretch(w, shape)
    other = broadcast(w, shape=shape, axes=(*range(len(lead)), len(lead) + 1))
    row, column = rows(shape), columns(shape)
    tie = logical_and(logical_not(lt(value, other)), lt(column, row))
    rank = reduce_sum(cast(logical_or(lt(other, value), tie), dtypes.i32), axes=(len(lead) + 1,))
    seat = broadcast(rank, shape=shape, axes=(*range(len(lead)), len(lead) + 1))
    return reduce_sum(select(eq(seat, row), column, np.int32(0)), axes=(len(lead) + 1,))


def in_order(w: Value, order: Value) -> Array:
    """The elements at these positions. Shapes: [*B, N], i32[*B, N] -> [*B, N]."""
    shape = type_of(w).shape
    column = permuted_rows(stretch(w, (*shape, 1)), order)
    return reduce_sum(column, axes=(len(shape),))


# --- lengths ----------------------------------------------------------------------------------


def squared_column_lengths(a: Value) -> Array:
    """Shapes: [*B, M, N] -> [*B, N]; real."""
    return reduce_sum(real_part(mul(conjugate(a), a)), axes=(type_of(a).ndim - 2,))


def column_lengths(a: Value) -> Array:
    """Shapes: [*B, M, N] -> [*B, N]; real."""
    return sqrt(squared_column_lengths(a))
