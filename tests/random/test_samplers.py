"""Samplers: each draws from the distribution that it is named after.

First the numbers against stored answers of JAX; then support, moments and the whole distribution,
with fixed keys, so that a test that passes once passes always; then lanes, dtypes, shapes and
derivatives; last what is refused. distributions.py has the table.
"""

from __future__ import annotations

import functools
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import rune
import rune.numpy as rnp
from rune import dtypes, random
from rune.errors import ArgumentError, DtypeError, ShapeError, TransformError
from rune.random.sampler import Sampler
from tests.random import calls
from tests.random.distributions import CONTINUOUS, DISCRETE, SAMPLERS, Case
from tests.random.vectors import answers
from tests.support.close import close, near, same
from tests.support.sampling import one_in

COUNT = 20_000
KEY = random.key(20_260_101)
each_case = pytest.mark.parametrize("case", [*CONTINUOUS, *DISCRETE], ids=str)


@functools.cache
def numbers(case: Case) -> np.ndarray:
    """Many numbers of a sampler, from a separate key."""
    return np.asarray(case.draw(key_of(case), (COUNT,))).astype(np.float64)


def key_of(case: Case) -> Any:
    """A key that depends on the name of the case alone."""
    return random.fold_in(KEY, zlib.crc32(case.name.encode()))


# --- JAX --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", calls.EXACT)
def test_numbers_made_by_exact_arithmetic_are_those_of_jax(name: str):
    same(answers()[name], np.asarray(calls.EXACT[name](random)))


@pytest.mark.parametrize("name", calls.CHOSEN)
def test_choices_and_counts_are_those_of_jax(name: str):
    same(answers()[name], np.asarray(calls.CHOSEN[name](random)))


@pytest.mark.parametrize("name", calls.CLOSE)
def test_functions_of_uniform_numbers_are_close_to_those_of_jax(name: str):
    expected = answers()[name]
    sample = np.asarray(calls.CLOSE[name](random))

    assert expected.dtype == sample.dtype
    limit = 1e-3 if expected.dtype.itemsize == 2 else 2e-5
    near(expected, sample, relative=limit, why="two approximations of one function; cancellation")


# --- distributions ----------------------------------------------------------------------------


@each_case
def test_every_number_lies_in_the_support(case: Case):
    sample = numbers(case)

    assert not np.isnan(sample).any()
    assert sample.min() >= case.support[0]
    assert sample.max() <= case.support[1]


@each_case
def test_mean_and_variance_are_those_of_the_distribution(case: Case):
    sample = numbers(case)
    mean, variance, kurtosis = (float(x) for x in case.law.stats("mvk"))
    if not np.isfinite(variance):
        assert abs(np.median(sample) - case.law.median()) < 0.05
        return
    spread = np.sqrt(variance / COUNT)
    assert abs(sample.mean() - mean) < 5 * spread
    if np.isfinite(kurtosis):
        assert abs(sample.var() / variance - 1) < 5 * np.sqrt((kurtosis + 2) / COUNT) + 1e-3


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_the_distribution_function_is_that_of_the_distribution(case: Case):
    assert stats.kstest(numbers(case), case.law.cdf).pvalue > 1e-3


def test_ratios_of_numbers_below_the_smallest_float_have_their_distribution():
    sample = np.asarray(random.f(random.key(3), 0.1, 0.1, (COUNT,)), np.float64)

    assert stats.kstest(sample, stats.f(0.1, 0.1).cdf).pvalue > 1e-3


@pytest.mark.parametrize("case", DISCRETE, ids=str)
def test_every_value_has_its_expected_frequency(case: Case):
    sample = numbers(case)
    values, counts = np.unique(sample, return_counts=True)
    expected = case.law.pmf(values) * COUNT
    common = expected >= 5  # the test needs so many of each

    others = COUNT - counts[common].sum(), COUNT - expected[common].sum()
    observed_counts, expected_counts = (
        np.append(a[common], b) for a, b in ((counts, others[0]), (expected, others[1]))
    )
    keep = expected_counts > 1e-9
    assert (observed_counts[~keep] == 0).all()
    statistic = ((observed_counts - expected_counts)[keep] ** 2 / expected_counts[keep]).sum()
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-3


PUBLIC = {n for n, member in vars(random).items() if isinstance(member, Sampler)}
PUBLIC |= {"permutation", "choice"}  # functions that use samplers


def test_there_are_forty_samplers_and_each_has_its_distribution():
    names = {c.name.split()[0] for c in SAMPLERS}

    assert names == PUBLIC - {"bits"}  # which are tested bit for bit
    assert len(PUBLIC) >= 40


def test_the_page_on_random_numbers_names_every_sampler():
    page = Path(__file__).parent.parent.parent / "docs" / "guide" / "random.md"
    table = page.read_text().split("## Distributions")[1].split("## ")[0]

    assert set(re.findall(r"`(\w+)`", table)) == PUBLIC


# --- lanes, dtypes, shapes --------------------------------------------------------------------


@pytest.mark.parametrize("case", one_in(8, SAMPLERS), ids=str)
def test_a_lane_of_a_jitted_function_draws_what_its_key_draws_alone(case: Case):
    alone = numbers(case), np.asarray(case.draw(KEY, (COUNT,))).astype(np.float64)
    keys = rune.tree.map(lambda *words: rnp.stack(words), key_of(case), KEY)

    lanes = rune.jit(rune.vmap(lambda k: case.draw(k, (COUNT,))))(keys)

    same(np.stack(alone), np.asarray(lanes).astype(np.float64))


OF_A_SHAPE = {
    "uniform": random.uniform,
    "normal": random.normal,
    "exponential": random.exponential,
    "gumbel": random.gumbel,
    "laplace": random.laplace,
    "logistic": random.logistic,
    "cauchy": random.cauchy,
    "maxwell": random.maxwell,
}


@pytest.mark.parametrize("name", OF_A_SHAPE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_dtype_is_the_requested_one(name: str, dtype: str):
    sample = OF_A_SHAPE[name](KEY, (50,), dtype)

    assert sample.dtype == dtypes.as_dtype(dtype)
    assert np.isfinite(np.asarray(sample).astype(np.float64)).all()


def test_a_64_bit_parameter_makes_64_bit_numbers():
    scale = rnp.asarray(2.0, dtype="float64")

    assert random.rayleigh(KEY, scale, (3,)).dtype == dtypes.f64
    assert random.rayleigh(KEY, 2.0, (3,)).dtype == dtypes.f32
    with rune.enable_x64():
        assert random.normal(KEY, (3,)).dtype == dtypes.f64


def test_numbers_are_never_weak():
    sample = (random.uniform(KEY), random.pareto(KEY, 2.0), random.randint(KEY, (), 0, 5))

    assert not any(x.type.weak for x in sample)


def test_parameters_broadcast_to_the_shape():
    b = rnp.array([1.0, 2.0, 4.0])

    assert random.pareto(KEY, b).shape == (3,)
    assert random.pareto(KEY, b, (2, 3)).shape == (2, 3)
    assert random.truncated_normal(KEY, b[:, None] - 3.0, b).shape == (3, 3)


def test_a_parameter_is_per_element():
    scales = rnp.array([1.0, 100.0])
    sample = np.asarray(random.rayleigh(KEY, scales, (1000, 2)))

    ratio = sample[:, 1].mean() / sample[:, 0].mean()
    assert 80 < ratio < 120


def test_signatures_are_shown():
    assert "minval" in str(random.uniform.__signature__)
    assert "name=None" in str(random.uniform.__signature__)
    assert repr(random.uniform) == "rune.random.uniform"
    assert (random.uniform.__doc__ or "").startswith("Uniformly distributed numbers in [minval, maxval)")


# --- derivatives ------------------------------------------------------------------------------

PARAMETERS = {
    "uniform minval": lambda k, p: random.uniform(k, (5,), minval=p, maxval=3.0),
    "uniform maxval": lambda k, p: random.uniform(k, (5,), minval=-1.0, maxval=p),
    "truncated_normal lower": lambda k, p: random.truncated_normal(k, p, 3.0, (5,)),
    "truncated_normal upper": lambda k, p: random.truncated_normal(k, -1.0, p, (5,)),
    "lognormal": lambda k, p: random.lognormal(k, p, (5,)),
    "double_sided_maxwell loc": lambda k, p: random.double_sided_maxwell(k, p, 2.0, (5,)),
    "double_sided_maxwell scale": lambda k, p: random.double_sided_maxwell(k, 1.0, p, (5,)),
    "rayleigh": lambda k, p: random.rayleigh(k, p, (5,)),
    "pareto": lambda k, p: random.pareto(k, p, (5,)),
    "weibull_min scale": lambda k, p: random.weibull_min(k, p, 1.5, (5,)),
    "weibull_min concentration": lambda k, p: random.weibull_min(k, 2.0, p, (5,)),
    "triangular": lambda k, p: random.triangular(k, 0.0, p, 3.0, (5,)),
    "wald": lambda k, p: random.wald(k, p, (5,)),
    "power": lambda k, p: random.power(k, p, (5,)),
    "vonmises mu": lambda k, p: random.vonmises(k, p, 2.0, (5,)),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_numbers_are_differentiable_in_their_parameters(name: str):
    draw, h = PARAMETERS[name], 1e-5
    at = rnp.asarray(1.3, dtype="float64")

    jacobian = rune.jacfwd(lambda p: draw(KEY, p))(at)

    upper, lower = (np.asarray(draw(KEY, at + s)) for s in (h, -h))
    near((upper - lower) / (2 * h), np.asarray(jacobian), relative=1e-5, why="central differences")


def _at_fixed_probability(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dx/da of a gamma number, by central differences of SciPy's quantiles, in f64."""
    upper, h = special.gammaincc(a, x) < 0.5, 1e-5 * a

    def quantile(b: np.ndarray) -> np.ndarray:
        low = special.gammaincinv(b, special.gammainc(a, x))
        return np.where(upper, special.gammainccinv(b, special.gammaincc(a, x)), low)

    return (quantile(a + h) - quantile(a - h)) / (2 * h)


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 3.0, 50.0, 2000.0, 2.9e4, 3.1e4, 1e8])
def test_the_derivative_of_a_gamma_number_keeps_its_probability(a: float):
    parameters = rnp.full((200,), a, "float64")

    def draw(a: Any) -> Any:
        return random.gamma(KEY, a)

    sample, slopes = rune.jvp(draw, (parameters,), (rnp.ones_like(parameters),))

    x = np.asarray(sample)
    expected = _at_fixed_probability(np.asarray(parameters), x)
    is_smooth = x > 1e-12  # below it SciPy's quantiles are no longer smooth
    near(expected[is_smooth], np.asarray(slopes)[is_smooth], relative=1e-6, why="central differences")


def test_the_derivative_of_the_logarithm_is_finite_where_the_number_is_too_small():
    gradient = rune.vmap(rune.grad(lambda a: random.loggamma(KEY, a)))(rnp.array([1e-3, 1e-2]))

    assert (np.asarray(random.gamma(KEY, rnp.array([1e-5, 1e-5]))) == 0).any()
    assert np.isfinite(np.asarray(gradient)).all()
    assert (np.asarray(rune.grad(lambda a: random.gamma(KEY, a))(1e-5)) == 0).all()


MEANS = {
    "gamma": (lambda p: random.gamma(KEY, p, (COUNT,)), 2.0, 1.0),
    "chisquare": (lambda p: random.chisquare(KEY, p, (COUNT,)), 3.0, 1.0),
    "beta": (lambda p: random.beta(KEY, p, 3.0, (COUNT,)), 2.0, 3 / 25),
    "dirichlet": (lambda p: random.dirichlet(KEY, rnp.stack([p, 1.0, 2.0]), (COUNT,))[:, 0], 2.0, 3 / 25),
}


@pytest.mark.parametrize("name", MEANS)
def test_the_mean_of_the_derivatives_is_the_derivative_of_the_mean(name: str):
    draw, at, expected = MEANS[name]

    gradient = rune.grad(lambda p: rnp.mean(draw(p)))(at)

    assert float(gradient) == pytest.approx(expected, rel=0.05)


# --- parameters out of range ------------------------------------------------------------------

OUTSIDE = {
    "gamma": (lambda p: random.gamma(KEY, p), [-1.0, np.nan], np.nan),
    "loggamma": (lambda p: random.loggamma(KEY, p), [-1.0, np.nan], np.nan),
    "poisson": (lambda p: random.poisson(KEY, p), [-1.0, np.nan, np.inf], -1),
    "binomial": (lambda p: random.binomial(KEY, 10, p), [-0.1, 1.1, np.nan], np.nan),
    "negative_binomial": (lambda p: random.negative_binomial(KEY, 2.0, p), [-1.0, 0.0, 1.5, np.nan], -1),
    "negative_binomial n": (lambda p: random.negative_binomial(KEY, p, 0.5), [-1.0, np.nan], -1),
    "zipf": (lambda p: random.zipf(KEY, p), [1.0, -2.0, np.nan], -1),
    "logseries": (lambda p: random.logseries(KEY, p), [1.0, -0.1, 2.0, np.nan], -1),
    "hypergeometric": (lambda p: random.hypergeometric(KEY, 3, 4, p), [8, -1, np.nan], -1),
    "hypergeometric ngood": (lambda p: random.hypergeometric(KEY, p, 4, 1), [-1, np.nan], -1),
    "vonmises": (lambda p: random.vonmises(KEY, 0.0, p), [-1.0, np.inf, np.nan], np.nan),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_parameter_out_of_range_ends_every_loop_with_the_error_value(name: str):
    draw, values, expected = OUTSIDE[name]

    for value in values:
        same(np.float64(expected), np.asarray(draw(np.float32(value))).astype(np.float64))


EDGES = [
    (lambda: random.vonmises(KEY, 3.0, 1e30, (9,)), 3.0, 3.0),
    (lambda: random.zipf(KEY, 1e9, (9,)), 1, 1),
    (lambda: random.zipf(KEY, 1.01, (999,), "uint8"), 1, 255),
    (lambda: random.logseries(KEY, 0.0, (9,)), 1, 1),
    (lambda: random.negative_binomial(KEY, 5.0, 1.0, (9,)), 0, 0),
    (lambda: random.hypergeometric(KEY, 0, 9, 4, (9,)), 0, 0),
    (lambda: random.hypergeometric(KEY, 9, 0, 4, (9,)), 4, 4),
    (lambda: random.hypergeometric(KEY, 9, 5, 14, (9,)), 9, 9),
    (lambda: random.gamma(KEY, 0.0, (9,)), 0, 0),
]  # with the least and the largest number that may come


@pytest.mark.parametrize("number", range(len(EDGES)))
def test_samples_stay_in_range_for_parameters_at_the_edge(number: int):
    draw, least, most = EDGES[number]

    sample = np.asarray(draw()).astype(np.float64)

    assert sample.min() >= least
    assert sample.max() <= most


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("p", [1.0, 2.0, 30.0, 100.0, 1e3, np.inf])
def test_points_lie_in_the_ball_though_the_power_of_its_norm_underflows(p: float, dtype: str):
    points = np.asarray(random.ball(random.key(0), 3, p, (COUNT,), dtype)).astype(np.float64)

    assert (np.abs(points) <= 1.0).all()


def test_a_number_drawn_by_rejection_depends_only_on_its_position():
    for draw in (
        lambda s: random.vonmises(KEY, 0.0, 2.0, s),
        lambda s: random.hypergeometric(KEY, 20, 30, 10, s),
        lambda s: random.zipf(KEY, 2.0, s),
        lambda s: random.gamma(KEY, 0.5, s),
    ):
        same(np.asarray(draw((300,)))[:7], np.asarray(draw((7,))))


# --- what is refused --------------------------------------------------------------------------


def test_a_dtype_of_another_kind_is_refused():
    with pytest.raises(DtypeError, match="normal: cannot draw i32"):
        random.normal(KEY, (3,), "int32")
    with pytest.raises(DtypeError, match="randint: cannot draw f32"):
        random.randint(KEY, (3,), 0, 5, "float32")
    with pytest.raises(DtypeError, match="bernoulli: cannot use p of i32"):
        random.bernoulli(KEY, rnp.array([0, 1]))


def test_parameters_that_do_not_fit_the_shape_are_refused():
    with pytest.raises(ShapeError, match=r"pareto: cannot draw shape \(2,\)"):
        random.pareto(KEY, rnp.ones((3, 2)), (2,))
    with pytest.raises(ShapeError):
        random.uniform(KEY, (2,), minval=rnp.zeros(3))


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="mode='middle'"):
        random.bernoulli(KEY, 0.5, mode="middle")
    with pytest.raises(ArgumentError, match="mode='middle'"):
        random.gumbel(KEY, mode="middle")


def test_a_derivative_that_rejection_disturbs_is_refused():
    with pytest.raises(TransformError, match="vonmises: cannot differentiate in kappa"):
        rune.grad(lambda kappa: random.vonmises(KEY, 0.0, kappa))(2.0)


def test_a_shape_in_the_place_of_the_key_is_refused_with_a_hint():
    with pytest.raises(ArgumentError, match="give shape= by name"):
        random.normal((3,))


def test_the_interval_of_uniform_is_half_open_after_rounding():
    low, high = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    sample = np.asarray(random.uniform(KEY, (1000,), minval=low, maxval=high))

    close(np.float32(1.0), sample.min(), ulps=0, why="two numbers at most")
    assert sample.max() <= high


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1)])
def test_one_number_takes_the_axes_of_its_bounds_if_they_are_all_1(shape):
    key = random.key(3)
    low, high = np.full(shape, 2.0, np.float32), np.full(shape, 5.0, np.float32)

    sample = random.uniform(key, (), np.float32, low, high)

    assert sample.shape == shape
    np.testing.assert_array_equal(np.asarray(sample).ravel(), np.asarray(random.uniform(key, (), np.float32, 2.0, 5.0)))
    with pytest.raises(ShapeError, match="broadcast"):
        random.uniform(key, (), np.float32, np.zeros(3), 1.0)


@pytest.mark.parametrize(("bound", "dtype"), [(1e12, "int64"), (4e9, "uint32"), (1000.9, "int32"), (100.5, "int8")])
def test_integers_have_the_bounds_that_floats_name(bound: float, dtype: str):
    limits = [np.float64(v) for v in (-3.7, bound)]
    expected = random.randint(random.key(3), (9,), -3, int(bound), dtype)

    with rune.enable_x64():  # where NumPy's floats have 64 bits
        same(expected, random.randint(random.key(3), (9,), *limits, dtype))
