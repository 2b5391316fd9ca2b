"""Linear systems with SciPy's signatures. Singular matrices give infinities or NaN; nothing is
raised.

`overwrite_*` and `check_finite` are accepted without effect (factorisations.py).
"""

from __future__ import annotations

from typing import Any, Literal, overload

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.linalg import det as _det
from rune.numpy.linalg import inv as _inv
from rune.numpy.linalg.arguments import computing, matrices, pair, same_batch, square
from rune.numpy.linalg.generalised_inverses import Fit
from rune.ops.matrix_helpers import adjoint, diagonal, lower_triangle, swapped, upper_triangle
from rune.scipy.linalg.factorisations import cho_factor
from rune.scipy.sequences import from_sequences
from rune.typing import ArrayLike, Nested

GENERAL = ("gen", "general", "sym", "symmetric", "her", "hermitian", "tridiagonal", "banded")
TRIANGLES = {"upper triangular": False, "lower triangular": True}


def solve_triangular(
    a: Nested,
    b: Nested,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b for a triangular `a`; trans 1 or "T": aᵀ x = b; trans 2 or "C": aᴴ x = b.

    Shapes: a [*B, N, N], b [*B, N, K], or vectors [*B, N] or [N]; leading axes broadcast.
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ArgumentError for an unknown trans; ShapeError if sizes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.1; inverted diagonal blocks:
            Du Croz & Higham 1992.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> a = rnp.array([[2.0, 0.0], [1.0, 4.0]])
    >>> linalg.solve_triangular(a, rnp.array([2.0, 9.0]), lower=True)
    Array([1., 2.], f32[2], cpu:0)
    """
    (x, y), narrow = computing("solve_triangular", *from_sequences(a, b))
    if trans in (1, "T"):
        x, lower = swapped(x), not lower
    elif trans in (2, "C"):
        x, lower = adjoint(x), not lower
    elif trans not in (0, "N"):
        raise ArgumentError(f"solve_triangular: cannot use trans={trans!r} (0, 1, 2, 'N', 'T' or 'C' required)")
    return narrow(_triangular("solve_triangular", x, y, lower, unit_diagonal))


def _triangular(name: str, a: Array, b: Array, lower: bool, unit: bool = False) -> Array:
    columns, is_vector = _columns(name, a, b)
    x, y = same_batch(name, a, columns)
    solution = ops.linalg.triangular_solve(x, y, lower=bool(lower), unit_diagonal=bool(unit))
    return rnp.squeeze(solution, -1) if is_vector else solution


def _columns(name: str, a: Array, b: Array) -> tuple[Array, bool]:
    """Right-hand sides as columns, and whether they were vectors: of one axis less than `a`, as in
    JAX, or of one axis.
    """
    is_vector = type_of(b).ndim in (1, type_of(a).ndim - 1)
    if type_of(b).ndim == 0:
        raise ShapeError(f"{name}: cannot solve for {type_of(b)} (a vector or columns required)")
    columns = rnp.expand_dims(b, -1) if is_vector else b
    if square(name, a).shape[-1] != type_of(columns).shape[-2]:
        raise ShapeError(
            f"{name}: cannot solve {type_of(a)} for {type_of(b)} "
            f"({type_of(a).shape[-1]} unknowns, {type_of(columns).shape[-2]} rows)"
        )
    return columns, is_vector


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: Nested, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """x with a x = b from `cho_factor`'s answer.

    Shapes: factor [*B, N, N], b [*B, N, K], or vectors [*B, N] or [N].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §4.2; derivative: Murray 2016,
            arXiv:1602.07527.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cho_solve(linalg.cho_factor(4.0 * rnp.eye(2)), rnp.array([4.0, 8.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    factor, lower = pair("cho_solve", c_and_lower, "(c, lower), as cho_factor gives it")
    (x, y), narrow = computing("cho_solve", *from_sequences(factor, b))
    low = x if lower else adjoint(x)
    below = _triangular("cho_solve", low, y, True)
    return narrow(_triangular("cho_solve", adjoint(low), below, False))


def solve(
    a: Nested,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """x with a x = b, or aᵀ x = b if transposed.

    assume_a:  "pos" (Cholesky; the triangle that `lower` names is read), "diagonal", "upper
               triangular", "lower triangular"; "gen" and every other promise means LU.

    Shapes: a [*B, N, N], b [*B, N, K] or [N]; leading axes broadcast.
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ArgumentError for an unknown assume_a; ShapeError if sizes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve(2.0 * rnp.eye(2), rnp.array([2.0, 4.0]), assume_a="pos")
    Array([1., 2.], f32[2], cpu:0)
    """
    if assume_a in TRIANGLES:
        is_lower = TRIANGLES[assume_a]
        return solve_triangular(a, b, int(transposed), is_lower)
    x = rnp.asarray(a)
    x = rnp.matrix_transpose(x) if transposed else x
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(x, lower != transposed), b)
    if assume_a == "diagonal":
        return _divided(x, b)
    if assume_a is not None and assume_a not in GENERAL:
        raise ArgumentError(
            f"solve: cannot assume {assume_a!r} (one of 'gen', 'sym', 'her', 'pos', 'diagonal', "
            "'upper triangular', 'lower triangular' required)"
        )
    return rnp.linalg.solve(_completed(x, assume_a, lower != transposed), b)


def _completed(a: Array, structure: str | None, lower: bool) -> Array:
    """A symmetric or Hermitian matrix, read from one triangle."""
    if structure not in ("sym", "symmetric", "her", "hermitian"):
        return a
    transpose = swapped(a) if structure.startswith("s") else adjoint(a)
    if lower:
        return ops.add(lower_triangle(a), upper_triangle(transpose, 1))
    return ops.add(upper_triangle(a), lower_triangle(transpose, -1))


def _divided(a: Array, b: ArrayLike) -> Array:
    (x, y), narrow = computing("solve", a, b)
    columns, is_vector = _columns("solve", x, y)
    quotient = rnp.divide(columns, rnp.expand_dims(diagonal(x), -1))
    return narrow(rnp.squeeze(quotient, -1) if is_vector else quotient)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of square matrices, as `rune.numpy.linalg.inv`.

    Shapes: a [*B, M, M] -> [*B, M, M].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.inv(rnp.array([[4.0]]))
    Array([[0.25]], f32[1,1], cpu:0)
    """
    return _inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of square matrices, as `rune.numpy.linalg.det`.

    Shapes: a [*B, M, M] -> [*B].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match
            exactly.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §3.4; by recursion: Toledo 1997,
            SIAM J. Matrix Anal. 18(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.det(rnp.array([[4.0]]))
    Array(4., f32[], cpu:0)
    """
    return _det(a)


def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    cond: ArrayLike | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> Fit:
    """x of least |x| among those of least |a x - b|, the residuals, the rank, the singular values.

    cond:   singular values up to cond times the largest count as zero; max(M, N) eps for None.
    The singular values serve every `lapack_driver`; residuals are returned for every rank.
    Shapes: a [M, N], b [M] or [M, K] -> x [N] or [N, K], residuals [] or [K], rank [], singular
            values [min(M, N)].
    Types:  x in the common dtype of a and b, complex included, the residuals and singular values in
            its real dtype, the rank i32; bools and integers become f32.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.6, one-sided rotations after
            QR.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.lstsq(2.0 * rnp.eye(2), rnp.array([2.0, 4.0]))[0].round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    solution, residuals, matrix_rank, values = rnp.linalg.lstsq(a, b, cond)
    return solution, residuals if rnp.ndim(b) > 1 else residuals[0], matrix_rank, values


@overload
def pinv(
    a: ArrayLike,
    *,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def pinv(
    a: ArrayLike,
    *,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    return_rank: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def pinv(
    a: ArrayLike,
    *,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    return_rank: bool,
    check_finite: bool = True,
) -> Any: ...
def pinv(
    a: ArrayLike,
    *,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """The Moore–Penrose inverse: singular values up to atol + rtol × the largest count as zero.

    rtol:   max(M, N) eps by default, or 0 if atol is given.
    return_rank:  whether the number of the other singular values is returned too.
    Shapes: a [*B, M, N] -> [*B, N, M].
    Types:  bools and integers become floats.
    Errors: DtypeError if an argument is not an array; ShapeError for rank 0.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.6, one-sided rotations after
            QR.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.pinv(rnp.array([[4.0]])).round(4)
    Array([[0.25]], f32[1,1], cpu:0)
    """
    x = rnp.asarray(a)
    matrices("pinv", x)
    limit = _relative_limit(x, atol, rtol)
    inverse = rnp.linalg.pinv(x, limit)
    return (inverse, rnp.linalg.matrix_rank(x, limit)) if return_rank else inverse


def _relative_limit(a: Array, atol: ArrayLike | None, rtol: ArrayLike | None) -> ArrayLike:
    shape = type_of(a).shape
    (x,), _ = computing("pinv", a)
    (values,) = ops.linalg.svd(x, full_matrices=False, vectors=False)
    relative = rtol if rtol is not None else 0.0
    if rtol is None and atol is None:
        relative = max(shape[-2:]) * float(rnp.finfo(values.dtype).eps)
    if atol is None:
        return relative
    greatest = rnp.max(values, axis=-1, initial=0.0)
    return rnp.divide(atol, greatest) + relative
