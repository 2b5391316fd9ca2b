"""Distances between the rows of two matrices, and between the rows of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.listing import names as _names
from rune.scipy.special.arguments import reals, rounded, widened
from rune.typing import ArrayLike, Nested

__all__ = ["cdist", "pdist", "squareform"]


def length_of(square: Array) -> Array:
    """The root of a square, with a derivative of 0 at 0, the distance of a point from itself."""
    is_zero = square == 0
    return rnp.where(is_zero, 0.0, rnp.sqrt(rnp.where(is_zero, 1.0, square)))


def _cosine(x: Array, y: Array) -> Array:
    norms = rnp.sqrt(rnp.sum(x * x, -1) * rnp.sum(y * y, -1))
    return 1.0 - rnp.sum(x * y, -1) / norms


def _canberra(x: Array, y: Array) -> Array:
    below = rnp.abs(x) + rnp.abs(y)
    terms = rnp.abs(x - y) / rnp.where(below == 0, 1.0, below)
    return rnp.sum(terms, -1)


Metric = Callable[[Array, Array], Array]  # of rows along the last axis
_METRICS: Mapping[str, Metric] = {
    "euclidean": lambda x, y: length_of(rnp.sum(rnp.square(x - y), -1)),
    "sqeuclidean": lambda x, y: rnp.sum(rnp.square(x - y), -1),
    "cityblock": lambda x, y: rnp.sum(rnp.abs(x - y), -1),
    "chebyshev": lambda x, y: rnp.max(rnp.abs(x - y), -1, initial=0.0),
    "cosine": _cosine,
    "correlation": lambda x, y: _cosine(x - rnp.mean(x, -1, keepdims=True), y - rnp.mean(y, -1, keepdims=True)),
    "canberra": _canberra,
    "braycurtis": lambda x, y: rnp.sum(rnp.abs(x - y), -1) / rnp.sum(rnp.abs(x + y), -1),
    "hamming": lambda x, y: rnp.mean(rnp.not_equal(x, y).astype(x.dtype), -1),
}


def _metric(name: str, metric: str, p: float) -> Metric:
    if metric == "minkowski" and not p > 0:
        raise ArgumentError(f"{name}: cannot take the power {p} of distances (above 0 required)")
    if metric == "minkowski" and p == float("inf"):
        return _METRICS["chebyshev"]
    if metric == "minkowski":
        return lambda x, y: rnp.power(rnp.sum(rnp.power(rnp.abs(x - y), p), -1), 1.0 / p)
    if metric not in _METRICS:
        raise ArgumentError(
            f"{name}: cannot use metric={metric!r}", hint=", ".join([*map(repr, _METRICS), "'minkowski'"])
        )
    return _METRICS[metric]


def _distances(name: str, x: Array, y: Array, metric: str, p: float) -> Array:
    """The distances of vectors along the last axis; those of half types are computed in f32."""
    (first, dtype), (second, _) = map(widened, reals(name, x, y))
    return rounded(_metric(name, metric, p)(first, second), dtype)


def cdist(XA: Nested, XB: Nested, metric: str = "euclidean", *, p: float = 2.0) -> Array:
    """The distance of every row of XA from every row of XB.

    Shapes: [M, N], [K, N] -> [M, K].   p: the exponent of the metric "minkowski".
    The derivative of a Euclidean distance 0 is taken as 0.
    Errors: ShapeError if they do not match; ArgumentError for an unknown metric.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.spatial.distance import cdist
    >>> cdist(rnp.zeros((1, 2)), rnp.array([[3.0, 4.0]]))
    Array([[5.]], f32[1,1], cpu:0)
    """
    a, b = rnp.asarray(XA), rnp.asarray(XB)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(f"cdist: cannot compare rows of {a.shape} with those of {b.shape}")
    return _distances("cdist", a[:, None, :], b[None, :, :], metric, p)


def pdist(X: ArrayLike, metric: str = "euclidean", *, p: float = 2.0) -> Array:
    """The distances of the rows of X from each other: of (0, 1), (0, 2), …, (1, 2), ….

    Shapes: [M, N] -> [M (M - 1) / 2].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            for another rank.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.spatial.distance import pdist
    >>> pdist(rnp.array([[0.0], [1.0], [3.0]]))
    Array([1., 3., 2.], f32[3], cpu:0)
    """
    (x,) = reals("pdist", X)
    if x.ndim != 2:
        raise ShapeError(f"pdist: cannot compare rows of {x.shape} (rank 2 required)")
    first, second = np.triu_indices(len(x), 1)
    return _distances("pdist", x[first.astype(np.int32)], x[second.astype(np.int32)], metric, p)


def squareform(X: Nested) -> Array:
    """The symmetric matrix of the distances that pdist returns, or those distances from the matrix.

    Shapes: X [N (N - 1) / 2] -> [N, N]; X [N, N] -> [N (N - 1) / 2]. Types: as X.
    Errors: ShapeError if no square matrix has that number of distances.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.spatial.distance import squareform
    >>> squareform(rnp.array([5.0]))
    Array([[0., 5.],
           [5., 0.]], f32[2,2], cpu:0)
    """
    x = rnp.asarray(X)
    if x.ndim == 2:
        first, second = np.triu_indices(len(x), 1)
        return x[first.astype(np.int32), second.astype(np.int32)]
    if x.ndim != 1:
        raise ShapeError(f"squareform: cannot arrange {x.type} (a matrix or a vector required)")
    size = round((1 + (1 + 8 * x.shape[0]) ** 0.5) / 2)
    if size * (size - 1) // 2 != x.shape[0]:
        raise ShapeError(f"squareform: cannot arrange {x.shape[0]} distances in a matrix")
    first, second = (i.astype(np.int32) for i in np.triu_indices(size, 1))
    upper = rnp.zeros((size, size), x.dtype).at[first, second].set(x)
    return upper + upper.T


__dir__ = _names(globals())
