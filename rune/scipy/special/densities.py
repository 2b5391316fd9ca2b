"""Gamma and beta densities that keep their digits for large parameters.

A difference of large logarithms loses their common part. Here it is written as deviances, that is
log1p(u) - u for the small distance u from the mode, and the remainder of Stirling's formula.

Source: Loader 2000, Fast and accurate computation of binomial probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.arguments import polynomial, with_slopes
from rune.scipy.special.gammas import digamma, gamma_of_positive, log_gamma, log_gamma_of_positive
from rune.scipy.special.stirling import HALF_LOG_2PI, SHIFT, log_less_digamma_series, stirling_series

_ODD = tuple(1 / (2 * k + 3) for k in range(18))


def enough(coefficients: Sequence[float], reach: float, eps: float) -> Sequence[float]:
    """The first coefficients of a polynomial, without those that are negligible for |x| <= reach.

    A term is negligible below a thousandth of eps, so that one or two derivatives may be taken.
    Most of the coefficients for f64 are negligible in f32, but would take as long to compile.
    """
    sizes = [abs(c) * reach**k for k, c in enumerate(coefficients)]
    significant = [k for k, size in enumerate(sizes) if size > eps * 1e-3]
    return coefficients[: significant[-1] + 1] if significant else ()


@with_slopes(lambda t, y, u, ratio: -t * u / ratio, None)
def deviance(u: Array, ratio: Array) -> Array:
    """log(ratio) - u for ratio = 1 + u, accurate near u = 0 and near u = -1."""
    is_near = rnp.abs(u) < 0.5
    near = rnp.where(is_near, u, 0.0)
    # log(1 + u) = 2 artanh(s) with s = u / (2 + u), and u - 2 s = u s.
    s = near / (2.0 + near)
    square = s * s
    odd = enough(_ODD, 1 / 9, float(rnp.finfo(u.dtype).eps))
    series = 2.0 * s * square * polynomial(square, odd) - near * s
    return rnp.where(is_near, series, rnp.log(rnp.where(is_near, 1.0, ratio)) - u)


def stirling_error(z: Array) -> Array:
    """log Γ(z + 1) - ((z + 1/2) log z - z + log √(2π)), for z > 0."""
    is_low = z < SHIFT
    low = rnp.where(is_low, z, 1.0)
    exact = log_gamma_of_positive(low + 1.0) - (low + 0.5) * rnp.log(low) + low - HALF_LOG_2PI
    return rnp.where(is_low, exact, stirling_series(rnp.where(is_low, float(SHIFT), z)))


def log_less_digamma(x: Array) -> Array:
    """log x - ψ(x), for x > 0: entropies of large parameters multiply it by them."""
    is_low = x < SHIFT
    low = rnp.where(is_low, x, 1.0)
    return rnp.where(is_low, rnp.log(low) - digamma(low), log_less_digamma_series(rnp.where(is_low, float(SHIFT), x)))


@with_slopes(lambda t, r, x, y: t * rnp.log(y), lambda t, r, x, y: t * quotient(x, y))
def times_log(x: Array, y: Array) -> Array:
    """x log(y) for floating arrays, and 0 where x is 0."""
    is_zero = (x == 0) & ~rnp.isnan(y)
    return rnp.where(is_zero, 0.0, x * rnp.log(rnp.where(is_zero, 1.0, y)))


def quotient(x: Array, y: Array) -> Array:
    """x / y, and 0 where x is 0: the slope of a product that is 0 there for every y."""
    is_zero = (x == 0) & ~rnp.isnan(y)
    return rnp.where(is_zero, 0.0, x / rnp.where(is_zero, 1.0, y))


@with_slopes(lambda t, y, a, x: t * log_ratio(x, a), lambda t, y, a, x: t * ((a - x) / x))
def poisson_deviance(a: Array, x: Array) -> Array:
    """a log(x / a) - (x - a), for a > 0 and x >= 0: the exponent of a Poisson mass beside that of
    its mode.
    """
    return a * deviance((x - a) / a, x / a)


def log_ratio(x: Array, a: Array) -> Array:
    """log(x / a), accurate near x = a, for a > 0."""
    u, ratio = (x - a) / a, x / a
    is_near = rnp.abs(u) < 0.5
    return rnp.where(is_near, rnp.log1p(rnp.where(is_near, u, 0.0)), rnp.log(rnp.where(is_near, 1.0, ratio)))


def _power_wrt_base(t: Array, y: Array, x: Array, a: Array) -> Array:
    return t * a * power_of_positive(x, rnp.where(a == 0, 1.0, a - 1.0))


@with_slopes(_power_wrt_base, lambda t, y, x, a: t * rnp.where(y == 0, 0.0, y * rnp.log(rnp.where(y == 0, 1.0, x))))
def power_of_positive(x: Array, a: Array) -> Array:
    """x**a for x >= 0 and a >= 0, whose slope in x is 0 for a = 0, of x = 0 too."""
    return rnp.power(x, a)


def log_poisson(a: Array, x: Array) -> Array:
    """log(x**a exp(-x) / Γ(a + 1)), for a >= 0 and x >= 0."""
    is_low = a < SHIFT
    # A branch gets harmless arguments where the other one counts: its slopes may be infinite there.
    low, low_x = rnp.where(is_low, a, 0.0), rnp.where(is_low, x, 1.0)
    direct = times_log(low, low_x) - x - log_gamma(low + 1.0)
    high, high_x = rnp.where(is_low, float(SHIFT), a), rnp.where(is_low, float(SHIFT), x)
    far = poisson_deviance(high, high_x) - 0.5 * rnp.log(high) - HALF_LOG_2PI - stirling_error(high)
    return rnp.where(is_low, direct, far)


def poisson(a: Array, x: Array) -> Array:
    """x**a exp(-x) / Γ(a + 1), for a >= 0 and x >= 0."""
    is_low = a < SHIFT
    low = rnp.where(is_low, a, 0.0)
    # Beyond 900 the exponential is 0 whatever the power is, which must stay finite.
    direct = power_of_positive(rnp.minimum(x, 900.0), low) * rnp.exp(-x) / gamma_of_positive(low + 1.0)
    # A mass of 0 has slopes of 0, where its logarithm has infinite ones.
    is_far = ~is_low & (x != 0) & (x != rnp.inf)
    high, high_x = rnp.where(is_far, a, float(SHIFT)), rnp.where(is_far, x, float(SHIFT))
    exponent = poisson_deviance(high, high_x) - stirling_error(high)
    far = rnp.exp(exponent) / rnp.sqrt(2 * math.pi * high)
    return rnp.where(is_low, direct, rnp.where(is_far, far, 0.0))


def log_beta_power(a: Array, b: Array, x: Array, y: Array) -> Array:
    """log(x**a y**b / B(a, b)), for y = 1 - x and a, b > 0."""
    n, apart = a + b, x * b - y * a
    deviances = a * deviance(apart / a, x * n / a) + b * deviance(-apart / b, y * n / b)
    errors = stirling_error(n) - stirling_error(a) - stirling_error(b)
    return deviances + errors + 0.5 * (rnp.log(a) + rnp.log(b / n)) - HALF_LOG_2PI
