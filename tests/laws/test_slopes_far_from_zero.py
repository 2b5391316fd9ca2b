"""Derivatives where a square overflows or a result near its limit would cancel.

The oracles are closed forms in f64. In f16 a square overflows above 255, and sigmoid is 1 from 9
on.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import rune
import rune.numpy as rnp
from rune import nn
from rune.scipy import special


def _squareplus(x):
    """The slope (1 + x / r) / 2 with r = sqrt(x² + 4); or 2 / (r (r - x)), which is equal."""
    root = np.hypot(2, x)
    below = 2 / root / (root + np.abs(x))
    return np.where(x < 0, below, 1 - below)


POINTS = [0.0, 0.3, 1.0, 3.0, 8.0, 10.0, 12.0, 17.0, 50.0, 63.0, 64.0, 65.0, 129.0, 256.0, 257.0, 4_099.0, 6e4]
FAR = [1e10, 1e18, 4.7e18, 1.9e19, 1e20, 3e38]

SLOPES = {
    "arcsinh": (rnp.arcsinh, lambda x: 1 / np.hypot(1, x)),
    "arctan": (rnp.arctan, lambda x: 1 / np.hypot(1, x) ** 2),
    "expm1": (rnp.expm1, np.exp),
    "sigmoid": (nn.sigmoid, lambda x: scipy.special.expit(x) * scipy.special.expit(-x)),
    "squareplus": (nn.squareplus, _squareplus),
    "i1": (special.i1, lambda x: scipy.special.ivp(1, np.clip(x, -700, 700))),
}
COMPLEX_SLOPES = {
    "arcsin": (rnp.arcsin, lambda z: 1 / np.sqrt(1 - z * z)),
    "arccos": (rnp.arccos, lambda z: -1 / np.sqrt(1 - z * z)),
    "arctan": (rnp.arctan, lambda z: 1 / (1 + z * z)),
    "arcsinh": (rnp.arcsinh, lambda z: 1 / np.sqrt(1 + z * z)),
    "arctanh": (rnp.arctanh, lambda z: 1 / (1 - z * z)),
}


@pytest.mark.parametrize(("dtype", "points"), [(np.float16, POINTS), (np.float32, POINTS + FAR)])
@pytest.mark.parametrize("name", SLOPES)
def test_a_slope_is_right_far_from_zero(name, dtype, points):
    function, slope = SLOPES[name]
    x = np.array([*points, *(-p for p in points)], dtype)
    information = ml_dtypes.finfo(dtype)

    actual = np.asarray(rune.vmap(rune.grad(function))(x)).astype(np.float64)

    with np.errstate(over="ignore"):
        expected = slope(x.astype(np.float64)).astype(dtype).astype(np.float64)
    is_finite = np.isfinite(expected)
    assert np.array_equal(actual[~is_finite], expected[~is_finite])
    actual, expected = actual[is_finite], expected[is_finite]
    # If log f has the slope n, one rounding of the argument is n roundings of the value.
    roundings = 8 + np.log1p(np.abs(expected))
    bound = roundings * float(information.eps) * np.maximum(np.abs(expected), float(information.smallest_normal))
    assert (np.abs(actual - expected) <= bound).all()


@pytest.mark.parametrize("name", COMPLEX_SLOPES)
def test_a_slope_of_a_large_complex_number_is_right(name):
    function, slope = COMPLEX_SLOPES[name]
    sizes = [0.5, 3.0, 1e10, 2.0**61, 2.0**62, 1e19, 1e20, 1e30]
    z = np.array([s * d for s in sizes for d in (1 + 1j, 1 - 2j, -3 + 1j, -0.1 - 1j)], np.complex64)

    actual = np.asarray(rune.vmap(rune.grad(function, holomorphic=True))(z)).astype(np.complex128)

    expected = slope(z.astype(np.complex128))
    bound = 16 * float(np.finfo(np.float32).eps) * np.maximum(np.abs(expected), 2.0**-126)
    assert (np.abs(actual - expected) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_slope_of_i1_is_a_half_at_numbers_without_a_leading_bit(dtype):
    x = np.array([1, 3, 5], dtype) * np.finfo(dtype).smallest_subnormal

    assert np.asarray(rune.vmap(rune.grad(special.i1))(x)) == pytest.approx([0.5, 0.5, 0.5])


@pytest.mark.parametrize("x", [-50.0, -300.0, -6e4])
def test_squareplus_does_not_cancel_below_zero(x):
    assert float(nn.squareplus(np.float16(x))) == pytest.approx(2 / (math.hypot(2, x) - x), rel=4e-3, abs=1e-7)
