"""lu: P A = L U with partial pivoting; results lu, pivots, permutation.

lu [*B, M, N] holds U on and above the diagonal and L, whose diagonal is one, below it. pivots
i32[*B, K], K = min(M, N): row k was exchanged with row pivots[k], one after the other.
permutation i32[*B, M]: row i of P A is row permutation[i] of A. The pivot is the first element of
the greatest |re| + |im| on or below the diagonal. Where that is zero the column stays as it is: a
singular matrix has a zero on U's diagonal, and nothing is raised.

The derivative is that of L and U with the permutation held; it needs the leading K columns to be
regular, and is infinite or NaN where they are singular. Solving does not differentiate through it:
`linear_solve` has a rule of its own.

Reference:  column after column for all lanes of small matrices; else by recursion on columns, which
            leaves nearly all of the work to matrix products. NumPy has no LU (decision 0032).
Expansion:  right-looking by blocks of columns. Tiny matrices are written out over lanes.
Source:     Golub & Van Loan 4e, §3.4; recursion: Toledo 1997, SIAM J. Matrix Anal. 18(4);
            derivative: de Hoog, Anderssen & Lukas 2011, Linear Algebra Appl. 434.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.ops.arithmetic import add, ge, select
from rune.ops.family import size_value
from rune.ops.linalg.dense import dense, is_dense
from rune.ops.linalg.lu_expand import by_loops, written_out
from rune.ops.linalg.lu_numpy import factored
from rune.ops.linalg.small import fits_cache, is_small
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import (
    batch_leading,
    eye,
    grown,
    lower_triangle,
    matmul,
    permuted_rows,
    require_matrices,
    rows,
    smaller,
    swapped,
    upper_triangle,
    with_unit_diagonal,
)
from rune.ops.memory import in_memory
from rune.ops.movement import part

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType) -> tuple[ArrayType, ...]:
    require_matrices("lu", a)
    *lead, m, n = a.shape
    pivots = ArrayType((*lead, smaller(m, n)), dtypes.i32)
    return a.strong(), pivots, ArrayType((*lead, m), dtypes.i32)


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Array], list[Array | None]]:
    """With X = L⁻¹ (P Ȧ) U⁻¹:  L̇ = L tril(X, -1),  U̇ = triu(X) U.

    A rectangular factor is completed by the identity; its new columns, or rows, stay constant.
    """
    (da,) = tangents
    factors, pivots, order = lu(*primals)
    lower, upper = _square_factors(factors)
    inside = triangular_solve(lower, permuted_rows(da, order), lower=True, unit_diagonal=True)
    inside = _over_upper(inside, upper)
    dl, du = matmul(lower, lower_triangle(inside, -1)), matmul(upper_triangle(inside), upper)
    return [factors, pivots, order], [add(dl, du), None, None]


def _square_factors(factors: Value) -> tuple[Value, Value]:
    """L [*B, M, M] and U [*B, N, N]."""
    m, n = type_of(factors).shape[-2:]
    k = smaller(m, n)
    below = lower_triangle(part(factors, -1, 0, k), -1)
    lower = with_unit_diagonal(grown(below, m, m))
    upper = grown(upper_triangle(part(factors, -2, 0, k)), n, n)
    if k == n:
        return lower, upper
    shape, dtype = type_of(upper).shape, type_of(upper).dtype
    new = ge(rows(shape), size_value(k, dtypes.i32))
    return lower, select(new, eye(shape, dtype), upper)


def _over_upper(x: Value, upper: Value) -> Value:
    """X U⁻¹."""
    solution = triangular_solve(swapped(upper), swapped(x), lower=True, unit_diagonal=False)
    return swapped(solution)


def _expand(a: Value) -> list[Array]:
    if is_small(type_of(a)):
        return [in_memory(x) for x in written_out(a)]
    return dense_lu(a, parts=1)


dense_lu = dense("dense_lu", "lu", _type, by_loops, multiple_results=True)

lu: Primitive = Primitive(
    "lu",
    "linalg",
    _type,
    factored,
    batch=batch_leading(lambda: lu),
    multiple_results=True,
    jvp_equation=_jvp,
    lower=Library(lanes_of_matrices, lambda a: not is_dense("lu", a) and not fits_cache(a)),
    expand=_expand,
)
