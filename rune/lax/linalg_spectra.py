"""Eigenvalues, singular values and similar forms under JAX's names; public in rune.lax.linalg.

Dtypes are f32, f64, c64 and c128, matrices are the last two axes; nothing is promoted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.control import while_loop
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import value
from rune.ops.complex_numbers import real_dtype
from rune.ops.matrix_helpers import adjoint, eye, full, matmul, number, require_square
from rune.ops.movement import part
from rune.ops.statistics import squared_length
from rune.typing import ArrayLike


class SvdAlgorithm(Enum):
    """JAX's choice of algorithm; here each device has one.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.linalg.svd(rnp.eye(2), compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)
    Array([1., 1.], f32[2], cpu:0)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: object = None,
) -> tuple[Array, Array]:
    """Eigenvectors of Hermitian matrices as columns, and eigenvalues, always ascending.

    symmetrize_input:  whether x stands for (x + xᴴ) / 2; otherwise one triangle is read.
    subset_by_index:   (first, limit), which of them to return.
    Shapes: [*B, N, N] -> [*B, N, N], [*B, N].
    Errors: ShapeError for matrices that are not square; ArgumentError for a subset out of range.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.5; derivative: Giles 2008,
            §3.1.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> v, w = lax.linalg.eigh(rnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w
    Array([1., 2.], f32[2], cpu:0)
    """
    a = value("eigh", x)
    n = require_square("eigh", type_of(a))
    if symmetrize_input:
        a = ops.mul(ops.add(a, adjoint(a)), number(0.5, a))
    w, v = ops.linalg.eigh(a, lower=bool(lower), vectors=True)
    if subset_by_index is not None:
        first, limit = _subset("eigh", subset_by_index, n)
        w, v = part(w, -1, first, limit), part(v, -1, first, limit)
    return v, w


def _subset(name: str, subset: tuple[int, int], count: Any) -> tuple[int, int]:
    first, limit = subset
    if not (0 <= first < limit and limit <= count):
        raise ArgumentError(
            f"{name}: cannot take subset_by_index={subset} of {count} (0 <= first < limit <= {count} required)"
        )
    return first, limit


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,
    implementation: object = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues of square matrices, and the requested left and right eigenvectors; complex.

    enable_eigvec_derivs:  accepted as in JAX; vectors always have derivatives.
    Shapes: [*B, N, N] -> [*B, N], [*B, N, N], [*B, N, N].
    Errors: ShapeError for matrices that are not square. The host computes it.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §7.5 and §7.6; derivative:
            Boeddeker et al. 2017, arXiv:1701.00392.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> w, vl, vr = lax.linalg.eig(rnp.array([[0.0, 1.0], [0.0, 2.0]]))
    >>> rnp.sort(w.real)
    Array([0., 2.], f32[2], cpu:0)
    """
    flags = {"left": bool(compute_left_eigenvectors), "right": bool(compute_right_eigenvectors)}
    return list(ops.linalg.eig(value("eig", x), **flags))


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Array: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Any: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Array | tuple[Array, ...]:
    """U, s and Vh with x = U diag(s) Vh, s descending; s alone without compute_uv.

    algorithm:  accepted as in JAX; each device has one algorithm.
    Shapes: [*B, M, N] -> [*B, M, M], [*B, K], [*B, N, N], K = min(M, N).
    Errors: ShapeError below rank 2; ArgumentError for a subset out of range or of full matrices.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.6, one-sided rotations after
            QR.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.svd(rnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], f32[2], cpu:0)
    """
    a = value("svd", x)
    full = full_matrices and compute_uv
    out = ops.linalg.svd(a, full_matrices=full, vectors=bool(compute_uv))
    if subset_by_index is not None:
        if full:
            raise ArgumentError(
                f"svd: cannot take subset_by_index={subset_by_index} of {type_of(a)} with full_matrices=True"
            )
        first, limit = _subset("svd", subset_by_index, min(type_of(a).shape[-2:]))
        axes = (-1, -1, -2) if compute_uv else (-1,)
        out = [part(o, axis, first, limit) for o, axis in zip(out, axes, strict=True)]
    return tuple(out) if compute_uv else out[0]


@overload
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: Literal[True] = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array, Array]: ...
@overload
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: Literal[False],
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> Array: ...
@overload
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> Any: ...
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> Array | tuple[Array, ...]:
    """T and Z with x = Z T Zᴴ: real matrices quasi-triangular, complex ones triangular.

    Shapes: [*B, N, N] -> [*B, N, N], [*B, N, N]; T alone without compute_schur_vectors.
    Errors: ArgumentError for sort_eig_vals. The host computes it.
    Derivative: with the phases of Z held fixed; infinite or NaN where eigenvalues are equal, and
                for a real x with a normal 2 × 2 block (a rotation), whose complex form does have
                one.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §7.4 to §7.6; Francis 1961,
            Computer J. 4.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> t, z = lax.linalg.schur(rnp.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.shape, z.shape
    ((2, 2), (2, 2))
    """
    if sort_eig_vals or select_callable is not None:
        raise ArgumentError("schur: cannot sort eigenvalues (their order is free)")
    out = ops.linalg.schur(value("schur", x), vectors=bool(compute_schur_vectors))
    return tuple(out) if compute_schur_vectors else out[0]


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """The Hessenberg form with the vectors of its reflections below it, and their taus.

    For the results form and taus, `householder_product(form[1:, :-1], taus)` is Q without its first
    row and column.
    Shapes: [*B, N, N] -> [*B, N, N], [*B, N-1].
    Errors: ShapeError for matrices that are not square.
    Derivative: infinite or NaN where the subdiagonal has a zero.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §7.4.2, algorithm 7.4.2.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.hessenberg(rnp.array([[1.0, 2.0], [3.0, 4.0]]))[1]
    Array([0.], f32[1], cpu:0)
    """
    form, taus = ops.linalg.hessenberg(value("hessenberg", a))
    return form, taus


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """The tridiagonal form of Hermitian matrices: reflections, diagonal, subdiagonal, taus.

    lower:  which triangle is read, and receives the vectors of the reflections.
    Shapes: [*B, N, N] -> [*B, N, N], [*B, N], [*B, N-1], [*B, N-1].
    Errors: ShapeError for matrices that are not square.
    Derivative: infinite or NaN where the subdiagonal has a zero.
    Source: Golub & Van Loan, Matrix Computations, 4th edition, §8.3.1, algorithm 8.3.1.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.linalg.tridiagonal(rnp.array([[1.0, 2.0], [2.0, 4.0]]))[1:3]
    (Array([1., 4.], f32[2], cpu:0), Array([2.], f32[1], cpu:0))
    """
    form, d, e, taus = ops.linalg.tridiagonal(value("tridiagonal", a), lower=bool(lower))
    return form, d, e, taus


# --- polar decomposition by iteration ---------------------------------------------------------


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: object = None,
) -> tuple[Array, Array, Array, Array]:
    """U with orthonormal columns and H positive, x = U H; the number of steps; whether it
    converged.

    is_hermitian:  ignored.
    Shapes: [M, N] with M >= N -> [M, N], [N, N], i32[], bool[].
    Errors: ShapeError for any other shape; DtypeError for bools, integers and half types;
            ArgumentError for dynamic_shape.
    Source: dynamically weighted Halley steps by QR, Nakatsukasa, Bai & Gygi 2010, SIAM J. Matrix
            Anal. 31(5).

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> u, h, steps, converged = lax.linalg.qdwh(rnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> bool(converged), bool(rnp.allclose(u @ h, rnp.array([[0.0, -2.0], [3.0, 0.0]]), atol=1e-5))
    (True, True)
    """
    if dynamic_shape is not None:
        raise ArgumentError(f"qdwh: cannot take {dynamic_shape=} (sizes are static)")
    a = value("qdwh", x)
    a_type = type_of(a)
    if a_type.ndim != 2 or not a_type.shape[0] >= a_type.shape[1]:
        raise ShapeError(f"qdwh: cannot take {a_type} (one matrix, not wider than high, required)")
    if a_type.dtype not in (dtypes.f32, dtypes.f64, *dtypes.COMPLEX):
        raise DtypeError(f"qdwh: cannot take {a_type} (f32, f64, c64 or c128 required)")
    real = real_dtype(a_type.dtype)
    unit = float(np.finfo(real).eps) if eps is None else eps
    u, steps, has_converged = _halley(a, 10 if max_iterations is None else max_iterations, unit, real)
    h = matmul(adjoint(u), a)
    return u, ops.mul(ops.add(h, adjoint(h)), number(0.5, h)), steps, has_converged


def _length(a: ArrayLike) -> Array:
    return ops.sqrt(ops.reduce_sum(squared_length(a), axes=(0, 1)))


def _halley(a: ArrayLike, most: int, unit: float, real: np.dtype) -> tuple[Array, Array, Array]:
    """Steps from A / |A| towards the nearest matrix with orthonormal columns.

    `low` is a lower bound of the singular values, from which the weights are chosen.
    """
    norm = _length(a)
    norm = ops.select(ops.eq(norm, number(0, norm)), number(1, norm), norm)
    first = ops.div(a, ops.cast(norm, type_of(a).dtype))
    tolerance = number(unit ** (1 / 3), norm)

    def more(state: tuple[Array, ...]) -> Array:
        _, low, change, step = state
        is_unsettled = ops.gt(ops.abs(ops.sub(number(1, low), low)), number(10 * unit, low))
        return ops.logical_and(ops.lt(step, np.int32(most)), ops.logical_or(is_unsettled, ops.gt(change, tolerance)))

    def stepped(state: tuple[Array, ...]) -> tuple[Array, Array, Array, Array]:
        u, low, _, step = state
        alpha, beta, gamma, low = _weights(low)
        iterate = _step(u, *(ops.cast(w, type_of(u).dtype) for w in (alpha, beta, gamma)))
        return iterate, low, _length(ops.sub(iterate, u)), ops.add(step, np.int32(1))

    start = first, full(number(unit, norm), ()), full(number(1, norm), ()), np.int32(0)
    u, _, change, step = while_loop(more, stepped, start)
    return u, step, ops.logical_not(ops.gt(change, tolerance))


def _weights(low: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """a, b, c of the step x (a + b x²) / (1 + c x²), and the new lower bound."""
    one = number(1, low)
    square = ops.mul(low, low)
    d = ops.cbrt(ops.div(ops.mul(number(4, low), ops.sub(one, square)), ops.mul(square, square)))
    root = ops.sqrt(ops.add(one, d))
    inside = ops.sub(number(8, low), ops.mul(number(4, low), d))
    extra = ops.div(ops.mul(number(8, low), ops.sub(number(2, low), square)), ops.mul(square, root))
    half = number(0.5, low)
    a = ops.add(root, ops.mul(half, ops.sqrt(ops.add(inside, extra))))
    b = ops.mul(number(0.25, low), ops.mul(ops.sub(a, one), ops.sub(a, one)))
    c = ops.sub(ops.add(a, b), one)
    bound = ops.div(ops.mul(low, ops.add(a, ops.mul(b, square))), ops.add(one, ops.mul(c, square)))
    return a, b, c, ops.min(bound, one)


def _step(u: ArrayLike, a: Array, b: Array, c: Array) -> Array:
    """b/c U + (a - b/c) Q₁ Q₂ᴴ / √c, with the QR factorisation of √c U over 1."""
    n = type_of(u).shape[1]
    root = ops.sqrt(c)
    block = ops.concatenate(ops.mul(u, root), eye((n, n), type_of(u).dtype), axis=0)
    q, _ = ops.linalg.qr(block, full_matrices=False)
    m = type_of(u).shape[0]
    product = matmul(part(q, 0, 0, m), adjoint(part(q, 0, m, m + n)))
    ratio = ops.div(b, c)
    return ops.add(ops.mul(u, ratio), ops.mul(product, ops.div(ops.sub(a, ratio), root)))
