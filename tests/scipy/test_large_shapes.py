"""Entropies, moments and densities of f32 whose shapes are large, and t that is nearly normal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import rune.numpy as rnp
from rune.scipy import stats
from tests.support.close import near

SHAPES = np.array([0.3, 1, 7.5, 8, 9, 49, 51, 130, 1e3, 1e5, 1e7])
VALUES = {
    "gamma": ("entropy",),
    "chi2": ("entropy",),
    "invgamma": ("entropy",),
    "loggamma": ("entropy",),
    "chi": ("mean", "var"),
    "t": ("entropy", "var"),
    "vonmises": ("entropy",),
}


@pytest.mark.parametrize(("family", "value"), [(f, v) for f, values in VALUES.items() for v in values])
def test_a_value_of_a_large_shape_keeps_its_digits(family: str, value: str):
    expected = getattr(getattr(scipy.stats, family), value)(SHAPES)
    is_known = np.isfinite(expected)

    result = np.asarray(getattr(getattr(stats, family), value)(rnp.asarray(SHAPES, dtype="f32")))

    near(expected[is_known], result[is_known], relative=4e-5, why="f32, a few hundred ulps in SciPy's own")


def test_the_entropy_of_beta_and_dirichlet_keeps_its_digits():
    a, b = (x.ravel() for x in np.meshgrid([0.01, 0.5, 3, 1e3, 1e6], [0.5, 50, 1e4, 1e6]))

    entropies = stats.beta.entropy(*(rnp.asarray(x, dtype="f32") for x in (a, b)))

    near(scipy.stats.beta.entropy(a, b), entropies, relative=1e-5, absolute=4e-6, why="f32")
    for alpha in ([1e5, 2e5, 3e6], [3, 1e6], [0.5, 2, 7]):
        entropy = stats.dirichlet.entropy(rnp.asarray(alpha, dtype="f32"))
        near(scipy.stats.dirichlet.entropy(alpha), entropy, relative=1e-5, why="f32")


@pytest.mark.parametrize("shape", [0.3, 9, 11, 19, 21, 130, 1e4, 1e6])
@pytest.mark.parametrize("family", ["gamma", "chi2", "chi", "invgamma", "loggamma"])
def test_a_density_of_a_large_shape_keeps_its_digits(family: str, shape: float):
    of_scipy = getattr(scipy.stats, family)
    points = of_scipy.ppf([1e-3, 0.1, 0.5, 0.9, 0.999], shape).astype(np.float32)

    log_densities = getattr(stats, family).logpdf(rnp.asarray(points), np.float32(shape))

    expected = of_scipy.logpdf(points.astype(np.float64), shape)
    near(expected, log_densities, relative=1e-4, absolute=2e-3, why="points of f32 are rounded")


@pytest.mark.parametrize("dfn", [0.5, 3, 50, 1e3, 1e6])
@pytest.mark.parametrize("dfd", [0.5, 3, 39, 1e3, 1e6])
def test_the_density_of_f_keeps_its_digits(dfn: float, dfd: float):
    points = scipy.stats.f.ppf([0.01, 0.3, 0.5, 0.9], dfn, dfd).astype(np.float32)

    log_densities = stats.f.logpdf(rnp.asarray(points), np.float32(dfn), np.float32(dfd))

    expected = scipy.stats.f.logpdf(points.astype(np.float64), dfn, dfd)
    near(expected, log_densities, relative=1e-5, absolute=2e-3, why="points of f32 are rounded")


@pytest.mark.parametrize("shape", [3, 30])
def test_densities_far_from_the_mode_are_no_nan(shape: float):
    points = np.array([0, 1e-39, 1e-30, 1, 1e20, 1e38], np.float32)

    for family in ("chi", "gamma"):
        log_densities = np.asarray(getattr(stats, family).logpdf(points, np.float32(shape)))
        assert not np.isnan(log_densities).any(), (family, log_densities)


@pytest.mark.parametrize("degrees", [1e6, 1e9, 3e10, 1e16, 1e30, np.inf])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_t_of_many_degrees_of_freedom_is_nearly_normal(degrees: float, dtype: str):
    q, y, df = (rnp.asarray(x, dtype=dtype) for x in ([1e-6, 0.3, 0.5, 0.9], [-3.0, 0.4, 2.0], degrees))
    tolerance = 1e-5 if dtype == "f32" else 1e-11

    for name, points in (("ppf", q), ("isf", q), ("cdf", y), ("sf", y), ("logpdf", y)):
        expected = getattr(scipy.stats.t, name)(np.asarray(points, np.float64), degrees)
        near(expected, getattr(stats.t, name)(points, df), relative=tolerance, absolute=tolerance, why="rounding")
