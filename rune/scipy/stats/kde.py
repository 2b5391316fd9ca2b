"""A density estimated from a sample, by a sum of normal densities around its points."""

from __future__ import annotations

import math
from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy import linalg
from rune.ops.family import wide
from rune.records import dataclass
from rune.scipy.special.arguments import reals
from rune.scipy.special.error_functions import ndtr
from rune.scipy.special.sums import logsumexp
from rune.typing import ArrayLike


@dataclass(frozen=True)
class gaussian_kde:
    """The density that `dataset` samples, estimated with normal kernels.

    dataset:   [D, N], N points of D numbers, or [N] for D = 1.
    bw_method: "scott" (default) or "silverman", or the factor itself.
    weights:   [N]; equal by default.
    Errors: ShapeError for fewer than two points, points of no numbers, weights that do not fit;
            ArgumentError for an unknown bw_method.
    Source: Scott 2015, Multivariate Density Estimation, chapter 6.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import gaussian_kde
    >>> gaussian_kde(rnp.array([-1.0, 0.0, 1.0]))(0.0)
    Array([0.31815627], f32[1], cpu:0)
    """

    dataset: Array
    weights: Array
    covariance: Array

    def __init__(self, dataset: ArrayLike, bw_method: float | str | None = None, weights: Array | None = None):
        (data,) = reals("gaussian_kde", rnp.atleast_2d(rnp.asarray(dataset)))
        data = rnp.astype(data, wide(data.dtype))  # a covariance of half types would overflow
        if data.ndim != 2 or data.shape[0] == 0 or data.shape[1] < 2:
            raise ShapeError(f"gaussian_kde: cannot use a dataset of shape {data.shape}")
        count = data.shape[1]
        weights = rnp.ones((count,), data.dtype) if weights is None else weights
        if weights.shape != (count,):
            raise ShapeError(f"gaussian_kde: cannot weigh {count} points by {weights.shape}")
        shares = weights / rnp.sum(weights)
        apart = data - rnp.sum(data * shares, 1, keepdims=True)
        spread = (apart * shares) @ apart.T / (1.0 - rnp.sum(shares * shares))
        factor = _factor(bw_method, data.shape[0], 1.0 / rnp.sum(shares * shares))
        self._set(data, shares, spread * factor * factor)

    def _set(self, dataset: Array, weights: Array, covariance: Array) -> None:
        object.__setattr__(self, "dataset", dataset)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "covariance", covariance)

    @property
    def d(self) -> Size:
        """The number of coordinates of a point."""
        return self.dataset.shape[0]

    @property
    def n(self) -> Size:
        """The number of points."""
        return self.dataset.shape[1]

    @property
    def neff(self) -> Array:
        """The number of equally weighted points that would carry as much information."""
        return 1.0 / rnp.sum(self.weights * self.weights)

    @property
    def inv_cov(self) -> Array:
        """The inverse of the covariance of one normal density."""
        return linalg.inv(self.covariance)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points [D, M], or [M] for D = 1 -> [M]."""
        points = rnp.atleast_2d(rnp.asarray(x))
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise ShapeError(f"gaussian_kde: cannot take points of {points.shape[0]} numbers ({self.d})")
            points = points.T
        return self._log_mixture(points, self.covariance)

    def _log_mixture(self, points: Array, covariance: Array) -> Array:
        """The logarithm of the sum of normal densities [D, D] around the data, at points [D, M]."""
        root = linalg.cholesky(covariance)
        data, at = linalg.solve(root, self.dataset), linalg.solve(root, points)
        square = rnp.sum(rnp.square(at[:, :, None] - data[:, None, :]), 0)
        axes = rnp.asarray(self.d, root.dtype)
        log_norm = axes * (0.5 * math.log(2 * math.pi)) + rnp.sum(rnp.log(rnp.diagonal(root)))
        return logsumexp(-0.5 * square, axis=1, b=self.weights) - log_norm

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points [D, M], or [M] for D = 1 -> [M]."""
        return rnp.exp(self.logpdf(points))

    __call__ = evaluate
    pdf = evaluate

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of an interval, for D = 1."""
        if self.d != 1:
            raise ShapeError(f"gaussian_kde: cannot integrate {self.d} dimensions over an interval")
        scale = rnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((end - self.dataset[0]) / scale) for end in (low, high)]
        return rnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal one, of mean [D] and covariance [D, D]."""
        center, spread = rnp.atleast_1d(rnp.squeeze(mean)), rnp.atleast_2d(cov)
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ShapeError(
                f"gaussian_kde: cannot integrate {self.d} dimensions with a normal density of mean {center.shape} "
                f"and covariance {spread.shape}"
            )
        return rnp.exp(self._log_mixture(center[:, None], self.covariance + spread)[0])

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimates of D dimensions."""
        if other.d != self.d:
            raise ShapeError(f"gaussian_kde: cannot integrate a density of {self.d} dimensions with one of {other.d}")
        parts = self._log_mixture(other.dataset, self.covariance + other.covariance)
        return rnp.sum(other.weights * rnp.exp(parts))


def _factor(bw_method: float | str | None, d: Size, neff: Array) -> Array | float:
    axes = rnp.asarray(d, neff.dtype)
    if bw_method is None or bw_method == "scott":
        return neff ** (-1 / (axes + 4))
    if bw_method == "silverman":
        return (neff * ((axes + 2) / 4)) ** (-1 / (axes + 4))
    if isinstance(bw_method, str):
        raise ArgumentError(f"gaussian_kde: cannot use bw_method={bw_method!r}", hint="'scott' or 'silverman'")
    return bw_method


def flatten(k: gaussian_kde) -> tuple[tuple[Array, Array, Array], None]:
    """The arrays of an estimate."""
    return (k.dataset, k.weights, k.covariance), None


def unflatten(kind: type[gaussian_kde], children: Any) -> gaussian_kde:
    """An estimate of these arrays."""
    kde = object.__new__(kind)
    kde._set(*children)
    return kde


tree.register_node(gaussian_kde, flatten, lambda info, children: unflatten(gaussian_kde, children))
