"""Special functions that samplers need: psi, Stirling's remainder, derivatives of gamma numbers.

All are elementwise on floating arrays; the only table in memory has ten numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop
from rune.number_tables import numbers
from rune.typing import ArrayLike

SHIFT = 8  # from here on the asymptotic series are accurate enough
# The series of scipy.special.stirling, whose package would load 30 modules with the first sample.
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# From here on the derivative is an expansion: a series takes 8.5 √a terms in f64.
LARGE = 3e4
MOST_TERMS = 5000  # more than any parameter below LARGE takes; NaN takes all of them


def psi(x: Any) -> Array:
    """The logarithmic derivative of the gamma function, for x > 0.

    Source: Abramowitz & Stegun 6.3.5 and 6.3.18.
    """
    large_x = x + float(SHIFT)
    square = 1.0 / (large_x * large_x)
    series = rnp.zeros_like(x)
    for coefficient in reversed(_PSI):
        series = (series + coefficient) * square
    steps = sum(1.0 / (x + float(i)) for i in range(SHIFT))
    return rnp.log(large_x) - 0.5 / large_x - series - steps


_REMAINDERS = numbers("""
    0.08106146679532726      0.0413406959554093       0.027677925684998338     0.020790672103765093
    0.016644691189821193     0.013876128823070748     0.01189670994589177      0.010411265261972096
    0.009255462182712733     0.00833056343336287
""")


def stirling_remainder(k: Array) -> Array:
    """log k! minus Stirling's log √(2π) + (k + 1/2) log(k + 1) - (k + 1), for whole k >= 0.

    Source: Hörmann 1993, Computing 50, section 4.
    """
    table = rnp.asarray(_REMAINDERS, k.dtype)
    first = table[rnp.clip(k, 0.0, 9.0).astype(rnp.int32)]
    inverse = 1.0 / (k + 1.0)
    square = inverse * inverse
    series = (1 / 12 - (1 / 360 - square / 1260) * square) * inverse
    return rnp.where(k <= 9.0, first, series)


def log_poisson_density(k: Array, lam: ArrayLike) -> Array:
    """log(λ^k exp(-λ) / k!) for whole k >= 0, without cancellation between large logarithms."""
    more = k + 1.0
    deviance = more - lam - k * rnp.log1p((more - lam) / lam)
    half = 0.5 * rnp.log(more) + 0.5 * math.log(2 * math.pi)
    return deviance - half - stirling_remainder(k)


# --- the derivative of a gamma number ---------------------------------------------------------


def gamma_log_derivative(a: Array, log_x: Array) -> Array:
    """d log x / da for x with P(a, x) held fixed: implicit reparameterisation.

    P(a, x) is the distribution function. Below a + 1 it is a series, above it 1 minus a continued
    fraction; both are taken together with their derivative in a, term by term. From LARGE on it is
    nearly that of a normal distribution.
    Source: Figurnov, Mohamed & Mnih 2018, arXiv:1805.08498; Press et al., Numerical Recipes 6.2.
    """
    x, is_large = rnp.exp(log_x), a >= LARGE
    is_low, is_high = ~is_large & (x < a + 1.0), ~is_large & (x >= a + 1.0)
    # Each lane runs in at most one of the two loops; in the others its operand ends it at once.
    low = _by_series(a, rnp.where(is_low, x, 0.0), log_x)
    high = _by_fraction(a, rnp.where(is_high, x, 2.0 * a + 1e3), log_x)
    large = _by_expansion(*(rnp.where(is_large, v, LARGE) for v in (a, x)))
    return rnp.where(is_large, large, rnp.where(is_low, low, high))


def _by_expansion(a: Array, x: Array) -> Array:
    """d log x / da for large a: x = a + z √a + (z² - 1)/3 + …, with a fixed normal number z.

    Error: below 1e-9 of the value for |z| <= 5 and a >= LARGE, besides rounding.
    Source: Cornish & Fisher 1938, Revue de l'Institut International de Statistique 5(4).
    """
    e = 1.0 / rnp.sqrt(a)
    y = (x - a) * e
    square = y * y
    third = (square * (219.0 * square - 14.0) - 13.0) / 1620.0
    z = y - e * ((square - 1.0) / 3.0 - e * (y * (7.0 * square - 1.0) / 36.0 - e * third))
    square = z * z
    cubic, quartic = z * (square - 7.0) / 72.0, (square * (3.0 * square + 7.0) - 16.0) / 810.0
    return (1.0 + e * (0.5 * z - e * e * (cubic - e * quartic))) / x


class _Series(NamedTuple):
    """Sums of the terms x^n / ((a+1) … (a+n)), and of their derivatives in a."""

    n: Any
    term: Any
    slope: Any
    total: Any
    total_slope: Any


def _by_series(a: Array, x: ArrayLike, log_x: Array) -> Array:
    eps = float(rnp.finfo(a.dtype).eps)

    def goes_on(s: _Series) -> Array:
        is_small = (s.term <= eps * s.total) & (abs(s.slope) <= eps * abs(s.total_slope))
        return rnp.any(~is_small) & (s.n < MOST_TERMS)

    def step(s: _Series) -> _Series:
        below = a + s.n.astype(a.dtype) + 1.0
        term = s.term * x / below
        slope = s.slope * x / below - term / below
        return _Series(s.n + 1, term, slope, s.total + term, s.total_slope + slope)

    one, zero = rnp.ones_like(a), rnp.zeros_like(a)
    sums = while_loop(goes_on, step, _Series(rnp.asarray(0), one, zero, one, zero))
    return -(sums.total * (log_x - psi(a + 1.0)) + sums.total_slope) / a


class _Fraction(NamedTuple):
    """Lentz' evaluation of a continued fraction, each quantity beside its derivative in a."""

    n: Any
    c: Any
    c_slope: Any
    d: Any
    d_slope: Any
    value: Any
    slope: Any
    is_done: Any


def _by_fraction(a: Array, x: Array, log_x: ArrayLike) -> Array:
    info = rnp.finfo(a.dtype)
    eps, huge = 2 * float(info.eps), float(1 / info.tiny) / 4

    def goes_on(s: _Fraction) -> Array:
        return rnp.any(~s.is_done) & (s.n < MOST_TERMS)

    def step(s: _Fraction) -> _Fraction:
        i = s.n.astype(a.dtype) + 1.0
        above, below = i * (a - i), x + 1.0 - a + 2.0 * i
        inverse = above * s.d + below
        d = 1.0 / inverse
        d_slope = -(i * s.d + above * s.d_slope - 1.0) * d * d
        c = below + above / s.c
        c_slope = -1.0 + (i - above * s.c_slope / s.c) / s.c
        factor, factor_slope = c * d, c_slope * d + c * d_slope
        value, slope = s.value * factor, s.slope * factor + s.value * factor_slope
        change = abs(slope - s.slope) + abs(value - s.value)
        is_done = change <= eps * (abs(slope) + abs(value))
        return _Fraction(s.n + 1, c, c_slope, d, d_slope, value, slope, is_done)

    first = 1.0 / (x + 1.0 - a)
    square, zero = first * first, rnp.zeros_like(a)
    start = _Fraction(rnp.asarray(0), rnp.full_like(a, huge), zero, first, square, first, square, zero > 1.0)
    final = while_loop(goes_on, step, start)
    return (log_x - psi(a)) * final.value + final.slope
