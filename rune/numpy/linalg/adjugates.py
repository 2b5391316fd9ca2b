"""The determinant of matrices of a LAPACK dtype, and the adjugate, which gives its derivative.

det' = tr(adj(A) A'), and adj(A) exists for singular matrices too: it is computed without division.
Its own derivative is tr(adj(A) A') A⁻¹ - A⁻¹ A' adj(A), and where that would divide by zero it is
computed in the bases of the singular vectors, with products of singular values only:

    A = U S V*:   adj(A)' = det(U V*) V D U*,   E = U* A' V,
    D_ij = -E_ij p_ij,   D_ii = sum_j E_jj p_ij,   p_ij = the product of all s but i and j

A third derivative at a singular matrix needs that of the singular values, which exists only where
they are distinct.
Source: Jacobi's formula, Giles 2008, §2.2.4; D is the derivative of the adjugate at a diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.control import cond, fori_loop
from rune.core.interpreter import type_of
from rune.numpy.arguments import rank
from rune.numpy.linalg.solves import inv
from rune.ops import conventions as c
from rune.ops.family import stretch
from rune.ops.linalg.direct import det, sign_of
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    columns,
    diagonal,
    eye,
    from_diagonal,
    full,
    matmul,
    number,
    permuted_rows,
    rows,
    swapped,
    upper_triangle,
)
from rune.ops.movement import part
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike


@custom_jvp
def determinant(a: ArrayLike) -> Array:
    """The determinant, with a derivative that holds everywhere. [*B, N, N] -> [*B]."""
    return det(a)


def _determinant_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (a,), (da,) = primals, tangents
    terms = ops.mul(_cofactors(a), da)
    return determinant(a), ops.reduce_sum(terms, axes=(rank(a) - 2, rank(a) - 1))


determinant.defjvp(_determinant_jvp)


def _cofactors(a: Array) -> Array:
    """For two or three rows, as sums of products that exclude each cofactor's row and column."""
    shape, axes = type_of(a).shape, (rank(a) - 2, rank(a) - 1)
    match shape[-1]:
        case 2:
            signs = np.array([[1, -1], [-1, 1]], type_of(a).dtype)
            return ops.mul(ops.reverse(a, axes=axes), ops.broadcast(signs, shape=shape, axes=axes))
        case 3:
            rows_of_a = [part(a, -2, i, i + 1) for i in range(3)]
            cofactor_rows = [_cross(rows_of_a[(i + 1) % 3], rows_of_a[(i + 2) % 3]) for i in range(3)]
            return ops.concatenate(*cofactor_rows, axis=rank(a) - 2)
        case _:
            return swapped(adjugate(a))


def _cross(x: Array, y: Array) -> Array:
    """The cross product of rows. [*B, 1, 3] each."""
    (x1, x2), (y1, y2) = ([_turned(v, k) for k in (1, 2)] for v in (x, y))
    return ops.sub(ops.mul(x1, y2), ops.mul(x2, y1))


def _turned(x: Array, k: int) -> Array:
    """Element j + k in place of element j."""
    return ops.concatenate(part(x, -1, k, 3), part(x, -1, 0, k), axis=rank(x) - 1)


@custom_jvp
def adjugate(a: ArrayLike) -> Array:
    """The transposed cofactors: adj(A) A = det(A) 1, for singular matrices as well.

    With P A = L U it is det(P) adj(U) L⁻¹ P.
    Shapes: [*B, N, N] -> [*B, N, N].
    """
    shape, dtype = type_of(a).shape, type_of(a).dtype
    factors, pivots, order = ops.linalg.lu(a)
    permutation_matrix = permuted_rows(eye(shape, dtype), order)
    below = ops.linalg.triangular_solve(factors, permutation_matrix, lower=True, unit_diagonal=True)
    sign = sign_of(pivots, dtype)
    signed_inverse = ops.mul(stretch(sign, shape), below)
    return matmul(_adjugate_of_upper(upper_triangle(factors)), signed_inverse)


def _adjugate_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (a,), (da,) = primals, tangents
    value = adjugate(a)
    if type_of(a).shape[-1] in (0, 1):
        return value, ops.mul(value, number(0, a))
    is_safe = _is_safe(a)
    like_one = eye(type_of(a).shape, type_of(a).dtype)
    inverse = _by_inverse(ops.select(is_safe, a, like_one), value, da)
    everywhere = ops.reduce_and(is_safe, axes=tuple(range(rank(is_safe))))
    tangent = cond(everywhere, lambda *_: inverse, _mixed, is_safe, a, da, inverse)
    return value, tangent


adjugate.defjvp(_adjugate_jvp)


def _is_safe(a: Array) -> Array:
    """Whether the pivots show that A⁻¹ keeps half of its digits. [*B, N, N] -> bool[*B, N, N]."""
    factors, _, _ = ops.linalg.lu(a)
    pivots, axes = ops.abs(diagonal(factors)), (rank(a) - 2,)
    half = number(float(np.sqrt(np.finfo(type_of(pivots).dtype).eps)), pivots)
    most = ops.reduce_max(pivots, axes=axes)
    is_safe = ops.gt(ops.reduce_min(pivots, axes=axes), ops.mul(half, most))
    return stretch(is_safe, type_of(a).shape)


def _trace(a: Array) -> Array:
    return ops.reduce_sum(diagonal(a), axes=(rank(a) - 2,))


def _by_inverse(a: Array, adjugate: Array, da: Array) -> Array:
    inverse = inv(a)
    along = ops.mul(stretch(_trace(matmul(adjugate, da)), type_of(a).shape), inverse)
    return ops.sub(along, matmul(matmul(inverse, da), adjugate))


def _mixed(is_safe: Array, a: Array, da: Array, inverse: Array) -> Array:
    """Uses singular values where the formula with the inverse is not safe."""
    shape, dtype = type_of(a).shape, type_of(a).dtype
    count = ops.iota(shape=shape[:-1], axis=len(shape) - 2, dtype=dtypes.i32)
    distinct = from_diagonal(ops.cast(ops.add(count, np.int32(1)), dtype))
    return ops.select(is_safe, inverse, _by_singular_values(ops.select(is_safe, distinct, a), da))


def _by_singular_values(a: Array, da: Array) -> Array:
    u, s, vh = ops.linalg.svd(a, full_matrices=False, vectors=True)
    e = matmul(matmul(adjoint(u), da), adjoint(vh))
    products = as_dtype_of(_products_of_others(s), a)
    at = ops.reduce_sum(ops.mul(products, _columns_of(diagonal(e))), axes=(rank(a) - 1,))
    inner = ops.sub(from_diagonal(at), ops.mul(products, e))
    rotated_inner = matmul(matmul(adjoint(vh), inner), adjoint(u))
    return ops.mul(stretch(ops.mul(determinant(u), determinant(vh)), type_of(a).shape), rotated_inner)


def _columns_of(d: Array) -> Array:
    """Element (i, j) is d_j. [*B, N] -> [*B, N, N]."""
    *lead, n = type_of(d).shape
    return ops.broadcast(d, shape=(*lead, n, n), axes=(*range(len(lead)), len(lead) + 1))


def _products_of_others(s: Array) -> Array:
    """Element (i, j) is the product of all but s_i and s_j, and 0 for i = j."""
    before, after = _exclusive_products(s)
    wide = _columns_of(s)
    shape = type_of(wide).shape
    is_later = ops.gt(columns(shape), rows(shape))
    between, _ = _exclusive_products(ops.select(is_later, wide, number(1, wide)))
    outer = ops.mul(swapped(_columns_of(before)), _columns_of(after))
    upper = ops.select(is_later, ops.mul(outer, between), number(0, wide))
    return ops.add(upper, swapped(upper))


def _adjugate_of_upper(u: ArrayLike) -> Any:
    """Element (i, j) is d_0 … d_(i-1) g_ij d_(j+1) … d_(n-1), d the diagonal, with g_ii = 1 and
    g_ij = -Σ_k g_ik u_kj d_(k+1) … d_(j-1): a Hessenberg determinant, expanded by its last column.
    """
    *lead, n, _ = type_of(u).shape
    if n == 0:
        return u
    d = diagonal(u)
    column = ops.iota(shape=(*lead, n), axis=len(lead), dtype=dtypes.i32)

    def step(j: ArrayLike, carry: Sequence[Array]) -> tuple[Array, Array]:
        g, between = carry  # between [*B, N]: d_(k+1) … d_(j-1) for k < j, else 0
        j = c.astype(j, dtypes.i32)  # the counter has 64 bits under x64
        before = ops.sub(j, np.int32(1))
        last = _picked(d, column, before)
        between = ops.mul(between, stretch(last, type_of(between).shape))
        between = ops.select(ops.eq(column, before), number(1, u), between)
        weights = ops.mul(between, _column_of(u, j))
        new = ops.neg(matmul(g, c.expand_dims(weights, -1)))
        column_entries = ops.select(_is_column(j, u), stretch(new, type_of(u).shape), number(0, u))
        return ops.add(g, column_entries), between

    start = (eye(type_of(u).shape, type_of(u).dtype), full(number(0, u), (*lead, n)))
    g, _ = fori_loop(1, n, step, start)
    before, after = _exclusive_products(d)
    return matmul(matmul(from_diagonal(before), upper_triangle(g)), from_diagonal(after))


def _picked(d: ArrayLike, column: ArrayLike, j: ArrayLike) -> Array:
    """Element j of the last axis. [*B, N] -> [*B]."""
    entries = ops.select(ops.eq(column, j), d, number(0, d))
    return ops.reduce_sum(entries, axes=(rank(d) - 1,))


def _column_of(u: ArrayLike, j: ArrayLike) -> Array:
    column_entries = ops.select(_is_column(j, u), u, number(0, u))
    return ops.reduce_sum(column_entries, axes=(rank(u) - 1,))


def _is_column(j: ArrayLike, u: ArrayLike) -> Array:
    shape = type_of(u).shape
    return ops.eq(ops.iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32), j)


def _exclusive_products(d: ArrayLike) -> tuple[Array, Array]:
    """The products of all elements before each one, and of all after it. [*B, N] each."""
    axis = rank(d) - 1
    zeros = (0,) * axis
    one = number(1, d)
    neighbours = [ops.pad(d, one, low=(*zeros, low), high=(*zeros, -low), interior=(*zeros, 0)) for low in (1, -1)]
    before = ops.cumprod(neighbours[0], axis=axis, reverse=False)
    return before, ops.cumprod(neighbours[1], axis=axis, reverse=True)
