"""jet: against recurrences that Taylor coefficients obey, known series and JAX."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import zeta

import rune
import rune.numpy as rnp
from rune import jet
from rune.errors import ArgumentError
from tests.support.close import near, same
from tests.transforms.derivatives.functions_of_a_curve import CURVES, FUNCTIONS, ORDER

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


def test_series_terms_may_be_coefficients_instead_of_derivatives(series: Any):
    coefficients = [rnp.asarray(c, rnp.float64) for c in CURVE[1:]]

    y, terms = jet(rnp.exp, series[0], (coefficients,), factorial_scaled=False)

    near(exponential(CURVE), [y, *terms], relative=1e-12, why="float64")


def test_several_arguments_and_results():
    out, terms = jet(lambda a, b: {"sum": a + b, "product": a * b}, (2.0, 3.0), ([1.0, 0.0], [1.0, 2.0]))

    near({"sum": 5.0, "product": 6.0}, out, relative=1e-6, why="float32")
    near({"sum": [2.0, 2.0], "product": [5.0, 6.0]}, terms, relative=1e-6, why="float32")


def test_an_integer_keeps_its_value_and_no_terms_give_no_derivatives():
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
def test_mismatched_series_are_refused(call: Any):
    with pytest.raises(ArgumentError, match="jet"):
        call()


# --- order 10, against jax 0.10.2 (make_taylor_vectors.py) and known series -----------------------

VECTORS = json.loads(Path(__file__).with_name("taylor_vectors.json").read_text())["rows"]


def along(name: str) -> list[float]:
    """The derivatives of a function of the table along its curve, the value first."""
    function, curve = FUNCTIONS[name]
    first, higher = jet(lambda *xs: function(rnp, *xs), *wide(CURVES[curve]))
    return [float(first), *map(float, higher)]


def wide(curve: list[list[float]]) -> tuple[list[Any], list[list[Any]]]:
    terms = [[rnp.asarray(d, rnp.float64) for d in argument] for argument in curve]
    return [t[0] for t in terms], [t[1:] for t in terms]


@pytest.mark.parametrize("name", VECTORS)
def test_ten_derivatives_are_those_of_jax(name: str):
    near(VECTORS[name], along(name), relative=1e-11, why="sums of ten products in float64")


def test_series_of_functions_without_a_rule_in_jax_obey_identities():
    def series(function: Any) -> list[float]:
        first, higher = jet(function, *wide([CURVES["a"][0][:8]]))
        return [float(first), *map(float, higher)]

    x = series(lambda x: x)
    for back_and_forth in (
        lambda x: rnp.arctan(rnp.sin(x) / rnp.cos(x)),
        lambda x: rnp.sin(rnp.arcsin(x)),
        lambda x: rnp.cos(rnp.arccos(x)),
        lambda x: rnp.log2(rnp.exp2(x)),
        lambda x: rnp.arctan(rnp.tan(x)),
        lambda x: rnp.linalg.inv(rnp.linalg.inv(rnp.stack([rnp.stack([x, x * x]), rnp.stack([2 - x, x])])))[0, 0],
    ):
        near(x, series(back_and_forth), relative=1e-8, why="large derivatives on the way")


def test_the_gamma_function_has_the_series_of_zeta_values():
    # log gamma(1 + t) = -γ t + sum of (-1)^k zeta(k)/k t^k. Source: DLMF 5.7.3.
    orders = range(2, ORDER + 1)
    known = [0.0, -np.euler_gamma, *((-1) ** k * zeta(k) * math.factorial(k - 1) for k in orders)]

    first, higher = jet(rune.scipy.special.gammaln, *wide([[1.0, 1.0, *[0.0] * (ORDER - 1)]]))

    near(known, [float(first), *map(float, higher)], relative=1e-9, why="polygamma in float64")


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_series_pass_through_loops_and_branches(way: Any):
    def f(x: Any) -> Any:
        x = rune.lax.fori_loop(0, 3, lambda i, v: v * x, x)  # x^4
        x = rune.lax.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, rnp.sin(v[1])), (0, x))[1]
        x = rune.lax.cond(x > 0, rnp.exp, lambda v: v, x)
        return rune.lax.scan(lambda c, _: (c * c, c), x, None, length=2)[1][1]

    def plain(x: Any) -> Any:
        return rnp.exp(rnp.sin(rnp.sin(x**4))) ** 2

    curve = wide([CURVES["a"][0][:7]])

    near(jet(plain, *curve), way(lambda x, t: jet(f, x, t))(*curve), relative=1e-10, why="float64")


def test_the_work_grows_with_the_square_of_the_order():
    def equations(order: int) -> int:
        def f(x: Any) -> Any:
            return rnp.tanh(rnp.sin(x) / rnp.exp(x)) * rnp.log(x)

        terms = [1.0] * order
        return len(rune.make_program(lambda x: jet(f, (x,), (terms,)))(2.0).equations)

    counts = [equations(order) for order in (4, 8, 16)]

    assert counts[2] < 4.5 * counts[1] < 20 * counts[0]


def test_it_is_differentiated_and_batched():
    def third(x: Any) -> Any:
        return jet(rnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]

    x = np.linspace(-1, 1, 5).astype(np.float32)

    near(np.sin(x), rune.vmap(rune.grad(third))(x), relative=1e-5, why="float32")
    near(-np.sin(x), jet(lambda x: rune.vmap(rune.grad(rnp.sin))(x), (x,), ([np.ones_like(x)],))[1][0],
         relative=1e-5, why="float32")  # fmt: skip


def test_a_custom_rule_may_call_its_own_function():
    @rune.custom_jvp
    def f(x: Any) -> Any:
        return rnp.exp(x)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return f(primals[0]), 2 * f(primals[0]) * tangents[0]

    _, terms = jet(f, (0.0,), ((1.0, 0.0, 0.0),))

    near([2.0, 4.0, 8.0], terms, relative=1e-6, why="float32")


def test_python_may_branch_on_a_value_along_a_curve():
    assert float(jet(lambda x: x * x if x > 1 else x, (2.0,), ((1.0,),))[1][0]) == 4.0
