"""Statistics and filters of half types: sizes, squares and fourth powers may leave f16.

The oracle is SciPy, in f64, for the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.stats

import rune
import rune.scipy.ndimage
import rune.scipy.signal
import rune.scipy.stats
from tests.support.arrays import array
from tests.support.close import near

EPS = {"f16": 2.0**-10, "bf16": 2.0**-7}
STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "skew": lambda stats, x: stats.skew(x),
    "skew, unbiased": lambda stats, x: stats.skew(x, bias=False),
    "kurtosis": lambda stats, x: stats.kurtosis(x),
    "kurtosis, unbiased": lambda stats, x: stats.kurtosis(x, bias=False),
    "skew of the numbers": lambda stats, x: stats.skew(x, bias=False, nan_policy="omit"),
    "sem": lambda stats, x: stats.sem(x),
    "sem of the numbers": lambda stats, x: stats.sem(x, nan_policy="omit"),
    "zscore": lambda stats, x: stats.zscore(x)[:5],
    "describe": lambda stats, x: list(stats.describe(x))[2:4],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [256, 257, 2_049, 65_521])
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", STATISTICS)
def test_a_long_sample_of_half_precision_has_the_statistics_of_its_numbers(
    name: str, dtype: str, count: int, compiled: bool
):
    statistic = STATISTICS[name]
    x = array((3 * np.random.default_rng(count).gamma(2.0, size=count)).astype(np.float32)).astype(dtype)
    function = (
        rune.jit(lambda x: statistic(rune.scipy.stats, x)) if compiled else lambda x: statistic(rune.scipy.stats, x)
    )

    expected = statistic(scipy.stats, np.asarray(x).astype(np.float64))

    for a, b in zip(rune.tree.leaves(expected), rune.tree.leaves(function(x)), strict=True):
        near(np.asarray(a), np.asarray(b, np.float64), relative=2 * EPS[dtype], why="rounded once")
        assert b.dtype == x.dtype


SIGNALS: dict[str, Callable[[Any, Any], Any]] = {
    "a line": lambda scipy, x: scipy.signal.detrend(x),
    "a constant": lambda scipy, x: scipy.signal.detrend(x, type="constant"),
    "a wide normal density": lambda scipy, x: scipy.ndimage.gaussian_filter1d(x, 30.0),
    "many weights": lambda scipy, x: scipy.ndimage.correlate(x, x[:101] / 101),
}


@pytest.mark.parametrize("count", [257, 65_521])
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", SIGNALS)
def test_a_long_signal_of_half_precision_is_filtered_as_its_numbers(name: str, dtype: str, count: int):
    x = array((3 * np.random.default_rng(count).gamma(2.0, size=count)).astype(np.float32)).astype(dtype)

    expected, actual = (SIGNALS[name](lib, v) for lib, v in ((scipy, np.asarray(x, np.float64)), (rune.scipy, x)))

    near(expected, np.asarray(actual, np.float64), relative=3 * EPS[dtype], why="rounded once, after its weights")
    assert actual.dtype == x.dtype


@pytest.mark.parametrize("name", ["kurtosis", "skew, unbiased"])
def test_powers_that_f16_cannot_hold_do_not_matter(name: str):
    x = array(np.array([100.0, -100.0, 50.0, 20.0, 300.0], np.float16))

    expected = STATISTICS[name](scipy.stats, np.asarray(x, np.float64))

    near(expected, np.asarray(STATISTICS[name](rune.scipy.stats, x), np.float64), relative=2.0**-9, why="rounded once")
