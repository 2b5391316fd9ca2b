"""Distributions of vectors: Dirichlet's, the multinomial and the normal one."""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ShapeError
from rune.numpy import linalg
from rune.scipy.special.arguments import reals, rounded, widened
from rune.scipy.special.densities import log_less_digamma, stirling_error, times_log
from rune.scipy.special.gammas import log_gamma
from rune.scipy.special.stirling import HALF_LOG_2PI
from rune.typing import ArrayLike, DTypeLike


class _Dirichlet:
    """Shares that sum to 1, with density proportional to the product of x_i**(alpha_i - 1).

    Shapes: x [N, *B], or [N - 1, *B] without the last share; alpha [N].
    Types:  f32 or f64; half types are computed in f32.
    Errors: ShapeError if x and alpha do not match, and for no shares. -inf or 0 where x is not a
            vector of shares.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import dirichlet
    >>> dirichlet.pdf(rnp.array([0.2, 0.8]), rnp.array([1.0, 1.0]))
    Array(1., f32[], cpu:0)
    """

    def logpdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """The logarithm of the density; -inf if x is not a vector of shares."""
        (x, first), (alpha, second) = _wide("stats.dirichlet", x), _parameters(alpha)
        (size,) = alpha.shape
        if x.shape[0] not in (size, size - 1):
            raise ShapeError(f"stats.dirichlet: cannot take {x.shape[0]} shares of {size}")
        if x.shape[0] == size - 1:
            x = rnp.concatenate([x, 1.0 - rnp.sum(x, 0, keepdims=True)])
        powers = rnp.reshape(alpha - 1.0, (size, *(1,) * (x.ndim - 1)))
        powers, x = reals("stats.dirichlet", powers, x)
        slack = max(1e-4, 2 * float(rnp.finfo(first).eps))  # the rounding error of the sum of shares
        is_good = rnp.all(x >= 0, 0) & (rnp.abs(rnp.sum(x, 0) - 1.0) < slack)
        value = rnp.sum(times_log(powers, rnp.where(is_good, x, 0.5)), 0) - _log_norm(alpha)
        return rounded(rnp.where(is_good, value, -rnp.inf), rnp.result_type(first, second))

    def pdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """The density; 0 if x is not a vector of shares."""
        return rnp.exp(self.logpdf(x, alpha))

    def mean(self, alpha: ArrayLike) -> Array:
        """The mean of each share."""
        alpha, dtype = _parameters(alpha)
        return rounded(alpha / rnp.sum(alpha), dtype)

    def var(self, alpha: ArrayLike) -> Array:
        """The variance of each share."""
        alpha, dtype = _parameters(alpha)
        total = rnp.sum(alpha)
        return rounded(alpha * (total - alpha) / (total * total * (total + 1.0)), dtype)

    def entropy(self, alpha: ArrayLike) -> Array:
        """The differential entropy, in nats."""
        alpha, dtype = _parameters(alpha)
        total = rnp.sum(alpha)
        count = alpha.shape[0]
        # As the entropy of beta, which is that of two shares.
        of_each = 0.5 * rnp.log(alpha) + stirling_error(alpha) + (alpha - 1.0) * log_less_digamma(alpha)
        of_all = (count - 0.5) * rnp.log(total) + stirling_error(total) + (total - count) * log_less_digamma(total)
        return rounded(rnp.sum(of_each) + (count - 1) * HALF_LOG_2PI - of_all, dtype)


def _wide(name: str, x: ArrayLike) -> tuple[Array, DTypeLike]:
    """Real numbers, half types in f32; and their dtype."""
    return widened(reals(name, x)[0])


def _parameters(alpha: ArrayLike) -> tuple[Array, DTypeLike]:
    """Dirichlet's parameters. Errors: ShapeError for another rank, and for no parameters."""
    parameters, dtype = _wide("stats.dirichlet", alpha)
    if parameters.ndim != 1 or parameters.shape[0] == 0:
        raise ShapeError(f"stats.dirichlet: cannot use alpha of shape {parameters.shape} (rank 1 required)")
    return parameters, dtype


def _log_norm(alpha: Array) -> Array:
    return rnp.sum(log_gamma(alpha)) - log_gamma(rnp.sum(alpha))


class _Multinomial:
    """Counts of n trials with several outcomes, of probabilities p.

    Shapes: x [*B, N], n [*B], p [*B, N] -> [*B].
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import multinomial
    >>> multinomial.pmf(rnp.array([1, 1]), 2, rnp.array([0.5, 0.5]))
    Array(0.5000001, f32[], cpu:0)
    """

    def logpmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The logarithm of the probability; -inf for counts that do not sum to n."""
        (x, dtype), (p, _) = (widened(v) for v in reals("stats.multinomial", x, p))
        trials = rnp.asarray(n).astype(x.dtype)
        is_good = (rnp.sum(x, -1) == trials) & rnp.all((x >= 0) & (x == rnp.round(x)), -1)
        terms = times_log(x, p) - log_gamma(rnp.maximum(x, 0.0) + 1.0)
        value = log_gamma(trials + 1.0) + rnp.sum(terms, -1)
        return rounded(rnp.where(is_good, value, -rnp.inf), dtype)

    def pmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The probability; 0 for counts that do not sum to n."""
        return rnp.exp(self.logpmf(x, n, p))


def _columns_squared(root: Array, columns: Array) -> Array:
    """|L⁻¹ c|² for each column c."""
    solution = linalg.solve(root, columns)
    return rnp.sum(solution * solution, -2)


class _MultivariateNormal:
    """The normal distribution of vectors with a mean and a covariance matrix.

    Shapes: x [*B, N], mean [N] or rank 0, cov [N, N] or rank 0 (times the identity) -> [*B]; where
            both are of rank 0, numbers x [*B], each a vector of one.
    Errors: ShapeError if they do not match, and for vectors of no numbers; NaN where cov is not
            positive definite.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import multivariate_normal
    >>> multivariate_normal.logpdf(rnp.zeros(2), rnp.zeros(2), rnp.eye(2))
    Array(-1.837877, f32[], cpu:0)
    """

    def logpdf(
        self, x: ArrayLike, mean: ArrayLike = 0.0, cov: ArrayLike = 1.0, allow_singular: bool | None = None
    ) -> Array:
        """The logarithm of the density."""
        if allow_singular is not None:
            raise ShapeError("stats.multivariate_normal: cannot use allow_singular")
        (points,), (centre,), (covariance,) = (reals("stats.multivariate_normal", v) for v in (x, mean, cov))
        if centre.ndim == 0 and covariance.ndim == 0:
            points = points[..., None]
        size = 1 if points.ndim == 0 else points.shape[-1]
        points = rnp.reshape(points, (1,)) if points.ndim == 0 else points
        if covariance.ndim == 0:
            covariance = covariance * rnp.eye(size, dtype=rnp.result_type(covariance, rnp.float32))
        if covariance.shape[-2:] != (size, size) or size == 0:
            raise ShapeError(
                f"stats.multivariate_normal: cannot use cov of shape {covariance.shape} for vectors of {size}"
            )
        root = linalg.cholesky(covariance)
        apart = points - centre
        if covariance.ndim == 2:
            # |L⁻¹ (x - μ)|², with all points as columns of one system.
            columns = rnp.reshape(apart, (-1, size)).T
            square = rnp.reshape(_columns_squared(root, columns), apart.shape[:-1])
        else:
            square = _columns_squared(root, apart[..., None])[..., 0]
        log_det = 2.0 * rnp.sum(rnp.log(rnp.diagonal(root, axis1=-2, axis2=-1)), -1)
        return -0.5 * (square + rnp.asarray(size, square.dtype) * math.log(2 * math.pi) + log_det)

    def pdf(self, x: ArrayLike, mean: ArrayLike = 0.0, cov: ArrayLike = 1.0) -> Array:
        """The density."""
        return rnp.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: ArrayLike = 0.0, cov: ArrayLike = 1.0) -> Array:
        """The differential entropy, in nats."""
        (cov,) = reals("stats.multivariate_normal", rnp.atleast_2d(rnp.asarray(cov)))
        if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or cov.shape[0] == 0:
            raise ShapeError(f"stats.multivariate_normal: cannot use cov of shape {cov.shape}")
        log_det = 2.0 * rnp.sum(rnp.log(rnp.diagonal(linalg.cholesky(cov))))
        return 0.5 * (log_det + rnp.asarray(cov.shape[0], cov.dtype) * (1 + math.log(2 * math.pi)))


dirichlet = _Dirichlet()
multinomial = _Multinomial()
multivariate_normal = _MultivariateNormal()
