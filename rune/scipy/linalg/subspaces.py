"""Bases and angles of subspaces, and the nearest unitary matrix: all by singular values.

The number of columns that null_space and orth return depends on values. Under jit, `size=` gives
the number to return: further columns are zero, and of too many only the first are returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import known
from rune.numpy.linalg import solve, svd
from rune.numpy.linalg.arguments import computing, matrices
from rune.ops.complex_numbers import complex_dtype, real_dtype
from rune.ops.linalg.sylvester import sylvester
from rune.ops.matrix_helpers import adjoint, as_dtype_of, from_diagonal, matmul, scaled_columns
from rune.ops.movement import part
from rune.scipy.sequences import from_sequences
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike, Nested, Shape

# --- polar decomposition ----------------------------------------------------------------------


@custom_jvp
def _polar(a: Array) -> tuple[Array, Array]:
    """U with orthonormal columns and P = (Aᴴ A)^½, A = U P, for at least as many rows as
    columns.
    """
    u, s, vh = ops.linalg.svd(a, full_matrices=False, vectors=True)
    v = adjoint(vh)
    return matmul(u, vh), matmul(scaled_columns(v, as_dtype_of(s, v)), vh)


def _polar_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Any:
    """U' = U Ω + (1 - U Uᴴ) A' P⁻¹ with P Ω + Ω P = Uᴴ A' - A'ᴴ U, and P' = Uᴴ A' - Ω P."""
    (a,), (da,) = primals, tangents
    u, p = _polar(a)
    _, s, vh = ops.linalg.svd(ops.stop_gradient(a), full_matrices=False, vectors=True)
    dtype = complex_dtype(type_of(a).dtype)
    t, z = from_diagonal(ops.cast(s, dtype)), ops.cast(adjoint(vh), dtype)
    inside = matmul(adjoint(u), da)
    turn = sylvester(p, p, t, z, t, z, ops.sub(inside, adjoint(inside)), transposed=False)
    du = matmul(u, turn)
    if type_of(a).shape[-2] != type_of(a).shape[-1]:
        leaving = ops.sub(da, matmul(u, inside))
        du = ops.add(du, adjoint(solve(p, adjoint(leaving))))
    return (u, p), (du, ops.sub(inside, matmul(turn, p)))


_polar.defjvp(_polar_jvp)


def polar(
    a: Nested, side: str = "right", *, method: str = "svd", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Array, Array]:
    """U with orthonormal columns (or rows) and P positive: a = U P, or a = P U if side is "left".

    method:  accepted as in JAX, "qdwh" or "svd"; eps and max_iterations likewise. Singular values
             serve both.

    Shapes: [*B, M, N] -> [*B, M, N] and [*B, N, N], or [*B, M, M] on the left.
    Types:  complex included; bools and integers become floats.
    Errors: ArgumentError for an unknown side or method; ShapeError for a rank below 2.
    The derivative holds for equal singular values; it is infinite or NaN where the smallest is 0.
    Source: Higham 2008, Functions of Matrices, §8.1; derivative: its theorem 8.9.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> u, p = linalg.polar(rnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> u + 0.0
    Array([[ 0., -1.],
           [ 1.,  0.]], f32[2,2], cpu:0)
    """
    if side not in ("left", "right") or method not in ("qdwh", "svd"):
        raise ArgumentError(
            f"polar: cannot use side={side!r} and method={method!r} ('left' or 'right'; 'qdwh' or 'svd')"
        )
    (x,), narrow = computing("polar", *from_sequences(a))
    m, n = matrices("polar", x).shape[-2:]
    if m >= n:
        u, p = _polar(x)
    else:
        u, p = _polar(adjoint(x))
        u = adjoint(u)
    # For A = U P the other factor is U P Uᴴ; for its adjoint it is Uᴴ P U.
    if side == ("left" if m >= n else "right"):
        over = u if m >= n else adjoint(u)
        p = matmul(matmul(over, p), adjoint(over))
    return narrow((u, p))


def orthogonal_procrustes(A: ArrayLike, B: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The unitary R for which A R is nearest to B, and the sum of singular values of Aᴴ B.

    Shapes: [M, N] both -> [N, N], [].
    Types:  R complex for complex input, the scale real; bools and integers become floats.
    Errors: ShapeError for shapes that differ.
    The derivative is that of the polar decomposition.
    Source: Golub & Van Loan 4e, §6.4.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> r, scale = linalg.orthogonal_procrustes(rnp.eye(2), rnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> r + 0.0, scale
    (Array([[ 0.,  1.],
           [-1.,  0.]], f32[2,2], cpu:0), Array(2., f32[], cpu:0))
    """
    (a, b), narrow = computing("orthogonal_procrustes", A, B)
    if type_of(a).shape != type_of(b).shape or type_of(a).ndim != 2:
        raise ShapeError(
            f"orthogonal_procrustes: cannot align {type_of(a)} with {type_of(b)} (matrices of one shape required)"
        )
    product = matmul(adjoint(a), b)
    u, p = _polar(product)
    return narrow((u, rnp.trace(p).real))


# --- bases ------------------------------------------------------------------------------------


def _rank(s: Array, rcond: object, shape: Shape) -> Array:
    """The number of singular values above rcond times the largest."""
    if rcond is None:
        rcond = float(np.finfo(type_of(s).dtype).eps) * max(shape)
    greatest = rnp.max(s) if s.shape[-1] else np.zeros((), type_of(s).dtype)
    return rnp.count_nonzero(s > greatest * rcond)


def _columns(name: str, q: Array, first: ArrayLike, count: Array | Size, size: int | None) -> Array:
    """`count` columns of q from `first` on; if `size` is given, that many, padded with zeros."""
    if size is None:
        start, column_count = (int(known(name, n, "size")) for n in (first, count))
        return part(q, -1, start, start + column_count)
    if not isinstance(size, int) or size < 0:
        raise ArgumentError(f"{name}: cannot return size={size!r} columns (integer required)")
    number = rnp.arange(size)
    last = max(q.shape[-1] - 1, 0)
    columns = rnp.take(q, rnp.clip(first + number, 0, last), axis=-1, mode="clip")
    return rnp.where(number < count, columns, np.zeros((), type_of(q).dtype))


def null_space(A: ArrayLike, rcond: float | None = None, *, size: int | None = None) -> Array:
    """An orthonormal basis of all x with A x = 0, as columns.

    rcond:  singular values up to rcond times the largest count as zero; max(M, N) eps by default.
    size:   the number of columns to return, for use under jit; by default all of them.
    Shapes: [M, N] -> [N, N - rank], or [N, size].
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError unless A is a matrix; under jit an error without `size`.

    A does not determine the basis, only its projector, which has the correct derivative.
    Source: Golub & Van Loan 4e, §5.4.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> abs(linalg.null_space(rnp.array([[1.0, 0.0]])))
    Array([[0.],
           [1.]], f32[2,1], cpu:0)
    """
    (x,), narrow = _matrix("null_space", A)
    n = type_of(x).shape[-1]
    _, s, vh = svd(x, full_matrices=True)
    rank = _rank(s, rcond, type_of(x).shape)
    return narrow(_columns("null_space", adjoint(vh), rank, n - rank, size))


def orth(A: ArrayLike, rcond: float | None = None, *, size: int | None = None) -> Array:
    """An orthonormal basis of the range of A, as columns; arguments as of `null_space`.

    Shapes: [M, N] -> [M, rank], or [M, size].
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError unless A is a matrix; under jit an error without `size`.
    Source: Golub & Van Loan 4e, §5.4.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> abs(linalg.orth(rnp.array([[2.0, 0.0], [0.0, 0.0]])))
    Array([[1.],
           [0.]], f32[2,1], cpu:0)
    """
    (x,), narrow = _matrix("orth", A)
    u, s, _ = svd(x, full_matrices=False)
    return narrow(_columns("orth", u, 0, _rank(s, rcond, type_of(x).shape), size))


def _matrix(name: str, A: ArrayLike) -> Any:
    (x,), narrow = computing(name, A)
    if type_of(x).ndim != 2:
        raise ShapeError(f"{name}: cannot take {type_of(x)} (one matrix required)")
    return (x,), narrow


def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """The angles between the ranges of two matrices, descending, in radians.

    Shapes: [M, N], [M, K] -> [min(N, K)]; columns are taken to be independent.
    Types:  real; bools and integers become floats.
    Errors: ShapeError for numbers of rows that differ.
    Small angles come from their sines and others from their cosines, so that none loses its
    digits.
    Source: Knyazev & Argentati 2002, SIAM J. Sci. Comput. 23(6); Björck & Golub 1973, Math. Comp.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.subspace_angles(rnp.array([[1.0], [0.0]]), rnp.array([[0.0], [1.0]])) * 2 / rnp.pi
    Array([1.], f32[1], cpu:0)
    """
    (a, b), narrow = computing("subspace_angles", A, B)
    if type_of(a).ndim != 2 or type_of(b).ndim != 2 or type_of(a).shape[0] != type_of(b).shape[0]:
        raise ShapeError(
            f"subspace_angles: cannot compare {type_of(a)} with {type_of(b)} (matrices of as many rows required)"
        )
    p, q = (ops.linalg.qr(x, full_matrices=False)[0] for x in (a, b))
    if type_of(p).shape[1] < type_of(q).shape[1]:
        p, q = q, p
    product = matmul(adjoint(p), q)
    cosines = svd(product, compute_uv=False)
    sines = svd(ops.sub(q, matmul(p, product)), compute_uv=False)
    by_sine = rnp.arcsin(rnp.minimum(sines, np.ones((), real_dtype(type_of(a).dtype))))
    by_cosine = rnp.arccos(rnp.clip(cosines, -1.0, 1.0))
    small = rnp.flip(cosines) ** 2 >= 0.5
    return narrow(rnp.where(small, by_sine, rnp.flip(by_cosine)))
