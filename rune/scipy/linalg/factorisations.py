"""Factorisations with SciPy's signatures: Cholesky, LU and QR.

`overwrite_*`, `lwork` and `check_finite` are accepted without effect: arrays are immutable, and
input that is not finite gives NaN. Matrices are the last two axes, after any leading axes.
"""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.linalg.arguments import computing, matrices, pair, same_batch, square
from rune.numpy.linalg.permutations import permutation_of_pivots
from rune.ops.complex_numbers import real_dtype
from rune.ops.linalg.pivoted_qr import reflected
from rune.ops.matrix_helpers import (
    adjoint,
    eye,
    lower_triangle,
    permuted_rows,
    smaller,
    swapped,
    upper_triangle,
    with_unit_diagonal,
)
from rune.ops.movement import part
from rune.scipy.sequences import from_sequences
from rune.typing import ArrayLike, Nested

# --- Cholesky ---------------------------------------------------------------------------------


def cholesky(a: Nested, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The upper triangular U with Uᴴ U = a, or with `lower` the L with L Lᴴ = a.

    Only the triangle of that name is read. NaN where `a` is not positive definite.
    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.2; derivative: Murray 2016,
            arXiv:1602.07527.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cholesky(rnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("cholesky", *from_sequences(a))
    square("cholesky", x)
    factor = ops.linalg.cholesky(x if lower else adjoint(x))
    return narrow(factor if lower else adjoint(factor))


def cho_factor(
    a: Nested, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The factor that `cholesky` gives, and which one it is, for `cho_solve`.

    Shapes: a [*B, M, M] -> [*B, M, M] and a Python bool.
    Types:  in the dtype of a, complex included; bools and integers become f32.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.2; derivative: Murray 2016,
            arXiv:1602.07527.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cho_factor(4.0 * rnp.eye(1))
    (Array([[2.]], f32[1,1], cpu:0), False)
    """
    return cholesky(a, lower), lower


# --- LU ---------------------------------------------------------------------------------------


def lu(
    a: Nested, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Array, ...]:
    """P, L, U with a = P L U, L unit lower and U upper triangular.

    permute_l:  gives P L and U instead; p_indices: gives numbers p with a = L[p] U instead of P.
    Shapes: [*B, M, N] -> [*B, M, M], [*B, M, K], [*B, K, N], K = min(M, N).
    Types:  P real, L and U complex for complex input; bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> p, l, u = linalg.lu(rnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> p @ l @ u
    Array([[1., 2.],
           [4., 4.]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("lu", *from_sequences(a))
    m, n = matrices("lu", x).shape[-2:]
    k = smaller(m, n)
    factors, _, order = ops.linalg.lu(x)
    low = with_unit_diagonal(lower_triangle(part(factors, -1, 0, k), -1))
    up = upper_triangle(part(factors, -2, 0, k))
    if permute_l:
        return narrow((permuted_rows(low, _inverse(order)), up))
    if p_indices:
        return (_inverse(order), *narrow((low, up)))
    shape = (*type_of(x).shape[:-1], m)
    place = swapped(permuted_rows(eye(shape, real_dtype(type_of(x).dtype)), order))
    return narrow((place, low, up))


def _inverse(order: Array) -> Array:
    return ops.cast(rnp.argsort(order, axis=-1), dtypes.i32)


def lu_factor(a: Nested, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """L and U in one array, and the pivots, for `lu_solve`.

    Shapes: [*B, M, N] -> [*B, M, N], i32[*B, min(M, N)].
    Types:  complex included; bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.lu_factor(rnp.array([[1.0, 2.0], [4.0, 4.0]]))[1]
    Array([1, 1], i32[2], cpu:0)
    """
    (x,), narrow = computing("lu_factor", *from_sequences(a))
    matrices("lu_factor", x)
    factors, pivots, _ = ops.linalg.lu(x)
    return narrow((factors, pivots))


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: Nested,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b from `lu_factor`'s answer; trans 1: aᵀ x = b; trans 2: aᴴ x = b.

    Shapes: factors [*B, N, N], pivots [*B, N], b [*B, N, K], or vectors [*B, N] or [N].
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ArgumentError for an unknown trans; ShapeError if sizes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> factors = linalg.lu_factor(rnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> linalg.lu_solve(factors, rnp.array([2.0, 9.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    factors, pivots = pair("lu_solve", lu_and_piv, "(lu, piv), as lu_factor gives it")
    (x, y), narrow = computing("lu_solve", *from_sequences(factors, b))
    size = square("lu_solve", x).shape[-1]
    is_vector = type_of(y).ndim in (1, type_of(x).ndim - 1)
    y = rnp.expand_dims(y, -1) if is_vector else y
    if type_of(y).shape[-2] != size:
        raise ShapeError(f"lu_solve: cannot solve {type_of(x)} for {type_of(b)} (rows differ)")
    x, y = same_batch("lu_solve", x, y)
    order = permutation_of_pivots(rnp.broadcast_to(pivots, type_of(x).shape[:-1]), size)
    solve = ops.linalg.triangular_solve
    if trans == 0:
        below = solve(x, permuted_rows(y, order), lower=True, unit_diagonal=True)
        solution = solve(x, below, lower=False, unit_diagonal=False)
    elif trans in (1, 2):
        transpose = swapped(x) if trans == 1 else adjoint(x)
        below = solve(transpose, y, lower=True, unit_diagonal=False)
        solution = solve(transpose, below, lower=False, unit_diagonal=True)
        solution = permuted_rows(solution, _inverse(order))
    else:
        raise ArgumentError(f"lu_solve: cannot use trans={trans!r} (0, 1 or 2 required)")
    return narrow(rnp.squeeze(solution, -1) if is_vector else solution)


# --- QR ---------------------------------------------------------------------------------------


def qr(
    a: Nested,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Q and R with a = Q R: Q with orthonormal columns, R upper triangular.

    mode:      "full": Q [*B, M, M], R [*B, M, N]; "economic": min(M, N) columns and rows;
               "r": (R,); "raw": the reflections and their taus as LAPACK has them, and R.
    pivoting:  gives numbers p [*B, N] of columns as well, with a[:, p] = Q R and the size of R's
               diagonal falling: where it drops to rounding, the rank of `a` ends.
    Shapes: a [*B, M, N] -> as `mode` says.
    Types:  in the dtype of a, complex included; bools and integers become f32; p i32.
    Errors: ArgumentError for an unknown mode.
    Source: pivoting, Businger & Golub 1965, Numer. Math. 7.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> [x.shape for x in linalg.qr(rnp.ones((3, 2)))]
    [(3, 3), (3, 2)]
    >>> linalg.qr(rnp.array([[1.0, 0.0, 3.0]]), pivoting=True)[2]
    Array([2, 1, 0], i32[3], cpu:0)
    """
    if mode not in ("full", "economic", "r", "raw"):
        raise ArgumentError(f"qr: cannot use mode {mode!r} (one of 'full', 'economic', 'r', 'raw' required)")
    (x,), narrow = computing("qr", *from_sequences(a))
    m, n = matrices("qr", x).shape[-2:]
    if not pivoting and mode != "raw":
        q, r = narrow(tuple(ops.linalg.qr(x, full_matrices=mode != "economic")))
        return (r,) if mode == "r" else (q, r)
    reflectors, taus, *order = (ops.linalg.geqp3 if pivoting else ops.linalg.geqrf)(x)
    if mode == "raw":
        r = upper_triangle(part(reflectors, -2, 0, smaller(m, n)))
        reflectors, taus, r = narrow((reflectors, taus, r))
        return ((reflectors, taus), r, *order)
    q, r = narrow(reflected(reflectors, taus, full_matrices=mode != "economic"))
    return (r, *order) if mode == "r" else (q, r, *order)


def qr_multiply(
    a: Nested,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """Q c ("left") or c Q ("right"), and R, of the economic a = Q R; Q conjugated if `conjugate`.

    pivoting:  as in `qr`, with the numbers of the columns as a third result.
    Shapes: a [*B, M, N], K = min(M, N): "left", c [K] or [*B, K, P] -> [M] or [*B, M, P]; "right",
            c [M] or [*B, P, M] -> [K] or [*B, P, K]; R [*B, K, N].
    Types:  the common dtype of a and c, complex included; bools and integers become f32.
    Errors: ArgumentError for an unknown mode.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §5.2; Schreiber & Van Loan 1989,
            SIAM J. Sci. Stat. Comput. 10(1).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.qr_multiply(rnp.ones((3, 2)), rnp.ones((4, 3)))[0].shape
    (4, 2)
    """
    if mode not in ("left", "right"):
        raise ArgumentError(f"qr_multiply: cannot use mode {mode!r} ('left' or 'right' required)")
    q, *others = qr(a, mode="economic", pivoting=pivoting)
    q = rnp.conj(q) if conjugate else q
    return (q @ c if mode == "left" else c @ q, *others)
