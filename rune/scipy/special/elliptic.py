"""Complete elliptic integrals, by the arithmetic-geometric mean."""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.arguments import elementwise, with_slopes

_STEPS = 7  # each squares the distance; the first ones bring distant numbers together
_FAR_STEPS = 5


def _means(complement: Array) -> tuple[Array, Array]:
    """The mean of 1 and √complement, and the sum of 2^(n-1) c_n² of Gauss' method."""
    a, b = rnp.ones_like(complement), rnp.sqrt(complement)
    total, power = 0.5 * (1.0 - complement), 0.5
    for _ in range(_STEPS + _FAR_STEPS):
        a, b, gap = 0.5 * (a + b), rnp.sqrt(a * b), 0.5 * (a - b)
        power *= 2.0
        total = total + power * gap * gap
    return a, total


def _slope_of_k(m: Array, p: Array) -> Array:
    """dK/dm = (E - (1 - m) K) / (2 m (1 - m)), and its series near m = 0."""
    is_near = rnp.abs(m) < 1e-2
    safe = rnp.where(is_near, 0.5, m)
    complement = rnp.where(is_near, 0.5, p)
    slope = (ellipe(safe) - complement * ellipkm1(complement)) / (2.0 * safe * complement)
    total: Array | float = 0.0
    for k in range(9, 0, -1):
        term = (math.comb(2 * k, k) / 4**k) ** 2
        total = total * m + k * term
    return rnp.where(is_near, 0.5 * math.pi * total, slope)


def _slope_of_e(t: Array, y: Array, m: Array) -> Array:
    is_near = rnp.abs(m) < 1e-2
    safe = rnp.where(is_near, 0.5, m)
    slope = (ellipe(safe) - ellipkm1(1.0 - safe)) / (2.0 * safe)
    total: Array | float = 0.0
    for k in range(9, 0, -1):
        total = total * m - k / (2 * k - 1) * (math.comb(2 * k, k) / 4**k) ** 2
    return t * rnp.where(is_near, 0.5 * math.pi * total, slope)


@elementwise
def ellipk(m: Array) -> Array:
    """K(m), the integral of 1 / √(1 - m sin²t) from 0 to π/2; infinite at 1, NaN beyond.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Source: DLMF 19.8.5.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import ellipk
    >>> ellipk(0.0)
    Array(1.5707964, f32*[], cpu:0)
    """
    return ellipkm1(1.0 - m)


@elementwise
@with_slopes(lambda t, y, p: -t * _slope_of_k(1.0 - p, p))
def ellipkm1(p: Array) -> Array:
    """K(1 - p), accurate for small p.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 19.8.5.

    >>> from rune.scipy.special import ellipkm1
    >>> ellipkm1(1.0)
    Array(1.5707964, f32*[], cpu:0)
    """
    inside = rnp.where(p > 0, p, 1.0)
    integral = 0.5 * math.pi / _means(inside)[0]
    return rnp.where(p > 0, integral, rnp.where(p == 0, rnp.inf, rnp.nan))


@elementwise
@with_slopes(_slope_of_e)
def ellipe(m: Array) -> Array:
    """E(m), the integral of √(1 - m sin²t) from 0 to π/2; NaN beyond 1.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Source: DLMF 19.8.6.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import ellipe
    >>> ellipe(1.0)
    Array(1., f32*[], cpu:0)
    """
    is_inside = m < 1
    mean, total = _means(rnp.where(is_inside, 1.0 - m, 1.0))
    integral = 0.5 * math.pi / mean * (1.0 - total)
    integral = rnp.where(m == -rnp.inf, rnp.inf, integral)
    return rnp.where(is_inside, integral, rnp.where(m == 1, 1.0, rnp.nan))
