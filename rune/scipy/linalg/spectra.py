"""Eigenvalues and singular values with SciPy's signatures, for bands and pairs of matrices, too.

`overwrite_*`, `check_finite`, `turbo` and drivers are accepted without effect: arrays are
immutable, input that is not finite gives NaN, and each device has one algorithm.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.linalg import cholesky, solve
from rune.numpy.linalg import svd as _svd
from rune.numpy.linalg.arguments import chosen, computing, same_batch, square
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import adjoint, hermitian, matmul
from rune.ops.movement import part
from rune.ops.promote import broadcast_shape
from rune.scipy.sequences import from_sequences
from rune.typing import ArrayLike, Nested

Selection = tuple[float, float] | None


# --- singular values --------------------------------------------------------------------------


class _Kw(TypedDict, total=False):
    overwrite_a: bool
    check_finite: bool
    lapack_driver: str


class _KwTwo(TypedDict, total=False):
    overwrite_a: bool
    overwrite_b: bool
    turbo: bool
    type: int
    check_finite: bool
    subset_by_index: tuple[int, int] | None


@overload
def svd(
    a: Nested, full_matrices: bool = True, compute_uv: Literal[True] = True, **kw: Unpack[_Kw]
) -> tuple[Array, Array, Array]: ...
@overload
def svd(a: Nested, full_matrices: bool = True, *, compute_uv: Literal[False], **kw: Unpack[_Kw]) -> Array: ...
@overload
def svd(a: Nested, full_matrices: bool, compute_uv: Literal[False], **kw: Unpack[_Kw]) -> Array: ...
@overload
def svd(a: Nested, full_matrices: bool = True, compute_uv: bool = True, **kw: Unpack[_Kw]) -> Any: ...
def svd(
    a: Nested,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:
    """U, s and Vh with a = U diag(s) Vh; s alone without compute_uv. As `rune.numpy.linalg.svd`.

    Shapes: [*B, M, N] -> [*B, M, M], [*B, K], [*B, N, N] with K = min(M, N).
    Types:  values real, vectors complex for complex input; bools and integers become floats.
    Errors: ShapeError for a rank below 2.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.6, one-sided rotations after
            QR.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.svd(rnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], f32[2], cpu:0)
    """
    factors = _svd(*from_sequences(a), full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(factors) if compute_uv else factors


def svdvals(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Singular values, descending. Shapes: [*B, M, N] -> [*B, min(M, N)], real.

    Types:  real; bools and integers become floats.
    Errors: ShapeError for a rank below 2.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.6, one-sided rotations after
            QR.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.svdvals(rnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], f32[2], cpu:0)
    """
    return _svd(a, compute_uv=False)


def diagsvd(s: Nested, M: int, N: int) -> Array:
    """The M × N matrix with the singular values s on its diagonal.

    Shapes: [*B, min(M, N)] -> [*B, M, N].
    Types:  any, unchanged.
    Errors: ShapeError for a number of rank 0, ArgumentError for another number of values.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.diagsvd(rnp.array([3.0, 4.0]), 2, 3)
    Array([[3., 0., 0.],
           [0., 4., 0.]], f32[2,3], cpu:0)
    """
    s = rnp.asarray(s)
    if s.ndim == 0:
        raise ShapeError("diagsvd: cannot place a number of rank 0 (rank 1 or more required)")
    k = s.shape[-1]
    if k != min(M, N):
        raise ArgumentError(f"diagsvd: cannot place {k} singular values in a {M} × {N} matrix ({min(M, N)} required)")
    on = rnp.eye(k, N, dtype=s.dtype) * rnp.expand_dims(s, -1)
    return rnp.concatenate([on, rnp.zeros((*s.shape[:-1], M - k, N), s.dtype)], axis=-2)


# --- Hermitian matrices -----------------------------------------------------------------------


@overload
def eigh(
    a: Nested, b: Nested | None = None, lower: bool = True, *, eigvals_only: Literal[True], **kw: Unpack[_KwTwo]
) -> Array: ...
@overload
def eigh(a: Nested, b: Nested | None, lower: bool, eigvals_only: Literal[True], **kw: Unpack[_KwTwo]) -> Array: ...
@overload
def eigh(
    a: Nested, b: Nested | None = None, lower: bool = True, eigvals_only: Literal[False] = False, **kw: Unpack[_KwTwo]
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: Nested, b: Nested | None = None, lower: bool = True, eigvals_only: bool = False, **kw: Unpack[_KwTwo]
) -> Any: ...
def eigh(
    a: Nested,
    b: Nested | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
    *,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues of Hermitian matrices, ascending, and eigenvectors; of pairs with b.

    b:      positive definite: a v = w b v (type 1), a b v = w v (type 2), b a v = w v (type 3).
            Vectors then have vᴴ b v = 1, for type 3 vᴴ b⁻¹ v = 1.
    lower:  the triangle of a and of b that is read.
    subset_by_index:  (first, last), both included: which of the values and vectors to return.

    Shapes: [*B, N, N] -> [*B, N], [*B, N, N].
    Types:  values real, vectors complex for complex input; bools and integers become floats.
    Errors: ShapeError for matrices that are not square; ArgumentError for an unknown type, or a
            subset out of range.
    Source: as `rune.numpy.linalg.eigh`; pairs by Cholesky, Golub & Van Loan 4e, §8.7.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eigh(rnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
    Array([1., 2.], f32[2], cpu:0)
    """
    if eigvals is not None or type not in (1, 2, 3):
        raise ArgumentError(
            f"eigh: cannot take eigvals={eigvals!r}, type={type!r} (type 1, 2 or 3)",
            hint="subset_by_index= chooses eigenvalues",
        )
    if b is None:
        (x,), narrow = computing("eigh", *from_sequences(a))
        square("eigh", x)
        w, v = ops.linalg.eigh(x, lower=bool(lower), vectors=True)
    else:
        (x, y), narrow = computing("eigh", *from_sequences(a, b))
        square("eigh", x)
        square("eigh", y)
        w, v = _of_pair(*same_batch("eigh", hermitian(x, lower), hermitian(y, lower)), type)
    if subset_by_index is not None:
        first, last = chosen("eigh", subset_by_index, w.shape[-1])
        w, v = part(w, -1, first, last + 1), part(v, -1, first, last + 1)
    return narrow(w if eigvals_only else (w, v))


def _of_pair(a: Array, b: Array, kind: int) -> tuple[Array, Array]:
    """By b = L Lᴴ: L⁻¹ a L⁻ᴴ for type 1, Lᴴ a L for the others."""
    factor = cholesky(b)
    if kind == 1:
        inside = _under(factor, adjoint(_under(factor, a)))
        w, u = ops.linalg.eigh(inside, lower=True, vectors=True)
        return w, _under_adjoint(factor, u)
    inside = matmul(adjoint(factor), matmul(a, factor))
    w, u = ops.linalg.eigh(inside, lower=True, vectors=True)
    return w, _under_adjoint(factor, u) if kind == 2 else matmul(factor, u)


def _under(factor: Array, x: Array) -> Array:
    return triangular_solve(factor, x, lower=True, unit_diagonal=False)


def _under_adjoint(factor: Array, x: Array) -> Array:
    return triangular_solve(adjoint(factor), x, lower=False, unit_diagonal=False)


def eigvalsh(
    a: Nested,
    b: Nested | None = None,
    *,
    lower: bool = True,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of Hermitian matrices, ascending; arguments as of `eigh`.

    Shapes: [*B, N, N] -> [*B, N], real.
    Types:  real; bools and integers become floats.
    Errors: as `eigh`.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.5; derivative: Giles 2008,
            §3.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eigvalsh(rnp.array([[2.0, 0.0], [0.0, 1.0]]), subset_by_index=(1, 1))
    Array([2.], f32[1], cpu:0)
    """
    return eigh(a, b, lower, eigvals_only=True, type=type, subset_by_index=subset_by_index)


# --- bands ------------------------------------------------------------------------------------


def _tridiagonal(name: str, d: ArrayLike, e: ArrayLike) -> tuple[Any, Any]:
    (on, off), narrow = computing(name, d, e)
    if 0 in (type_of(on).ndim, type_of(off).ndim):
        raise ArgumentError(f"{name}: cannot take {type_of(on)} and {type_of(off)} as diagonals")
    n = type_of(on).shape[-1]
    if type_of(off).shape[-1] != n - 1:
        raise ArgumentError(
            f"{name}: cannot take {type_of(on)} and {type_of(off)} (one element fewer off the diagonal required)"
        )
    lead = broadcast_shape(name, type_of(on).shape[:-1], type_of(off).shape[:-1])
    below = rnp.pad(off, [(0, 0)] * (off.ndim - 1) + [(1, 0)])
    rows = rnp.arange(n)
    is_below = rnp.expand_dims(rows, -1) == rows + 1
    matrix = rnp.eye(n, dtype=on.dtype) * rnp.expand_dims(on, -1)
    matrix = matrix + rnp.where(is_below, rnp.expand_dims(below, -1), number_zero(on))
    return rnp.broadcast_to(matrix, (*lead, n, n)), narrow


def number_zero(like: Array) -> np.ndarray:
    """Zero in the dtype of `like`."""
    return np.zeros((), type_of(like).dtype)


@overload
def eigh_tridiagonal(
    d: Nested,
    e: Nested,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: Selection = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: Nested,
    e: Nested,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: Selection = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: Nested,
    e: Nested,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Selection = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
) -> Any: ...
def eigh_tridiagonal(
    d: Nested,
    e: Nested,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Selection = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of real symmetric tridiagonal matrices.

    d, e:    the diagonal, and the first diagonal on either side of it.
    select:  "a" all; "i" those numbered select_range, both included; "v" those greater than the
             first of select_range and up to the second, which needs concrete values.
    tol:     accepted as in SciPy, without effect.

    Shapes: [*B, N], [*B, N-1] -> [*B, K], [*B, N, K].
    Types:  values real, vectors complex for complex input; bools and integers become floats.
    Errors: ArgumentError if the sizes do not match, or another selection.
    Source: the whole matrix by `eigh`; Golub & Van Loan 4e, §8.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eigh_tridiagonal(rnp.array([0.0, 0.0]), rnp.array([1.0]), eigvals_only=True)
    Array([-1.,  1.], f32[2], cpu:0)
    """
    matrix, narrow = _tridiagonal("eigh_tridiagonal", *from_sequences(d, e))
    w, v = ops.linalg.eigh(matrix, lower=True, vectors=True)
    return narrow(_selected("eigh_tridiagonal", w, v, eigvals_only, select, select_range))


def _selected(name: str, w: Array, v: Array, values_only: bool, select: str, among: Selection) -> Any:
    kinds = {"a": "a", "all": "a", "i": "i", "index": "i", "v": "v", "value": "v"}
    kind = kinds.get(select)
    if kind is None or (kind != "a" and among is None):
        raise ArgumentError(
            f"{name}: cannot select {select!r} with the range {among!r} ('a', or 'i' or 'v' with a range)"
        )
    if kind == "i" and among is not None:
        first, last = (int(x) for x in among)
        w, v = part(w, -1, first, last + 1), part(v, -1, first, last + 1)
    if kind == "v" and among is not None:
        positions = np.flatnonzero(np.asarray((w > among[0]) & (w <= among[1])))
        w, v = w[..., positions], v[..., positions]
    return w if values_only else (w, v)


def eigvalsh_tridiagonal(
    d: Nested,
    e: Nested,
    select: str = "a",
    select_range: Selection = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
) -> Array:
    """Eigenvalues of real symmetric tridiagonal matrices; arguments as of `eigh_tridiagonal`.

    Shapes: [*B, N], [*B, N-1] -> [*B, K].
    Types:  real; bools and integers become floats.
    Errors: as `eigh_tridiagonal`.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.4.1 and §8.5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eigvalsh_tridiagonal(rnp.array([0.0, 0.0]), rnp.array([1.0]))
    Array([-1.,  1.], f32[2], cpu:0)
    """
    return eigh_tridiagonal(d, e, True, select, select_range)


class _KwBand(TypedDict, total=False):
    overwrite_a_band: bool
    select: str
    select_range: Selection
    max_ev: int
    check_finite: bool


@overload
def eig_banded(
    a_band: ArrayLike, lower: bool = False, eigvals_only: Literal[False] = False, **kw: Unpack[_KwBand]
) -> tuple[Array, Array]: ...
@overload
def eig_banded(
    a_band: ArrayLike, lower: bool = False, *, eigvals_only: Literal[True], **kw: Unpack[_KwBand]
) -> Array: ...
@overload
def eig_banded(a_band: ArrayLike, lower: bool = False, eigvals_only: bool = False, **kw: Unpack[_KwBand]) -> Any: ...
def eig_banded(
    a_band: ArrayLike,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Selection = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix given by its diagonals.

    a_band:  the diagonal and those on one side, as rows: for `lower` element (i, j) of the matrix
             stands at (i - j, j), else at (U + i - j, j), U the number of diagonals above.
    select:  as of `eigh_tridiagonal`. max_ev is accepted, without effect.

    Shapes: [U+1, N] -> [K], [N, K].
    Types:  values real, vectors complex for complex input; bools and integers become floats.
    Errors: ArgumentError for an unknown selection; ShapeError for anything but one matrix.
    Source: the whole matrix by `eigh`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eig_banded(rnp.array([[0.0, 1.0], [0.0, 0.0]]), eigvals_only=True)
    Array([-1.,  1.], f32[2], cpu:0)
    """
    (band,), narrow = computing("eig_banded", a_band)
    if type_of(band).ndim != 2:
        raise ShapeError(f"eig_banded: cannot take the bands {type_of(band)} (one matrix required)")
    count, n = type_of(band).shape
    row, column = rnp.expand_dims(rnp.arange(n), 1), rnp.arange(n)
    at = row - column if lower else count - 1 + row - column
    inside = (at >= 0) & (at < count) & ((row >= column) if lower else (row <= column))
    entries = band[rnp.clip(at, 0, count - 1), rnp.broadcast_to(column, (n, n))]
    matrix = rnp.where(inside, entries, number_zero(band))
    w, v = ops.linalg.eigh(matrix, lower=bool(lower), vectors=True)
    return narrow(_selected("eig_banded", w, v, eigvals_only, select, select_range))


# --- square matrices --------------------------------------------------------------------------


def eig(
    a: ArrayLike,
    b: ArrayLike | None = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of square matrices, with `left` and `right` vectors: w, or (w, vl, vr).

    b:  regular: a v = w b v, and vlᴴ a = w vlᴴ b.

    Shapes: [*B, N, N] -> [*B, N], [*B, N, N]; complex, vectors of length one.
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square; ArgumentError for homogeneous_eigvals.
    The host computes it for every device.
    Source: as `rune.numpy.linalg.eig`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eig(rnp.array([[0.0, 1.0], [0.0, 2.0]]), right=False)
    Array([0.+0.j, 2.+0.j], c64[2], cpu:0)
    """
    if homogeneous_eigvals:
        raise ArgumentError("eig: cannot give homogeneous eigenvalues (they are not computed)")
    if b is None:
        (x,), narrow = computing("eig", a)
        square("eig", x)
        out = ops.linalg.eig(x, left=left, right=right)
    else:
        (x, y), narrow = computing("eig", a, b)
        square("eig", x)
        square("eig", y)
        out = ops.linalg.eig(solve(y, x), left=left, right=right)
        if left:  # uᴴ b⁻¹ a = w uᴴ with u = bᴴ vl
            u = solve(adjoint(ops.cast(y, type_of(out[1]).dtype)), out[1])
            out[1] = u / rnp.linalg.norm(u, axis=-2, keepdims=True)
    return narrow(tuple(out) if left or right else out[0])


def eigvals(
    a: ArrayLike,
    b: ArrayLike | None = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Array:
    """Eigenvalues of square matrices, complex, in no particular order; of pairs with b.

    Shapes: [*B, N, N] -> [*B, N].
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: as `eig`.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §7.5 and §7.6; derivative:
            Boeddeker et al. 2017, arXiv:1701.00392.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.eigvals(rnp.array([[0.0, 1.0], [0.0, 2.0]]))
    Array([0.+0.j, 2.+0.j], c64[2], cpu:0)
    """
    return eig(a, b, left=False, right=False, homogeneous_eigvals=homogeneous_eigvals)
