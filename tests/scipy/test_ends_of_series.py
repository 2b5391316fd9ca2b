"""Series that end, and series at poles, against SciPy: values, eager and compiled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import rune
from rune.scipy import special


def compared(name: str, args: Sequence[tuple[float, ...]]) -> None:
    columns = [np.array(c) for c in zip(*args, strict=True)]
    expected = getattr(sp, name)(*columns)

    for wrap in (lambda f: f, rune.jit):
        with rune.enable_x64():
            actual = wrap(getattr(special, name))(*columns)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_a_gauss_series_that_ends_is_a_polynomial_for_any_x():
    compared("hyp2f1", [*itertools.product((-2.0, -1.0, -5.0), (1.5, -3.0, 5.0), (2.5, 7.0), (1.0, 1.25, 3.0, 40.0))])


def test_a_gauss_series_that_does_not_end_is_undefined_beyond_one():
    values = special.hyp2f1(np.array([1.5, -1.5, 0.5]), 1.5, 2.5, np.array([1.25, 3.0, np.inf]))

    assert np.isnan(values).all()


def test_kummers_series_is_infinite_at_the_poles_that_it_reaches():
    """At a = 0 SciPy returns infinity for a series whose only term is 1."""
    compared(
        "hyp1f1", [*itertools.product((1.0, 0.5, -1.0, -3.0), (0.0, -1.0, -2.0, 2.5), (-60.0, -0.5, 0.0, 0.5, 3.0))]
    )


def test_a_series_that_ends_has_the_derivatives_of_its_polynomial():
    def one(x: Any) -> Any:
        return special.hyp2f1(-2.0, 1.5, 2.5, x)  # 1 - 6x/5 + 3x²/7

    def other(x: Any) -> Any:
        return special.hyp1f1(-1.0, -2.0, x)  # 1 + x/2

    np.testing.assert_allclose(rune.grad(one)(3.0), -6 / 5 + 6 * 3 / 7, rtol=1e-5)
    np.testing.assert_allclose(rune.grad(other)(-3.0), 0.5, rtol=1e-6)


def test_poles_have_no_derivatives():
    assert np.isnan(rune.grad(lambda x: special.hyp1f1(1.0, 0.0, x))(0.5))
    assert np.isnan(rune.jit(rune.grad(lambda x: special.hyp1f1(1.0, -1.0, x)))(0.5))


def test_polygamma_is_infinite_at_its_poles():
    compared("polygamma", [*itertools.product((1.0, 2.0, 5.0), (0.0, -1.0, -2.0, -50.0, -np.inf, -0.5, -2.5))])


def test_polygamma_between_poles_far_below_is_undefined():
    assert np.isnan(special.polygamma(2, np.array([-4.5, -50.5, -999.25]))).all()


# 0, the least, the largest, infinite, negative, NaN: no series may go on and on.
LIMITS = np.array(
    [0.0, -0.0, 1e-30, 0.5, 1.0, 50.0, 3e38, np.inf, -0.5, -1.0, -2.5, -3e38, -np.inf, np.nan], np.float32
)
PAIRS = tuple(x.ravel() for x in np.meshgrid(LIMITS, LIMITS))
AT_LIMITS: dict[str, Callable[[], Any]] = {
    "exp1": lambda: special.exp1(LIMITS),
    "expi": lambda: special.expi(LIMITS),
    "expn": lambda: special.expn(np.array([[0], [1], [5], [1000]]), LIMITS),
    "gammainc": lambda: special.gammainc(*PAIRS),
    "gammaincc": lambda: special.gammaincc(*PAIRS),
}


@pytest.mark.parametrize("name", AT_LIMITS)
def test_series_have_scipys_values_at_their_limits(name: str):
    arguments = {"expn": (np.array([[0], [1], [5], [1000]]), LIMITS), "exp1": (LIMITS,), "expi": (LIMITS,)}
    expected = getattr(sp, name)(*arguments.get(name, PAIRS)).astype(np.float32)

    np.testing.assert_allclose(np.abs(AT_LIMITS[name]()), np.abs(expected), rtol=2e-5, atol=1e-37)
