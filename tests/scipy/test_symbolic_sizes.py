"""Samples of symbolic size: one program counts right, or interpolates, for every n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import rune
import rune.numpy as rnp
import rune.scipy.stats
from rune.errors import DimensionError, RuneError
from rune.scipy import interpolate
from tests.support.arrays import array
from tests.support.close import near

STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "sem": lambda stats, x: stats.sem(x),
    "skew": lambda stats, x: stats.skew(x, bias=False),
    "kurtosis": lambda stats, x: stats.kurtosis(x, bias=False),
    "pearsonr": lambda stats, x: tuple(stats.pearsonr(x[:, 0], x[:, 1])),
    "gaussian_kde": lambda stats, x: stats.gaussian_kde(x[:, 0])(x[0, :4]),
    "a normal distribution": lambda stats, x: stats.multivariate_normal.logpdf(x[:, 0], x[:, 1], x @ x.T),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_one_program_counts_right_for_every_size(name: str):
    statistic = STATISTICS[name]
    program = rune.jit(lambda x: statistic(rune.scipy.stats, x), dims={"n": (2, 16)}, in_dims=("n, _",))

    for size in (5, 11):
        x = np.random.default_rng(size).normal(size=(size, 20)).astype(np.float32)
        expected = np.asarray(statistic(scipy.stats, x.astype(np.float64)))
        near(expected, np.asarray(program(array(x))), relative=1e-3, why="a covariance of 20 numbers, in f32")
    assert program.cache_size() == 1


@pytest.mark.parametrize("bandwidth", ["scott", "silverman", 0.4])
def test_a_density_has_points_of_any_number_of_coordinates(bandwidth: str | float):
    def density(stats: Any, x: Any) -> Any:
        return stats.gaussian_kde(x, bandwidth)(x[:, :3])

    program = rune.jit(lambda x: density(rune.scipy.stats, x), dims={"d": (1, 9)}, in_dims=("d, _",))

    for size in (1, 2, 5):
        x = np.random.default_rng(size).normal(size=(size, 31)).astype(np.float32)
        expected = np.asarray(density(scipy.stats, x.astype(np.float64)))
        near(expected, np.asarray(program(array(x))), relative=1e-3, why="a covariance of 31 numbers, in f32")


POINTS = rnp.array([0.1, 0.7, 1.3])
INTERPOLATORS: dict[str, Callable[[Any], Any]] = {
    "CubicSpline": lambda x: interpolate.CubicSpline(x, x**3 - x)(POINTS),
    "PchipInterpolator": lambda x: interpolate.PchipInterpolator(x, x**3 - x)(POINTS),
    "Akima1DInterpolator": lambda x: interpolate.Akima1DInterpolator(x, x**3 - x)(POINTS),
    "RegularGridInterpolator": lambda x: interpolate.RegularGridInterpolator((x,), x * x)(POINTS[:1, None] * 0),
}


@pytest.mark.parametrize("low", [1, 2, 3, 4])
@pytest.mark.parametrize("name", INTERPOLATORS)
def test_few_points_are_interpolated_as_those_of_known_number_or_refused(name: str, low: int):
    program = rune.jit(INTERPOLATORS[name], dims={"n": (low, 16)}, in_dims=("n",))

    for size in (*range(low, 6), 13):
        x = rnp.arange(float(size))
        try:
            expected = INTERPOLATORS[name](x)
        except RuneError:  # too few points
            continue
        try:
            result = program(x)
        except DimensionError:
            assert low < 4  # four points and more are interpolated alike
            return
        near(expected, result, relative=1e-4, why="f32, other order of sums")
