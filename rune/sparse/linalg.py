"""Sparse systems solved by elimination, and the largest eigenvalues of large matrices by products.

`rune.scipy.sparse.linalg` has the methods that solve systems by products alone.
"""

from __future__ import annotations

from collections.abc import Callable

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.lax import while_loop
from rune.numpy.arguments import inexact, value
from rune.sparse.rows import BCSR
from rune.typing import ArrayLike

__all__ = ["lobpcg_standard", "spsolve"]

_State = tuple[Array, Array, Array, Array, Array]  # values, vectors, A times the vectors, last steps, count


def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """x with A x = b, for a square matrix A by rows: its data, their columns, and the row starts.

    The matrix is made dense and factorised: n² numbers of memory, n³ multiplications. A singular
    matrix gives infinities or NaN. `tol` and `reorder` are accepted as in JAX, without effect.

    Shapes: data [N], indices [N], indptr [n + 1], b [n] or [n, K] -> as b.
    Types:  floating or complex; integers become floats.
    Errors: ShapeError for shapes that do not fit together.

    >>> import rune.numpy as rnp
    >>> from rune.sparse.linalg import spsolve
    >>> data, columns, begins = rnp.array([2.0, 4.0]), rnp.array([0, 1]), rnp.array([0, 1, 2])
    >>> spsolve(data, columns, begins, rnp.array([2.0, 2.0]))
    Array([1. , 0.5], f32[2], cpu:0)
    """
    right = inexact("spsolve", value("spsolve", b))
    n = value("spsolve", indptr).shape[0] - 1
    matrix = BCSR((data, indices, indptr), shape=(n, n))
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ShapeError(f"spsolve: cannot solve {right.type} by a matrix of {n} rows ([n] or [n, K] required)")
    return rnp.linalg.solve(matrix.todense(), right)


def lobpcg_standard(
    A: ArrayLike | Callable[[Array], ArrayLike], X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """(eigenvalues, eigenvectors, iterations): the k largest of a Hermitian matrix, by products.

    A:   the matrix, or a function that multiplies it with columns [n, K]
    X:   k columns to begin with, linearly independent; 5 k < n
    m:   maximal number of iterations; each takes one product with k columns, and one with 3 k
    tol: it stops when every |A v - λ v| is below tol · 10 n · (|λ| + |A v|); by default the spacing
         of floats at 1
    Each iteration finds the best k vectors among the last ones, their residuals and the last steps,
    in an orthonormal basis of all of these.

    Shapes: A [n, n], X [n, k] -> [k], [n, k], []. Types: floating or complex, those of X; i32.
    Errors: ShapeError for other shapes, and for too many columns.
    Source: Knyazev 2001, SIAM J. Sci. Comput. 23; a basis as Duersch, Shao, Yang & Gu 2018.

    >>> import rune.numpy as rnp
    >>> from rune.sparse.linalg import lobpcg_standard
    >>> values, vectors, _ = lobpcg_standard(rnp.diag(rnp.arange(12.0)), rnp.ones((12, 1)))
    >>> values.round(3), abs(vectors[-1]).round(3)
    (Array([11.], f32[1], cpu:0), Array([1.], f32[1], cpu:0))
    """
    start = inexact("lobpcg_standard", value("lobpcg_standard", X))
    multiply = _product(A, start)
    k = start.shape[1]
    limit = rnp.finfo(start.dtype).eps if tol is None else tol
    first = rnp.linalg.qr(start)[0]
    values, vectors, products = _best(first, multiply(first), k)
    state = values, vectors, products, rnp.zeros_like(vectors), rnp.zeros((), "i32")

    def goes_on(state: _State) -> Array:
        values, vectors, products, _, count = state
        return (count < m) & ~_is_exact(values, vectors, products, limit)

    def step(state: _State) -> _State:
        values, vectors, products, steps, count = state
        basis = rnp.linalg.qr(rnp.concatenate([vectors, products - vectors * values, steps], axis=1))[0]
        values, new, products = _best(basis, multiply(basis), k)
        return values, new, products, new - vectors @ (vectors.conj().T @ new), count + 1

    values, vectors, _, _, count = while_loop(goes_on, step, state)
    return values, vectors, count


def _product(A: ArrayLike | Callable[[Array], ArrayLike], start: Array) -> Callable[[Array], Array]:
    """The function that multiplies the matrix with columns. Errors: ShapeError."""
    if start.ndim != 2 or not 0 < 5 * start.shape[1] < start.shape[0]:
        raise ShapeError(f"lobpcg_standard: cannot begin with {start.type} ([n, k] with 0 < 5 k < n required)")
    if callable(A):
        return lambda columns: value("lobpcg_standard", A(columns))
    matrix = value("lobpcg_standard", A)
    if matrix.shape != (start.shape[0],) * 2:
        raise ShapeError(f"lobpcg_standard: cannot multiply {matrix.type} with {start.type} ([n, n] required)")
    if matrix.dtype != start.dtype:
        raise ArgumentError(f"lobpcg_standard: cannot multiply {matrix.type} with {start.type} (dtypes differ)")
    return lambda columns: matrix @ columns


def _best(basis: Array, products: Array, k: int) -> tuple[Array, Array, Array]:
    """The k largest eigenvalues within the span of a basis, their vectors, and A times these."""
    values, weights = rnp.linalg.eigh(basis.conj().T @ products)
    coefficients = weights[:, ::-1][:, :k]
    return values[::-1][:k], basis @ coefficients, products @ coefficients


def _is_exact(values: Array, vectors: Array, products: Array, tol: ArrayLike) -> Array:
    residuals = rnp.linalg.norm(products - vectors * values, axis=0)
    sizes = rnp.abs(values) + rnp.linalg.norm(products, axis=0)
    return rnp.all(residuals < rnp.asarray(tol) * (10 * vectors.shape[0]) * sizes)
