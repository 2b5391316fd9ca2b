"""Eigenvalues and singular values: eigh, eigvalsh, eig, eigvals, svd, svdvals.

Vectors of equal eigenvalues (singular values) are not differentiable, and have infinite or NaN
tangents; the values themselves stay differentiable.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from rune import ops
from rune.array import Array
from rune.core.types import Shape
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.numpy.indexing import take_along_axis
from rune.numpy.linalg.arguments import computing, matrices, square, symmetrised
from rune.numpy.shapes import flip
from rune.numpy.sorting import argsort
from rune.ops import conventions as c
from rune.ops.matrix_helpers import adjoint, number, scaled_columns
from rune.ops.movement import part
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


# --- Hermitian matrices -----------------------------------------------------------------------


@tiered
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues of Hermitian matrices, ascending, and orthonormal eigenvectors as columns.

    symmetrize_input:  whether a stands for (a + aᴴ) / 2; otherwise only the triangle UPLO is read,
                       by default the lower one, "L".

    Shapes: [*B, N, N] -> [*B, N], [*B, N, N].
    Types:  eigenvalues are real; f32, f64, c64, c128 unchanged; half types through f32.
    Errors: ShapeError for matrices that are not square; ArgumentError for any other UPLO.
    Equal eigenvalues make tangents of their vectors infinite or NaN, but not of the values.
    Source: LAPACK's heevd on the CPU, and implicit QL for compiled real matrices of few rows (Golub
            & Van Loan 4e, §8.3); Jacobi's rotations elsewhere (§8.5);
            derivative: Giles 2008, §3.1.

    >>> import rune.numpy as rnp
    >>> w, v = rnp.linalg.eigh(rnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w, abs(v)
    (Array([1., 2.], f32[2], cpu:0), Array([[0., 1.],
           [1., 0.]], f32[2,2], cpu:0))
    """
    (x,), narrow = _symmetric("eigh", a, symmetrize_input)
    w, v = ops.linalg.eigh(x, lower=_is_lower("eigh", UPLO), vectors=True)
    return narrow(EighResult(w, v))


@tiered
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian matrices, ascending; arguments as for `eigh`.

    Shapes: [*B, N, N] -> [*B, N].
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ShapeError for matrices that are not square; ArgumentError for any other UPLO.
    Source: as `eigh`; derivative: Magnus 1985, Econometric Theory 1.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.eigvalsh(rnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (x,), narrow = _symmetric("eigvalsh", a, symmetrize_input)
    (w,) = ops.linalg.eigh(x, lower=_is_lower("eigvalsh", UPLO), vectors=False)
    return narrow(w)


def _symmetric(name: str, a: ArrayLike, symmetrize_input: bool) -> Any:
    (x,), narrow = computing(name, a)
    square(name, x)
    if symmetrize_input:
        x = symmetrised(x)
    return (x,), narrow


def _is_lower(name: str, uplo: str | None) -> bool:
    if uplo not in (None, "L", "U", "l", "u"):
        raise ArgumentError(f"{name}: cannot read the triangle {uplo!r} ('L' or 'U' required)")
    return uplo in (None, "L", "l")


# --- square matrices --------------------------------------------------------------------------


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues of square matrices and their right eigenvectors as columns: a v = v w; complex.

    Shapes: [*B, N, N] -> [*B, N], [*B, N, N], in no particular order.
    Types:  c64 for f32 and c64, c128 for f64 and c128.
    Errors: ShapeError for matrices that are not square.
    The host computes it for every device. Equal eigenvalues make tangents of their vectors infinite
    or NaN.
    Source: LAPACK's geev; derivative: Boeddeker et al. 2017, arXiv:1701.00392, §4.1.

    >>> import rune.numpy as rnp
    >>> w, v = rnp.linalg.eig(rnp.array([[0.0, 1.0], [0.0, 2.0]]))
    >>> w
    Array([0.+0.j, 2.+0.j], c64[2], cpu:0)
    """
    (x,), narrow = computing("eig", a)
    square("eig", x)
    w, v = ops.linalg.eig(x, left=False, right=True)
    return narrow(EigResult(w, v))


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices, complex, in no particular order.

    Shapes: [*B, N, N] -> [*B, N]. Types: c64, or c128 for f64, c128 and 64-bit integers.
    Errors: ShapeError for matrices that are not square.
    Source: LAPACK's geev; derivative: Magnus 1985, Econometric Theory 1.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.eigvals(rnp.array([[0.0, 1.0], [0.0, 2.0]]))
    Array([0.+0.j, 2.+0.j], c64[2], cpu:0)
    """
    (x,), narrow = computing("eigvals", a)
    square("eigvals", x)
    (w,) = ops.linalg.eig(x, left=False, right=False)
    return narrow(w)


# --- singular values --------------------------------------------------------------------------


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...
@tiered
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """U, S and Vh with a = U diag(S) Vh; S descending; S alone without compute_uv.

    full_matrices:  whether U and Vh are square; otherwise they have min(M, N) columns and rows.
    hermitian:      whether a stands for (a + aᴴ) / 2: U has its eigenvectors as `eigh` gives them,
                    and the signs of the eigenvalues go into Vh.
    subset_by_index:  (first, limit), which singular values and vectors to return.

    Shapes: [*B, M, N] -> [*B, M, M], [*B, K], [*B, N, N] with K = min(M, N).
    Types:  S is real; f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ShapeError for a rank below 2; ArgumentError for a subset of full matrices, or out of
            range.
    Equal singular values make tangents of their vectors infinite or NaN, but not of S.
    Source: LAPACK's gesdd on the CPU, one-sided Jacobi elsewhere (Golub & Van Loan 4e, §8.6);
            derivative: Townsend 2016, "Differentiating the singular value decomposition".

    >>> import rune.numpy as rnp
    >>> u, s, vh = rnp.linalg.svd(rnp.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> s, bool(rnp.allclose((u * s) @ vh, rnp.array([[3.0, 0.0], [0.0, 4.0]])))
    (Array([4., 3.], f32[2], cpu:0), True)
    """
    (x,), narrow = _symmetric("svd", a, True) if hermitian else computing("svd", a)
    x_type = matrices("svd", x)
    decompose = _hermitian_svd if hermitian else ops.linalg.svd
    first, limit = _subset("svd", subset_by_index, x_type.shape, full_matrices and compute_uv)
    if not compute_uv:
        (s,) = decompose(x, full_matrices=False, vectors=False)
        return narrow(part(s, -1, first, limit) if subset_by_index else s)
    u, s, vh = decompose(x, full_matrices=full_matrices, vectors=True)
    if subset_by_index:
        u, s = part(u, -1, first, limit), part(s, -1, first, limit)
        vh = part(vh, -2, first, limit)
    return narrow(SVDResult(u, s, vh))


def _hermitian_svd(x: Value, *, full_matrices: bool, vectors: bool) -> tuple[Array, ...]:
    """The singular values and vectors, from eigenvalues: a v = w v = |w| (v sign w)."""
    w, *columns = ops.linalg.eigh(x, lower=True, vectors=vectors)
    sizes = ops.abs(w)
    order = flip(argsort(sizes), -1)
    s = take_along_axis(sizes, order, -1)
    if not vectors:
        return (s,)
    signs = ops.select(ops.lt(w, number(0, w)), number(-1, x), number(1, x))
    u = take_along_axis(columns[0], c.expand_dims(order, -2), -1)
    return u, s, adjoint(scaled_columns(u, take_along_axis(signs, order, -1)))


def _subset(name: str, subset: tuple[int, int] | None, shape: Shape, full: bool) -> tuple[int, int]:
    if subset is None:
        return 0, 0
    first, limit = subset
    if full or not (0 <= first < limit and limit <= min(shape[-2:])):
        raise ArgumentError(
            f"{name}: cannot take the singular values {first} to {limit} of matrices of "
            f"{shape[-2]} rows and {shape[-1]} columns",
            hint="0 <= first < limit <= min(M, N), with full_matrices=False",
        )
    return first, limit


@tiered
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values, descending.

    Shapes: [*B, M, N] -> [*B, min(M, N)].
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ShapeError for a rank below 2.
    Source: as `svd`; derivative: Magnus 1985, Econometric Theory 1.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.svdvals(rnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], f32[2], cpu:0)
    """
    return svd(x, compute_uv=False)
