"""Families on an interval."""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special import error_functions as normal
from rune.scipy.special import incomplete_beta
from rune.scipy.special.combinatorial import log_beta
from rune.scipy.special.densities import log_beta_power, log_less_digamma, stirling_error, times_log
from rune.scipy.special.stirling import HALF_LOG_2PI
from rune.scipy.stats.family import Continuous, log_share, positive


def _unit(*shapes: Array) -> tuple[float, float]:
    return 0.0, 1.0


uniform = Continuous(
    "uniform",
    "all numbers from loc to loc + scale equally likely",
    (),
    bounds=_unit,
    log_density=lambda y: 0.0 * y,
    lower=lambda y: y,
    upper=lambda y: 1.0 - y,
    quantile=lambda q: q,
    upper_quantile=lambda q: 1.0 - q,
    entropy_of=lambda: 0.0,
    mean_of=lambda: 0.5,
    variance_of=lambda: 1 / 12,
)


def _beta_log_density(y: Array, a: Array, b: Array) -> Array:
    """By deviances for large parameters, directly for small ones."""
    is_large = (a > 10.0) & (b > 10.0) & (y > 0) & (y < 1)
    at = rnp.where(is_large, y, 0.5)
    a1, b1 = rnp.where(is_large, a, 10.0), rnp.where(is_large, b, 10.0)
    large = log_beta_power(a1, b1, at, 1.0 - at) - rnp.log(at) - rnp.log1p(-at)
    is_one = b == 1
    last = rnp.where(is_one, 0.0, (b - 1.0) * rnp.log1p(-rnp.where(is_one, 0.0, y)))
    direct = times_log(a - 1.0, y) + last - log_beta(a, b)
    return rnp.where(is_large, large, direct)


def _beta_entropy(a: Array, b: Array) -> Array:
    """By what Stirling's formula leaves of log Γ and ψ, as the entropy of gamma numbers."""
    n = a + b
    logs = HALF_LOG_2PI + 0.5 * (rnp.log(a) + rnp.log(b)) - 1.5 * rnp.log(n)
    errors = stirling_error(a) + stirling_error(b) - stirling_error(n)
    gaps = (a - 1.0) * log_less_digamma(a) + (b - 1.0) * log_less_digamma(b) - (n - 2.0) * log_less_digamma(n)
    return logs + errors + gaps


beta = Continuous(
    "beta",
    "the beta distribution",
    ("a", "b"),
    bounds=_unit,
    log_density=_beta_log_density,
    lower=lambda y, a, b: incomplete_beta.lower(a, b, y),
    upper=lambda y, a, b: incomplete_beta.upper(a, b, y),
    quantile=lambda q, a, b: incomplete_beta.lower_inverse(a, b, q),
    upper_quantile=lambda q, a, b: incomplete_beta.upper_inverse(a, b, q),
    valid=positive,
    entropy_of=_beta_entropy,
    mean_of=lambda a, b: a / (a + b),
    variance_of=lambda a, b: a * b / (rnp.square(a + b) * (a + b + 1.0)),
)

powerlaw = Continuous(
    "powerlaw",
    "a power of a uniform number",
    ("a",),
    bounds=_unit,
    valid=positive,
    log_density=lambda y, a: rnp.log(a) + times_log(a - 1.0, y),
    lower=lambda y, a: rnp.power(y, a),
    upper=lambda y, a: -rnp.expm1(times_log(a, y)),
    log_lower=lambda y, a: times_log(a, y),
    quantile=lambda q, a: rnp.power(q, 1.0 / a),
    entropy_of=lambda a: 1.0 - 1.0 / a - rnp.log(a),
    mean_of=lambda a: a / (a + 1.0),
    variance_of=lambda a: a / ((a + 2.0) * rnp.square(a + 1.0)),
)

arcsine = Continuous(
    "arcsine",
    "the arcsine distribution",
    (),
    bounds=_unit,
    log_density=lambda y: -math.log(math.pi) - 0.5 * (rnp.log(y) + rnp.log1p(-y)),
    lower=lambda y: 2 / math.pi * rnp.arctan2(rnp.sqrt(y), rnp.sqrt(1.0 - y)),
    upper=lambda y: 2 / math.pi * rnp.arctan2(rnp.sqrt(1.0 - y), rnp.sqrt(y)),
    quantile=lambda q: rnp.square(rnp.sin(math.pi / 2 * q)),
    upper_quantile=lambda q: rnp.where(
        q > 0.5, rnp.square(rnp.sin(math.pi / 2 * (1.0 - q))), rnp.square(rnp.cos(math.pi / 2 * q))
    ),
    entropy_of=lambda: math.log(math.pi / 4),
    mean_of=lambda: 0.5,
    variance_of=lambda: 0.125,
)


def _triangle_lower(y: Array, c: Array) -> Array:
    low, high = rnp.where(c > 0, c, 1.0), rnp.where(c < 1, 1.0 - c, 1.0)
    return rnp.where(y < c, y * y / low, 1.0 - rnp.square(1.0 - y) / high)


def _triangle_upper(y: Array, c: Array) -> Array:
    low, high = rnp.where(c > 0, c, 1.0), rnp.where(c < 1, 1.0 - c, 1.0)
    return rnp.where(y < c, 1.0 - y * y / low, rnp.square(1.0 - y) / high)


def _triangle_density(y: Array, c: Array) -> Array:
    low, high = rnp.where(c > 0, c, 1.0), rnp.where(c < 1, 1.0 - c, 1.0)
    return 2.0 * rnp.where((y < c) | (c == 1), y / low, (1.0 - y) / high)


triang = Continuous(
    "triang",
    "a triangle with its top at c",
    ("c",),
    bounds=_unit,
    log_density=lambda y, c: rnp.log(_triangle_density(y, c)),
    density=_triangle_density,
    lower=_triangle_lower,
    upper=_triangle_upper,
    valid=lambda c: (c >= 0) & (c <= 1),
    quantile=lambda q, c: rnp.where(q < c, rnp.sqrt(q * c), 1.0 - rnp.sqrt((1.0 - q) * (1.0 - c))),
    upper_quantile=lambda q, c: rnp.where(q < 1.0 - c, 1.0 - rnp.sqrt(q * (1.0 - c)), rnp.sqrt((1.0 - q) * c)),
    entropy_of=lambda c: 0.5 - math.log(2) + 0.0 * c,
    mean_of=lambda c: (c + 1.0) / 3.0,
    variance_of=lambda c: (1.0 - c + c * c) / 18.0,
)


# --- the truncated normal distribution --------------------------------------------------------


def _log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)) for a <= b, computed in the tail that contains a and b."""
    is_right = a + b > 0
    low, high = rnp.where(is_right, -b, a), rnp.where(is_right, -a, b)
    log_low, log_high = normal.log_normal_cdf(low), normal.log_normal_cdf(high)
    gap = rnp.where(log_low == -rnp.inf, -rnp.inf, log_low - log_high)
    # log(1 - exp(gap)): two formulas, each accurate in its range.
    is_close = gap > -math.log(2)
    close = rnp.log(-rnp.expm1(rnp.where(is_close, gap, -1.0)))
    wide = log_high + rnp.where(is_close, close, rnp.log1p(-rnp.exp(rnp.where(is_close, -1.0, gap))))
    middle = 0.5 * (a + b)
    is_narrow = (b > a) & ((b - a) * (1.0 + rnp.abs(middle)) < 0.03)
    return rnp.where(
        is_narrow, _log_narrow_mass(*(rnp.where(is_narrow, x, c) for x, c in ((middle, 0.0), (b - a, 0.01)))), wide
    )


def _log_narrow_mass(middle: Array, width: Array) -> Array:
    """The same for a narrow interval: the width times the density, and terms of even powers."""
    m, h = middle * middle, 0.25 * width * width
    more = (m - 1.0) / 6.0 + h * ((m - 6.0) * m + 3.0) / 120.0
    return rnp.log(width) - 0.5 * m - 0.5 * math.log(2 * math.pi) + rnp.log1p(h * more)


def _truncnorm_share(y: Array, a: Array, b: Array, low: Array, high: Array) -> Array:
    """The mass of [low, high] as a share of that of [a, b], where one end of the former is y."""
    is_some = low < high
    share = rnp.exp(_log_mass(rnp.where(is_some, low, a), rnp.where(is_some, high, b)) - _log_mass(a, b))
    # A mass of 0 has no logarithm: to first order it is the width times the density.
    width = rnp.where(is_some, 0.0, high - low)
    start = width * rnp.exp(-0.5 * y * y - 0.5 * math.log(2 * math.pi) - _log_mass(a, b))
    return rnp.where(is_some, share, start)


def _truncnorm_log_share(log_mass: Array, complement: Array, a: Array, b: Array) -> Array:
    log = log_mass - _log_mass(a, b)
    return log_share(rnp.exp(log), complement, log)


def _truncnorm_ppf(q: Array, a: Array, b: Array) -> Array:
    is_right = a > 0
    low, high = rnp.where(is_right, -b, a), rnp.where(is_right, -a, b)
    share = rnp.where(is_right, 1.0 - q, q)
    first, mass = normal.log_normal_cdf(low), _log_mass(low, high)
    return rnp.where(is_right, -1.0, 1.0) * normal.ndtri_exp(rnp.logaddexp(first, rnp.log(share) + mass))


def _truncnorm_inside(a: Array, b: Array) -> Array:
    low = rnp.where(a == -rnp.inf, rnp.minimum(b, 0.0) - 1.0, a)
    high = rnp.where(b == rnp.inf, rnp.maximum(a, 0.0) + 1.0, b)
    return 0.5 * (low + high)


def _truncnorm_ends(a: Array, b: Array) -> tuple[Array, Array]:
    """The densities at both ends, over the mass."""
    mass = _log_mass(a, b)
    at = lambda x: rnp.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - mass)  # noqa: E731
    return at(a), at(b)


def _truncnorm_mean(a: Array, b: Array) -> Array:
    first, last = _truncnorm_ends(a, b)
    return first - last


def _truncnorm_variance(a: Array, b: Array) -> Array:
    first, last = _truncnorm_ends(a, b)
    low = rnp.where(rnp.isfinite(a), a, 0.0) * first
    high = rnp.where(rnp.isfinite(b), b, 0.0) * last
    return 1.0 + low - high - rnp.square(first - last)


truncnorm = Continuous(
    "truncnorm",
    "the normal distribution between a and b (before loc and scale)",
    ("a", "b"),
    bounds=lambda a, b: (a, b),
    inside=_truncnorm_inside,
    valid=lambda a, b: a < b,
    log_density=lambda y, a, b: -0.5 * y * y - 0.5 * math.log(2 * math.pi) - _log_mass(a, b),
    lower=lambda y, a, b: _truncnorm_share(y, a, b, a, y),
    upper=lambda y, a, b: _truncnorm_share(y, a, b, y, b),
    log_lower=lambda y, a, b: _truncnorm_log_share(_log_mass(a, y), _truncnorm_share(y, a, b, y, b), a, b),
    log_upper=lambda y, a, b: _truncnorm_log_share(_log_mass(y, b), _truncnorm_share(y, a, b, a, y), a, b),
    quantile=_truncnorm_ppf,
    upper_quantile=lambda q, a, b: -_truncnorm_ppf(q, -b, -a),
    mean_of=_truncnorm_mean,
    variance_of=_truncnorm_variance,
)
