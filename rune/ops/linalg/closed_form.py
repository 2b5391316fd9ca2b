"""Householder reflections in closed form: products with them, and their derivatives.

The product is Q = (1 - V T Vᴴ) E with E the first columns of the identity and T = (1 + D U)⁻¹ D,
D = diag(tau), U the strict upper triangle of VᴴV. So V and T V₁ᴴ (V₁ the first K rows of V) are the
LU factors of E - Q, unit lower and upper triangular, with the taus on the upper one's diagonal: the
derivative of that factorisation brings a moving Q back to moving vectors.

Source: Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1); reflections from Q, Ballard et
        al. 2014, "Reconstructing Householder vectors from TSQR".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import add, eq, logical_and, neg, select, sub
from rune.ops.family import size_value
from rune.ops.linalg.householder import unit_vectors
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import (
    adjoint,
    columns,
    conjugate,
    corner,
    diagonal,
    lower_triangle,
    matmul,
    number,
    rows,
    scaled_rows,
    swapped,
    upper_triangle,
)
from rune.ops.movement import concatenate, part

if TYPE_CHECKING:
    from rune.array import Array


def reflect(reflectors: Value, taus: Value, x: Value, *, transposed: bool) -> Array:
    """Q X, or Qᴴ X, for the square Q of these reflections. Shapes: [*B, M, K], [*B, K], [*B, M,
    N].
    """
    v = unit_vectors(reflectors, np.int32(0))
    over, inner = upper_triangle(matmul(adjoint(v), v), 1), matmul(adjoint(v), x)
    if not transposed:
        return sub(x, matmul(v, _weighted(over, taus, scaled_rows(taus, inner))))
    coefficients = adjoint(scaled_rows(taus, over))
    inner = triangular_solve(coefficients, inner, lower=True, unit_diagonal=True)
    return sub(x, matmul(v, scaled_rows(conjugate(taus), inner)))


def product_jvp(reflectors: Value, taus: Value, da: Any, dtaus: Value, width: Size) -> Value:
    """The tangent of the first columns of H₁ … H_K; a tangent that is None contributes nothing.

    Shapes: reflectors, da [*B, M, K], taus, dtaus [*B, K] -> [*B, M, width].
    """
    v = unit_vectors(reflectors, np.int32(0))
    over, leading = upper_triangle(matmul(adjoint(v), v), 1), part(adjoint(v), -1, 0, width)
    inner = _weighted(over, taus, scaled_rows(taus, leading))
    change, from_vectors = None, None
    if dtaus is not None:
        change = scaled_rows(dtaus, sub(leading, matmul(over, inner)))
    if da is not None:
        dv = lower_triangle(da, -1)
        along = matmul(adjoint(dv), v)
        projections = upper_triangle(add(along, adjoint(along)), 1)
        from_coefficients = scaled_rows(taus, sub(part(adjoint(dv), -1, 0, width), matmul(projections, inner)))
        change = from_coefficients if change is None else add(change, from_coefficients)
        from_vectors = matmul(dv, inner)
    out = matmul(v, _weighted(over, taus, change))
    return neg(out if from_vectors is None else add(out, from_vectors))


def _weighted(over: Value, taus: Value, x: Value) -> Array:
    """(1 + D U)⁻¹ X."""
    return triangular_solve(scaled_rows(taus, over), x, lower=False, unit_diagonal=True)


def reflections_jvp(reflectors: Value, taus: Value, dq: Value) -> tuple[Value, Value]:
    """The tangents of the vectors, below the diagonal, and of the taus, for the tangent `dq` of Q.

    With E - Q = V R, C = V₁⁻¹ (-Q̇₁) and S the strict lower triangle of C R⁻¹: V̇₁ = V₁ S,
    Ṙ = C - S R, and for the rows below, V̇₂ R = -Q̇₂ - V₂ Ṙ.

    Shapes: reflectors, dq [*B, M, K], taus [*B, K] -> [*B, M, K], [*B, K].
    """
    m, k = type_of(reflectors).shape[-2:]
    v = unit_vectors(reflectors, np.int32(0))
    head = corner(v, k, k)
    over = upper_triangle(matmul(adjoint(v), v), 1)
    r = _weighted(over, taus, scaled_rows(taus, adjoint(head)))
    # For a square matrix, the last element of R may be zero, and nothing that is kept is divided by
    # it.
    divisor = r if m != k else _with_last_one(r)
    change = neg(part(dq, -2, 0, k))
    inside = triangular_solve(head, change, lower=True, unit_diagonal=True)
    turn = lower_triangle(_over(lower_triangle(inside, -1), divisor), -1)
    dr = upper_triangle(sub(inside, matmul(turn, r)))
    dv = lower_triangle(matmul(head, turn), -1)
    if m != k:
        below = neg(add(part(dq, -2, k, m), matmul(part(v, -2, k, m), dr)))
        dv = concatenate(dv, _over(below, divisor), axis=type_of(reflectors).ndim - 2)
    return dv, diagonal(dr)


def _over(x: Value, r: Value) -> Value:
    """X R⁻¹ for an upper triangular R."""
    return swapped(triangular_solve(swapped(r), swapped(x), lower=True, unit_diagonal=False))


def _with_last_one(r: Value) -> Value:
    shape = type_of(r).shape
    last = size_value(shape[-1] - 1, dtypes.i32)
    return select(logical_and(eq(rows(shape), last), eq(columns(shape), last)), number(1, r), r)
