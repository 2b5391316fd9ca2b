"""Series that end, and series at poles, against SciPy: values, eager and compiled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
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


def polynomial(a: float, degree: int, c: float, x: float) -> float:
    """2F1(a, -degree; c; x) in rational numbers."""
    term = total = Fraction(1)
    for k in range(degree):
        term *= (Fraction(a) + k) * (k - degree) / ((Fraction(c) + k) * (k + 1)) * Fraction(x)
        total += term
    return float(total)


DEGREES = (1, 2, 5, 17, 51, 100, 130, 257)
POLYNOMIALS = [*itertools.product((0.5, 2.0, 30.0, -1.5), DEGREES, (2.5, 7.25), (-0.75, 0.125, 0.5, 0.9375, 1.5))]


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-11), (np.float32, 2e-4)])
def test_the_terms_of_a_gauss_series_that_ends_do_not_cancel(dtype: type, rtol: float):
    """Nor is it turned into a series that does not end, as near x = 1: 2F1(30, -1; 2.5; 0.98)."""
    rows = [p for p in POLYNOMIALS if p[0] < p[2] or p[1] <= 17]
    a, degree, c, x = (np.array(column, dtype) for column in zip(*rows, strict=True))
    exact = np.array([polynomial(*p) for p in rows])
    within = abs(exact) < np.finfo(dtype).max
    for wrap in (lambda f: f, rune.jit):
        with rune.enable_x64():
            values = wrap(special.hyp2f1)(a, -degree, c, x), wrap(special.hyp2f1)(-degree, a, c, x)
        for actual in values:
            np.testing.assert_allclose(np.asarray(actual)[within], exact[within], rtol=rtol)


POINT = np.array([2.0, -3.0, 3.5, 0.3])


@pytest.mark.parametrize("order", [0, 1, 3])
def test_a_gauss_series_keeps_its_digits_where_its_value_is_tiny(order: int):
    """It is (1 - x)**(degree - order) times a polynomial of that order, as Euler's rule says."""
    rows = [(c + order, *p, c, x) for c in (0.5, 2.5, 7.25) for p in ((9,), (40,)) for x in (-0.75, 0.75, 0.9375)]
    a, degree, c, x = (np.array(column) for column in zip(*rows, strict=True))
    exact = np.array([polynomial(*p) for p in rows])

    for wrap in (lambda f: f, rune.jit):
        with rune.enable_x64():
            actual = wrap(special.hyp2f1)(a, -degree, c, x)
        np.testing.assert_allclose(actual, exact, rtol=1e-12, atol=0.0)


def test_a_gauss_series_that_ends_has_slopes_in_all_arguments():
    def slope(i: int) -> float:
        h = np.eye(4)[i] * 1e-6
        return (sp.hyp2f1(*(POINT + h)) - sp.hyp2f1(*(POINT - h))) / 2e-6

    with rune.enable_x64():
        slopes = rune.jit(rune.grad(special.hyp2f1, argnums=(0, 1, 2, 3)))(*POINT)
    np.testing.assert_allclose(np.array(slopes), [slope(i) for i in range(4)], rtol=1e-6)


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
