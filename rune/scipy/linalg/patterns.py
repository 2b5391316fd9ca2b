"""Matrices with a pattern: given numbers along diagonals, antidiagonals, or in a first row.

Each is one gather or one selection, so all transformations apply. Matrices that depend only on a
size are in named.py.
"""

from __future__ import annotations

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import static_int, value
from rune.typing import ArrayLike


def _vector(name: str, x: ArrayLike) -> Array:
    """An array of rank 1, or a stack of them. A number counts as a vector of one."""
    return rnp.atleast_1d(value(name, x))


def length(x: Array) -> int:
    """The size of the last axis. Errors: ArgumentError if it is symbolic."""
    return static_int("linalg", "the size of a pattern", type_of(x).shape[-1])


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """A matrix that is the same along every diagonal: first column c, first row r.

    r:      conj(c) by default; its first element is not read.
    Shapes: [*B, M], [*B, N] -> [*B, M, N].
    Types:  any, unchanged.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.toeplitz(rnp.array([1, 2]), rnp.array([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], i32[2,3], cpu:0)
    """
    column = _vector("toeplitz", c)
    row = rnp.conj(column) if r is None else _vector("toeplitz", r)
    m, n = length(column), length(row)
    column, row = _alike(column, row)
    around = rnp.concatenate([rnp.flip(row[..., 1:], -1), column], axis=-1)
    i, j = np.indices((m, n))
    return around[..., i - j + max(n - 1, 0)] if m and n else _empty(column, m, n)


def _alike(*xs: Array) -> list[Array]:
    """Vectors with their leading axes broadcast together, and of one dtype."""
    lead = rnp.broadcast_shapes(*(type_of(x).shape[:-1] for x in xs))
    dtype = rnp.result_type(*xs)
    return [rnp.broadcast_to(x, (*lead, type_of(x).shape[-1])).astype(dtype) for x in xs]


def _empty(like: Array, m: int, n: int) -> Array:
    return rnp.zeros((*type_of(like).shape[:-1], m, n), type_of(like).dtype)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """A matrix that is the same along every antidiagonal: first column c, last row r.

    r:      zeros by default; its first element is not read.
    Shapes: [*B, M], [*B, N] -> [*B, M, N].
    Types:  any, unchanged.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.hankel(rnp.array([1, 2]), rnp.array([0, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], i32[2,3], cpu:0)
    """
    column = _vector("hankel", c)
    row = rnp.zeros_like(column) if r is None else _vector("hankel", r)
    m, n = length(column), length(row)
    column, row = _alike(column, row)
    along = rnp.concatenate([column, row[..., 1:]], axis=-1)
    i, j = np.indices((m, n))
    return along[..., i + j] if m and n else _empty(column, m, n)


def circulant(c: ArrayLike) -> Array:
    """A matrix whose columns are c, rotated by one more place each. [*B, N] -> [*B, N, N].

    Types:  that of `c`. Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.circulant(rnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], i32[3,3], cpu:0)
    """
    column = _vector("circulant", c)
    size = length(column)
    i, j = np.indices((size, size))
    return column[..., (i - j) % max(size, 1)]


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix A with A v = convolve(a, v, mode) for v of n elements.

    Shapes: a [*B, K] -> [*B, R, n], R numbers in the convolution: "full" K + n - 1, "same"
            max(K, n), "valid" |K - n| + 1.
    Types:  as a.
    Errors: ArgumentError for n < 1, another mode, or an empty `a`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.convolution_matrix(rnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], i32[3,2], cpu:0)
    """
    taps, count = _vector("convolution_matrix", a), static_int("convolution_matrix", "a size", n)
    m = length(taps)
    if count < 1 or m < 1 or mode not in ("full", "valid", "same"):
        raise ArgumentError(
            f"convolution_matrix: cannot convolve {type_of(taps)} with {count} elements, "
            f"mode {mode!r} ('full', 'valid' or 'same' and at least one element required)"
        )
    nothing = rnp.zeros_like(taps[..., :1])
    zeros = rnp.broadcast_to(nothing, (*type_of(taps).shape[:-1], count - 1))
    top = rnp.concatenate([taps[..., :1], zeros], -1)
    full = toeplitz(rnp.concatenate([taps, zeros], -1), top)
    first_row = {"full": 0, "valid": min(m, count) - 1, "same": (min(m, count) - 1) // 2}[mode]
    rows = {"full": m + count - 1, "valid": abs(m - count) + 1, "same": max(m, count)}[mode]
    return full[..., first_row : first_row + rows, :]


def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of the polynomial a, highest power first.

    Shapes: [*B, N] -> [*B, N - 1, N - 1].
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for fewer than two coefficients.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.companion(rnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], f32[2,2], cpu:0)
    """
    coefficients = _vector("companion", a)
    size = length(coefficients)
    if size < 2:
        raise ShapeError(f"companion: cannot take {type_of(coefficients)} (two coefficients at least)")
    top = rnp.divide(-coefficients[..., 1:], coefficients[..., :1])
    return _with_subdiagonal(top, rnp.ones(size - 2, type_of(top).dtype))


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrix of a population: births f in the first row, survivals s below the diagonal.

    Shapes: [*B, N], [*B, N - 1] -> [*B, N, N].
    Types:  any, unchanged.
    Errors: ShapeError unless s has one element less.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.leslie(rnp.array([1.0, 2.0]), rnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], f32[2,2], cpu:0)
    """
    births, survivals = _vector("leslie", f), _vector("leslie", s)
    if type_of(births).shape[-1] != type_of(survivals).shape[-1] + 1:
        raise ShapeError(
            f"leslie: cannot combine {type_of(births)} with {type_of(survivals)} "
            "(one survival less than births required)"
        )
    births, survivals = _alike(births, survivals)
    return _with_subdiagonal(births, survivals)


def _with_subdiagonal(top: Array, below: Array) -> Array:
    """A matrix with this first row and this subdiagonal."""
    top, below = _alike(top, below)
    size = length(top)
    is_top, is_below = np.zeros((size, size), bool), np.eye(size, k=-1, dtype=bool)
    is_top[:1] = True
    subdiagonal = rnp.concatenate([below, rnp.zeros_like(top[..., :1])], axis=-1)
    zero = rnp.zeros((), type_of(top).dtype)
    lower = rnp.where(is_below, rnp.expand_dims(subdiagonal, -2), zero)
    return rnp.where(is_top, rnp.expand_dims(top, -2), lower)


def fiedler(a: ArrayLike) -> Array:
    """The matrix of distances |a_i - a_j|. Shapes: [*B, N] -> [*B, N, N].

    Errors: ArgumentError if an argument is not an array; DtypeError for bools.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.fiedler(rnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], i32[2,2], cpu:0)
    """
    points = _vector("fiedler", a)
    return rnp.abs(rnp.expand_dims(points, -1) - rnp.expand_dims(points, -2))


def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler's companion matrix: that of five diagonals, with the same eigenvalues.

    Shapes: [N] -> [N - 1, N - 1]; [1] -> [0], as in SciPy.
    Types:  complex included; bools and integers become floats.
    Errors: ArgumentError for a size that is symbolic.
    Source: Fiedler 2003, Linear Algebra Appl. 372.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.fiedler_companion(rnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], f32[2,2], cpu:0)
    """
    coefficients = _vector("fiedler_companion", a)
    size = length(coefficients) - 1
    if size < 1:
        return coefficients[..., 1:]
    quotients = rnp.negative(rnp.divide(coefficients, coefficients[..., :1]))
    which, unit_matrix = _fiedler_places(size)
    entries = quotients[..., which]
    return rnp.where(which > 0, entries, rnp.asarray(unit_matrix, type_of(quotients).dtype))


def _fiedler_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Which coefficient is at which position, 0 for none; and the positions of the ones."""
    which, unit_matrix = np.zeros((n, n), int), np.zeros((n, n))
    which[0, 0] = 1
    unit_matrix[1:2, 0] = 1
    for i in range(0, n, 2):
        which[i, i + 1 : i + 2] = i + 2
        which[i, max(i - 1, 0) : i] = i + 1
        unit_matrix[i, i + 2 : i + 3] = 1
        unit_matrix[i + 1 : i + 2, max(i - 1, 0) : i] = 1
    return which, unit_matrix
