"""Samples with NaN or without elements, points of one axis, single signals, against SciPy in
f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.signal
import scipy.spatial.distance
import scipy.stats

import rune
import rune.nn
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.scipy import cluster, integrate, interpolate, signal, spatial, special, stats
from tests.support.arrays import array
from tests.support.close import near

NAN = np.nan


@pytest.mark.parametrize("x", [[1, NAN, NAN], [1, NAN], [NAN, NAN, 2, 2], [[NAN, NAN], [3, NAN]]], ids=str)
def test_nan_counts_among_the_most_frequent_numbers(x: list):
    expected = scipy.stats.mode(np.array(x))

    near(list(expected), list(stats.mode(array(np.array(x)))), relative=0, why="a number of the sample")


@pytest.mark.filterwarnings("ignore:After omitting NaNs")
@pytest.mark.parametrize("x", [[1, NAN, NAN], [NAN, NAN], [NAN, 2, 2, 1], [[NAN, NAN], [NAN, 3]]], ids=str)
def test_nan_that_is_left_out_does_not_count(x: list):
    expected = scipy.stats.mode(np.array(x), nan_policy="omit")

    near(list(expected), list(stats.mode(array(np.array(x)), nan_policy="omit")), relative=0, why="of the sample")


@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 0), ((0,), 0), ((2, 0), None), ((2, 0), 1)])
def test_the_mode_of_no_numbers_is_nan(shape: tuple[int, ...], axis: int | None):
    with pytest.warns(RuntimeWarning):
        expected = scipy.stats.mode(np.zeros(shape), axis=axis)  # type: ignore[arg-type]

    near(list(expected), list(stats.mode(array(np.zeros(shape)), axis)), relative=0, why="NaN, no times")


@pytest.mark.parametrize(("axes", "size"), [(1, 1), (1, 3), (2, 2), (2, 6)])
def test_an_array_of_points_is_split_into_the_axes_of_a_grid(axes: int, size: int):
    grid, at = (np.arange(3.0),) * axes, np.linspace(0.1, 1.9, size)
    values = np.arange(3.0**axes).reshape((3,) * axes) ** 2
    expected = scipy.interpolate.RegularGridInterpolator(grid, values)(at)

    near(expected, interpolate.RegularGridInterpolator(grid, array(values))(array(at)), relative=1e-12, why="f64")


def test_a_signal_alone_has_the_power_of_welch():
    x = np.random.default_rng(3).normal(size=61)
    expected = scipy.signal.welch(x, nperseg=16)

    near(list(expected), list(signal.csd(array(x), None, nperseg=16)), relative=1e-9, why="f64, other sums")


def test_each_normal_vector_can_have_its_own_covariance():
    draws = np.random.default_rng(0)
    x, means = draws.normal(size=(2, 3, 4)), draws.normal(size=(3, 4))
    roots = draws.normal(size=(2, 1, 4, 4))
    covs = roots @ roots.swapaxes(-1, -2) + np.eye(4)
    reference = [
        [scipy.stats.multivariate_normal.logpdf(x[i, j], means[j], covs[i, 0]) for j in range(3)] for i in range(2)
    ]

    points, centres, covariances = (rnp.asarray(v, "float32") for v in (x, means, covs))
    ours = rune.jit(stats.multivariate_normal.logpdf)(points, centres, covariances)

    np.testing.assert_allclose(ours, reference, rtol=1e-4)


HALF, SINGLE = rnp.array([0.5, 2.0, 3.0], dtype="float16"), rnp.array([1.0, 0.3, 0.7], dtype="float32")
TOGETHER = {
    "weights of logsumexp": lambda: special.logsumexp(HALF, b=SINGLE),
    "a mean": lambda: rune.nn.standardize(HALF, mean=SINGLE[0], variance=0.5),
    "codes": lambda: cluster.vq.vq(HALF, SINGLE)[1],
    "points of an integral": lambda: integrate.trapezoid(HALF, SINGLE),
    "points of NumPy's integral": lambda: rnp.trapezoid(HALF, SINGLE),
}


@pytest.mark.parametrize("call", TOGETHER.values(), ids=TOGETHER)
def test_arrays_of_one_call_promote_together(call: Callable[[], rune.Array]):
    assert call().dtype == np.float32


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 7.0, None])
@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 2)])
def test_a_grid_has_no_value_at_a_point_that_is_nan(sizes: tuple[int, ...], fill: Any, method: str):
    points = tuple(np.arange(float(n)) for n in sizes)
    values = np.random.default_rng(0).random(sizes)
    at = np.array([[np.nan] * len(sizes), [0.0] * len(sizes), [0.0] * (len(sizes) - 1) + [np.nan]])
    expected = scipy.interpolate.RegularGridInterpolator(points, values, method, False, fill_value=fill)(at)

    grid = interpolate.RegularGridInterpolator(points, array(values), method, fill_value=fill)

    near(expected.astype("f4"), rnp.asarray(grid(rnp.asarray(at)), "f4"), relative=1e-6, why="f32")


@pytest.mark.parametrize("sample", [2.0, np.inf, np.nan])
def test_simpsons_rule_of_one_sample_is_0(sample: float):
    assert integrate.simpson(array(np.array([sample]))) == scipy.integrate.simpson([sample]) == 0


@pytest.mark.parametrize("x", [[3, 3, 3], [3, 3, 3, 3], [0, 1, 1, 2, 4], [0, 1, 1, 2], [0, 1, 3, 3], [0, 0, 1, 3]])
def test_simpsons_rule_takes_steps_of_no_length(x: list[float]):
    y = np.arange(len(x)) ** 2 + 1.0

    near(
        scipy.integrate.simpson(y, x=x),
        integrate.simpson(array(y), array(np.array(x, "f8"))),
        relative=1e-12,
        why="f64",
    )


def test_scores_do_not_depend_on_where_the_numbers_lie():
    x = np.random.default_rng(5).integers(-20, 20, 65).astype(np.float32)
    far = array(x + np.float32(2.0**22))

    near(scipy.stats.skew(x.astype(float)), stats.skew(far), relative=1e-5, why="f32, exact differences")
    near(scipy.stats.zscore(x.astype(float)), stats.zscore(far), relative=1e-5, why="f32, exact differences")


METRICS = ["euclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis", "hamming"]


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_half_types_are_rounded_once(metric: str):
    x = np.array([[300.0, 1, 2], [0, 2, 1], [-500, 3, 250]], np.float16)
    expected = scipy.spatial.distance.cdist(x.astype(float), x.astype(float), metric)  # type: ignore[call-overload]

    actual = spatial.distance.cdist(array(x), array(x), metric)

    near(expected, actual.astype("f64"), relative=1e-3, absolute=1e-3, why="f16")


def test_a_minkowski_distance_of_infinite_order_is_the_largest_difference():
    x = np.random.default_rng(1).normal(size=(3, 4))
    expected = scipy.spatial.distance.pdist(x, "minkowski", p=np.inf)

    near(expected, spatial.distance.pdist(array(x), "minkowski", p=np.inf), relative=0, why="a difference")


@pytest.mark.parametrize("p", [0.0, -1.0, NAN])
def test_a_minkowski_distance_has_a_positive_order(p: float):
    with pytest.raises(ArgumentError, match="pdist: cannot take the power"):
        spatial.distance.pdist(array(np.ones((2, 2))), "minkowski", p=p)


def test_the_nearest_code_in_a_half_type_may_be_far():
    codes = array(np.array([[400.0], [300.0]], np.float16))

    nearest, distance = cluster.vq.vq(array(np.array([[0.0]], np.float16)), codes)

    assert (nearest.tolist(), distance.tolist()) == ([1], [300.0])
