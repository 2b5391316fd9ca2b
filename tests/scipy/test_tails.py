"""Families far in their tails, where a formula that is right in the middle loses all digits.

Points are f32 numbers; the oracle is SciPy at these points in f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import rune
import rune.numpy as rnp
import rune.scipy.stats as stats
from tests.support.close import near

NEAR_1 = [0.999, 0.99999, 1 - 1e-6]
TAILS: dict[str, tuple[str, str, tuple[float, ...], list[float], float]] = {
    # family, method, shapes, points, tolerance
    "squares that overflow": ("cauchy", "logpdf", (), [-1e30, 1e25, 3.0], 1e-6),
    "squares that overflow, of magnitudes": ("halfcauchy", "logpdf", (), [1e30, 3.0], 1e-6),
    "a tangent near its pole": ("halfcauchy", "ppf", (), NEAR_1, 1e-6),
    "a cotangent near its zero": ("halfcauchy", "isf", (), NEAR_1, 1e-6),
    "a cosine near its zero": ("arcsine", "isf", (), NEAR_1, 1e-6),
    "powers near 1": ("powerlaw", "sf", (1.7,), NEAR_1, 1e-6),
    "a corner from above": ("triang", "sf", (0.3,), NEAR_1, 1e-6),
    "a corner by its share": ("triang", "isf", (0.3,), [1e-9, 1e-3, 0.3, 0.99999], 1e-6),
    "a narrow part, from below": ("truncnorm", "cdf", (-1.25, 1.5), [-1.2499962, -1.249], 2e-6),
    "a narrow part, from above": ("truncnorm", "sf", (-1.25, 1.5), [1.4999962, 1.499], 2e-6),
    "two tails that nearly cancel": ("invgauss", "sf", (1.75,), [1.5, 2.5, 100.0, 400.0], 2e-5),
    "a skewed tail": ("skewnorm", "cdf", (1.75,), [-1.0, -1.5, -3.0, -5.0], 1e-5),
    "a skewed tail, mirrored": ("skewnorm", "sf", (-1.75,), [1.0, 1.5, 3.0, 5.0], 1e-5),
    "its logarithm": ("skewnorm", "logcdf", (1.75,), [-1.5, -5.0, -9.0], 1e-6),
    "the end of a circle": ("wrapcauchy", "sf", (0.375,), [3.0, 6.25, 6.2825, 6.28308], 1e-5),
}


@pytest.mark.parametrize("name", TAILS)
def test_a_tail_has_the_digits_of_its_dtype(name: str):
    family, method, shapes, points, tolerance = TAILS[name]
    x = np.asarray(points, np.float32)
    expected = getattr(getattr(scipy.stats, family), method)(x.astype("f8"), *shapes)

    values = getattr(getattr(stats, family), method)(rnp.asarray(x), *shapes)

    near(expected, values, relative=tolerance, why="roundings of an exponent, at most 160")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_circular_distribution_has_no_probability_beyond_its_rounded_end(dtype: str):
    end: Any = rnp.asarray(2 * np.pi, dtype)

    assert 0 <= float(stats.wrapcauchy.sf(end, 0.4)) < 1e-7


MEDIANS = {"laplace": (), "t": (3.5,), "gennorm": (1.7,), "loglaplace": (1.7,), "norm": ()}


@pytest.mark.parametrize("name", MEDIANS)
def test_the_derivative_of_a_distribution_function_at_the_median_is_the_density(name: str):
    """There the formulas of the two tails meet."""
    family: Any = getattr(stats, name)
    middle = 1.0 if name == "loglaplace" else 0.0
    density = float(getattr(scipy.stats, name).pdf(middle, *MEDIANS[name]))
    expected = [density, -density, 2 * density, -2 * density, 1 / density, -1 / density]

    densities = [
        rune.grad(getattr(family, method))(at, *MEDIANS[name])
        for method, at in [(m, middle) for m in ("cdf", "sf", "logcdf", "logsf")] + [("ppf", 0.5), ("isf", 0.5)]
    ]

    near(np.array(expected), np.array(densities, "f4"), relative=1e-5, why="a few roundings")


@pytest.mark.parametrize("name", ["t", "gennorm"])
def test_a_median_does_not_move_with_the_shape(name: str):
    family: Any = getattr(stats, name)

    assert rune.grad(lambda shape: family.ppf(0.5, shape))(1.7) == 0
    assert rune.grad(lambda shape: family.cdf(0.0, shape))(1.7) == 0


@pytest.mark.parametrize(("name", "log_tail", "side"), [("gumbel_r", "logsf", 1), ("gumbel_l", "logcdf", -1)])
def test_the_far_tail_of_an_extreme_keeps_its_logarithm(name: str, log_tail: str, side: int):
    y = side * np.array([-2.0, 0.0, 3.0, 16.9, 17.1, 40.0, 107.7, 1e4])
    scipys = getattr(getattr(scipy.stats, name), log_tail)(y[:7])

    ours = getattr(getattr(stats, name), log_tail)(rnp.asarray(y, "float32"))

    np.testing.assert_allclose(ours, [*scipys, -1e4], rtol=1e-5)


# Shapes are f32 numbers, so that the ends of supports are, too.
SHARES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("norm", "cauchy", "laplace", "logistic", "gumbel_l", "gumbel_r", "expon", "halfnorm"), ()),
    **dict.fromkeys(("halfcauchy", "rayleigh", "maxwell", "levy", "uniform", "arcsine"), ()),
    **dict.fromkeys(("gamma", "weibull_min", "lognorm", "lomax", "fisk", "invgauss", "pareto"), (1.75,)),
    **dict.fromkeys(("weibull_max", "powerlaw", "t", "gennorm", "dweibull", "skewnorm", "loggamma"), (1.75,)),
    "truncnorm": (-40.0, 1.0),
}


@pytest.mark.parametrize("name", SHARES)
def test_the_logarithm_of_a_probability_near_1_has_the_digits_of_its_complement(name: str):
    """SciPy has most of these logarithms by log(cdf), so that the oracle is its complement."""
    ours: Any = getattr(stats, name)
    scipys: Any = getattr(scipy.stats, name)
    sides = [("logcdf", "sf", "isf"), ("logsf", "cdf", "ppf")]
    points = {q: getattr(scipys, q)([0.3, 1e-2, 1e-5, 1e-9], *SHARES[name]).astype("f4") for _, _, q in sides}
    expected = [np.log1p(-getattr(scipys, tail)(points[q].astype("f8"), *SHARES[name])) for _, tail, q in sides]

    logs = [getattr(ours, log)(rnp.asarray(points[q]), *SHARES[name]) for log, _, q in sides]
    compiled = [rune.jit(getattr(ours, log))(rnp.asarray(points[q]), *SHARES[name]) for log, _, q in sides]

    np.testing.assert_allclose(np.array(logs), np.array(expected), rtol=2e-5)
    np.testing.assert_allclose(np.array(compiled), np.array(expected), rtol=2e-5)


@pytest.mark.parametrize("name", ["expon", "halfnorm", "gumbel_l", "gumbel_r", "skewnorm", "gamma", "truncnorm"])
def test_the_slope_of_the_logarithm_of_a_probability_near_1_is_the_density(name: str):
    scipys: Any = getattr(scipy.stats, name)
    x = scipys.isf([0.6, 0.3, 1e-2, 1e-5], *SHARES[name]).astype("f4")
    expected = scipys.pdf(x.astype("f8"), *SHARES[name]) / scipys.cdf(x.astype("f8"), *SHARES[name])
    far: Any = rnp.asarray([-1e4, 1e4], "f4")

    def logs(points: Any) -> Any:
        return rnp.sum(getattr(stats, name).logcdf(points, *SHARES[name]))

    slopes = rune.grad(logs)(rnp.asarray(x))

    near(expected, slopes, relative=1e-4, why="the slope of a small tail, and roundings of it")
    assert not rnp.any(rnp.isnan(rune.grad(logs)(far)))


@pytest.mark.parametrize(("name", "p"), [("poisson", 0.03125), ("geom", 0.96875), ("dlaplace", 3.5)])
def test_the_logarithm_of_a_count_near_1_has_the_digits_of_its_complement(name: str, p: float):
    k = np.arange(1, 6)
    expected = np.log1p(-getattr(scipy.stats, name).sf(k, p))

    logs = getattr(stats, name).logcdf(rnp.asarray(k, "f4"), p)

    np.testing.assert_allclose(logs, expected, rtol=2e-5)


DEPTHS = [-800.0, -745.1, -725.0, -300.0, -100.0, -88.0, -37.0, -36.0, -16.0, -15.0, -5.0, 0.0, 1.0, 2.0]
TIMES = [1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 20.0, 100.0, 1e3, 1e4]
CHANCES = [1e-30, 1e-5, 0.1, 0.3, 0.44958803, 0.5, 0.9, 0.999]
SPREAD: dict[str, tuple[list[float], list[float]]] = {  # points, shapes
    "loggamma": (DEPTHS, [0.001, 0.0025, 0.1, 0.5, 0.8]),
    "invgauss": (TIMES, [0.01, 0.3, 1.05, 7.0, 1e3]),
}


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", SPREAD)
def test_shares_and_their_logarithms_have_digits_however_small_they_are(name: str, method: str, kind: str):
    points, shapes = (np.array(v, kind) for v in SPREAD[name])
    expected = getattr(getattr(scipy.stats, name), method)(points.astype("f8")[:, None], shapes.astype("f8"))

    shares = getattr(getattr(stats, name), method)(rnp.asarray(points, kind)[:, None], rnp.asarray(shapes, kind))

    denormal = float(np.finfo(kind).tiny)
    np.testing.assert_allclose(np.asarray(shares, "f8"), expected, rtol=2e-4 if kind == "f4" else 1e-10, atol=denormal)


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_logarithms_of_gamma_numbers_have_quantiles_where_the_numbers_underflow(method: str, kind: str):
    chances, shapes = np.array(CHANCES, kind), np.array(SPREAD["loggamma"][1], kind)
    expected = getattr(scipy.stats.loggamma, method)(chances.astype("f8")[:, None], shapes.astype("f8"))

    points = getattr(stats.loggamma, method)(rnp.asarray(chances, kind)[:, None], rnp.asarray(shapes, kind))

    np.testing.assert_allclose(np.asarray(points, "f8"), expected, rtol=2e-4 if kind == "f4" else 1e-10)


def test_the_slope_of_a_small_share_is_that_of_its_logarithm():
    y, c = (rnp.asarray(v, "f8") for v in ([-800.0, -100.0, -40.0, -30.0, -2.0, 1.0], [0.3]))

    slopes = rune.grad(lambda y: rnp.sum(stats.loggamma.logcdf(y, c)))(y)

    near_0 = np.array([-30.0, -2.0, 1.0])
    numbers = scipy.stats.loggamma
    expected = [0.3, 0.3, 0.3, *np.exp(numbers.logpdf(near_0, 0.3) - numbers.logcdf(near_0, 0.3))]
    np.testing.assert_allclose(slopes, expected, rtol=1e-10)
