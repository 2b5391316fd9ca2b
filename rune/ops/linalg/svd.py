"""svd: A = U diag(s) Vᴴ; singular values descending, U and V with orthonormal columns.

Results u, s, vh, or s alone without `vectors`. With `full_matrices` u and vh are square, otherwise
they have min(M, N) columns and rows. A matrix that is not finite gives NaN.

Derivative: with X = Uᴴ Ȧ V, the singular values move by the real part of X's diagonal, well defined
where they are simple and one choice where they are not; U and V turn by F∘(X S + S Xᴴ) and
F∘(S X + Xᴴ S), F_ij = 1 / (s_j² - s_i²). The free phase of a complex pair is shared by the two, and
the columns that complete a basis do not turn among themselves.
Where two singular values are equal their vectors are not differentiable, nor are those of a zero
that only the smaller side determines: tangents are infinite or NaN. Those of s stay finite.

Expansion:  R of A = Q R, multiplied from one side by Jacobi's rotations until its columns are
            orthogonal; a second QR completes them where a singular value is zero.
Source:     one-sided rotations, Golub & Van Loan 4e, §8.6; the preconditioning by QR, Drmač &
            Veselić 2008, SIAM J. Matrix Anal. 29(4); derivative: Townsend 2016, "Differentiating
            the singular value decomposition"; phases: Wan & Zhang 2019, arXiv:1909.02659.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.program import Equation
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.dims import Size
from rune.ops.arithmetic import abs, add, div, eq, mul, neg, select, sub
from rune.ops.complex_numbers import complex, imag, is_complex, real_dtype
from rune.ops.family import reduce_sum, stretch
from rune.ops.linalg import jacobi
from rune.ops.linalg.dense import MOST_ROWS
from rune.ops.linalg.eigh import in_rows_and_columns, inverse_gaps
from rune.ops.linalg.householder import is_factored_by_routine
from rune.ops.linalg.jacobi_columns import orthogonalised
from rune.ops.linalg.jax_forms import SVD_NAMES, svd_form
from rune.ops.linalg.lapack import routine
from rune.ops.linalg.qr import qr
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    batch_leading,
    columns,
    conjugate,
    corner,
    diagonal,
    from_diagonal,
    matmul,
    number,
    permuted_rows,
    real_part,
    require_matrices,
    rows,
    scaled_columns,
    scaled_rows,
    smaller,
    swapped,
    zeros,
)
from rune.ops.movement import concatenate, part

if TYPE_CHECKING:
    from rune.array import Array

LONG = 2  # rows / columns from which R alone is decomposed (measured)


def _type(a: ArrayType, *, full_matrices: bool, vectors: bool) -> tuple[ArrayType, ...]:
    dtype = require_matrices("svd", a)
    *lead, m, n = a.shape
    k = smaller(m, n)
    values = ArrayType((*lead, k), real_dtype(dtype))
    if not vectors:
        return (values,)
    u, v = ((*lead, m, m), (*lead, n, n)) if full_matrices else ((*lead, m, k), (*lead, k, n))
    return ArrayType(u, dtype), values, ArrayType(v, dtype)


# --- reference --------------------------------------------------------------------------------

_VALUES = routine("svd", lambda a: np.linalg.svd(a, compute_uv=False))
_THIN = routine("svd_s", lambda a: np.linalg.svd(a, full_matrices=False))
_FULL = routine("svd_f", lambda a: np.linalg.svd(a, full_matrices=True))


def _reference(a: np.ndarray, *, full_matrices: bool, vectors: bool) -> tuple[np.ndarray, ...]:
    if not vectors:
        return (_VALUES(a),)
    return _FULL(a) if full_matrices else _THIN(a)


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value, *, full_matrices: bool, vectors: bool) -> list[Array]:
    m, n = type_of(a).shape[-2:]
    if smaller(m, n) == n:
        return _tall(a, full_matrices, vectors)
    factors = _tall(adjoint(a), full_matrices, vectors)
    return [adjoint(x) if x is not factors[1] else x for x in reversed(factors)] if vectors else factors


def _tall(a: Value, full_matrices: bool, vectors: bool) -> list[Array]:
    """For at least as many rows as columns: A = Q R, and the decomposition of R."""
    shape = type_of(a).shape
    m, n = shape[-2:]
    scale = jacobi.unit_scale(a)
    q, r = qr(div(a, as_dtype_of(stretch(scale, shape), a)), full_matrices=full_matrices and vectors)
    factors = square_svd(corner(r, n, n), full_matrices=False, vectors=vectors)
    values = factors[1] if vectors else factors[0]
    values = mul(values, stretch(scale, type_of(values).shape))
    if not vectors:
        return [values]
    u = matmul(part(q, -1, 0, n), factors[0])
    if full_matrices and m != n:
        u = concatenate(u, part(q, -1, n, m), axis=len(shape) - 1)
    return [u, values, factors[2]]


def _by_rotations(r: Value, *, full_matrices: bool, vectors: bool) -> list[Array]:
    """For a square matrix: R = P S Wᴴ, with Rᴴ P = W S."""
    orthogonal, lengths, basis = orthogonalised(adjoint(r), vectors)
    order = jacobi.ascending(neg(lengths))
    values = jacobi.in_order(lengths, order)
    if not vectors:
        return [values]
    orthogonal, basis = (swapped(permuted_rows(swapped(x), order)) for x in (orthogonal, basis))
    return [basis, values, adjoint(_completed(orthogonal))]


# What the expansion leaves to LAPACK on the CPU.
square_svd = Primitive(
    "square_svd",
    "linalg",
    _type,
    _reference,
    multiple_results=True,
    lower=Library(lanes_of_matrices),
    expand=_by_rotations,
)


def _completed(a: Value) -> Value:
    """Orthonormal columns in the directions of orthogonal ones, and others in place of zero
    columns.
    """
    q, r = qr(a, full_matrices=False)
    on = diagonal(r)
    length = as_dtype_of(abs(on), on)
    nothing = eq(length, number(0, length))
    phase = select(nothing, number(1, on), div(on, select(nothing, number(1, on), length)))
    return scaled_columns(q, phase)


def _pays(a: ArrayType, *, full_matrices: bool, vectors: bool) -> bool:
    """Whether LAPACK is faster for the whole matrix; otherwise it decomposes the R of long
    matrices.
    """
    m, n = a.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int) or not is_factored_by_routine(a):
        return True
    long, short = max(m, n), min(m, n)
    return long < LONG * short or long > MOST_ROWS["geqrf"]


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    (a,), (da,) = primals, tangents
    m, n = type_of(a).shape[-2:]
    k = smaller(m, n)
    full_u, s, full_vh = svd(a, full_matrices=params["full_matrices"] and params["vectors"], vectors=True)
    u, v = part(full_u, -1, 0, k), adjoint(part(full_vh, -2, 0, k))
    image = matmul(da, v)
    ds = reduce_sum(real_part(mul(conjugate(u), image)), axes=(type_of(u).ndim - 2,))
    if not params["vectors"]:
        return [s], [ds]
    inside = matmul(adjoint(u), image)
    in_u, in_v = _turns(s, inside)
    du = _vectors_tangent(u, s, in_u, image, inside, m, k)
    dv = _vectors_tangent(v, s, in_v, matmul(adjoint(da), u), adjoint(inside), n, k)
    du, dv = _tangent_of_all(du, u, full_u), _tangent_of_all(dv, v, adjoint(full_vh))
    return [full_u, s, full_vh], [du, ds, adjoint(dv)]


def _turns(s: Value, inside: Value) -> tuple[Array, Array]:
    """How U and V turn within themselves: skew-Hermitian matrices."""
    gaps = as_dtype_of(_inverse_square_gaps(s), inside)
    s = as_dtype_of(s, inside)
    other = adjoint(inside)
    of_u = mul(gaps, add(scaled_columns(inside, s), scaled_rows(s, other)))
    of_v = mul(gaps, add(scaled_rows(s, inside), scaled_columns(other, s)))
    if not is_complex(inside):
        return of_u, of_v
    turn = div(imag(diagonal(inside)), mul(number(2, real_part(s)), real_part(s)))
    phase = from_diagonal(complex(zeros(turn), turn))
    return add(of_u, phase), sub(of_v, phase)


def _inverse_square_gaps(s: Value) -> Array:
    """1 / (s_j² - s_i²), and 0 on the diagonal."""
    *lead, k = type_of(s).shape
    shape = (*lead, k, k)
    first, second = in_rows_and_columns(s)
    same = eq(rows(shape), columns(shape))
    return div(inverse_gaps(s), select(same, number(1, s), add(first, second)))


def _vectors_tangent(u: Value, s: Value, turn: Value, image: Value, inside: Value, m: Size, k: Size) -> Array:
    """U turn, and the component outside the span of U: (Ȧ V - U X) S⁻¹."""
    within = matmul(u, turn)
    if m == k:
        return within
    leaving = sub(image, matmul(u, inside))
    inverse = as_dtype_of(div(number(1, s), s), u)
    return add(within, scaled_columns(leaving, inverse))


def _tangent_of_all(du: Value, u: Value, full: Value) -> Value:
    """The tangent of all columns: those that complete U only stay orthogonal to it."""
    m, k = type_of(u).shape[-2:]
    if type_of(full).shape[-1] == k:
        return du
    complement = part(full, -1, k, m)
    return concatenate(du, neg(matmul(u, matmul(adjoint(du), complement))), axis=type_of(u).ndim - 1)


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """Without the vectors if nothing reads them."""
    if not equation.params["vectors"] or used_results[0] or used_results[2]:
        return equation
    params = {"full_matrices": False, "vectors": False}
    return replace(equation, results=equation.results[1:2], params=params)


svd: Primitive = Primitive(
    "svd",
    "linalg",
    _type,
    _reference,
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: svd),
    dead_code=_dead_code,
    lower=Library(lanes_of_matrices, _pays),
    expand=_expand,
    jax_names=SVD_NAMES,
    jax_form=svd_form(lambda: svd),
)
