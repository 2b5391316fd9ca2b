"""custom_vmap: the rule serves lanes under every order of transformations, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp

Calls = list[tuple[int, list, tuple, tuple]]
X = np.array([0.1, 0.5, 0.9, 1.3, 2.1], np.float32)


def with_rule() -> tuple[Any, Calls]:
    """sin(x) y, whose rule computes cos(x) y, and the calls of that."""
    calls: Calls = []

    @rune.custom_vmap
    def function(x: Any, y: Any) -> Any:
        return rnp.sin(x) * y

    @function.def_vmap
    def rule(axis_size: int, in_batched: list, x: Any, y: Any) -> Any:
        calls.append((axis_size, in_batched, x.shape, y.shape))
        return rnp.cos(x) * y, True

    return function, calls


def test_without_lanes_the_function_runs():
    function, calls = with_rule()

    values = [function(0.5, 2.0), rune.jit(function)(0.5, 2.0), rune.grad(function)(0.5, 2.0)]

    np.testing.assert_allclose(values, [2 * np.sin(0.5), 2 * np.sin(0.5), 2 * np.cos(0.5)], rtol=1e-6)
    assert calls == []


def test_without_lanes_python_numbers_are_arrays_inside_and_outside():
    @rune.custom_vmap
    def halves(x: Any) -> Any:
        return x.astype("float16"), x

    halves.def_vmap(lambda axis_size, in_batched, x: (halves(x), (True, True)))

    half, same_number = halves(2.0)

    assert (half.dtype, same_number.dtype, same_number.shape) == (np.float16, np.float32, ())


@pytest.mark.parametrize(
    "transform", [rune.vmap, lambda f, a: rune.jit(rune.vmap(f, a)), lambda f, a: rune.vmap(rune.jit(f), a)]
)
def test_the_batching_rule_runs_on_lanes(transform: Any):
    function, calls = with_rule()

    lanes = transform(function, (0, None))(X, 2.0)

    np.testing.assert_allclose(lanes, 2 * np.cos(X), rtol=1e-5)
    assert calls == [(5, [True, False], (5,), ())]


def test_the_innermost_of_two_vmaps_calls_the_rule():
    function, calls = with_rule()

    lanes = rune.vmap(rune.vmap(function, (0, None)), (None, 0))(X, X[:3])

    np.testing.assert_allclose(lanes, np.outer(X[:3], np.cos(X)), rtol=1e-5)
    assert calls == [(5, [True, False], (5,), ())]


def test_forward_mode_on_lanes_is_the_derivative_of_the_rule():
    function, _ = with_rule()

    value, tangent = rune.vmap(lambda x: rune.jvp(lambda v: function(v, 3.0), (x,), (1.0,)))(X)

    np.testing.assert_allclose(value, 3 * np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(tangent, -3 * np.sin(X), rtol=1e-5)


def test_a_gradient_around_lanes_is_that_of_the_rule():
    function, _ = with_rule()

    gradient = rune.grad(lambda x: rnp.sum(rune.vmap(function, (0, None))(x, 3.0)))(X)

    np.testing.assert_allclose(gradient, -3 * np.sin(X), rtol=1e-5)


def test_a_gradient_on_lanes_has_values_by_the_rule_and_cotangents_of_the_function():
    function, _ = with_rule()

    values, gradients = rune.vmap(rune.value_and_grad(function), (0, None))(X, 3.0)

    np.testing.assert_allclose(values, 3 * np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(gradients, 3 * np.cos(X), rtol=1e-5)


def test_the_rule_runs_in_loops():
    function, _ = with_rule()

    lanes = rune.vmap(lambda a: rune.scan(lambda c, _: (function(c, 1.0), None), a, length=2)[0])(X)

    np.testing.assert_allclose(lanes, np.cos(np.cos(X)), rtol=1e-5)


def test_trees_go_in_and_out():
    flags: list[Any] = []

    @rune.custom_vmap
    def function(tree: dict) -> dict:
        return {"sum": tree["a"] + tree["b"], "one": tree["a"] * 0 + 1}

    @function.def_vmap
    def rule(axis_size: int, in_batched: list, tree: dict) -> Any:
        flags.extend(in_batched)
        return {"sum": tree["a"] + tree["b"], "one": rnp.float32(1)}, {"sum": True, "one": False}

    lanes = rune.vmap(lambda a: function({"a": a, "b": 2.0}))(X)

    np.testing.assert_allclose(lanes["sum"], X + 2)
    np.testing.assert_array_equal(lanes["one"], np.ones(5))
    assert flags == [{"a": True, "b": False}]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (lambda n, b, x: x, "a pair of result and out_batched"),
        (lambda n, b, x: ((x, x), (True, True)), "the function gives a single value"),
        (lambda n, b, x: (x, (True,)), "out_batched"),
        (lambda n, b, x: (x[:2], True), "5 lanes required of the result"),
    ],
)
def test_a_wrong_rule_is_refused(rule: Any, reason: str):
    function = rune.custom_vmap(lambda x: x)
    function.def_vmap(rule)

    with pytest.raises(TypeError, match=reason):
        rune.vmap(function)(X)


def test_a_function_without_a_rule_is_refused():
    with pytest.raises(TypeError, match="custom_vmap: cannot call lambda"):
        rune.custom_vmap(lambda x: x)(1.0)


def test_lanes_of_a_value_that_is_closed_over_are_refused():
    def around(x: Any) -> Any:
        function = rune.custom_vmap(lambda y: x * y)
        function.def_vmap(lambda n, b, y: (y, True))
        return function(x)

    with pytest.raises(TypeError, match="closes over a value that has lanes"):
        rune.vmap(around)(X)


def test_lanes_may_be_computed_one_after_another():
    function = rune.sequential_vmap(lambda x, y: {"a": rnp.sin(x) * y})

    lanes = rune.vmap(function, (0, None))(X, 2.0)
    gradient = rune.grad(lambda x: rnp.sum(rune.vmap(function, (0, None))(x, 2.0)["a"]))(X)
    program = rune.make_jaxpr(rune.vmap(function, (0, None)))(X, 2.0)

    np.testing.assert_allclose(lanes["a"], 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 * np.cos(X), rtol=1e-6)
    assert [e.primitive.name for e in program.eqns] == ["scan"]
