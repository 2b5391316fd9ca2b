"""custom_gradient and linear_call: derivatives given by the user, under every transformation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.transforms.custom.rules import CustomFunction
from rune.transforms.derivatives.transpose import backward

X = np.array([0.1, -0.4, 0.7, 2.0, 1.1], np.float32)


@rune.custom_gradient
def cubed(x: Any) -> Any:
    square = x * x
    return square * x, lambda ct: 10 * square * ct


@rune.custom_gradient
def both(x: Any, tree: Any) -> Any:
    return {"product": x * tree["y"]}, lambda ct: (ct["product"] * 2, {"y": ct["product"] * 3})


def test_the_value_is_the_first_of_the_pair():
    np.testing.assert_allclose(cubed(X), X**3, rtol=1e-6)
    assert cubed.name == "cubed"


@pytest.mark.parametrize(
    "transform",
    [
        rune.vmap(rune.grad(cubed)),
        rune.jit(rune.vmap(rune.grad(cubed))),
        rune.vmap(rune.jit(rune.grad(rune.jit(cubed)))),
    ],
)
def test_the_gradient_is_the_one_that_the_second_function_defines(transform: Any):
    np.testing.assert_allclose(transform(X), 10 * X**2, rtol=1e-6)


def test_a_second_derivative_is_that_of_the_vjp():
    np.testing.assert_allclose(rune.vmap(rune.grad(rune.grad(cubed)))(X), 20 * X, rtol=1e-6)


def test_several_arguments_have_a_cotangent_each():
    gradients = rune.grad(lambda x, tree: both(x, tree)["product"], (0, 1))(5.0, {"y": 7.0})

    assert gradients == (2.0, {"y": 3.0})


def test_a_result_that_is_not_a_pair_is_refused():
    with pytest.raises(TypeError, match="custom_gradient: cannot use what lambda gives"):
        rune.custom_gradient(lambda x: x)(1.0)


def scaled(scale: Any, x: Any) -> Any:
    """scale x, whose transpose is ten times too large."""
    return rune.linear_call(lambda s, v: s * v, lambda s, ct: 10 * s * ct, scale, x)


def test_a_linear_call_has_its_own_transpose():
    np.testing.assert_allclose(scaled(3.0, X), 3 * X)
    np.testing.assert_allclose(rune.grad(lambda x: rnp.sum(scaled(3.0, x)))(X), [30] * 5)
    np.testing.assert_allclose(rune.jit(rune.grad(lambda x: rnp.sum(scaled(3.0, x))))(X), [30] * 5)


def test_the_tangent_of_a_linear_call_is_its_value():
    value, tangent = rune.jvp(lambda x: scaled(3.0, x), (X,), (np.ones_like(X),))

    np.testing.assert_allclose(value, 3 * X)
    np.testing.assert_allclose(tangent, [3] * 5)


def test_transposed_twice_a_linear_call_is_itself():
    once = rune.linear_transpose(lambda x: scaled(3.0, x), 1.0)
    twice = rune.linear_transpose(lambda ct: once(ct)[0], 1.0)

    assert (once(1.0)[0], twice(1.0)[0]) == (30, 3)


def test_lanes_of_a_linear_call_may_be_of_either_operand():
    np.testing.assert_allclose(rune.vmap(scaled, (0, None))(X, 2.0), 2 * X)
    np.testing.assert_allclose(rune.vmap(rune.grad(scaled, 1), (0, None))(X, 2.0), 10 * X)
    np.testing.assert_allclose(rune.vmap(scaled, (None, 0))(2.0, X), 2 * X)


def test_residuals_of_a_linear_call_are_not_differentiated():
    with pytest.raises(NotImplementedError, match="with respect to its residuals"):
        rune.grad(scaled)(3.0, 2.0)


def test_a_program_that_is_linear_in_residuals_has_no_transpose():
    program = rune.make_program(lambda s: scaled(s, 2.0))(3.0)

    with pytest.raises(NotImplementedError, match=r"linear_call: cannot transpose .* with respect to its residuals"):
        backward(program, {}, [rnp.ones(())])


def test_a_transpose_of_another_type_is_refused():
    with pytest.raises(TypeError, match="linear_call: cannot use the transpose of lambda"):
        rune.linear_call(lambda s, v: rnp.sum(v), lambda s, ct: ct, 1.0, X)


@pytest.mark.parametrize("symbolic", [False, True])
def test_zeros_are_like_the_tangents_of_a_value(symbolic: bool):
    floats, integers = rune.zero_from_primal((X, np.arange(3)), symbolic_zeros=symbolic)

    assert (floats.shape, floats.dtype) == ((5,), np.float32)
    assert integers.dtype == rune.float0
    assert isinstance(floats, rune.SymbolicZero) == symbolic


def test_python_numbers_are_residuals_and_results_of_a_custom_vjp():
    @rune.custom_vjp
    def function(x: Any) -> Any:
        return 2.0

    function.defvjp(lambda x: (2.0, (3, 4.0)), lambda residuals, ct: (residuals[0] * residuals[1] * ct,))

    assert rune.grad(function)(1.0) == 12
    np.testing.assert_allclose(rune.jit(rune.vmap(rune.grad(function)))(X), [12] * 5)


def test_a_function_with_a_rule_must_have_a_signature():
    with pytest.raises(NotImplementedError, match="CustomFunction"):
        CustomFunction(rnp.sin)(X)
