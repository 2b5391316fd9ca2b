"""Owen's T, the probability that X > h and 0 < Y < aX for independent normal numbers X and Y."""

from __future__ import annotations

import math

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.arguments import elementwise, with_slopes
from rune.scipy.special.error_functions import normal_cdf

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


def _wrt_h(t: Array, y: Array, h: Array, a: Array) -> Array:
    half = normal_cdf(a * h) - 0.5
    return -t * rnp.exp(-0.5 * h * h) * half / math.sqrt(2 * math.pi)


def _wrt_a(t: Array, y: Array, h: Array, a: Array) -> Array:
    square = 1.0 + a * a
    return t * rnp.exp(-0.5 * h * h * square) / (2 * math.pi * square)


@elementwise
@with_slopes(_wrt_h, _wrt_a)
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
    h, size = rnp.abs(h), rnp.abs(a)
    is_small = size <= 1.0
    product = rnp.where(is_small | (h == 0), h, h * size)
    small = _of_small(rnp.where(is_small, h, product), rnp.where(is_small, size, 1.0 / size))
    p, q = normal_cdf(-h), normal_cdf(-product)
    out = rnp.where(is_small, small, 0.5 * (p + q) - p * q - small)
    return rnp.where(a < 0, -out, out)
