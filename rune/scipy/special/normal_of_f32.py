"""The normal distribution function Φ, its logarithm and its inverse in f32, with few passes.

All of Φ is Φ(-|x|) or its complement: half of erfc(|x|/√2), which would magnify the rounding of its
argument. So what was rounded off is computed exactly, and corrected to first order by erfc's
logarithmic slope. Error: at most 2.5 ulp (tests measure it).

Source: tools/minimax.py for the coefficients; DLMF 7.12.1 for the series.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.number_tables import numbers, quotient
from rune.scipy.special.arguments import polynomial
from rune.scipy.special.arguments import quotient as quotient_of

_ROOT_2 = math.sqrt(2)
_SHORT_ROOT_2 = 181 / 128  # 8 bits: its products with numbers of 16 bits are exact
# -erfc'(u)/erfc(u)/√2 for 0 <= u <= 10.3, within 0.2/u: a quarter ulp of what it corrects
_SLOPE = (0.28385002171898105, 1.391425431719285)
_SERIES = (1.0, -1.0, 3.0, -15.0, 105.0)  # of -x Φ(x) √(2π) exp(x²/2) in 1/x²
_FAR = -10.0  # below it the series is accurate; f32 holds Φ only down to -14
# The inverse of Φ over y = p - 1/2, less 5/2, in y² up to 1/16
_MIDDLE = numbers("""
    0.006628243199992        2.6249706291866404       5.7660941985565675      16.08750230802665
   34.984672592811236      298.65260744733735
""")
# That of exp(-s²) over -s in s - 1.1875, for 1.177 <= s <= 10.2
_TAIL = quotient("""
    0.5837121672303426       2.1917844918162315       1.689392237288959        0.42626674398913805
    0.02938918102370406 /
    1.0                      1.9311931021740203       1.2440138596243706       0.30177533697195114
    0.020777167283831104
""")
_TAIL_FROM = 1.1875
_TAIL_EXCESS = tuple(a - b for a, b in zip(*_TAIL, strict=True)), _TAIL[1]  # less 1


def cdf(x: Array) -> Array:
    """Φ(x)."""
    tail = _lower_tail(rnp.abs(x))
    return rnp.where(x < 0, tail, 1.0 - tail)


def _lower_tail(size: Array) -> Array:
    """Φ(-size) for size >= 0."""
    size = _at_most(20.0, size)  # beyond, f32 has only 0
    u = size * (1 / _ROOT_2)
    coarse = rnp.round(u * 2.0**8) * 2.0**-8
    # size - √2 u
    residue = (size - _SHORT_ROOT_2 * coarse) - _SHORT_ROOT_2 * (u - coarse) - (_ROOT_2 - _SHORT_ROOT_2) * u
    return ops.erfc(u) * (0.5 - residue * polynomial(u, [0.5 * c for c in _SLOPE]))


def log_cdf(x: Array) -> Array:
    """log Φ(x): of the tail or of its complement, and far below by the asymptotic series of Φ."""
    tail, is_low, is_far = _lower_tail(rnp.abs(x)), x < 0, x < _FAR
    value = rnp.where(is_low, tail, 1.0 - tail)
    # What rounding takes from the complement, over the complement.
    residue = rnp.where(is_low, 0.0, (tail - (1.0 - value)) * (1.0 + tail))
    inverse = 1.0 / _at_most(_FAR, x)
    series = polynomial(inverse * inverse, _SERIES) * (inverse * (-1 / math.sqrt(2 * math.pi)))
    # Where Φ is 1 its logarithm is -0, as it is in f64.
    return -rnp.abs(rnp.log(rnp.where(is_far, series, value))) - rnp.where(is_far, 0.5 * x * x, residue)


def ppf(p: Array) -> Array:
    """The inverse of Φ: infinite at 0 and 1, NaN beyond."""
    y, small = p - 0.5, rnp.where(p < 0.5, p, 1.0 - p)
    square = y * y
    middle = 2.5 * y + y * polynomial(square, _MIDDLE)
    s = rnp.sqrt(-rnp.log(small))
    tail = s + s * quotient_of(_at_most(10.2, s) - _TAIL_FROM, _TAIL_EXCESS)
    return rnp.where(small < 0.25, rnp.copysign(tail, y), middle)


def _at_most(limit: float, x: Array) -> Array:
    """The lesser one, or NaN: one instruction, where a minimum of two unknown numbers is four."""
    return rnp.where(x > limit, limit, x)
