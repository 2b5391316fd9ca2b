"""eigh: eigenvalues of Hermitian matrices, ascending, and orthonormal eigenvectors as columns.

Only the selected triangle is read, and only the real part of the diagonal. A matrix that is not
finite gives NaN.

Derivative: that of the triangle that is read. With Ȧ in the basis of the eigenvectors, X = Vᴴ Ȧ V,
the eigenvalues move by X's diagonal, which is well defined where they are simple and one choice
where they are not; the eigenvectors by V F∘X, F_ij = 1 / (w_j - w_i) and 0 on the diagonal, so that
no column changes its phase.
Where two eigenvalues are equal their eigenvectors are not differentiable: their tangents are
infinite or NaN. Those of the eigenvalues stay finite.

Expansion:  Jacobi's rotations from both sides, until the elements off the diagonal are below the
            rounding error of the matrix; errors of a few ulps of the norm.
Source:     Golub & Van Loan 4e, §8.5; derivative: Giles 2008, §3.1; Boeddeker et al. 2017,
            arXiv:1701.00392, §4.2 for the complex case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.program import Equation
from rune.core.types import ArrayType, Shape
from rune.core.values import Params, Value
from rune.ops.arithmetic import add, div, eq, gt, logical_and, lt, mul, select, sub
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import broadcast, reduce_sum, stretch
from rune.ops.linalg import jacobi
from rune.ops.linalg.jax_forms import EIGH_NAMES, eigh_form
from rune.ops.linalg.lapack import routine
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    batch_leading,
    columns,
    conjugate,
    diagonal,
    eye,
    from_diagonal,
    hermitian,
    keep,
    matmul,
    number,
    off_diagonal,
    permuted_rows,
    real_part,
    require_matrices,
    require_square,
    rows,
    steps,
    swapped,
    upper_triangle,
)
from rune.ops.reduction import reduce_or
from rune.ops.repeat import repeat_while

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType, *, lower: bool, vectors: bool) -> tuple[ArrayType, ...]:
    dtype = require_matrices("eigh", a)
    require_square("eigh", a)
    values = ArrayType(a.shape[:-1], real_dtype(dtype))
    return (values, a.strong()) if vectors else (values,)


# --- reference --------------------------------------------------------------------------------

_VALUES = {
    True: routine("eigvalsh_lo", lambda a: np.linalg.eigvalsh(a, "L")),
    False: routine("eigvalsh_up", lambda a: np.linalg.eigvalsh(a, "U")),
}
_BOTH = {
    True: routine("eigh_lo", lambda a: np.linalg.eigh(a, "L")),
    False: routine("eigh_up", lambda a: np.linalg.eigh(a, "U")),
}


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value, *, lower: bool, vectors: bool) -> list[Array]:
    shape = type_of(a).shape
    full = hermitian(a, lower)
    scale = jacobi.unit_scale(full)
    matrix = div(full, as_dtype_of(stretch(scale, shape), a))
    work, basis = _diagonalised(matrix, vectors)
    eigenvalues = real_part(diagonal(work))
    order = jacobi.ascending(eigenvalues)
    scale = broadcast(scale, shape=shape[:-1], axes=_leading(shape))
    values = jacobi.in_order(mul(eigenvalues, scale), order)
    if not vectors:
        return [values]
    return [values, swapped(permuted_rows(swapped(basis), order))]


def _leading(shape: Shape) -> tuple[int, ...]:
    return tuple(range(len(shape) - 2))


def _diagonalised(a: Value, vectors: bool) -> tuple[Any, Any]:
    """A diagonal matrix similar to `a`, as nearly as rounding allows, and the basis."""
    shape, dtype = type_of(a).shape, type_of(a).dtype

    def more(sweeps: Value, work: Value, *_: Value) -> Array:
        is_far = reduce_or(_is_far(work), axes=_leading(shape))
        return logical_and(lt(sweeps, np.int32(jacobi.SWEEPS)), is_far)

    def sweep(sweeps: Value, *carry: Value) -> list[Array]:
        return [add(sweeps, np.int32(1)), *steps(jacobi.rounds(shape[-1]), _round, *carry)]

    carry = (a, eye(shape, dtype)) if vectors else (a,)
    _, work, *basis = repeat_while(more, sweep, np.int32(0), *carry)
    return work, basis[0] if vectors else None


def _is_far(work: Value) -> Array:
    """Whether any element off the diagonal is above the rounding error of the matrix. bool[*B]"""
    axes = (type_of(work).ndim - 2, type_of(work).ndim - 1)
    off, total = (reduce_sum(_squares(x), axes=axes) for x in (off_diagonal(work), work))
    unit = np.finfo(real_dtype(type_of(work).dtype)).eps
    return gt(off, mul(total, number(unit**2, total)))


def _squares(x: Value) -> Array:
    return real_part(mul(conjugate(x), x))


def _round(round: Value, work: Value, *basis: Value) -> list[Array]:
    """All pairs rotated so that their products vanish."""
    shape = type_of(work).shape
    partner = jacobi.partners(round, shape[-1])
    on = real_part(diagonal(work))
    is_product = jacobi.is_pair(partner, shape)
    # Both columns of a pair read the same half, so they see the same number.
    upper = upper_triangle(keep(is_product, work), 1)
    product = reduce_sum(add(adjoint(upper), upper), axes=(len(shape) - 1,))
    turn = jacobi.rotations(on, product, partner)
    # Both sides are rotated as columns, since the matrix is Hermitian.
    both = off_diagonal(jacobi.turned(adjoint(jacobi.turned(work, turn)), turn))
    both = select(is_product, number(0, both), both)
    next_work = add(both, from_diagonal(as_dtype_of(sub(on, turn.e), work)))
    return [next_work, *(jacobi.turned(b, turn) for b in basis)]


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    (a,), (da,) = primals, tangents
    w, v = eigh(a, lower=params["lower"], vectors=True)
    da_times_v = matmul(hermitian(da, params["lower"]), v)
    dw = reduce_sum(real_part(mul(conjugate(v), da_times_v)), axes=(type_of(v).ndim - 2,))
    if not params["vectors"]:
        return [w], [dw]
    inside = matmul(adjoint(v), da_times_v)
    return [w, v], [dw, matmul(v, mul(as_dtype_of(inverse_gaps(w), inside), inside))]


def inverse_gaps(w: Value) -> Array:
    """1 / (w_j - w_i), and 0 on the diagonal; infinite where two are equal. [*B, N] -> [*B, N, N]

    The divisor on the diagonal is replaced before the division, so that derivatives of this
    function are finite there.
    """
    *lead, n = type_of(w).shape
    shape = (*lead, n, n)
    first, second = in_rows_and_columns(w)
    same = eq(rows(shape), columns(shape))
    gap = select(same, number(1, w), sub(second, first))
    return select(same, number(0, w), div(number(1, w), gap))


def in_rows_and_columns(w: Value) -> tuple[Array, Array]:
    """The matrices with w_i and with w_j at (i, j). [*B, N] -> two of [*B, N, N]"""
    *lead, n = type_of(w).shape
    axes, shape = range(len(lead)), (*lead, n, n)
    return broadcast(w, shape=shape, axes=(*axes, len(lead))), broadcast(w, shape=shape, axes=(*axes, len(lead) + 1))


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """Without the vectors if nothing reads them."""
    if not equation.params["vectors"] or used_results[1]:
        return equation
    params = {**equation.params, "vectors": False}
    return replace(equation, results=equation.results[:1], params=params)


eigh: Primitive = Primitive(
    "eigh",
    "linalg",
    _type,
    lambda a, *, lower, vectors: _BOTH[lower](a) if vectors else (_VALUES[lower](a),),
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: eigh),
    dead_code=_dead_code,
    lower=Library(lanes_of_matrices),
    expand=_expand,
    jax_names=EIGH_NAMES,
    jax_form=eigh_form(lambda: eigh),
)
