"""Densities, entropies and moments of functions of gamma numbers, also for large shapes.

Terms of log Γ, of its derivative and of powers are large there, and share their first digits. What
Stirling's formula leaves of them does not.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.combinatorial import log_beta
from rune.scipy.special.densities import log_beta_power, log_less_digamma, log_poisson, stirling_error, times_log
from rune.scipy.special.gammas import log_gamma
from rune.scipy.special.stirling import HALF_LOG_2PI
from rune.scipy.stats.family import Continuous, Function, Tails, log_share, rising


def gamma_entropy(a: Array) -> Array:
    """a + log Γ(a) + (1 - a) ψ(a), by what Stirling's formula leaves of both functions."""
    return 0.5 * rnp.log(a) + HALF_LOG_2PI + stirling_error(a) + (a - 1.0) * log_less_digamma(a)


def gamma_log_density(y: Array, a: Array) -> Array:
    """log(y**(a - 1) exp(-y) / Γ(a)), from the Poisson mass of a - 1 where that is large."""
    is_large = a > 10.0
    # A branch gets harmless arguments where the other one counts: its slopes may be infinite.
    small, small_y = rnp.where(is_large, 1.0, a), rnp.where(is_large, 1.0, y)
    direct = times_log(small - 1.0, small_y) - small_y - log_gamma(small)
    large = log_poisson(rnp.where(is_large, a - 1.0, 9.0), rnp.where(is_large, y, 9.0))
    return rnp.where(is_large, large, direct)


def loggamma_log_density(y: Array, c: Array) -> Array:
    """c y - exp(y) - log Γ(c), by the distance of y from the mode, log c."""
    distance = y - rnp.log(c)
    return c * (distance - rnp.expm1(distance)) + 0.5 * rnp.log(c) - HALF_LOG_2PI - stirling_error(c)


def chi_log_density(y: Array, df: Array) -> Array:
    """(df - 1) log y - y²/2, normalised."""
    is_large = (df > 20.0) & (y > 0)
    few, at = rnp.where(is_large, 1.0, df), rnp.log(rnp.where(is_large, y, 1.0))
    direct = times_log(few - 1.0, y) - 0.5 * y * y - (0.5 * few - 1.0) * math.log(2) - log_gamma(0.5 * few)
    # log(y² / 2) is the logarithm of a gamma number.
    large = loggamma_log_density(2.0 * at - math.log(2), 0.5 * rnp.where(is_large, df, 20.0))
    return rnp.where(is_large, large + (math.log(2) - at), direct)


def log_mean_over_root(h: Array) -> Array:
    """log(Γ(h + 1/2) / (Γ(h) √h)), about -1/(8h). Source: DLMF 5.11.1."""
    is_large = h > 50.0
    near, r = rnp.where(is_large, 1.0, h), 1.0 / rnp.where(is_large, h, 50.0)
    series = r * (-1 / 8 + r * r * (1 / 192 + r * r * (-1 / 640 + r * r * (17 / 14336))))
    direct = near * rnp.log1p(0.5 / near) - 0.5 + stirling_error(near + 0.5) - stirling_error(near)
    return rnp.where(is_large, series, direct)


def invgamma_log_density(y: Array, a: Array) -> Array:
    """-(a + 1) log y - 1/y - log Γ(a), for y > 0."""
    is_large, at = a > 10.0, rnp.log(y)
    small = rnp.where(is_large, 1.0, a)
    direct = -(small + 1.0) * at - log_gamma(small) - 1.0 / y
    return rnp.where(is_large, loggamma_log_density(-at, rnp.where(is_large, a, 10.0)) - at, direct)


def f_log_density(y: Array, n: Array, d: Array) -> Array:
    """That of F, whose odds n y / d are those of beta numbers, for n and d degrees of freedom."""
    is_large = (n + d > 40.0) & (y > 0)
    # A branch gets harmless arguments where the other one counts.
    a, b, ratio = (rnp.where(is_large, 1.0, x) for x in (0.5 * n, 0.5 * d, n / d))
    direct = a * rnp.log(ratio) + times_log(a - 1.0, y) - (a + b) * rnp.log1p(ratio * y) - log_beta(a, b)
    odds = rnp.where(is_large, n / d * y, 1.0)
    share = rnp.where(odds < 1, odds, 1.0) / (1.0 + rnp.where(odds < 1, odds, 1.0 / odds))
    half_n, half_d = (rnp.where(is_large, 0.5 * x, 1.0) for x in (n, d))
    large = log_beta_power(half_n, half_d, share, 1.0 / (1.0 + odds))
    return rnp.where(is_large, large - rnp.log(rnp.where(is_large, y, 1.0)), direct)


def loggamma_tails(gamma: Continuous) -> Tails:
    """The distribution function of the logarithms of gamma numbers, also where those underflow.

    Of numbers x that are negligible beside 1 a share x**c / Γ(c + 1) is below x.
    """
    numbers = rising(gamma, lambda y, c: rnp.exp(y), lambda x, c: rnp.log(x), lambda y, c: (c,))
    tails = cast("dict[str, Function]", numbers)

    def parts(y: Array, c: Array) -> tuple[Array, Array, Array]:
        """Whether exp(y) is negligible, the logarithm of its share if so, and y if not."""
        is_low = y < _log_of_negligible(y)
        return is_low, rnp.where(is_low, c * y - log_gamma(c + 1.0), -1.0), rnp.where(is_low, 0.0, y)

    def lower(y: Array, c: Array) -> Array:
        is_low, log, other = parts(y, c)
        return rnp.where(is_low, rnp.exp(log), tails["lower"](other, c))

    def upper(y: Array, c: Array) -> Array:
        is_low, log, other = parts(y, c)
        return rnp.where(is_low, -rnp.expm1(log), tails["upper"](other, c))

    def log_lower(y: Array, c: Array) -> Array:
        is_low, log, other = parts(y, c)
        return rnp.where(is_low, log, log_share(tails["lower"](other, c), tails["upper"](other, c)))

    def quantile(side: Function, log_of: Function) -> Function:
        def function(q: Array, c: Array) -> Array:
            low = (log_of(q) + log_gamma(c + 1.0)) / c
            return rnp.where(low < _log_of_negligible(q), low, side(q, c))

        return function

    functions: Tails = {"lower": lower, "upper": upper, "log_lower": log_lower}
    functions["quantile"] = quantile(tails["quantile"], rnp.log)
    functions["upper_quantile"] = quantile(tails["upper_quantile"], lambda q: rnp.log1p(-q))
    return {**numbers, **functions}


def _log_of_negligible(like: Array) -> float:
    return math.log(np.finfo(like.dtype).eps)
