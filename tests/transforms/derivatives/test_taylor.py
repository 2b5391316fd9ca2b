"""jet: against the recurrences that Taylor coefficients of compositions obey."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import jet
from rune.errors import ArgumentError
from tests.support.close import near, same

X = np.array([0.5, 1.25], np.float64)
TERMS = [np.array(v, np.float64) for v in ([1.0, 0.5], [0.0, -2.0], [2.0, 1.5], [0.25, 3.0])]
CURVE = [X, *(term / math.factorial(k) for k, term in enumerate(TERMS, 1))]  # Taylor coefficients


def product(a: list[Any], b: list[Any]) -> list[Any]:
    return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


def exponential(h: list[Any]) -> list[Any]:
    c = [np.exp(h[0])]
    for k in range(1, len(h)):
        c.append(sum(j * h[j] * c[k - j] for j in range(1, k + 1)) / k)
    return c


def sine(h: list[Any]) -> list[Any]:
    s, c = [np.sin(h[0])], [np.cos(h[0])]
    for k in range(1, len(h)):
        s.append(sum(j * h[j] * c[k - j] for j in range(1, k + 1)) / k)
        c.append(-sum(j * h[j] * s[k - j] for j in range(1, k + 1)) / k)
    return s


def reciprocal(h: list[Any]) -> list[Any]:
    c = [1 / h[0]]
    for k in range(1, len(h)):
        c.append(-sum(h[j] * c[k - j] for j in range(1, k + 1)) / h[0])
    return c


CASES: dict[str, tuple[Any, Any]] = {
    "exp": (rnp.exp, exponential(CURVE)),
    "sin": (rnp.sin, sine(CURVE)),
    "cube": (lambda x: x**3, product(CURVE, product(CURVE, CURVE))),
    "reciprocal": (lambda x: 1 / x, reciprocal(CURVE)),
    "a composition": (lambda x: rnp.exp(rnp.sin(x)) * x, product(exponential(sine(CURVE)), CURVE)),
}


def near_series(coefficients: list[Any], actual: tuple[Any, Any]) -> None:
    expected = [c * math.factorial(k) for k, c in enumerate(coefficients)]
    near(expected, [actual[0], *actual[1]], relative=1e-12, why="float64")


@pytest.fixture(scope="module")
def series() -> tuple[Any, Any]:
    return (rnp.asarray(X, rnp.float64),), ([rnp.asarray(t, rnp.float64) for t in TERMS],)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_along_a_curve_obey_their_recurrence(name: str, series: Any):
    function, coefficients = CASES[name]

    near_series(coefficients, jet(function, *series))


@pytest.mark.parametrize("name", CASES)
def test_a_jitted_jet_gives_the_same(name: str, series: Any):
    function, coefficients = CASES[name]

    near_series(coefficients, rune.jit(lambda x, terms: jet(function, x, terms))(*series))


def test_coefficients_may_stand_for_derivatives(series: Any):
    coefficients = [rnp.asarray(c, rnp.float64) for c in CURVE[1:]]

    y, terms = jet(rnp.exp, series[0], (coefficients,), factorial_scaled=False)

    near(exponential(CURVE), [y, *terms], relative=1e-12, why="float64")


def test_several_arguments_and_results():
    out, terms = jet(lambda a, b: {"sum": a + b, "product": a * b}, (2.0, 3.0), ([1.0, 0.0], [1.0, 2.0]))

    near({"sum": 5.0, "product": 6.0}, out, relative=1e-6, why="float32")
    near({"sum": [2.0, 2.0], "product": [5.0, 6.0]}, terms, relative=1e-6, why="float32")


def test_an_integer_stays_and_no_terms_are_no_derivatives():
    x, one = np.array([2.0], "f4"), np.array([1.0], "f4")

    y, terms = jet(lambda x, i: x * i, (x, 3), ([one], [0]))

    same((3 * x, [3 * one]), (y, terms))
    assert jet(rnp.sin, (1.0,), ([],))[1] == []


def test_a_loop_has_derivatives_of_all_orders():
    def power(x: Any) -> Any:
        return rune.lax.fori_loop(0, 4, lambda i, v: v * x, 1.0)

    _, terms = jet(power, (2.0,), ([1.0, 0.0, 0.0],))

    near([32.0, 48.0, 48.0], terms, relative=1e-6, why="float32")


@pytest.mark.parametrize(
    "call",
    [
        lambda: jet(lambda a, b: a * b, (1.0, 2.0), ([1.0], [1.0, 0.0])),
        lambda: jet(rnp.sin, (1.0,), ([1.0], [1.0])),
        lambda: jet(lambda x: x["a"], ({"a": 1.0},), ([{"a": 1.0}],)),  # type: ignore[arg-type]
        lambda: jet(rnp.sin, (1.0,), ([rnp.ones(2)],)),
    ],
)
def test_terms_that_are_not_alike_are_refused(call: Any):
    with pytest.raises(ArgumentError, match="jet"):
        call()
