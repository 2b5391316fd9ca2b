"""Householder reflections in rune's own primitives: a factorisation by blocks, and their product.

Reflection k is H = I - tau v vᴴ with v zero above row k and one in it. A block of them is
H₁ … H_b = I - V T Vᴴ with T upper triangular (the compact WY form), so that all other columns are
updated by matrix products. Signs are LAPACK's: R's diagonal is real, and has the sign opposite to
that of the element it replaces; a column that is zero already has tau 0.

Source: Golub & Van Loan 4e, §5.2; Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import abs, add, div, eq, ge, gt, le, logical_and, lt, max, min, mul, neg, select, sub
from rune.ops.complex_numbers import imag
from rune.ops.family import reduce_sum, reshape, size_value, stretch
from rune.ops.linalg.dense import dense, is_dense
from rune.ops.linalg.small import is_small
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    columns,
    conjugate,
    corner,
    eye,
    first_not_finite,
    full,
    grown,
    is_static,
    keep,
    matmul,
    nan_like,
    next_multiple,
    number,
    put,
    real_part,
    rows,
    steps,
    window,
    zeros,
)
from rune.ops.memory import in_memory
from rune.ops.movement import part
from rune.ops.reduction import reduce_max
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array

BLOCK = 16  # reflections applied together


def block_size(count: Size) -> Size:
    """The number of reflections in a block: all, if they are few or their number is symbolic."""
    return BLOCK if is_static((count,)) and count > BLOCK else count


# --- factorisation ----------------------------------------------------------------------------


def factorise(a: Value, count: Size) -> list[Array]:
    """R with the vectors below it, and the factors tau of `count` reflections.

    Shapes: a [*B, M, N] -> [*B, M, N], [*B, count].
    """
    return dense_geqrf(a, count=count, parts=1)


def _factorise_by_loops(a: Value, *, count: Size) -> list[Array]:
    *lead, m, n = type_of(a).shape
    block = block_size(count)
    if block == count:
        reflectors, taus = _panel(a, np.int32(0), count)
        return [reflectors, reshape(taus, shape=(*lead, count))]
    reach = next_multiple(count, block)
    wide = grown(a, m, n if n > reach else reach)

    def step(k: Value, work: Value, taus: Value) -> list[Value]:
        start = mul(k, np.int32(block))
        reflectors, panel_taus = _panel(window(work, -1, start, block), start, block)
        matrix = _applied_on_the_right(work, reflectors, panel_taus, start, block)
        return [put(matrix, -1, start, reflectors), put(taus, -2, start, panel_taus)]

    first = full(number(0, a), (*lead, reach, 1))
    reflectors, taus = steps(reach // block, step, wide, first)
    return [corner(reflectors, m, n), reshape(part(taus, -2, 0, count), shape=(*lead, count))]


def _factors_type(a: ArrayType, *, count: Size) -> tuple[ArrayType, ArrayType]:
    return a.strong(), ArrayType((*a.shape[:-2], count), a.dtype)


def is_factored_by_routine(a: ArrayType, **_: object) -> bool:
    """Whether a routine of the device factorises the matrices; tiny ones are faster by loops."""
    return is_dense("geqrf", a) and not is_small(a)


dense_geqrf = dense(
    "dense_geqrf", "geqrf", _factors_type, _factorise_by_loops, None, is_factored_by_routine, multiple_results=True
)


def _applied_on_the_right(work: Value, reflectors: Value, taus: Value, start: Value, block: Size) -> Value:
    """The block's Qᴴ applied to the columns after it.

    A reflection that is not finite makes NaN of its own row and those below. It is left out of the
    products, where 0 times NaN would reach the rows above it as well.
    """
    shape = type_of(work).shape
    first = first_not_finite(taus)
    taus = keep(lt(rows(type_of(taus).shape), stretch(first, type_of(taus).shape)), taus)
    v = unit_vectors(_before(first, reflectors), start)
    inner = matmul(adjoint(triangular_factor(v, taus)), matmul(adjoint(v), work))
    row, size = rows(shape), size_value(block, dtypes.i32)
    is_nan = logical_and(stretch(lt(first, size), shape), ge(row, stretch(add(first, start), shape)))
    reflected = select(is_nan, nan_like(work), sub(work, matmul(v, inner)))
    is_right = logical_and(ge(columns(shape), add(start, size)), ge(row, start))
    return select(is_right, reflected, work)


def _panel(a: Value, start: Value, count: Size) -> list[Array]:
    """The first `count` columns reflected, from row `start` on. taus are [*B, count, 1]."""
    shape = type_of(a).shape
    row, column = rows(shape), columns(shape)

    def step(k: Value, work: Value, taus: Value) -> list[Array]:
        pivot = add(start, k)
        v, tau, reflectors = reflection(window(work, -1, k, 1), pivot)
        inner = matmul(adjoint(v), work)
        coefficients = mul(stretch(conjugate(tau), type_of(inner).shape), inner)
        change = mul(stretch(v, shape), stretch(coefficients, shape))
        # Rows above the pivot are left alone: 0 times a reflection that is not finite is NaN.
        is_reflected = logical_and(gt(column, k), ge(row, pivot))
        work = select(is_reflected, sub(work, change), work)
        return [put(work, -1, k, reflectors), put(taus, -2, k, tau)]

    return steps(count, step, a, full(number(0, a), (*shape[:-2], count, 1)))


def reflection(x: Value, start: Value) -> tuple[Array, Array, Array]:
    """v with v = 1 in row `start`, tau, and the column as it is stored.

    Shapes: x [*B, M, 1] -> [*B, M, 1], [*B, 1, 1], [*B, M, 1].
    """
    shape = type_of(x).shape
    row, last = rows(shape), len(shape) - 2
    # Scaled by the largest, so that squares neither overflow nor underflow; its inverse is normal.
    greatest = reduce_max(keep(ge(row, start), abs(x)), axes=(last,))
    least = float(np.finfo(type_of(greatest).dtype).tiny)
    is_finite = le(greatest, number(float(np.finfo(type_of(greatest).dtype).max), greatest))
    greatest = max(min(greatest, number(1 / least, greatest)), number(least, greatest))
    # Elements beside an infinity must not vanish, or the column would count as reflected.
    greatest = select(is_finite, greatest, number(least, greatest))
    greatest = reshape(greatest, shape=(*shape[:last], 1, 1))
    inverse = as_dtype_of(in_memory(div(number(1, greatest), greatest)), x)
    greatest, unit = as_dtype_of(greatest, x), mul(x, stretch(inverse, shape))
    head, tail = _summed(keep(eq(row, start), unit), last), keep(gt(row, start), unit)
    # Stored, since every element of the column would compute them again.
    scalars = _scalars(head, _summed(_squares(tail), last))
    tau, beta, scale = (in_memory(x) for x in scalars)
    below = mul(tail, stretch(scale, shape))
    v = select(eq(row, start), number(1, x), below)
    beta = stretch(mul(beta, greatest), shape)
    return v, tau, select(gt(row, start), below, select(eq(row, start), beta, x))


def _summed(x: Value, axis: int) -> Array:
    shape = type_of(x).shape
    return reshape(reduce_sum(x, axes=(axis,)), shape=(*shape[:axis], 1, *shape[axis + 1 :]))


def _squares(x: Value) -> Array:
    if type_of(x).dtype not in dtypes.COMPLEX:
        return mul(x, x)
    re, im = real_part(x), imag(x)
    return add(mul(re, re), mul(im, im))


def _scalars(head: Value, tail_square: Value) -> tuple[Array, Array, Array]:
    """tau, the new head, and the factor of the tail, whose squared length is given."""
    re = real_part(head)
    is_done = eq(tail_square, number(0, tail_square))
    length = add(_squares(head), tail_square)
    if type_of(head).dtype in dtypes.COMPLEX:
        is_done = select(is_done, eq(imag(head), number(0, re)), is_done)
    norm = sqrt(length)
    beta = select(lt(re, number(0, re)), norm, neg(norm))
    safe = select(is_done, number(1, beta), beta)
    full_beta = as_dtype_of(safe, head)
    tau = div(sub(full_beta, head), full_beta)
    gap = select(is_done, number(1, head), sub(head, full_beta))
    zero = number(0, head)
    return (
        select(is_done, zero, tau),
        select(is_done, head, as_dtype_of(beta, head)),
        select(is_done, zero, div(number(1, head), gap)),
    )


# --- blocks of reflections --------------------------------------------------------------------


def unit_vectors(reflectors: Value, start: Value) -> Array:
    """The vectors of reflections start, start + 1, …: zeros above, and ones in their own rows."""
    shape = type_of(reflectors).shape
    row, diagonal_row = rows(shape), add(columns(shape), start)
    return select(eq(row, diagonal_row), number(1, reflectors), keep(gt(row, diagonal_row), reflectors))


def triangular_factor(v: Value, taus: Value) -> Array:
    """T of I - V T Vᴴ. Shapes: [*B, M, K], [*B, K, 1] -> [*B, K, K]."""
    gram = matmul(adjoint(v), v)
    shape = type_of(gram).shape
    row = rows((*shape[:-1], 1))

    def step(k: Value, t: Value) -> list[Array]:
        tau = stretch(window(taus, -2, k, 1), (*shape[:-1], 1))
        before = keep(lt(row, k), window(gram, -1, k, 1))
        column = neg(mul(tau, matmul(t, before)))
        return [put(t, -1, k, select(eq(row, k), tau, column))]

    (factor,) = steps(shape[-1], step, zeros(gram))
    return factor


def product(reflectors: Value, taus: Value, width: Size) -> Array:
    """The first `width` columns of H₁ H₂ …, from the last block to the first.

    Column k is reflected by H₁ … H_k alone. So a reflection that is not finite is left out of the
    products of blocks, where its zeros would spoil all columns; the columns from its own on are
    NaN.

    Shapes: reflectors [*B, M, K], taus [*B, K] -> [*B, M, width].
    """
    *lead, count = type_of(taus).shape
    if count == 0:
        return dense_product(reflectors, taus, width=width, parts=1)
    first = first_not_finite(reshape(taus, shape=(*lead, count, 1)))
    finite = [_before(first, x) for x in (reflectors, reshape(taus, shape=(*lead, 1, count)))]
    q = dense_product(finite[0], reshape(finite[1], shape=(*lead, count)), width=width, parts=1)
    shape = type_of(q).shape
    is_bad = lt(first, size_value(count, dtypes.i32))
    is_spoilt = logical_and(stretch(is_bad, shape), ge(columns(shape), stretch(first, shape)))
    return select(is_spoilt, nan_like(q), q)


def _before(first: Value, x: Value) -> Array:
    """The columns of x before column `first`, and zeros."""
    shape = type_of(x).shape
    return keep(lt(columns(shape), stretch(first, shape)), x)


def _product_by_loops(reflectors: Value, taus: Value, *, width: Size) -> Array:
    *lead, m, count = type_of(reflectors).shape
    start = eye((*lead, m, width), type_of(reflectors).dtype)
    taus = reshape(taus, shape=(*lead, count, 1))
    block = block_size(count)
    if block == count:
        v = unit_vectors(reflectors, np.int32(0))
        return _reflected(start, v, triangular_factor(v, taus))
    reach = next_multiple(count, block)
    reflectors, taus = grown(reflectors, m, reach), grown(taus, reach, 1)

    def step(i: Value, q: Value) -> list[Value]:
        first = mul(sub(np.int32(reach // block - 1), i), np.int32(block))
        v = unit_vectors(window(reflectors, -1, first, block), first)
        return [_reflected(q, v, triangular_factor(v, window(taus, -2, first, block)))]

    (product,) = steps(reach // block, step, start)
    return product


def _is_product_routine(reflectors: ArrayType, taus: ArrayType, *, width: Size) -> bool:
    is_static = isinstance(width, int) and width > 0
    return (
        is_static
        and is_dense("reflections_product", reflectors)
        and not is_small(reflectors)
        and reflectors.shape[-1] == taus.shape[-1]
    )


dense_product = dense(
    "dense_product",
    "reflections_product",
    lambda reflectors, taus, *, width: ArrayType((*reflectors.shape[:-1], width), reflectors.dtype),
    _product_by_loops,
    lambda reflectors, taus, width: {"sides": width},
    _is_product_routine,
)


def _reflected(x: Value, v: Value, t: Value) -> Array:
    return sub(x, matmul(v, matmul(t, matmul(adjoint(v), x))))
