"""Stirling's series of log Γ and of its derivative, of real numbers and of complex ones.

Source: DLMF 5.11.1 and 5.11.2.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.arguments import polynomial

SHIFT = 8  # where the real part is at least this, the series are exact to rounding
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def stirling_series(x: Array) -> Array:
    """log Γ(x) - ((x - 1/2) log x - x + log √(2π))."""
    return polynomial(1.0 / (x * x), _LOG_GAMMA) / x


def log_less_digamma_series(x: Array) -> Array:
    """log x - ψ(x), without the digits that they share."""
    square = 1.0 / (x * x)
    return 0.5 / x + polynomial(square, _DIGAMMA) * square


def digamma_series(x: Array) -> Array:
    """ψ(x)."""
    square = 1.0 / (x * x)
    return rnp.log(x) - 0.5 / x - polynomial(square, _DIGAMMA) * square
