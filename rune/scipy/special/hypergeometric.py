"""Confluent and Gauss' hypergeometric functions of real arguments.

Both are power series, after a transformation to arguments for which they converge without
cancellation; 1F1 has an asymptotic series for |x| > 50. Derivatives in all arguments are those of
the loops. For an integer a <= 0, or b of 2F1, a series ends: it is a polynomial, for any x. Its
terms alternate and cancel, so that 2F1 is computed by degrees, each from the two below.

Not implemented: analytic continuation of other 2F1 beyond x = 1 (NaN). Near x = 1 its series takes
up to 20,000 terms, which suffices up to 0.998. Large parameters of alternating sign lose digits.
"""

from __future__ import annotations

import rune.numpy as rnp
from rune.array import Array
from rune.ops import stop_gradient
from rune.scipy.special.arguments import elementwise, of_lists, undefined
from rune.scipy.special.combinatorial import over_gamma
from rune.scipy.special.gammas import gamma_function
from rune.scipy.special.loops import Limit, State


def _start(*args: Array) -> State:
    one = rnp.ones_like(args[0])
    return State((one,), (one,))


def _confluent_step(n: Array, s: State, a: Array, b: Array, x: Array) -> State:
    below = b + n - 1.0  # 0 only where the series has ended before, or at a pole
    term = s.others[0] * ((a + n - 1.0) / rnp.where(below == 0, 1.0, below)) * (x / n)
    return State((s.watched[0] + term,), (term,))


def _gauss_step(n: Array, s: State, a: Array, b: Array, c: Array, x: Array) -> State:
    term = s.others[0] * ((a + n - 1.0) / (c + n - 1.0)) * ((b + n - 1.0) / n) * x
    return State((s.watched[0] + term,), (term,))


def _at_degree_zero(a: Array, *_: Array) -> State:
    return State((rnp.ones_like(a), rnp.zeros_like(a)), (rnp.zeros_like(a),))


def _degree_step(n: Array, s: State, a: Array, degree: Array, c: Array, x: Array) -> State:
    """From 2F1(a, 1 - n; c; x) to 2F1(a, -n; c; x) by their difference. Source: DLMF 15.5.11."""
    below, goes_on = n - 1.0, n <= degree
    difference = (below * (1.0 - x) * s.others[0] - a * x * s.watched[0]) / (c + below)
    difference = rnp.where(goes_on, difference, 0.0)
    # The degree is watched, too: the value may stand still on the way.
    return State((s.watched[0] + difference, rnp.minimum(n, degree)), (difference,))


MOST = 20000  # terms of a series, and the highest degree of a polynomial that is computed by degrees
_confluent = Limit(_start, _confluent_step)
_gauss = Limit(_start, _gauss_step, most=MOST)
_by_degrees = Limit(_at_degree_zero, _degree_step, most=MOST + 2, count=2)


def _ends(a: Array) -> Array:
    """Whether the factors a, a + 1, … reach 0."""
    return (a <= 0) & (rnp.floor(a) == a)


def _asymptotic(a: Array, b: Array, x: Array) -> Array:
    """Σ (a)_n (b)_n / (n! x^n), ended where its terms start to grow."""
    total, term = rnp.ones_like(x), rnp.ones_like(x)
    grows = rnp.zeros(x.shape, bool)
    for n in range(40):
        factor = (a + float(n)) * (b + float(n)) / ((n + 1.0) * x)
        grows = grows | (rnp.abs(factor) > 1.0)
        term = term * rnp.where(grows, 0.0, factor)
        total = total + term
    return total


@of_lists
@elementwise
def hyp1f1(a: Array, b: Array, x: Array) -> Array:
    """Kummer's function 1F1(a; b; x), Σ (a)_n x^n / ((b)_n n!).

    Infinite for a whole b <= 0, unless a whole a between b and 0 ends the series before the pole.
    Source: DLMF 13.2.2, 13.2.39 and 13.7.1.
    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import hyp1f1
    >>> hyp1f1(1.0, 1.0, 1.0)
    Array(2.718282, f32[], cpu:0)
    """
    is_short = _ends(b) & _ends(a) & (a >= b)
    is_pole = _ends(b) & ~is_short
    b = rnp.where(is_pole, 1.0, b)
    is_far, is_below = (rnp.abs(x) > 50.0) & ~is_short, (x < 0) & ~is_short
    near = rnp.where(is_far, 0.0, x)
    first = rnp.where(is_below, b - a, a)
    series = _confluent(first, b, rnp.where(is_below, -near, near)) * rnp.where(is_below, rnp.exp(near), 1.0)
    size = rnp.where(is_far, rnp.abs(x), 100.0)
    other = b - first
    growth = rnp.where(is_below, 1.0, rnp.exp(0.5 * size))
    front = gamma_function(b) * over_gamma(first) * rnp.power(size, -other)
    far = growth * (front * _asymptotic(other, 1.0 - first, size)) * growth
    # At a pole, 0 times infinity makes the derivative NaN; elsewhere -0.0 is added.
    pole = (1.0 + 0.0 * rnp.where(is_pole, x, 0.0)) * rnp.where(is_pole, rnp.inf, -0.0)
    return rnp.where(is_pole, 0.0, rnp.where(is_far, far, series)) + pole


def _at_one(a: Array, b: Array, c: Array) -> Array:
    """2F1 at 1 for c > a + b. Source: DLMF 15.4.20."""
    above = gamma_function(c) * gamma_function(rnp.where(c > a + b, c - a - b, 1.0))
    return rnp.where(c > a + b, above * over_gamma(c - a) * over_gamma(c - b), rnp.inf)


def _inside(a: Array, b: Array, c: Array, x: Array) -> Array:
    """2F1 for x < 1 by its series; 1 elsewhere."""
    is_below, at = x < 0, rnp.where(x < 1, x, 0.0)
    # Pfaff's transformation below 0, which leads to [0, 1); the smaller parameter is kept.
    low, high = rnp.minimum(a, b), rnp.maximum(a, b)
    a1, b1 = rnp.where(is_below, low, a), rnp.where(is_below, c - high, b)
    z = rnp.where(is_below, at / (at - 1.0), at)
    front = rnp.where(is_below, rnp.power(1.0 - at, -low), 1.0)
    # Euler's transformation, where the series would grow towards 1.
    gap = c - a1 - b1
    is_turned = (gap < 0) & (z > 0.5)
    a2, b2 = rnp.where(is_turned, c - a1, a1), rnp.where(is_turned, c - b1, b1)
    front = front * rnp.where(is_turned, rnp.power(1.0 - z, gap), 1.0)
    return front * _gauss(a2, b2, c, z)


def _turned(other: Array, end: Array, c: Array, x: Array) -> tuple[Array, Array]:
    """Whether Euler's transformation leads to a polynomial of a lower degree, and its value.

    That has fewer terms to cancel where the value is tiny. Source: DLMF 15.8.1.
    """
    degree = other - c
    is_turned = (degree >= 0) & (rnp.floor(degree) == degree) & (degree < -end) & ~_ends(c)
    is_turned = is_turned & (c + degree == other)
    degree = rnp.where(is_turned, degree, 0.0)
    front = rnp.power(1.0 - x, rnp.where(is_turned, -end - degree, 0.0))
    return is_turned, front * _by_degrees(c - end, degree, c, x)


def _polynomial(a: Array, b: Array, c: Array, x: Array, ends: tuple[Array, Array]) -> Array:
    """2F1 for any x, where a or b `ends` it; 1 elsewhere."""
    is_by_a = ends[0] & (~ends[1] | (a > b))
    end, other = rnp.where(is_by_a, a, b), rnp.where(is_by_a, b, a)
    end = rnp.where(ends[0] | ends[1], end, 0.0)
    value = _by_degrees(other, -stop_gradient(end), c, x)
    # Beside a whole `other` - c the function is another one: slopes are those of the value.
    is_turned, turned = _turned(*map(stop_gradient, (other, end, c, x)))
    is_turned = is_turned & rnp.isfinite(stop_gradient(value))
    value = rnp.where(is_turned, turned + (value - stop_gradient(value)), value)
    # The degree has no neighbours that are no polynomials: the slope in it is that of the series,
    # and infinite if that overflows.
    series = _gauss(stop_gradient(other), end, stop_gradient(c), stop_gradient(x))
    is_finite = rnp.isfinite(series)
    steep = rnp.sqrt(rnp.where(is_finite, 1.0, end - stop_gradient(end)))
    return value + rnp.where(is_finite, series - stop_gradient(series), steep)


@elementwise
def hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    """Gauss' function 2F1(a, b; c; x), Σ (a)_n (b)_n x^n / ((c)_n n!), for x <= 1.

    Beyond 1 it is NaN, unless a whole a or b <= 0 ends the series.
    Source: DLMF 15.2.1, 15.4.20, 15.8.1.
    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import hyp2f1
    >>> hyp2f1(1.0, 1.0, 2.0, 0.5)
    Array(1.3862946, f32[], cpu:0)
    """
    ends = (_ends(a) & (a >= -MOST), _ends(b) & (b >= -MOST))
    is_polynomial = (ends[0] | ends[1]) & rnp.isfinite(x)
    series = _inside(a, b, c, rnp.where(is_polynomial, 0.0, x))
    polynomial = _polynomial(a, b, c, rnp.where(is_polynomial, x, 0.0), ends)
    out = rnp.where(x < 1, series, _at_one(a, b, c))
    out = undefined(~(x <= 1) & ~is_polynomial, rnp.where(is_polynomial, polynomial, out), x)
    return rnp.where(x == 0, 1.0, out)
