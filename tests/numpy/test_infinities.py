"""Infinities and cancellation in functions of neighbours, and in products with zeros that pad."""

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
    """Interpolation between two numbers; an infinity wins unless its weight is 0."""
    if weight == 0 or low == high:
        return low
    if np.isinf(low) or np.isinf(high):
        return low + high
    return low + (high - low) * weight


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_quantiles_of_rows_with_infinities_are_those_of_the_extended_reals(row: list[float], way: str):
    q = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)
    x = np.array(row, np.float32)
    places = [(int(p * (len(row) - 1)), p * (len(row) - 1) % 1) for p in q]
    reference = [between(float(x[i]), float(x[min(i + 1, len(x) - 1)]), t) for i, t in places]

    quantiles = WAYS[way](lambda x: rnp.quantile(x, rnp.array(q)))(rnp.asarray(x))

    close(np.array(reference, np.float32), np.asarray(quantiles), ulps=8, why="q is rounded to f32")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_medians_of_rows_with_infinities_agree_with_numpy(row: list[float], name: str, way: str):
    x = np.array(row, np.float32)
    with np.errstate(invalid="ignore"):
        reference = np.float32(np.median(x.astype(np.float64)))

    same(reference, np.asarray(WAYS[way](getattr(rnp, name))(rnp.asarray(x))))


@pytest.mark.parametrize("places", [(), (STEADY,), ([0.0, 1.0, 3.0, 4.0, 5.0],)])
@pytest.mark.parametrize("way", WAYS)
def test_a_large_sample_has_no_part_in_the_slope_at_its_own_position(places: tuple, way: str):
    x = np.array([1, 1e8, 2, 1e8, 3], np.float32)

    def slopes(x: Any) -> Any:
        return rnp.gradient(x, *(rnp.array(p) for p in places))

    gradient = np.asarray(WAYS[way](slopes)(rnp.asarray(x)))

    reference = np.gradient(x.astype(np.float64), *(np.array(p) for p in places))
    np.testing.assert_allclose(gradient, reference, rtol=1e-6)


def derivative(f: Callable, x: float) -> float:
    return float(rune.grad(f)(x))


def test_derivatives_of_quantiles_are_the_distances_between_neighbours():
    x = rnp.array([1.0, 2.0, 4.0, INF])

    assert derivative(lambda q: rnp.quantile(x, q), 0.2) == 3
    assert derivative(lambda q: rnp.quantile(x, q), 0.5) == 6
    assert rune.grad(lambda x: rnp.quantile(x, 0.5))(x).tolist() == [0, 0.5, 0.5, 0]


LIMITS = [0.0, -0.0, 1.0, -1.0, 1e30, 3e38, -3e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("f", [rnp.hypot, rnp.logaddexp, rnp.logaddexp2], ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", LIMITS)
@pytest.mark.parametrize("y", LIMITS)
def test_the_slopes_of_a_symmetric_function_are_symmetric_and_undefined_where_it_is(f: Any, x: float, y: float):
    a, b = np.float32(x), np.float32(y)
    value, slopes = f(a, b), rune.grad(f, (0, 1))(a, b)

    close(slopes, rune.grad(f, (0, 1))(b, a)[::-1], ulps=4, why="roundings")
    assert not np.isnan(value) or np.isnan(np.asarray(slopes)).all()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("first", LIMITS)
def test_the_first_of_a_running_result_is_an_element_and_has_its_tangent(name: str, reverse: bool, first: float):
    x = np.array([first, 2.0, 0.5, -1.0, 3.0], np.float32)[:: -1 if reverse else 1]
    _, tangents = rune.jvp(lambda v: getattr(rune.lax, name)(v, reverse=reverse), (x,), (np.full_like(x, 7),))

    assert tangents[-1 if reverse else 0] == 7


def test_the_fraction_of_a_number_grows_with_it():
    x = np.array([-3.0, -2.5, -1.0, -0.0, 0.0, 1.0, 2.5], np.float32)

    same(rune.vmap(rune.grad(lambda v: rnp.modf(v)[0]))(x), np.ones(7, np.float32))


@pytest.mark.parametrize("where", [None, [True, False, True, True, True]])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.filterwarnings("ignore")
def test_a_variance_of_numbers_without_freedom_is_undefined_as_in_numpy(ddof: int, where: Any):
    x = np.array([[1.0, np.nan, 3.0, np.nan, 5.5], [1.0, 2.0, 3.0, 7.0, 5.0]], np.float32)
    how: dict[str, Any] = {"ddof": ddof, "axis": 1} | ({} if where is None else {"where": np.array(where)})

    close(rnp.nanvar(x, **how), np.nanvar(x, **how), ulps=4, why="sums in another order")
    close(rnp.nanstd(x, **how), np.nanstd(x, **how), ulps=4, why="sums in another order")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", range(5))
def test_a_component_that_is_missing_has_no_product_with_infinity(place: int, way: str):
    row = np.array([2, 3, 5, 7, 11], np.float32)
    row[place] = INF
    plane, space = row[:2], row[2:]
    cross = WAYS[way](rnp.cross)

    for x, y, sign in ((plane, space, 1), (space, plane, -1)):
        (a, b), (c, d, e) = (plane.astype(float), space.astype(float))
        reference = sign * np.array([b * e, -a * e, a * d - b * c])
        same(reference.astype(np.float32), np.asarray(cross(rnp.asarray(x), rnp.asarray(y))))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("roots", [[INF, 1], [1, INF], [2, INF, 3, 1], [INF], [np.nan, 2], [1, 2, np.nan]], ids=str)
def test_a_polynomial_with_an_infinite_root_has_numpys_coefficients(roots: list[float], way: str):
    x = np.array(roots, np.float32)

    same(np.poly(x), np.asarray(WAYS[way](rnp.poly)(rnp.asarray(x))))
