"""rune.lax.linalg: factorisations and solvers, one primitive each, under JAX's names.

Dtypes are f32, f64, c64 and c128, matrices are the last two axes; nothing is promoted or broadcast.
Sides, transposes and adjoints are implemented by transposing, which costs nothing when compiled.
"""

from __future__ import annotations

import typing as _typing
from typing import Literal, overload

from rune import dtypes, ops
from rune.absent import of as _absent
from rune.array import Array
from rune.control import fori_loop
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.lax.linalg_spectra import SvdAlgorithm, eig, eigh, hessenberg, qdwh, schur, svd, tridiagonal
from rune.listing import names as _names
from rune.numpy.arguments import static_int, value
from rune.numpy.linalg.permutations import permutation_of_pivots
from rune.ops import conventions as c
from rune.ops.family import wide
from rune.ops.linalg.closed_form import reflect
from rune.ops.linalg.pivoted_qr import reflected
from rune.ops.matrix_helpers import (
    adjoint,
    conjugate,
    keep,
    lower_triangle,
    matmul,
    number,
    require_matrices,
    require_square,
    swapped,
    upper_triangle,
)
from rune.ops.movement import part
from rune.typing import ArrayLike


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = x; NaN for matrices that are not positive definite.

    symmetrize_input:  whether x stands for (x + xᴴ) / 2; otherwise only its lower triangle is read.
    Shapes: [*B, N, N] -> [*B, N, N].
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers;
            ShapeError if the shape does not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.2; derivative: Murray 2016,
            arXiv:1602.07527.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.cholesky(rnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], f32[2,2], cpu:0)
    """
    a = value("cholesky", x)
    require_square("cholesky", type_of(a))
    if symmetrize_input:
        a = ops.mul(ops.add(a, adjoint(a)), number(0.5, a))
    return ops.linalg.cholesky(a)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of Rᵀ R + w wᵀ.

    Shapes: [N, N], [N] -> [N, N]. Types: real.
    Source: rotations, Golub & Van Loan 4e, §6.5.4.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.cholesky_update(3.0 * rnp.eye(2), rnp.array([4.0, 0.0]))
    Array([[5., 0.],
           [0., 3.]], f32[2,2], cpu:0)
    """
    r, w = value("cholesky_update", r_matrix), value("cholesky_update", w_vector)
    shape = type_of(r).shape
    if len(shape) != 2 or shape[0] != shape[1] or type_of(w).shape != shape[:1]:
        raise ShapeError(
            f"cholesky_update: cannot update {type_of(r)} by {type_of(w)} "
            "(a square matrix and a vector of as many elements required)"
        )
    if type_of(r).dtype in dtypes.COMPLEX:
        raise DtypeError(f"cholesky_update: cannot update {type_of(r)} (real dtype required)")
    return _rotated(r, w)


def _rotated(r: Array, w: Array) -> Array:
    """Rotate row k and w to make element k of w zero, for one k after another."""
    n = type_of(w).shape[0]
    column = ops.iota(shape=(n,), axis=0, dtype=dtypes.i32)
    row = ops.iota(shape=(n, n), axis=0, dtype=dtypes.i32)

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        r, w = carry
        k = ops.cast(k, dtypes.i32)  # the counter has 64 bits under x64
        pivot_row = ops.reduce_sum(keep(ops.eq(row, k), r), axes=(0,))
        head, other = (ops.reduce_sum(keep(ops.eq(column, k), x), axes=(0,)) for x in (pivot_row, w))
        length = ops.sqrt(ops.add(ops.mul(head, head), ops.mul(other, other)))
        is_zero = ops.eq(length, number(0, length))
        safe = ops.select(is_zero, number(1, length), length)
        cosine = ops.select(is_zero, number(1, length), ops.div(head, safe))
        sine = ops.div(other, safe)
        new_row = ops.add(ops.mul(cosine, pivot_row), ops.mul(sine, w))
        remainder = ops.sub(ops.mul(cosine, w), ops.mul(sine, pivot_row))
        rows_of = ops.broadcast(new_row, shape=(n, n), axes=(1,))
        return ops.select(ops.eq(row, k), rows_of, r), remainder

    triangle, _ = fori_loop(0, n, step, (r, w))
    return upper_triangle(triangle)


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """LU with partial pivoting: the factors in one array, pivots and permutation, both i32.

    Shapes: [*B, M, N] -> [*B, M, N], [*B, min(M, N)], [*B, M].
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers;
            ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.lu(rnp.array([[1.0, 2.0], [4.0, 4.0]]))[0]
    Array([[4.  , 4.  ],
           [0.25, 1.  ]], f32[2,2], cpu:0)
    """
    factors, pivots, permutation = ops.linalg.lu(value("lu", x))
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that exchanges row k with row pivots[k], for one k after another.

    Shapes: i32[*B, K] -> i32[*B, permutation_size].
    Errors: ArgumentError for a permutation of fewer rows than there are pivots.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.lu_pivots_to_permutation(rnp.array([2, 1]), 3)
    Array([2, 1, 0], i32[3], cpu:0)
    """
    exchanges = value("lu_pivots_to_permutation", pivots)
    rows = static_int("lu_pivots_to_permutation", "a size", permutation_size)
    if type_of(exchanges).shape[-1] > rows:
        raise ArgumentError(
            f"lu_pivots_to_permutation: cannot permute {rows} rows by {type_of(exchanges)} (more pivots than rows)"
        )
    return permutation_of_pivots(c.astype(exchanges, dtypes.i32), rows)


@overload
def qr(x: ArrayLike, *, pivoting: Literal[False] = False, full_matrices: bool = True) -> tuple[Array, Array]: ...
@overload
def qr(x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True) -> tuple[Array, Array, Array]: ...
@overload
def qr(x: ArrayLike, *, pivoting: bool, full_matrices: bool = True) -> tuple[Array, ...]: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, ...]:
    """Q with orthonormal columns and R upper triangular: x = Q R.

    pivoting:  also returns i32 column numbers p, with x[:, p] = Q R and |R|'s diagonal descending.
    Shapes: [*B, M, N] -> [*B, M, M], [*B, M, N]; or with K = min(M, N) columns and rows; [*B, N].
    Errors: ShapeError below rank 2.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §5.2; Schreiber & Van Loan 1989,
            SIAM J. Sci. Stat. Comput. 10(1).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.qr(rnp.ones((3, 2)), full_matrices=False)[1].shape
    (2, 2)
    """
    a = value("qr", x)
    if not pivoting:
        return tuple(ops.linalg.qr(a, full_matrices=full_matrices))
    factors, taus, order = ops.linalg.geqp3(a)
    return *reflected(factors, taus, full_matrices=full_matrices), order


def geqrf(a: ArrayLike) -> tuple[Array, Array]:
    """R, the vectors of the reflections below it, and their factors taus.

    Shapes: [*B, M, N] -> [*B, M, N], [*B, min(M, N)].
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers;
            ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §5.2; Schreiber & Van Loan 1989,
            SIAM J. Sci. Stat. Comput. 10(1).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> [x.shape for x in lax.linalg.geqrf(rnp.ones((3, 2)))]
    [(3, 2), (2,)]
    """
    factors, taus = ops.linalg.geqrf(value("geqrf", a))
    return factors, taus


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first N columns of the product of K reflections, in the form returned by `geqrf`.

    Shapes: [*B, M, N], [*B, K] -> [*B, M, N].
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers as `a`;
            ShapeError if the shapes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §5.2; Schreiber & Van Loan 1989,
            SIAM J. Sci. Stat. Comput. 10(1).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> factors, taus = lax.linalg.geqrf(rnp.ones((3, 2)))
    >>> lax.linalg.householder_product(factors, taus).shape
    (3, 2)
    """
    name = "householder_product"
    return ops.linalg.householder_product(value(name, a), value(name, taus))


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c if left, otherwise c Q, for the product Q of the reflections from `geqrf`; or with Qᴴ.

    Q = 1 - V T Vᴴ is never formed.
    Shapes: a [*B, M, N], taus [*B, K], c [*B, M, P] (or [*B, P, M]) -> that of c.
    Errors: ShapeError where sizes do not match.
    Source: Schreiber & Van Loan 1989, SIAM J. Sci. Stat. Comput. 10(1).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> factors, taus = lax.linalg.geqrf(rnp.array([[3.0], [4.0]]))
    >>> lax.linalg.ormqr(factors, taus, rnp.array([[3.0], [4.0]]), transpose=True).round(4)
    Array([[-5.],
           [ 0.]], f32[2,1], cpu:0)
    """
    vectors, factors, x = (value("ormqr", y) for y in (a, taus, c))
    require_matrices("ormqr", vectors, x)
    *lead, m, n = type_of(vectors).shape
    *others, k = type_of(factors).shape or (0, 0)
    if type_of(x).shape[-2 if left else -1] != m or others != lead or k > min(m, n):
        raise ShapeError(
            f"ormqr: cannot multiply {type_of(x)} by the reflections {type_of(vectors)}, "
            f"{type_of(factors)} (of {m} rows)"
        )
    if left:
        return reflect(part(vectors, -1, 0, k), factors, x, transposed=transpose)
    return adjoint(reflect(part(vectors, -1, 0, k), factors, adjoint(x), transposed=not transpose))


def _solved(a: Array, b: Array, lower: bool, unit_diagonal: bool) -> Array:
    """The solution of a triangular system; half types are computed in f32."""
    dtype = type_of(b).dtype
    if type_of(a).dtype == dtype != wide(dtype):
        a, b = ops.cast(a, wide(dtype)), ops.cast(b, wide(dtype))
    return ops.cast(ops.linalg.triangular_solve(a, b, lower=lower, unit_diagonal=unit_diagonal), dtype)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """X with op(a) X = b if left_side, otherwise X op(a) = b, for a triangular `a`.

    op is the transpose, the conjugate, or both, as requested; only the selected triangle is read.
    With a matrix [N, N], a vector b [N] is one right-hand side.
    Shapes: a [*B, N, N], b [*B, N, K] (or [*B, K, N]) -> that of b.
    Types:  one floating or complex dtype, unchanged; half types are computed in f32.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.1; inverted diagonal blocks:
            Du Croz & Higham 1992.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> a = rnp.array([[2.0, 0.0], [1.0, 4.0]])
    >>> lax.linalg.triangular_solve(a, rnp.array([[2.0], [9.0]]), left_side=True, lower=True)
    Array([[1.],
           [2.]], f32[2,1], cpu:0)
    """
    x, y = value("triangular_solve", a), value("triangular_solve", b)
    is_vector = type_of(y).ndim == type_of(x).ndim - 1
    y = c.expand_dims(y, -1 if left_side else -2) if is_vector else y
    x = conjugate(x) if conjugate_a else x
    # X op(a) = b is equivalent to op(a)ᵀ Xᵀ = bᵀ.
    if transpose_a == left_side:
        x, lower = swapped(x), not lower
    y = y if left_side else swapped(y)
    solution = _solved(x, y, lower, unit_diagonal)
    solution = solution if left_side else swapped(solution)
    return c.squeeze(solution, -1 if left_side else -2) if is_vector else solution


def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike) -> Array:
    """X with A X = b, where A has the diagonals dl (below; dl[0] is not read), d, and du (above).

    Shapes: dl, d, du [*B, N], b [*B, N, K] -> [*B, N, K].
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.3.6, with pivoting as
            LAPACK's gtsv.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> one = rnp.ones(3)
    >>> lax.linalg.tridiagonal_solve(0 * one, 2 * one, 0 * one, rnp.ones((3, 1)))[:, 0]
    Array([0.5, 0.5, 0.5], f32[3], cpu:0)
    """
    operands = [value("tridiagonal_solve", x) for x in (dl, d, du, b)]
    return ops.linalg.tridiagonal_solve(*operands)


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha A Aᵀ + beta C; only the lower triangle is meaningful.

    symmetrize_output:  whether the upper triangle mirrors the lower one.
    Shapes: [*B, N, K], [*B, N, N] -> [*B, N, N].
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.symmetric_product(rnp.ones((2, 3)), rnp.zeros((2, 2)))
    Array([[3., 3.],
           [3., 3.]], f32[2,2], cpu:0)
    """
    a, other = value("symmetric_product", a_matrix), value("symmetric_product", c_matrix)
    product = ops.mul(number(alpha, a), matmul(a, swapped(a)))
    product = ops.add(product, ops.mul(number(beta, a), other))
    if not symmetrize_output:
        return product
    below = lower_triangle(product, -1)
    return ops.add(lower_triangle(product), swapped(below))


__all__ = ["SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh", "geqrf", "hessenberg"]
__all__ += ["householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur", "svd"]
__all__ += ["symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
