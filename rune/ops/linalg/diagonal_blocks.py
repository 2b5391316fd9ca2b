"""Triangular systems solved block by block, by products with inverses of the diagonal blocks.

A product also multiplies the zeros of the inverse, and zero times NaN is NaN: one such number would
spoil earlier rows, which substitution does not. So each column of right-hand sides is cut off at
its first number that is not finite; after the products, that row gets its quotient, and all later
rows, which depend on it, get NaN.
Rows whose diagonal has a reciprocal out of range are scaled by a power of two.
Source: Du Croz & Higham 1992, IMA J. Numer. Anal. 12(1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import abs as absolute
from rune.ops.arithmetic import add, eq, gt, lt, mul, rem, select, sub
from rune.ops.complex_numbers import complex, imag, real
from rune.ops.creation import iota
from rune.ops.family import reduce_sum, reshape, stretch
from rune.ops.matrix_helpers import (
    columns,
    corner,
    diagonal,
    first_not_finite,
    grown,
    grown_by_identity,
    keep,
    matmul,
    nan_like,
    next_multiple,
    put,
    rows,
    scaled_rows,
    steps,
    window,
    zeros,
)
from rune.ops.movement import part

if TYPE_CHECKING:
    from rune.array import Array

Invert = Callable[[Value], Value]


def in_blocks(a: Value, b: Value, block: int, invert: Invert, unit: bool) -> Value:
    """X with A X = B, for lower triangles A. Shapes: [*B, N, N], [*B, N, K] -> [*B, N, K].

    invert: a function of diagonal blocks [..., block, block]
    unit: whether the diagonal is taken as ones, and not read
    """
    first = first_not_finite(b)
    if not unit:
        a, b = _within_range(a, b)
    row = rows(type_of(b).shape)
    first = stretch(first, type_of(b).shape)
    solution, reciprocals = _finite_solution(a, keep(lt(row, first), b), block, invert)
    quotients = add(solution, scaled_rows(reciprocals, b))
    return select(lt(row, first), solution, select(eq(row, first), quotients, nan_like(b)))


def _finite_solution(a: Value, b: Value, block: int, invert: Invert) -> tuple[Value, Value]:
    """The solution for finite right-hand sides, and the reciprocals of the diagonal."""
    n, count = type_of(a).shape[-1], type_of(b).shape[-1]
    size = next_multiple(n, block)
    matrix, sides = grown_by_identity(a, size), grown(b, size, count)
    below, inverses = _below_blocks(matrix, block), _diagonal_inverses(matrix, block, invert)

    def step(k: Value, out: Value) -> list[Value]:
        start = mul(k, np.int32(block))
        right_side = sub(window(sides, -2, start, block), matmul(window(below, -2, start, block), out))
        return [put(out, -2, start, matmul(window(inverses, -2, start, block), right_side))]

    (out,) = steps(size // block, step, zeros(sides))
    return corner(out, n, count), _diagonal_of_blocks(inverses, n)


def _below_blocks(a: Value, block: int) -> Value:
    """The entries to the left of the diagonal blocks; zeros elsewhere."""
    row, column = rows(type_of(a).shape), columns(type_of(a).shape)
    return keep(lt(column, sub(row, rem(row, np.int32(block)))), a)


def _diagonal_inverses(a: Value, block: int, invert: Invert) -> Value:
    """Inverses of the diagonal blocks. Shapes: [*B, N, N] -> [*B, N, block]."""
    *lead, n, _ = type_of(a).shape
    count, first = n // block, len(lead)
    grid = reshape(a, shape=(*lead, count, block, count, block))
    numbers = [iota(shape=type_of(grid).shape, axis=first + i, dtype=dtypes.i32) for i in (0, 2)]
    blocks = reduce_sum(keep(eq(*numbers), grid), axes=(first + 2,))
    return reshape(invert(blocks), shape=(*lead, n, block))


def _diagonal_of_blocks(inverses: Value, n: Size) -> Array:
    """The diagonal of the matrix that these blocks form. Shapes: [*B, size, block] -> [*B, n]."""
    shape = type_of(inverses).shape
    on = eq(columns(shape), rem(rows(shape), np.int32(shape[-1])))
    return part(reduce_sum(keep(on, inverses), axes=(len(shape) - 1,)), -1, 0, n)


def _within_range(a: Value, b: Value) -> tuple[Value, Value]:
    """Both, with rows scaled by a power of two where the diagonal has no normal reciprocal."""
    on = diagonal(a)
    size = absolute(on)
    if type_of(on).dtype in dtypes.COMPLEX:
        size = add(absolute(real(on)), absolute(imag(on)))
    limits = np.finfo(type_of(size).dtype)
    one, up = (np.asarray(x, limits.dtype) for x in (1, 2 / limits.eps))
    factor = select(gt(size, np.asarray(0.5 / limits.tiny, limits.dtype)), one / up, one)
    factor = select(lt(size, limits.tiny), up, factor)
    return _scaled(factor, a), _scaled(factor, b)


def _scaled(factor: Value, x: Value) -> Value:
    """Rows times real numbers; a product of complex numbers would turn infinities into NaN."""
    if type_of(x).dtype not in dtypes.COMPLEX:
        return scaled_rows(factor, x)
    return complex(scaled_rows(factor, real(x)), scaled_rows(factor, imag(x)))
