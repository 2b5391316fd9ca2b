"""Splines through few and many points are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as oracle

import rune
from rune.scipy import interpolate

SIZES = (2, 3, 4, 5, 6, 17, 131)


def points(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rising places, two columns of values that end where they begin, places between them."""
    rng = np.random.default_rng(count)
    x, y = np.cumsum(rng.uniform(0.1, 1, count)), rng.normal(size=(count, 2))
    y[-1] = y[0]
    return x, y, rng.uniform(x[0], x[-1], 23)


@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped", "periodic"])
@pytest.mark.parametrize("count", SIZES)
def test_a_cubic_spline_has_the_slopes_of_scipy(count: int, ends: str):
    x, y, places = points(count)

    with rune.enable_x64(True):
        curve = interpolate.CubicSpline(x, y, bc_type=ends)(places)

    np.testing.assert_allclose(curve, oracle.CubicSpline(x, y, bc_type=ends)(places), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("count", "degree"), [(n, k) for n in SIZES for k in range(min(n, 6))])
def test_a_b_spline_has_the_coefficients_of_scipy(count: int, degree: int):
    x, y, places = points(count)

    with rune.enable_x64(True):
        curve = interpolate.make_interp_spline(x, y, degree)(places)

    np.testing.assert_allclose(curve, oracle.make_interp_spline(x, y, degree)(places), rtol=1e-11, atol=1e-12)


def test_knots_without_a_point_between_them_have_no_spline():
    x, knots = np.arange(6.0), np.array([0.0] * 4 + [0.1, 0.2] + [5.0] * 4)

    assert np.isnan(interpolate.make_interp_spline(x, x, 3, knots)(2.5))
