"""rune.test_util: right derivatives pass, wrong ones do not, in every mode and at every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.test_util import check_grads

RIGHT: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a product": (lambda x, y: (rnp.sin(x) @ y, x * y), (rnp.arange(5.0) / 5, rnp.ones(5))),
    "a number": (lambda x: x**3, (1.5,)),
    "complex numbers": (lambda z: z * z * rnp.conj(z), (rnp.arange(5.0) * (1 + 1j),)),
    "a tree": (lambda x: {"s": x["a"] * x["b"][0]}, ({"a": rnp.ones(3), "b": [rnp.float32(2.0)]},)),
    "float64": (lambda x: rnp.sin(x), (rnp.arange(5, dtype="float64"),)),
    "NumPy's numbers": (lambda x: rnp.sin(x["a"]), ({"a": np.arange(5.0)},)),
    "a number of NumPy": (lambda x, y: x * y, (np.float64(0.3), np.arange(5.0))),
    "no elements": (lambda x: 2 * x, (rnp.ones(0),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str):
    function, args = RIGHT[name]

    check_grads(function, args, order=2, modes=("fwd", "rev", "lin"))


def test_numpy_integers_combine_with_numbers_at_order_1():
    check_grads(lambda x, n: x * n, (np.arange(5.0), np.arange(5)), order=1, modes=("fwd", "rev", "lin"))


def test_a_half_type_is_checked_by_a_longer_step():
    check_grads(rnp.sin, (rnp.arange(5, dtype="bfloat16"),), order=1, eps=0.05)


def test_an_integer_argument_has_no_derivative():
    check_grads(lambda x, i: x[i] * i, (rnp.arange(5.0), 3), order=1)


def wrong_at_order(order: int) -> Any:
    """x^4, with a derivative of this order that is wrong by a fifth."""

    @rune.custom_jvp
    def function(x: rune.Array) -> rune.Array:
        return x**4

    inner = wrong_at_order(order - 1) if order > 1 else (lambda x: 1.2 * x**3)
    # The derivative of x^4 is 4 x^3, written by a function that is x^4 / x with a wrong rule.
    function.defjvps(lambda dx, y, x: 4 * dx * (inner(x) / x if order > 1 else inner(x)))
    return function


@pytest.mark.parametrize("mode", ["fwd", "rev", "lin"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_derivative_fails_at_its_order(mode: str, order: int):
    function = wrong_at_order(order)
    if order > 1:
        check_grads(function, (1.5,), order=1, modes=(mode,))

    with pytest.raises(AssertionError):
        check_grads(function, (1.5,), order=order, modes=mode)


def test_a_wrong_rule_of_reverse_mode_fails():
    function = rune.custom_vjp(rnp.sin)
    function.defvjp(lambda x: (rnp.sin(x), None), lambda _, ct: (ct,))

    with pytest.raises(AssertionError, match="vjp cotangent"):
        check_grads(function, (1.5,), order=1, modes=("rev",))


def test_a_tolerance_may_be_one_for_each_dtype():
    wrong = rune.custom_jvp(lambda x: 2.0 * x)
    wrong.defjvps(lambda dx, y, x: 2.02 * dx)

    check_grads(wrong, (1.5,), order=1, rtol={np.float32: 0.1}, atol={"float32": 0.1})
    with pytest.raises(AssertionError):
        check_grads(wrong, (1.5,), order=1)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ArgumentError, match="'sideways'"):
        check_grads(rnp.sin, (1.0,), 1, modes=("sideways",))
