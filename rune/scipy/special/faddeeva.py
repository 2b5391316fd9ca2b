"""The Faddeeva function of complex numbers, and Owen's T.

w(z) is an integral over the real line of an analytic function; the trapezoidal rule with a
correction for the pole is accurate to the last digits with 11 points, either at the points kh or
between them, whichever are farther from the pole.

Source: Al Azah & Chandler-Wilde 2021, SIAM J. Numer. Anal. 59(5).
"""

from __future__ import annotations

import math

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.ops.complex_numbers import is_complex
from rune.ops.promote import promoted
from rune.scipy.special.arguments import as_array, elementwise
from rune.scipy.special.error_functions import normal_cdf
from rune.transforms.custom.jvp import custom_jvp
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


@custom_jvp
def _wofz(z: Array) -> Array:
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


_wofz.defjvps(lambda t, w, z: t * (2j / math.sqrt(math.pi) - 2.0 * z * w))


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
        return _wofz(x)
    x = rnp.astype(x, rnp.float32) if rnp.finfo(x.dtype).bits < 32 else x
    return _wofz(ops.complex(x, rnp.zeros_like(x)))


# --- Owen's T ---------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_REACH = 8.7  # standard deviations beyond which the integrand is below 1e-16 of its largest value


def _of_small(h: Array, a: Array) -> Array:
    """T for h >= 0 and 0 <= a <= 1, by Gauss' quadrature."""
    end = rnp.minimum(a, _REACH / rnp.maximum(h, _REACH))
    total: Array | float = 0.0
    for node, weight in zip(_NODES, _WEIGHTS):
        t = end * (0.5 + 0.5 * float(node))
        square = 1.0 + t * t
        total = total + 0.5 * float(weight) * rnp.exp(-0.5 * h * h * square) / square
    return total * end * (0.5 / math.pi)


@custom_jvp
def _owens_t(h: Array, a: Array) -> Array:
    h, size = rnp.abs(h), rnp.abs(a)
    is_small = size <= 1.0
    product = rnp.where(is_small | (h == 0), h, h * size)
    small = _of_small(rnp.where(is_small, h, product), rnp.where(is_small, size, 1.0 / size))
    p, q = normal_cdf(-h), normal_cdf(-product)
    out = rnp.where(is_small, small, 0.5 * (p + q) - p * q - small)
    return rnp.where(a < 0, -out, out)


def _wrt_h(t: Array, y: Array, h: Array, a: Array) -> Array:
    half = normal_cdf(a * h) - 0.5
    return -t * rnp.exp(-0.5 * h * h) * half / math.sqrt(2 * math.pi)


def _wrt_a(t: Array, y: Array, h: Array, a: Array) -> Array:
    square = 1.0 + a * a
    return t * rnp.exp(-0.5 * h * h * square) / (2 * math.pi * square)


_owens_t.defjvps(_wrt_h, _wrt_a)


@elementwise
def owens_t(h: Array, a: Array) -> Array:
    """Owen's T, 1/2π times the integral of exp(-h²(1 + t²)/2) / (1 + t²) from 0 to a.

    Source: Owen 1956, Annals of Mathematical Statistics 27(4).
    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import owens_t
    >>> owens_t(0.0, 1.0)
    Array(0.12500001, f32*[], cpu:0)
    """
    return _owens_t(h, a)
