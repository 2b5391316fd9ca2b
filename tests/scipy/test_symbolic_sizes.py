"""Statistics that count their numbers, of samples of symbolic size: one program for every n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import rune
import rune.scipy.stats
from tests.support.arrays import array
from tests.support.close import near

STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "sem": lambda stats, x: stats.sem(x),
    "skew": lambda stats, x: stats.skew(x, bias=False),
    "kurtosis": lambda stats, x: stats.kurtosis(x, bias=False),
    "pearsonr": lambda stats, x: tuple(stats.pearsonr(x[:, 0], x[:, 1])),
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
