"""The Faddeeva function of complex numbers.

w(z) is an integral over the real line of an analytic function; the trapezoidal rule with a
correction for the pole is accurate to the last digits with 11 points, either at the points kh or
between them, whichever are farther from the pole.

Source: Al Azah & Chandler-Wilde 2021, SIAM J. Numer. Anal. 59(5).
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.ops.complex_numbers import is_complex
from rune.ops.promote import promoted
from rune.scipy.special.arguments import as_array, with_slopes
from rune.typing import ArrayLike

_POINTS = 11
_STEP = math.sqrt(math.pi / (_POINTS + 1))


def _sum_over(z: Array, points: list[float]) -> Array:
    """Σ exp(-t²) / (z² - t²) over points t."""
    square = z * z
    total: Array | float = 0.0
    for t in points:
        total = total + math.exp(-t * t) / (square - t * t)
    return (2j * _STEP / math.pi) * z * total


def _first_quadrant(z: Array) -> Array:
    """w(z) for Re z >= 0 and Im z >= 0."""
    x, y = rnp.real(z), rnp.imag(z)
    between = _sum_over(z, [(k + 0.5) * _STEP for k in range(_POINTS + 1)])
    at_points = _sum_over(z, [k * _STEP for k in range(1, _POINTS + 1)])
    at_points = at_points + (1j * _STEP / math.pi) / z
    part = x / _STEP - rnp.floor(x / _STEP)
    is_high = y >= rnp.maximum(x, math.pi / _STEP)
    use_points = (y < x) & (part >= 0.25) & (part <= 0.75)
    # The residue at the pole, 2 exp(-z²) / (1 ± exp(-2πi z/h)), is written with exp(-|…|).
    turn = rnp.exp((2j * math.pi / _STEP) * z)
    residue = 2.0 * rnp.exp(-(z * z)) * turn / rnp.where(use_points, turn - 1.0, turn + 1.0)
    total = rnp.where(use_points, at_points, between)
    return rnp.where(is_high, between, total + residue)


@with_slopes(lambda t, w, z: t * (2j / math.sqrt(math.pi) - 2.0 * z * w))
def wofz_of_complex(z: Array) -> Array:
    """w(z) = exp(-z²) erfc(-iz)."""
    x, y = rnp.real(z), rnp.imag(z)
    is_infinite = (rnp.isinf(x) | rnp.isinf(y)) & ~rnp.isnan(x) & ~rnp.isnan(y)
    limit = rnp.where((y == -rnp.inf) & rnp.isfinite(x), rnp.inf, 0.0)
    return rnp.where(is_infinite, limit, _of_finite(rnp.where(is_infinite, 1.0, z)))


def _of_finite(z: Array) -> Array:
    x, y = rnp.real(z), rnp.imag(z)
    large = 1e6
    is_far = (rnp.abs(x) > large) | (rnp.abs(y) > large)
    in_quadrant = rnp.where(is_far, 1.0, rnp.abs(x)) + 1j * rnp.where(is_far, 1.0, rnp.abs(y))
    near = _first_quadrant(in_quadrant)
    far = (1j / math.sqrt(math.pi)) / rnp.where(is_far, rnp.abs(x) + 1j * rnp.abs(y), 1.0)
    w = rnp.where(is_far, far, near)
    # w(-conj z) = conj w(z), and w(-z) = 2 exp(-z²) - w(z).
    w = rnp.where(x < 0, rnp.conj(w), w)
    below = 2.0 * rnp.exp(-(z * z)) - rnp.conj(w)
    return rnp.where(y < 0, below, w)


def wofz(z: ArrayLike) -> Array:
    """exp(-z²) erfc(-iz), the Faddeeva function, as complex numbers.

    Types: c64, or c128 for 64-bit dtypes.
    Shapes: any, unchanged.
    Errors: ArgumentError if an argument is not an array.
    Source: Al Azah & Chandler-Wilde 2021, SIAM J. Numer. Anal. 59(5).

    >>> from rune.scipy.special import wofz
    >>> wofz(0.0)
    Array(1.+0.j, c64*[], cpu:0)
    """
    x = as_array(*promoted("wofz", z, kind="inexact"))
    if is_complex(x):
        return wofz_of_complex(x)
    x = rnp.astype(x, rnp.float32) if rnp.finfo(x.dtype).bits < 32 else x
    return wofz_of_complex(ops.complex(x, rnp.zeros_like(x)))
