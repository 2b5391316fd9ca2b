"""Families whose support is the whole line.

Source, unless another is named: Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.scipy.special import error_functions as normal
from rune.scipy.special import incomplete_beta, incomplete_gamma
from rune.scipy.special.bessel import i0e, i1e
from rune.scipy.special.combinatorial import log_beta
from rune.scipy.special.densities import log_less_digamma
from rune.scipy.special.gammas import log_gamma
from rune.scipy.special.owens import owens_t
from rune.scipy.stats.family import Continuous, log_share, positive, symmetric
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.directional import jvp

_LOG_2PI = math.log(2 * math.pi)


norm = Continuous(
    "norm",
    "the normal distribution",
    (),
    log_density=lambda y: -0.5 * (y * y) - 0.5 * _LOG_2PI,
    density=normal.normal_pdf,
    **symmetric(lower=normal.normal_cdf, log_lower=normal.log_normal_cdf, quantile=normal.normal_ppf),
    entropy_of=lambda: 0.5 * (1.0 + _LOG_2PI),
    mean_of=lambda: 0.0,
    variance_of=lambda: 1.0,
)


def log_of_one_and_square(y: Array) -> Array:
    """log(1 + y²), even for numbers whose square overflows."""
    size = rnp.abs(y)
    is_far = size > 1e9
    near = rnp.log1p(rnp.square(rnp.where(is_far, 1.0, y)))
    return rnp.where(is_far, 2.0 * rnp.log(rnp.where(is_far, size, 1.0)), near)


cauchy = Continuous(
    "cauchy",
    "Cauchy's distribution",
    (),
    log_density=lambda y: -math.log(math.pi) - log_of_one_and_square(y),
    **symmetric(upper=lambda y: rnp.arctan2(1.0, y) * (1 / math.pi), upper_quantile=lambda q: 1.0 / _tan_of_pi(q)),
    entropy_of=lambda: math.log(4 * math.pi),
    mean_of=lambda: math.nan,
    variance_of=lambda: math.nan,
)


def _tan_of_pi(q: Array) -> Array:
    """tan(πq) for 0 < q < 1, accurate near both ends."""
    near = rnp.where(q > 0.5, q - 1.0, q)
    return rnp.tan(math.pi * near)


def _laplace_upper(y: Array) -> Array:
    half = 0.5 * rnp.exp(-rnp.abs(y))
    return rnp.where(y >= 0, half, 1.0 - half)  # whose derivative at 0 is that of |y|, 1


def _laplace_log_upper(y: Array) -> Array:
    below = rnp.log1p(-0.5 * rnp.exp(rnp.where(y >= 0, 0.0, y)))
    return rnp.where(y >= 0, -math.log(2) - y, below)


def _laplace_isf(q: Array) -> Array:
    below = rnp.log(2.0 * (1.0 - rnp.where(q < 0.5, 0.5, q)))
    return rnp.where(q < 0.5, -rnp.log(2.0 * q), below)


laplace = Continuous(
    "laplace",
    "Laplace's distribution, the double exponential",
    (),
    log_density=lambda y: -math.log(2) - rnp.abs(y),
    **symmetric(upper=_laplace_upper, log_upper=_laplace_log_upper, upper_quantile=_laplace_isf),
    entropy_of=lambda: math.log(2 * math.e),
    mean_of=lambda: 0.0,
    variance_of=lambda: 2.0,
)

logistic = Continuous(
    "logistic",
    "the logistic distribution",
    (),
    log_density=lambda y: -rnp.abs(y) - 2.0 * rnp.log1p(rnp.exp(-rnp.abs(y))),
    **symmetric(
        lower=ops.logistic, log_upper=lambda y: -rnp.logaddexp(y, 0.0), quantile=lambda q: rnp.log(q) - rnp.log1p(-q)
    ),
    entropy_of=lambda: 2.0,
    mean_of=lambda: 0.0,
    variance_of=lambda: math.pi**2 / 3,
)


# --- Student's t ------------------------------------------------------------------------------


def _t_log_density(y: Array, df: Array) -> Array:
    half = 0.5 * df
    norm = 0.5 * rnp.log(df) + log_beta(half, rnp.full_like(half, 0.5))
    return -(half + 0.5) * rnp.log1p(y * y / df) - norm


@custom_jvp
def _t_upper(y: Array, df: Array) -> Array:
    square = y * y
    half, one_half = 0.5 * df, rnp.full_like(df, 0.5)
    # Both tails beyond, or the part between: one loop for either.
    is_near = square < df
    first, second = rnp.where(is_near, one_half, half), rnp.where(is_near, half, one_half)
    share = rnp.where(is_near, square, df) / (df + square)
    tail = 0.5 * incomplete_beta.lower(first, second, share)
    near = 0.5 - rnp.sign(y) * tail
    return rnp.where(is_near, near, rnp.where(y > 0, tail, 1.0 - tail))


def _by_density(upper: Any, log_density: Callable[..., Array]) -> None:
    """The derivative in y is the density: at 0 the formula itself has a corner."""
    upper.defjvps(
        lambda t, out, y, shape: -t * rnp.exp(log_density(y, shape)),
        lambda t, out, y, shape: t * jvp(lambda s: upper.function(y, s), (shape,), (rnp.ones_like(shape),))[1],
    )


_by_density(_t_upper, _t_log_density)


def _t_isf(q: Array, df: Array) -> Array:
    # Beyond, the next term of the expansion at the normal quantile (at most 38) is below an ulp.
    is_large = df > 1e4 / float(rnp.finfo(df.dtype).eps) ** 0.5
    z, few = -normal.normal_ppf(q), rnp.where(is_large, 1.0, df)
    # df / (df + t²) has the beta distribution of both tails, so that df / t² are its odds.
    small, half, one_half = _smaller_tail(q), 0.5 * few, rnp.full_like(df, 0.5)
    odds = incomplete_beta.inverse_odds(half, one_half, 2.0 * small, 1.0 - 2.0 * small)
    quantile = _on_both_sides(q, few, rnp.sqrt(few) * rnp.exp(-0.5 * odds), _t_log_density)
    return rnp.where(is_large, z + z * ((z * z + 1.0) / (4.0 * df)), quantile)


def _smaller_tail(q: Array) -> Array:
    """The probability of the nearer tail; at the median, where the formulas have no derivative,
    another.
    """
    return rnp.where(q == 0.5, 0.25, rnp.where(q < 0.5, q, 1.0 - q))


def _on_both_sides(q: Array, shape: Array, quantile: Array, log_density: Callable[..., Array]) -> Array:
    """The quantile of a symmetric family from that of its tail; near the median, a straight
    line.
    """
    line = (0.5 - q) * rnp.exp(-log_density(rnp.zeros_like(q), shape))
    return rnp.where(q == 0.5, line, rnp.where(q < 0.5, quantile, -quantile))


def _or_normal(of_t: Callable[..., Array], of_normal: Callable[[Array], Array]) -> Callable[..., Array]:
    """A function of t, which for infinite degrees of freedom is that of the normal distribution."""

    def function(y: Array, df: Array) -> Array:
        is_normal = rnp.isposinf(df)
        return rnp.where(is_normal, of_normal(y), of_t(y, rnp.where(is_normal, 1.0, df)))

    return function


def _t_entropy(df: Array) -> Array:
    is_normal = rnp.isposinf(df)
    half = 0.5 * rnp.where(is_normal, 1.0, df)
    more = half + 0.5
    # (df + 1)/2 (ψ(more) - ψ(half)), whose logarithms share all digits for large df.
    slopes = more * (rnp.log1p(0.5 / half) + log_less_digamma(half) - log_less_digamma(more))
    entropy = slopes + 0.5 * rnp.log(2.0 * half) + log_beta(half, rnp.full_like(half, 0.5))
    return rnp.where(is_normal, 0.5 * (1.0 + _LOG_2PI), entropy)


t = Continuous(
    "t",
    "Student's t distribution with df degrees of freedom",
    ("df",),
    log_density=_or_normal(_t_log_density, norm.log_density),
    valid=positive,
    **symmetric(upper=_or_normal(_t_upper, lambda y: normal.normal_cdf(-y)), upper_quantile=_t_isf),
    entropy_of=_t_entropy,
    mean_of=lambda df: rnp.where(df > 1, 0.0, rnp.inf),
    # df / (df - 2), which is 1 for an infinite df.
    variance_of=lambda df: rnp.where(
        df > 2, 1.0 + 2.0 / (rnp.where(df > 2, df, 3.0) - 2.0), rnp.where(df > 1, rnp.inf, rnp.nan)
    ),
)


# --- powers of the exponential ----------------------------------------------------------------


def _gennorm_log_density(y: Array, beta: Array) -> Array:
    return rnp.log(0.5 * beta) - log_gamma(1.0 / beta) - rnp.power(rnp.abs(y), beta)


@custom_jvp
def _gennorm_upper(y: Array, beta: Array) -> Array:
    size = rnp.power(rnp.where(y == 0, 1.0, rnp.abs(y)), beta)
    tail = rnp.where(y == 0, 0.5, 0.5 * incomplete_gamma.upper(1.0 / beta, size))
    return rnp.where(y > 0, tail, 1.0 - tail)


_by_density(_gennorm_upper, _gennorm_log_density)


def _gennorm_isf(q: Array, beta: Array) -> Array:
    size = incomplete_gamma.upper_inverse(1.0 / beta, 2.0 * _smaller_tail(q))
    return _on_both_sides(q, beta, rnp.power(size, 1.0 / beta), _gennorm_log_density)


gennorm = Continuous(
    "gennorm",
    "the generalised normal distribution, exp(-|x|**beta)",
    ("beta",),
    log_density=_gennorm_log_density,
    valid=positive,
    **symmetric(upper=_gennorm_upper, upper_quantile=_gennorm_isf),
    entropy_of=lambda b: 1.0 / b - rnp.log(0.5 * b) + log_gamma(1.0 / b),
    mean_of=lambda b: 0.0,
    variance_of=lambda b: rnp.exp(log_gamma(3.0 / b) - log_gamma(1.0 / b)),
)

exponnorm = Continuous(
    "exponnorm",
    "a normal and an exponential number of mean k, added",
    ("K",),
    log_density=lambda y, k: 0.5 / (k * k) - y / k - rnp.log(k) + normal.log_normal_cdf(y - 1.0 / k),
    lower=lambda y, k: normal.normal_cdf(y) - rnp.exp(0.5 / (k * k) - y / k + normal.log_normal_cdf(y - 1.0 / k)),
    upper=lambda y, k: normal.normal_cdf(-y) + rnp.exp(0.5 / (k * k) - y / k + normal.log_normal_cdf(y - 1.0 / k)),
    valid=positive,
    mean_of=lambda k: k,
    variance_of=lambda k: 1.0 + k * k,
)

skewnorm = Continuous(
    "skewnorm",
    "the skew normal distribution. Source: Azzalini 1985",
    ("a",),
    log_density=lambda y, a: math.log(2) - 0.5 * y * y - 0.5 * _LOG_2PI + normal.log_normal_cdf(a * y),
    lower=lambda y, a: _skewnorm_lower(y, a),
    upper=lambda y, a: _skewnorm_lower(-y, -a),
    log_lower=lambda y, a: _skewnorm_log_lower(y, a),
    log_upper=lambda y, a: _skewnorm_log_lower(-y, -a),
    mean_of=lambda a: math.sqrt(2 / math.pi) * a / rnp.sqrt(1.0 + a * a),
    variance_of=lambda a: 1.0 - 2 / math.pi * a * a / (1.0 + a * a),
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _skewnorm_log_tail(y: Array, a: Array) -> Array:
    """log(Φ(y) - 2 T(y, a)) for y < 0 < a, where the difference has no digits.

    With h = -y it is ∫ exp(-h² (1 + x²) / 2) / (1 + x²) dx / π over x > a, by Gauss' formula in
    (x - a) h, up to where the integrand vanishes.
    """
    h, slope = -y, -y * a
    reach = rnp.minimum(8.6, 40.0 / slope)[..., None]
    nodes, weights = (rnp.asarray(v, y.dtype) for v in (0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS))
    t = reach * nodes
    fall = rnp.exp(-t * (slope[..., None] + 0.5 * t))
    total = rnp.sum(weights * fall / (1.0 + rnp.square(a[..., None] + t / h[..., None])), -1)
    size = reach[..., 0] * total / (math.pi * h)
    return rnp.log(size) - 0.5 * (h * h + slope * slope)


def _skewnorm_tail(y: Array, a: Array) -> tuple[Array, Array]:
    """Where the tail cannot be computed as a difference, and its logarithm there."""
    is_tail = (y < -1.0) & (a > 0)
    return is_tail, _skewnorm_log_tail(rnp.where(is_tail, y, -1.0), rnp.where(is_tail, a, 1.0))


def _skewnorm_lower(y: Array, a: Array) -> Array:
    is_tail, log = _skewnorm_tail(y, a)
    y = rnp.where(is_tail, 0.0, y)
    return rnp.where(is_tail, rnp.exp(log), normal.normal_cdf(y) - 2.0 * owens_t(y, a))


def _skewnorm_log_lower(y: Array, a: Array) -> Array:
    is_tail, log = _skewnorm_tail(y, a)
    share, complement = _skewnorm_lower(y, a), _skewnorm_lower(-y, -a)
    middle = log_share(rnp.where(is_tail, 1.0, share), rnp.where(is_tail, 0.0, complement))
    return rnp.where(is_tail, log, middle)


def _dweibull_upper(y: Array, c: Array) -> Array:
    half = 0.5 * rnp.exp(-rnp.power(rnp.abs(y), c))
    return rnp.where(y > 0, half, 1.0 - half)


def _dweibull_isf(q: Array, c: Array) -> Array:
    quantile = rnp.power(-rnp.log(2.0 * rnp.minimum(q, 1.0 - q)), 1.0 / c)
    return rnp.where(q < 0.5, quantile, -quantile)


dweibull = Continuous(
    "dweibull",
    "the double Weibull distribution",
    ("c",),
    valid=positive,
    log_density=lambda y, c: rnp.log(0.5 * c) + (c - 1.0) * rnp.log(rnp.abs(y)) - rnp.power(rnp.abs(y), c),
    **symmetric(upper=_dweibull_upper, upper_quantile=_dweibull_isf),
    mean_of=lambda c: 0.0,
    variance_of=lambda c: rnp.exp(log_gamma(1.0 + 2.0 / c)),
)


# --- on the circle ----------------------------------------------------------------------------

vonmises = Continuous(
    "vonmises",
    "von Mises' distribution of angles",
    ("kappa",),
    # cos(x) - 1 = -2 sin²(x/2) keeps the digits for large kappa.
    log_density=lambda y, kappa: -2.0 * kappa * rnp.square(rnp.sin(0.5 * y)) - _LOG_2PI - rnp.log(i0e(kappa)),
    valid=lambda kappa: kappa >= 0,
    mean_of=lambda kappa: 0.0,
    entropy_of=lambda kappa: _vonmises_gap(kappa) + _LOG_2PI + rnp.log(i0e(kappa)),
)


def _vonmises_gap(kappa: Array) -> Array:
    """κ (1 - I1(κ) / I0(κ)), for large κ by its asymptotic series. Source: DLMF 10.40.1."""
    limit = float(rnp.finfo(kappa.dtype).eps) ** -0.2  # the next term is below the last digit
    is_large = kappa > limit
    near, r = rnp.where(is_large, 1.0, kappa), 1.0 / rnp.where(is_large, kappa, limit)
    series = 0.5 + r * (1 / 8 + r * (1 / 8 + r * (25 / 128 + r * (13 / 32))))
    return rnp.where(is_large, series, near * (1.0 - i1e(near) / i0e(near)))


def _wrapcauchy_lower(y: Array, c: Array) -> Array:
    is_high, part = _wrapcauchy_part(y, c)
    return rnp.where(is_high, 1.0 - part, part)


def _wrapcauchy_upper(y: Array, c: Array) -> Array:
    is_high, part = _wrapcauchy_part(y, c)
    return rnp.where(is_high, part, 1.0 - part)


def _wrapcauchy_part(y: Array, c: Array) -> tuple[Array, Array]:
    """Whether y is nearer to the upper end, and the probability between y and the nearer end."""
    ratio = (1.0 + c) / (1.0 - c)
    is_high = y > math.pi
    turn = float(np.asarray(2 * math.pi, y.dtype))
    angle = rnp.where(is_high, rnp.maximum((turn - y) + (2 * math.pi - turn), 0.0), y)
    # tan(y / 2) as a quotient, so that y = π needs no case of its own
    return is_high, rnp.arctan2(ratio * rnp.sin(0.5 * angle), rnp.cos(0.5 * angle)) * (1 / math.pi)


wrapcauchy = Continuous(
    "wrapcauchy",
    "Cauchy's distribution wrapped around the circle",
    ("c",),
    log_density=lambda y, c: (
        rnp.log1p(-c * c) - _LOG_2PI - rnp.log(rnp.square(1.0 - c) + 4.0 * c * rnp.square(rnp.sin(0.5 * y)))
    ),
    lower=_wrapcauchy_lower,
    upper=_wrapcauchy_upper,
    bounds=lambda c: (0.0, 2 * math.pi),
    valid=lambda c: (c > 0) & (c < 1),
    entropy_of=lambda c: _LOG_2PI + rnp.log1p(-c * c),
)
