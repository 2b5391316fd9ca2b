"""rune.scipy.special and rune.scipy.stats at 0, at poles and at infinity.

SciPy in f64 is the oracle, except where it has fewer digits itself: those values were computed once
with 40 digits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.special
import scipy.stats

import rune
import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError
from rune.scipy import ndimage, special, stats
from tests.scipy.stats_cases import SHAPES
from tests.support.arrays import array
from tests.support.close import near

INF = np.inf

# name, and points: a row for each call
FUNCTIONS: list[tuple[str, list[tuple[float, ...]]]] = [
    ("zeta", [(2.0, -0.5), (3.0, -0.5), (2.0, -20.25), (3.0, -100.75), (2.5, -0.5), (4.0, -1.0), (2.0, -1e-3)]),
    ("zeta", [(-1e-6,), (-1e-17,), (-0.05,), (-0.0999,), (-0.1001,), (0.0,), (-3.3,)]),
    ("erfcx", [(1e29,), (1e30,), (1e50,), (INF,), (-INF,)]),
    ("ndtr", [(-1e50,), (1e50,), (-INF,), (INF,)]),
    ("log_ndtr", [(1e50,), (-1e50,), (INF,), (-INF,)]),
    ("gamma", [(-50.0,), (-200.0,), (-1e20,), (-INF,), (-200.5,), (0.0,), (-2.5,)]),
    ("boxcox", [(0.0, 0.0), (INF, 0.0), (INF, -1.0), (0.0, -1.0), (0.0, 1.0), (2.0, 0.0)]),
    ("boxcox1p", [(-1.0, 0.0), (INF, 0.0), (INF, -1.0), (2.0, 0.0)]),
    ("inv_boxcox", [(INF, 0.0), (-INF, 0.0), (INF, 1.0), (-INF, -1.0), (INF, -1.0), (2.0, 0.0)]),
    ("inv_boxcox1p", [(INF, 0.0), (-INF, 0.0), (2.0, 0.0)]),
    ("pseudo_huber", [(1.0, INF), (1.0, -INF), (0.0, INF), (1.0, 1e30), (2.0, -3.0), (3.0, 2.0)]),
    (
        "poch",
        [
            (-2.0, 2.0),
            (-2.0, 3.0),
            (-2.0, -1.0),
            (-2.0, 0.0),
            (-2.0, 0.5),
            (-40.0, 3.0),
            (-40.0, 45.0),
            (3.0, -3.0),
            (3.0, -5.0),
            (0.0, -2.0),
            (-2.5, 2.0),
        ],
    ),
    ("ndtri_exp", [(-INF,), (-699.0,), (-701.0,), (-1e10,), (-1e30,)]),
    ("betaincinv", [(40.0, 1e-5, 1e-5)]),
    ("betainc", [(40.0, 1e-5, 0.991), (40.0, 1e-5, 0.998)]),
    ("betainc", [(2.0, 3e38, 0.5), (3e38, 2.0, 0.5), (0.5, 1e38, 1e-37), (50.0, 3e38, 1e-37)]),
]


@pytest.mark.parametrize(("dtype", "relative"), [("f8", 1e-12), ("f4", 5e-6)])
@pytest.mark.parametrize(("name", "rows"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_a_function_has_its_limits(name: str, rows: Any, dtype: str, relative: float):
    with np.errstate(all="ignore"):
        points = [np.array(column, dtype) for column in zip(*rows)]
        expected = getattr(scipy.special, name)(*(p.astype("f8") for p in points)).astype(dtype)

    values = getattr(special, name)(*map(array, points))

    near(expected.astype("f8"), values, relative=relative, why="relative to each value")


_FROM_THE_ROOT = np.array([0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.0624, 0.0626, 0.1])


@pytest.mark.parametrize(("dtype", "relative"), [("f8", 3e-14), ("f4", 1e-6)])
def test_digamma_keeps_its_digits_beside_its_first_root_below_zero(dtype: str, relative: float):
    points = (-0.5040830082644554 + np.concatenate([_FROM_THE_ROOT, -_FROM_THE_ROOT])).astype(dtype)
    expected = scipy.special.digamma(points.astype("f8"))

    near(expected, special.digamma(array(points)), relative=relative, absolute=0.0, why="relative to each value")


# From mpmath with 40 digits; SciPy's are wrong from the 11th and the 13th digit on.
DIGITS = {("j0", 1e6): 3.3104301373987740988e-4, ("ndtri_exp", -1e5): -447.19789367852505149}


@pytest.mark.parametrize(("name", "at"), DIGITS)
def test_a_function_keeps_its_digits_for_large_arguments(name: str, at: float):
    values = getattr(special, name)(array(np.float64(at)))

    near(DIGITS[name, at], values, relative=1e-14, why="computed once with 40 digits")


def test_the_faddeeva_function_has_its_limits():
    reals = np.array([INF, -INF])
    z = np.array(
        [complex(*parts) for parts in [(0, INF), (0, -INF), (1, INF), (INF, 1), (INF, -1), (-INF, 2), (INF, INF)]]
    )

    for at in (reals, z):
        near(scipy.special.wofz(at), special.wofz(array(at)), relative=0.0, why="limits")


def test_pochhammers_symbol_between_poles_has_the_derivative_of_its_polynomial():
    gradient = rune.grad(lambda z: special.poch(z, 2.0))(array(np.float64(-2.0)))

    near(-3.0, gradient, relative=1e-13, why="of z (z + 1)")


# --- distributions ----------------------------------------------------------------------------

EDGES: list[tuple[str, tuple[float, ...]]] = [
    ("lognorm", (0.9,)),
    ("betaprime", (0.5, 2.0)),
    ("betaprime", (1.0, 2.0)),
    ("betaprime", (1.5, 2.0)),
    ("invgamma", (1.5,)),
    ("invgauss", (1.0,)),
    ("levy", ()),
    ("loglaplace", (0.5,)),
    ("loglaplace", (1.0,)),
    ("loglaplace", (1.5,)),
    ("fisk", (0.5,)),
    ("fisk", (1.0,)),
    ("fisk", (1.5,)),
    ("rayleigh", ()),
    ("skewnorm", (1.0,)),
    ("norm", ()),
]


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf"])
@pytest.mark.parametrize(("name", "shapes"), EDGES, ids=[f"{n}{s}" for n, s in EDGES])
def test_a_family_has_a_value_at_the_ends_of_the_line(name: str, shapes: Any, method: str):
    x = np.array([0.0, INF, -INF])
    with np.errstate(all="ignore"):
        expected = getattr(getattr(scipy.stats, name), method)(x, *shapes)

    values = getattr(getattr(stats, name), method)(array(x), *shapes)

    near(expected, values, relative=1e-13, why="the same limits")


def test_exponential_and_normal_distributions_have_probability_one_up_to_infinity():
    x = array(np.array([-INF, INF]))

    near(np.array([0.0, 1.0]), stats.exponnorm.cdf(x, 1.5), relative=0.0, why="limits")
    near(np.array([1.0, 0.0]), stats.exponnorm.sf(x, 1.5), relative=0.0, why="limits")
    near(np.zeros(2), stats.exponnorm.pdf(x, 1.5), relative=0.0, why="SciPy has NaN at -inf")


VARIANCES: list[tuple[str, tuple[float, ...]]] = [
    ("betaprime", (1.5, 3.0)),
    ("betaprime", (1.5, 2.0)),
    ("fisk", (3.0,)),
    ("loglaplace", (3.0,)),
    ("loglaplace", (2.0,)),
    ("logser", (0.3,)),
]


@pytest.mark.parametrize(("name", "shapes"), VARIANCES, ids=[f"{n}{s}" for n, s in VARIANCES])
def test_a_variance_is_its_closed_form(name: str, shapes: Any):
    expected = getattr(scipy.stats, name).var(*shapes)

    variance = getattr(stats, name).var(*(array(np.float64(s)) for s in shapes))

    near(expected, variance, relative=1e-12, why="differences of SciPy's moments")


@pytest.mark.parametrize(
    ("name", "methods"), [("zipf", "pmf logpmf cdf sf logcdf logsf"), ("invgauss", "pdf logpdf cdf sf logcdf logsf")]
)
def test_a_family_has_the_limit_at_an_infinite_shape(name: str, methods: str):
    x = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    for method in methods.split():
        with np.errstate(all="ignore"):
            expected = getattr(getattr(scipy.stats, name), method)(x, INF)

        near(expected, getattr(getattr(stats, name), method)(array(x), INF), relative=1e-13, why="the same limits")


@pytest.mark.parametrize("policy", ["propagate", "omit"])
@pytest.mark.parametrize("name", ["skew", "kurtosis", "moment", "sem", "gmean", "hmean", "iqr", "zscore", "rankdata"])
def test_a_statistic_treats_nan_as_scipy_does(name: str, policy: str):
    x = np.array([[0.5, np.nan, 2.0, 0.5, 4.0], [1.0, 2.0, 4.0, 7.0, 7.5]])
    expected = getattr(scipy.stats, name)(x, axis=1, nan_policy=policy)

    statistics = getattr(stats, name)(array(x), axis=1, nan_policy=policy)

    near(expected, statistics, relative=1e-12, why="f64, by the same formulas")


@pytest.mark.parametrize("name", SHAPES)
def test_a_spread_is_the_same_at_an_infinite_place(name: str):
    for moment in ("var", "std", "entropy"):
        try:
            result = getattr(getattr(stats, name), moment)(*SHAPES[name], loc=rnp.array([INF, -INF, 0.5, np.nan]))
        except ArgumentError:  # there is no formula
            continue
        expected = getattr(getattr(scipy.stats, name), moment)(*SHAPES[name], loc=0)
        if np.isnan(expected):  # SciPy has no variance for it
            continue
        near(np.array([*[expected] * 3, np.nan]), result, relative=1e-4, why="f32")


# By the definition, 0/0: SciPy's own answers depend on how the mean of equal numbers is rounded.
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 130, 131, 4_099])
@pytest.mark.parametrize("number", [-0.087, 0.1, 1e-30, 123.456, 3e12, 0.0])
def test_equal_numbers_have_no_scores_and_no_shape(number: float, size: int, kind: str):
    x = np.full((2, size), number, kind)
    x[1, 0] += 1
    are_equal = (x == x[:, :1]).all(axis=1)

    for name in ("zscore", "skew", "kurtosis"):
        score = functools.partial(getattr(stats, name), axis=1)
        for result in map(np.asarray, (score(array(x)), rune.jit(score)(array(x)))):
            for row, is_equal in zip(np.isnan(result), are_equal, strict=True):
                assert np.all(row == is_equal), name
    assert size == 1 or stats.sem(array(x), axis=1)[0] == 0


NUMBERS = [[1.0, 2, -3], [1, -INF, 2], [1, 0, 2], [0, -1, 4], [1, INF, 2], [-0.0, 1, 3], [1e-30, -1e-40, 1e30]]


@pytest.mark.filterwarnings("ignore")  # SciPy says so, too
@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_mean_of_ratios_is_nan_beside_negative_numbers(numbers: list[float]):
    for name in ("hmean", "gmean"):
        for options in ({}, {"weights": np.arange(1.0, 4.0)}, {"nan_policy": "omit"}):
            expected = getattr(scipy.stats, name)(np.array(numbers), **options)
            result = getattr(stats, name)(array(np.array(numbers)), **options)
            near(expected, result, relative=1e-12, why="f64, by the same formulas")


@pytest.mark.parametrize("name", ["sem", "rankdata", "mode"])
def test_a_statistic_refuses_to_raise_for_nan(name: str):
    with pytest.raises(ArgumentError, match=f"{name}: cannot use nan_policy='raise'"):
        getattr(stats, name)(array(np.ones(3)), nan_policy="raise")


def test_the_gradient_of_a_density_is_finite_at_the_end_of_the_support():
    x = array(np.array([0.0, 1.0, INF]))

    gradient = rune.grad(lambda s: stats.lognorm.pdf(x, s).sum())(array(np.float64(0.9)))

    near(-1 / (0.9**2 * np.sqrt(2 * np.pi)), gradient, relative=1e-12, why="that at 1 alone")


COUNTS = np.array([*range(131), 257, 4_099, 65_537], np.float64)
MEANS = [0.0, 1e-300, 1e-17, 0.03, 2.0, 130.0, 1e9]


def slopes_of_mass(name: str, mean: float) -> tuple[Array, Array]:
    """The slopes of a Poisson (log) mass at COUNTS, in the count and in the mean."""
    mass = getattr(stats.poisson, name)
    return rune.jit(rune.vmap(rune.grad(mass, (0, 1)), (0, None)))(array(COUNTS), array(np.float64(mean)))


@pytest.mark.parametrize("mean", MEANS)
def test_the_slope_of_a_poisson_log_mass_in_the_count_is_log_mu_less_digamma(mean: float):
    slopes, _ = slopes_of_mass("logpmf", mean)

    with np.errstate(divide="ignore"):
        expected = np.log(mean) - scipy.special.digamma(COUNTS + 1)
    # Beside a count of 10^9 ± 30,000 or of 130 ± 11 both terms are nearly equal.
    near(expected, slopes, relative=1e-12, absolute=1e-14, why="f64")


@pytest.mark.parametrize("mean", MEANS)
def test_the_slope_of_a_poisson_log_mass_in_the_mean_is_the_count_over_it_less_one(mean: float):
    _, slopes = slopes_of_mass("logpmf", mean)

    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(COUNTS == 0, -1.0, (COUNTS - mean) / mean)
    near(expected, slopes, relative=1e-12, why="f64")


@pytest.mark.parametrize("mean", MEANS)
def test_the_slope_of_a_poisson_mass_in_the_mean_is_that_of_its_logarithm_times_it(mean: float):
    _, slopes = slopes_of_mass("pmf", mean)

    with np.errstate(divide="ignore", invalid="ignore"):
        expected = scipy.stats.poisson.pmf(COUNTS, mean) * (COUNTS - mean) / mean
    expected = expected if mean > 0 else (COUNTS == 1) * 1.0 - (COUNTS == 0)
    near(expected, slopes, relative=1e-10, absolute=1e-300, why="SciPy's masses")


@pytest.mark.parametrize("shape", [1.0, 1.5, 2.0, 10.0, 11.0, 16.0, 17.0, 130.0, 4_099.0])
def test_the_slopes_of_a_gamma_log_density_at_zero_are_infinite_but_for_that_of_shape_one(shape: float):
    slopes = rune.grad(stats.gamma.logpdf, (0, 1))(array(np.float64(0.0)), array(np.float64(shape)))

    near(
        np.array([-1.0 if shape == 1 else INF, -INF]), np.array(slopes), relative=0, why="(a - 1) log y - y - log Γ(a)"
    )


@pytest.mark.parametrize("dtype", ["f64", "f32", "i32", "u8", "i8"])
def test_choices_with_repetition_are_counted_from_nothing_on(dtype: str):
    sizes = np.array([0, 1, 2, 5, 100, 120])
    n, k = (v.ravel() for v in np.meshgrid(sizes, [0, 1, 3, 9], indexing="ij"))

    counts = special.comb(rnp.asarray(n, dtype), rnp.asarray(k, dtype), repetition=True)

    expected = scipy.special.comb(n, k, repetition=True)
    near(expected.astype(counts.dtype), counts, relative=1e-12 if dtype == "f64" else 1e-4, why="rounding")


WHERE_IT_LIES: list[tuple[str, tuple[float, ...], dict[str, float]]] = [
    ("uniform", (), {"loc": 1.0, "scale": 2.0}),
    ("gamma", (2.0,), {"loc": -1.0}),
    ("truncnorm", (-1.0, 2.0), {"loc": 3.0, "scale": 4.0}),
    ("t", (3.0,), {"scale": 2.0}),
    ("binom", (5.0, 0.3), {"loc": 1.0}),
    ("poisson", (2.0,), {"loc": -1.0}),
]


@pytest.mark.parametrize(("name", "shapes", "shift"), WHERE_IT_LIES)
def test_the_support_and_an_interval_move_with_the_parameters(name: str, shapes: Any, shift: Any):
    scipys, ours = getattr(scipy.stats, name), getattr(stats, name)
    ends = *ours.support(*shapes, **shift), *ours.interval(0.8, *shapes, **shift)

    expected = *scipys.support(*shapes, **shift), *scipys.interval(0.8, *shapes, **shift)
    near(np.array(expected), np.array(ends), relative=1e-5, why="f32")


@pytest.mark.parametrize("mode", ["nearest", "mirror", "reflect", "grid-wrap"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_interpolation_of_order_zero_takes_the_element_of_the_nearest_integer(mode, dtype):
    x = np.arange(10, 17).astype(dtype)
    below = np.nextafter(np.float32(0.5), np.float32(0))
    at = np.array([below, -below, 0.5, 1.5, 2.5, 4.5, np.nextafter(np.float32(3.5), np.float32(0))], np.float32)
    places = np.sign(at) * np.floor(np.abs(at.astype(np.float64)) + 0.5)
    expected = scipy.ndimage.map_coordinates(x, [places], order=0, mode=mode)

    for find in (ndimage.map_coordinates, rune.jit(ndimage.map_coordinates, static_argnums=(2, 3))):
        np.testing.assert_array_equal(find(rnp.asarray(x), [rnp.asarray(at)], 0, mode.removeprefix("grid-")), expected)


def test_a_coordinate_half_a_step_before_the_first_element_is_outside():
    at = np.array([-0.5, -0.49, 6.49, 6.5], np.float32)  # what jax 0.10.2 answers: [-9, 10, 16, -9]

    actual = ndimage.map_coordinates(rnp.arange(10.0, 17.0), [rnp.asarray(at)], 0, "constant", -9.0)

    np.testing.assert_array_equal(actual, [-9.0, 10.0, 16.0, -9.0])


def test_a_coordinate_beyond_the_largest_integer_is_at_the_nearest_end():
    x, at = np.arange(1.0, 6.0), np.array([2.0**31 - 0.5, 2.0**31 + 0.5, 3e9 + 0.5, -3e9 - 0.5])
    expected = scipy.ndimage.map_coordinates(x, [at], order=1, mode="nearest")

    with rune.enable_x64():
        np.testing.assert_array_equal(
            ndimage.map_coordinates(rnp.asarray(x), [rnp.asarray(at)], 1, "nearest"), expected
        )
