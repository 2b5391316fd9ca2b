"""Families of positive numbers, and of their logarithms.

Source, unless another is named: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.scipy.special import error_functions as normal
from rune.scipy.special import incomplete_beta, incomplete_gamma
from rune.scipy.special.densities import log_beta_power, log_less_digamma, stirling_error, times_log
from rune.scipy.special.gammas import digamma, gamma_function, zeta_of
from rune.scipy.special.stirling import HALF_LOG_2PI
from rune.scipy.stats import inverse_gaussian
from rune.scipy.stats.family import Continuous, falling, log_share, mirrored, positive, rising
from rune.scipy.stats.gamma_numbers import (
    chi_log_density,
    f_log_density,
    gamma_entropy,
    gamma_log_density,
    invgamma_log_density,
    log_mean_over_root,
    loggamma_log_density,
    loggamma_tails,
)
from rune.scipy.stats.on_line import log_of_one_and_square, norm
from rune.typing import ArrayLike


def _half_line(*shapes: Array) -> tuple[float, float]:
    return 0.0, rnp.inf


def _from_one(*shapes: Array) -> tuple[float, float]:
    return 1.0, rnp.inf


def _when(good: Array, function: Callable[..., Array], *values: Array, otherwise: float = math.inf) -> Array:
    """function(*values) where `good`; elsewhere it is evaluated at 10 and replaced by
    `otherwise`.
    """
    safe = [rnp.where(good, v, 10.0) for v in values]
    return rnp.where(good, function(*safe), otherwise)


expon = Continuous(
    "expon",
    "the exponential distribution",
    (),
    log_density=lambda y: -y,
    lower=lambda y: -rnp.expm1(-y),
    upper=lambda y: rnp.exp(-y),
    log_upper=lambda y: -y,
    quantile=lambda q: -rnp.log1p(-q),
    upper_quantile=lambda q: -rnp.log(q),
    bounds=_half_line,
    entropy_of=lambda: 1.0,
    mean_of=lambda: 1.0,
    variance_of=lambda: 1.0,
)

gamma = Continuous(
    "gamma",
    "the gamma distribution of parameter a",
    ("a",),
    bounds=_half_line,
    valid=positive,
    log_density=gamma_log_density,
    lower=lambda y, a: incomplete_gamma.lower(a, y),
    upper=lambda y, a: incomplete_gamma.upper(a, y),
    quantile=lambda q, a: incomplete_gamma.lower_inverse(a, q),
    upper_quantile=lambda q, a: incomplete_gamma.upper_inverse(a, q),
    entropy_of=gamma_entropy,
    mean_of=lambda a: a,
    variance_of=lambda a: a,
)


chi2 = Continuous(
    "chi2",
    "the chi-square distribution with df degrees of freedom",
    ("df",),
    bounds=_half_line,
    log_density=lambda y, df: gamma_log_density(0.5 * y, 0.5 * df) - math.log(2),
    entropy_of=lambda df: math.log(2) + gamma_entropy(0.5 * df),
    mean_of=lambda df: df,
    variance_of=lambda df: 2.0 * df,
    valid=positive,
    **rising(gamma, lambda y, df: 0.5 * y, lambda x, df: 2.0 * x, lambda y, df: (0.5 * df,)),
)

chi = Continuous(
    "chi",
    "the root of a chi-square number",
    ("df",),
    bounds=_half_line,
    valid=positive,
    log_density=chi_log_density,
    mean_of=lambda df: rnp.sqrt(df) * rnp.exp(log_mean_over_root(0.5 * df)),
    variance_of=lambda df: -df * rnp.expm1(2.0 * log_mean_over_root(0.5 * df)),
    **rising(gamma, lambda y, df: 0.5 * y * y, lambda x, df: rnp.sqrt(2.0 * x), lambda y, df: (0.5 * df,)),
)


invgamma = Continuous(
    "invgamma",
    "the inverse of a gamma number",
    ("a",),
    bounds=_half_line,
    valid=positive,
    is_open=True,
    log_density=invgamma_log_density,
    entropy_of=lambda a: HALF_LOG_2PI - 1.5 * rnp.log(a) + stirling_error(a) + (a + 1.0) * log_less_digamma(a),
    mean_of=lambda a: _when(a > 1, lambda a: 1.0 / (a - 1.0), a),
    variance_of=lambda a: _when(a > 2, lambda a: 1.0 / (rnp.square(a - 1.0) * (a - 2.0)), a),
    **falling(gamma, lambda y, a: 1.0 / y, lambda x, a: 1.0 / x, lambda y, a: (a,)),
)


loggamma = Continuous(
    "loggamma",
    "the logarithm of a gamma number",
    ("c",),
    log_density=loggamma_log_density,
    valid=positive,
    entropy_of=lambda c: HALF_LOG_2PI - 0.5 * rnp.log(c) + stirling_error(c) + c * log_less_digamma(c),
    mean_of=digamma,
    variance_of=lambda c: zeta_of(rnp.full_like(c, 2.0), c),
    **loggamma_tails(gamma),
)


# --- from the normal distribution -------------------------------------------------------------

_LOG_ROOT = 0.5 * math.log(2 / math.pi)


def _halfnorm_lower(y: Array) -> Array:
    return ops.erf(y * math.sqrt(0.5))


halfnorm = Continuous(
    "halfnorm",
    "the magnitude of a normal number",
    (),
    bounds=_half_line,
    log_density=lambda y: _LOG_ROOT - 0.5 * y * y,
    lower=_halfnorm_lower,
    upper=lambda y: 2.0 * normal.normal_cdf(-y),
    log_upper=lambda y: log_share(
        2.0 * normal.normal_cdf(-y), _halfnorm_lower(y), math.log(2) + normal.log_normal_cdf(-y)
    ),
    quantile=lambda q: math.sqrt(2) * ops.erf_inv(q),
    upper_quantile=lambda q: -normal.normal_ppf(0.5 * q),
    entropy_of=lambda: 0.5 * math.log(math.pi / 2) + 0.5,
    mean_of=lambda: math.sqrt(2 / math.pi),
    variance_of=lambda: 1 - 2 / math.pi,
)

lognorm = Continuous(
    "lognorm",
    "the exponential of a normal number of deviation s",
    ("s",),
    bounds=_half_line,
    is_open=True,
    log_density=lambda y, s: -0.5 * rnp.square(rnp.log(y) / s) - rnp.log(s * y) - 0.5 * math.log(2 * math.pi),
    valid=positive,
    entropy_of=lambda s: 0.5 * (1.0 + math.log(2 * math.pi)) + rnp.log(s),
    mean_of=lambda s: rnp.exp(0.5 * s * s),
    variance_of=lambda s: rnp.expm1(s * s) * rnp.exp(s * s),
    **rising(norm, lambda y, s: rnp.log(y) / s, lambda x, s: rnp.exp(s * x)),
)

rayleigh = Continuous(
    "rayleigh",
    "the length of two normal numbers",
    (),
    bounds=_half_line,
    log_density=lambda y: rnp.log(y) - 0.5 * y * y,
    entropy_of=lambda: rnp.euler_gamma / 2 + 1 - 0.5 * math.log(2),
    mean_of=lambda: math.sqrt(math.pi / 2),
    variance_of=lambda: 2 - math.pi / 2,
    **rising(expon, lambda y: 0.5 * y * y, lambda x: rnp.sqrt(2.0 * x)),
)

maxwell = Continuous(
    "maxwell",
    "the length of three normal numbers",
    (),
    bounds=_half_line,
    log_density=lambda y: _LOG_ROOT + 2.0 * rnp.log(y) - 0.5 * y * y,
    entropy_of=lambda: rnp.euler_gamma + 0.5 * math.log(2 * math.pi) - 0.5,
    mean_of=lambda: 2 * math.sqrt(2 / math.pi),
    variance_of=lambda: 3 - 8 / math.pi,
    **rising(gamma, lambda y: 0.5 * y * y, lambda x: rnp.sqrt(2.0 * x), lambda y: (rnp.full_like(y, 1.5),)),
)


def _invgauss_log_density(y: Array, mu: Array) -> Array:
    """Of an infinite mean, that of Lévy's distribution."""
    is_finite = rnp.isfinite(mu)
    mean = rnp.where(is_finite, mu, 1.0)
    distance = rnp.where(is_finite, (y - mean) / mean, -1.0)
    return -0.5 * (math.log(2 * math.pi) + 3.0 * rnp.log(y)) - rnp.square(distance) / (2.0 * y)


invgauss = Continuous(
    "invgauss",
    "the inverse Gaussian distribution, of mean mu",
    ("mu",),
    bounds=_half_line,
    is_open=True,
    log_density=_invgauss_log_density,
    lower=inverse_gaussian.lower,
    upper=inverse_gaussian.upper,
    log_lower=inverse_gaussian.log_lower,
    log_upper=inverse_gaussian.log_upper,
    valid=positive,
    mean_of=lambda mu: mu,
    variance_of=lambda mu: mu * mu * mu,
)


# --- extremes and power laws ------------------------------------------------------------------

weibull_min = Continuous(
    "weibull_min",
    "Weibull's distribution of the smallest",
    ("c",),
    bounds=_half_line,
    log_density=lambda y, c: rnp.log(c) + times_log(c - 1.0, y) - rnp.power(y, c),
    valid=positive,
    entropy_of=lambda c: rnp.euler_gamma * (1.0 - 1.0 / c) - rnp.log(c) + 1.0,
    mean_of=lambda c: gamma_function(1.0 + 1.0 / c),
    variance_of=lambda c: gamma_function(1.0 + 2.0 / c) - rnp.square(gamma_function(1.0 + 1.0 / c)),
    **rising(expon, lambda y, c: rnp.power(y, c), lambda x, c: rnp.power(x, 1.0 / c)),
)

weibull_max = mirrored(weibull_min, "weibull_max", "Weibull's distribution of the largest, of negative numbers")


def _log_of_rare(y: Array) -> Array:
    """log(1 - exp(-exp(-y))), even where exp(-y) is negligible beside 1, or underflows."""
    is_far = y > 17.0
    # From y = -20 down exp(-exp(-y)) is 0, and its slope would be 0 times an overflow.
    rate = rnp.exp(-rnp.maximum(rnp.where(is_far, 0.0, y), -20.0))
    near = log_share(-rnp.expm1(-rate), rnp.exp(-rate))
    far = rnp.where(is_far, y, 17.0)
    return rnp.where(is_far, -far - 0.5 * rnp.exp(-far), near)


gumbel_r = Continuous(
    "gumbel_r",
    "Gumbel's distribution of the largest of many",
    (),
    log_density=lambda y: -(y + rnp.exp(-y)),
    entropy_of=lambda: rnp.euler_gamma + 1,
    mean_of=lambda: rnp.euler_gamma,
    variance_of=lambda: math.pi**2 / 6,
    **falling(expon, lambda y: rnp.exp(-y), lambda x: -rnp.log(x)) | {"log_upper": _log_of_rare},
)

gumbel_l = mirrored(gumbel_r, "gumbel_l", "Gumbel's distribution of the smallest of many")


pareto = Continuous(
    "pareto",
    "Pareto's distribution, from 1 on",
    ("b",),
    bounds=_from_one,
    inside=lambda b: 2.0,
    log_density=lambda y, b: rnp.log(b) - (b + 1.0) * rnp.log(y),
    lower=lambda y, b: -rnp.expm1(-b * rnp.log(y)),
    upper=lambda y, b: rnp.power(y, -b),
    log_upper=lambda y, b: -b * rnp.log(y),
    valid=positive,
    quantile=lambda q, b: rnp.exp(-rnp.log1p(-q) / b),
    upper_quantile=lambda q, b: rnp.power(q, -1.0 / b),
    entropy_of=lambda b: 1.0 + 1.0 / b - rnp.log(b),
    mean_of=lambda b: _when(b > 1, lambda b: b / (b - 1.0), b),
    variance_of=lambda b: _when(b > 2, lambda b: b / ((b - 2.0) * rnp.square(b - 1.0)), b),
)

lomax = Continuous(
    "lomax",
    "Pareto's distribution, moved to 0",
    ("c",),
    bounds=_half_line,
    valid=positive,
    log_density=lambda y, c: rnp.log(c) - (c + 1.0) * rnp.log1p(y),
    entropy_of=lambda c: 1.0 + 1.0 / c - rnp.log(c),
    mean_of=lambda c: _when(c > 1, lambda c: 1.0 / (c - 1.0), c),
    variance_of=lambda c: _when(c > 2, lambda c: c / ((c - 2.0) * rnp.square(c - 1.0)), c),
    **rising(expon, lambda y, c: c * rnp.log1p(y), lambda x, c: rnp.expm1(x / c)),
)

fisk = Continuous(
    "fisk",
    "the log-logistic distribution",
    ("c",),
    bounds=_half_line,
    valid=positive,
    log_density=lambda y, c: rnp.log(c) + times_log(c - 1.0, y) - 2.0 * rnp.log1p(rnp.power(y, c)),
    lower=lambda y, c: ops.logistic(c * rnp.log(y)),
    upper=lambda y, c: ops.logistic(-c * rnp.log(y)),
    quantile=lambda q, c: rnp.power(q / (1.0 - q), 1.0 / c),
    upper_quantile=lambda q, c: rnp.power((1.0 - q) / q, 1.0 / c),
    entropy_of=lambda c: 2.0 - rnp.log(c),
    mean_of=lambda c: _when(c > 1, lambda c: (math.pi / c) / rnp.sin(math.pi / c), c),
    variance_of=lambda c: _when(c > 2, lambda c: _fisk_variance(math.pi / c), c),
)


def _fisk_variance(angle: Array) -> Array:
    return 2.0 * angle / rnp.sin(2.0 * angle) - rnp.square(angle / rnp.sin(angle))


loglaplace = Continuous(
    "loglaplace",
    "the exponential of a Laplace number",
    ("c",),
    bounds=_half_line,
    log_density=lambda y, c: rnp.log(0.5 * c) + times_log(rnp.where(y < 1, c - 1.0, -c - 1.0), y),
    lower=lambda y, c: _loglaplace_lower(y, c),
    upper=lambda y, c: _loglaplace_lower(1.0 / y, c),
    quantile=lambda q, c: 1.0 / _loglaplace_isf(q, c),
    upper_quantile=lambda q, c: _loglaplace_isf(q, c),
    valid=positive,
    entropy_of=lambda c: 1.0 + rnp.log(2.0 / c),
    mean_of=lambda c: _when(c > 1, lambda c: c * c / ((c - 1.0) * (c + 1.0)), c),
    variance_of=lambda c: _when(c > 2, _loglaplace_variance, c),
)


def _loglaplace_variance(c: Array) -> Array:
    """c² / (c² - 4) - (c² / (c² - 1))², of one denominator."""
    square = c * c
    return square * (2.0 * square + 1.0) / ((square - 4.0) * rnp.square(square - 1.0))


def _loglaplace_lower(y: Array, c: Array) -> Array:
    return rnp.where(y < 1, 0.5 * rnp.power(y, c), 1.0 - 0.5 * rnp.power(y, -c))


def _loglaplace_isf(q: Array, c: Array) -> Array:
    small = rnp.where(q < 0.5, q, 1.0 - q)  # not minimum, which has another slope at 1/2
    upper = rnp.power(2.0 * small, -1.0 / c)
    return rnp.where(q < 0.5, upper, 1.0 / upper)


halfcauchy = Continuous(
    "halfcauchy",
    "the magnitude of a Cauchy number",
    (),
    bounds=_half_line,
    log_density=lambda y: math.log(2 / math.pi) - log_of_one_and_square(y),
    lower=lambda y: 2 / math.pi * rnp.arctan(y),
    upper=lambda y: 2 / math.pi * rnp.arctan2(1.0, y),
    quantile=lambda q: 1.0 / _halfcauchy_cotangent(q),
    upper_quantile=lambda q: _halfcauchy_cotangent(q),
    entropy_of=lambda: math.log(2 * math.pi),
    mean_of=lambda: math.inf,
    variance_of=lambda: math.inf,
)


def _halfcauchy_cotangent(q: Array) -> Array:
    """1 / tan(π q / 2) for 0 < q < 1, accurate near both ends."""
    tangent = rnp.tan(math.pi / 2 * rnp.where(q > 0.5, 1.0 - q, q))
    return rnp.where(q > 0.5, tangent, 1.0 / tangent)


levy = Continuous(
    "levy",
    "Lévy's distribution",
    (),
    bounds=_half_line,
    is_open=True,
    log_density=lambda y: -0.5 * math.log(2 * math.pi) - 1.5 * rnp.log(y) - 0.5 / y,
    lower=lambda y: 2.0 * normal.normal_cdf(-1.0 / rnp.sqrt(y)),
    upper=lambda y: ops.erf(rnp.sqrt(0.5 / y)),
    quantile=lambda q: 1.0 / rnp.square(normal.normal_ppf(0.5 * q)),
    upper_quantile=lambda q: 0.5 / rnp.square(ops.erf_inv(q)),
    mean_of=lambda: math.inf,
    variance_of=lambda: math.inf,
    entropy_of=lambda: (1 + 3 * rnp.euler_gamma + math.log(16 * math.pi)) / 2,
)

gompertz = Continuous(
    "gompertz",
    "Gompertz' distribution of lifetimes",
    ("c",),
    bounds=_half_line,
    valid=positive,
    log_density=lambda y, c: rnp.log(c) + y - c * rnp.expm1(y),
    **rising(expon, lambda y, c: c * rnp.expm1(y), lambda x, c: rnp.log1p(x / c)),
)


# --- ratios of gamma numbers ------------------------------------------------------------------


def _betaprime_shares(y: Array) -> tuple[Array, Array]:
    """y / (1 + y) and its complement."""
    return y / (1.0 + y), 1.0 / (1.0 + y)


def _betaprime_lower(y: Array, a: Array, b: Array) -> Array:
    x, complement = _betaprime_shares(y)
    is_low = y < 1
    first, second = rnp.where(is_low, a, b), rnp.where(is_low, b, a)
    return incomplete_beta.side(first, second, rnp.where(is_low, x, complement), ~is_low)


def _betaprime_upper(y: Array, a: Array, b: Array) -> Array:
    return _betaprime_lower(1.0 / y, b, a)


def _betaprime_ppf(q: Array, a: Array, b: Array, scale: ArrayLike = 1.0) -> Array:
    """`scale` times the quantile, which alone may exceed the largest number."""
    root = rnp.exp(0.5 * incomplete_beta.inverse_odds(a, b, q, 1.0 - q))
    return (root * scale) * root


betaprime = Continuous(
    "betaprime",
    "the ratio of gamma numbers of a and of b",
    ("a", "b"),
    bounds=_half_line,
    is_open=True,
    log_density=lambda y, a, b: log_beta_power(a, b, *_betaprime_shares(y)) - rnp.log(y),
    lower=_betaprime_lower,
    upper=_betaprime_upper,
    quantile=_betaprime_ppf,
    upper_quantile=lambda q, a, b: 1.0 / _betaprime_ppf(q, b, a),
    mean_of=lambda a, b: _when(b > 1, lambda a, b: a / (b - 1.0), a, b),
    valid=positive,
    variance_of=lambda a, b: _when(b > 2, _betaprime_variance, a, b),
)


def _betaprime_variance(a: Array, b: Array) -> Array:
    return a * (a + b - 1.0) / (rnp.square(b - 1.0) * (b - 2.0))


def _f_variance(n: Array, d: Array) -> Array:
    return 2.0 * d * d * (n + d - 2.0) / (n * rnp.square(d - 2.0) * (d - 4.0))


f = Continuous(
    "f",
    "the ratio of two chi-square numbers, each over its degrees of freedom",
    ("dfn", "dfd"),
    bounds=_half_line,
    valid=positive,
    log_density=f_log_density,
    lower=lambda y, n, d: _betaprime_lower(n * y / d, 0.5 * n, 0.5 * d),
    upper=lambda y, n, d: _betaprime_upper(n * y / d, 0.5 * n, 0.5 * d),
    quantile=lambda q, n, d: _betaprime_ppf(q, 0.5 * n, 0.5 * d, d / n),
    upper_quantile=lambda q, n, d: 1.0 / _betaprime_ppf(q, 0.5 * d, 0.5 * n, n / d),
    mean_of=lambda n, d: _when(d > 2, lambda n, d: d / (d - 2.0), n, d),
    variance_of=lambda n, d: _when(d > 4, _f_variance, n, d),
)
