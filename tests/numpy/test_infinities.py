"""Infinities and cancellation in what is computed from neighbours: slopes, quantiles, medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import close, same

WAYS = {"eagerly": lambda f: f, "compiled": rune.jit}
INF = np.inf
ROWS = (
    [-INF, 1, 2, 3],
    [-INF, -INF, 1, 2],
    [1, 2, INF, INF],
    [-INF, -INF, INF, INF],
    [1, INF],
    [INF, INF],
    [-INF, 1, INF],
    [-3e38, 3e38],
    [3e38, 3.2e38],
    [1, 2, 4],
)
STEADY = [0.0, 1.0, 2.0, 3.0, 4.0]


def between(low: float, high: float, weight: float) -> float:
    """What lies between two numbers; an infinity wins unless its weight is 0."""
    if weight == 0 or low == high:
        return low
    if np.isinf(low) or np.isinf(high):
        return low + high
    return low + (high - low) * weight


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_quantiles_beside_infinities_are_those_of_the_real_line(row: list[float], way: str):
    q = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)
    x = np.array(row, np.float32)
    places = [(int(p * (len(row) - 1)), p * (len(row) - 1) % 1) for p in q]
    wanted = [between(float(x[i]), float(x[min(i + 1, len(x) - 1)]), t) for i, t in places]

    quantiles = WAYS[way](lambda x: rnp.quantile(x, rnp.array(q)))(rnp.asarray(x))

    close(np.array(wanted, np.float32), np.asarray(quantiles), ulps=8, why="q is rounded to f32")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_medians_beside_infinities_are_those_of_numpy(row: list[float], name: str, way: str):
    x = np.array(row, np.float32)
    with np.errstate(invalid="ignore"):
        wanted = np.float32(np.median(x.astype(np.float64)))

    same(wanted, np.asarray(WAYS[way](getattr(rnp, name))(rnp.asarray(x))))


@pytest.mark.parametrize("places", [(), (STEADY,), ([0.0, 1.0, 3.0, 4.0, 5.0],)])
@pytest.mark.parametrize("way", WAYS)
def test_a_large_sample_between_two_takes_no_part_in_the_slope_there(places: tuple, way: str):
    x = np.array([1, 1e8, 2, 1e8, 3], np.float32)

    def slopes(x: Any) -> Any:
        return rnp.gradient(x, *(rnp.array(p) for p in places))

    gradient = np.asarray(WAYS[way](slopes)(rnp.asarray(x)))

    wanted = np.gradient(x.astype(np.float64), *(np.array(p) for p in places))
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6)


def derivative(f: Callable, x: float) -> float:
    return float(rune.grad(f)(x))


def test_derivatives_of_quantiles_are_the_distances_between_neighbours():
    x = rnp.array([1.0, 2.0, 4.0, INF])

    assert derivative(lambda q: rnp.quantile(x, q), 0.2) == 3
    assert derivative(lambda q: rnp.quantile(x, q), 0.5) == 6
    assert rune.grad(lambda x: rnp.quantile(x, 0.5))(x).tolist() == [0, 0.5, 0.5, 0]
