"""Quantiles: their loop occurs once in a program and covers all floats.

Sums that end for every argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import rune
import rune.numpy as rnp
import rune.scipy.special as special
import rune.scipy.stats as stats
from rune.scipy.special import inversion
from tests.support.arrays import array
from tests.support.close import near


@pytest.mark.parametrize(
    ("quantile", "loops"),
    [
        (lambda p, a: special.gammaincinv(a, p), 3),  # the search; series and fraction inside it
        (lambda p, a: special.betaincinv(a, a, p), 2),
        (lambda p, a: stats.t.ppf(p, a), 2),
        (lambda p, a: stats.f.ppf(p, a, a), 2),
    ],
)
def test_the_function_of_a_search_is_compiled_once(quantile, loops: int):
    text = str(rune.make_program(quantile)(rnp.ones(3), rnp.ones(3)))

    assert text.count("while_loop") + text.count("while ") == loops


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv"])
def test_every_quantile_of_a_gamma_distribution_takes_at_most_four_evaluations(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
):
    """All lanes wait for the last one, so a single slow search slows all of them."""
    rng = np.random.default_rng(4)
    a = (10 ** rng.uniform(-2, 4, 20_000)).astype(dtype)
    share = np.where(rng.random(a.size) < 0.5, rng.random(a.size), 10 ** rng.uniform(-20, 0, a.size)).astype(dtype)
    monkeypatch.setattr(inversion, "STEPS", 4)

    quantiles = np.asarray(rune.jit(lambda a, p: getattr(special, name)(a, p))(array(a), array(share)), "f8")

    truth = getattr(scipy.special, name)(a.astype("f8"), share.astype("f8"))
    apart = truth > np.finfo(dtype).tiny
    near(truth[apart], quantiles[apart], relative=2e-5 if dtype == "f4" else 3e-13, why="a power of 1 / a")


@pytest.mark.parametrize(("dtype", "digits", "error"), [("f4", 32, 1e-4), ("f8", 300, 1e-9)])
def test_the_quantile_of_a_tail_that_is_nearly_nothing_is_right(dtype: str, digits: int, error: float):
    """The first estimate may lie where the tail underflows, so that the search starts far away."""
    rng = np.random.default_rng(5)
    a = (10 ** rng.uniform(-2, 4, 500)).astype(dtype)
    tail = (10.0 ** -rng.uniform(0, digits, 500)).astype(dtype)

    quantiles = np.asarray(special.gammainccinv(array(a), array(tail)), "f8")

    truth = scipy.special.gammainccinv(a.astype("f8"), tail.astype("f8"))
    apart = truth > np.finfo(dtype).tiny
    near(truth[apart], quantiles[apart], relative=error, why="the logarithm of the tail is rounded")


def test_a_single_element_has_the_same_quantile_as_among_others():
    a, p = np.array([0.3, 2.5, 40.0], "f4"), np.array([0.9, 1e-3, 0.5], "f4")

    together = np.asarray(special.gammaincinv(a, p))

    for k in range(3):
        near(together[k], special.gammaincinv(a[k], p[k]), relative=0, why="the same steps")
        near(together[k], rune.jit(special.gammaincinv)(a[k], p[k]), relative=0, why="the same steps")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_quantiles_of_t_are_finite_where_odds_underflow(dtype: str):
    """P(T > t) is C t**-df there, with C = df**(df / 2) / (df B(df / 2, 1 / 2))."""
    p, df = (0.3, 0.0107) if dtype == "f4" else (1e-20, 0.08)
    log_beta = float(special.betaln(array(np.array(df / 2)), array(np.array(0.5))))
    log_t = (0.5 * df * np.log(df) - np.log(df) - log_beta - np.log(p)) / df

    quantiles = stats.t.isf(rnp.asarray(p, dtype), rnp.asarray(df, dtype))

    assert log_t > (44 if dtype == "f4" else 354)  # the odds are its square
    near(np.array(log_t), np.log(np.asarray(quantiles, "f8")), relative=1e-5, why="f32 below a logarithm")


def test_a_ratio_of_few_degrees_of_freedom_does_not_overflow_on_the_way():
    n, d, q = 7026.3, 0.0106, 0.349
    exact = stats.f.ppf(*(array(np.array(v)) for v in (q, n, d)))

    quantile = stats.f.ppf(*(rnp.float32(v) for v in (q, n, d)))

    assert float(exact) * n / d > 1e38
    near(np.asarray(exact), np.asarray(quantile, "f8"), relative=2e-3, why="1 / d magnifies roundings")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_sum_of_masses_ends_where_no_further_mass_adds_anything(dtype: str):
    k, p = (rnp.asarray(x, dtype) for x in (1e12, 0.999))

    assert stats.logser.cdf(k, p).item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("quantile", ["ppf", "isf"])
def test_a_quantile_of_a_sum_takes_one_pass(quantile: str):
    shapes = [rnp.ones(3)] * len(stats.betabinom.shapes)

    text = str(rune.make_program(getattr(stats.betabinom, quantile))(rnp.ones(3), *shapes))

    assert text.count("= while ") == 1


def test_the_quantile_of_the_probability_up_to_a_number_is_that_number():
    k = np.array([1, 2, 7, 8, 9, 100, 1000], np.float32)

    for family, shapes in ((stats.logser, (0.9999,)), (stats.betabinom, (5000.0, 0.5, 3.0))):
        shapes = [np.float32(v) for v in shapes]
        quantiles = family.ppf(family.cdf(k, *shapes), *shapes)
        above = family.isf(family.sf(k, *shapes), *shapes)

        np.testing.assert_array_equal(k, np.asarray(quantiles))
        np.testing.assert_array_equal(k, np.asarray(above))


def test_a_sum_of_thousands_of_masses_does_not_drift():
    k, p = np.array([100, 32_000, 80_000], np.float32), np.float32(0.9999)

    shares = stats.logser.cdf(k, p)

    near(scipy.stats.logser.cdf(k, float(p)), shares, relative=2e-7, why="two roundings of f32")
    assert abs(stats.logser.ppf(0.999, p).item() - 32_754) <= 1
    assert np.isfinite(stats.logser.ppf(0.999999, p).item())


def test_rounding_errors_of_a_hundred_thousand_ratios_do_not_accumulate():
    k, n = np.array([100, 30_000, 80_000], np.float32), np.float32(1e5)

    shares = stats.betabinom.cdf(k, n, 2.0, 3.0)

    near(scipy.stats.betabinom.cdf(k, 1e5, 2.0, 3.0), shares, relative=5e-6, why="log B(2, 100003)")


@pytest.mark.parametrize("p", [0.3, 0.6, 0.9, 0.99, 0.999, 0.9999])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_distribution_function_of_logser_is_the_sum_of_its_masses(p: float, dtype: str):
    p = float(np.asarray(p, dtype))
    k = np.array([1, 2, 3, 10, 100, 1000, 20_000], dtype)
    numbers = np.arange(1, 1_000_001.0)
    masses = np.exp(numbers * np.log(p) - np.log(numbers) - np.log(-np.log1p(-p)))
    beyond = np.cumsum(masses[::-1])[::-1][k.astype(int)]

    lower, upper = (
        method(rnp.asarray(k, dtype), rnp.asarray(p, dtype)) for method in (stats.logser.cdf, stats.logser.sf)
    )

    relative = 2e-6 if dtype == "f4" else 2e-13
    near(np.cumsum(masses)[k.astype(int) - 1], lower, relative=relative, why="a dozen roundings")
    near(beyond, upper, relative=relative, absolute=1e-37, why="a power of p, 20,000 roundings of p")


@pytest.mark.parametrize("family", [stats.logser, stats.zipf], ids=str)
def test_quantiles_near_one_are_computed_from_the_complement(family: Any):
    """1 - q is exact, so the result is that of f64, not one that is 0.2 % off."""
    shape = np.float32(0.9999 if family is stats.logser else 1.5)
    q = np.array([0.9, 0.999, 0.9999, 0.99999, 1 - 2**-22], np.float32)

    quantiles = family.ppf(q, shape)

    exact = family.ppf(rnp.asarray(q, "f8"), rnp.asarray(shape, "f8"))
    near(np.asarray(exact), quantiles, relative=2e-6, why="f32 of numbers up to 10^12")
    near(np.asarray(quantiles), family.isf(1 - q, shape), relative=0, why="the same share")


def test_a_lane_of_nan_does_not_end_the_sums_of_others():
    k, n = rnp.array([3.0, 3.0]), rnp.array([rnp.nan, 10.0])

    quantiles = stats.betabinom.ppf(stats.betabinom.cdf(k, n, 2.0, 3.0) - 1e-3, n, 2.0, 3.0)

    assert np.isnan(quantiles[0])
    assert quantiles[1].item() == 3.0
