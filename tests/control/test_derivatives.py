"""Derivatives through loops and branches, of both modes and of second order.

They agree with those of the equivalent Python loops, which are written out step
by step; reverse is the adjoint of forward; and what a rule writes down passes the check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune.control import parse_program
from rune.core.check import check_program
from rune.core.same import same_program
from tests.control.cases import CASES, Case, arguments, flat, interpreted
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner

ALL = (0, 1, 2)
F64 = "f64, sums in another order"
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def weighted(function: Callable[..., Any], weights: list[Any]) -> Callable[..., Any]:
    """One number that depends on every result."""

    def total(*args: Any) -> Any:
        terms = [(y * w).sum() for y, w in zip(flat(function)(*args), weights, strict=True)]
        return sum(terms[1:], terms[0])

    return total


def problem(case: Case) -> tuple[list[Any], list[Any], list[Any]]:
    """Arguments, a direction for each, a weight for each result."""
    args, rng = arguments(), np.random.default_rng(1)
    with interpreted():
        outs = flat(case.function)(*args)
    return args, directions(rng, args), directions(rng, outs)


@every_case
def test_the_value_is_that_of_the_python_loop(case: Case):
    args = arguments()

    with interpreted():
        result = flat(case.function)(*args)

    near(flat(case.twin)(*args), result, relative=1e-12, why=F64)


@every_case
def test_forward_mode_agrees_with_the_python_loop_and_with_differences(case: Case):
    args, tangents, weights = problem(case)
    function = weighted(case.function, weights)

    with interpreted():
        _, tangent = rune.jvp(function, args, tangents)
        expected = differences(function, args, tangents)

    twin = rune.jvp(weighted(case.twin, weights), args, tangents)[1]
    near(twin, tangent, relative=1e-10, why=F64)
    near(expected, tangent, relative=1e-5, why=WHY)


@every_case
def test_reverse_mode_agrees_with_the_python_loop(case: Case):
    args, _, weights = problem(case)

    with interpreted():
        gradient = rune.grad(weighted(case.function, weights), argnums=ALL)(*args)

    twin = rune.grad(weighted(case.twin, weights), argnums=ALL)(*args)
    near(twin, gradient, relative=1e-10, absolute=1e-12, why=F64)


@every_case
def test_reverse_is_the_adjoint_of_the_linear_part(case: Case):
    args, tangents, cotangents = problem(case)

    with interpreted():
        _, push = rune.linearize(flat(case.function), *args)
        _, pull = rune.vjp(flat(case.function), *args)
        forwards = inner(cotangents, push(*tangents))
        backwards = inner(pull(cotangents), tangents)

    near(forwards, backwards, relative=1e-10, why=F64)


@every_case
def test_the_linear_part_is_the_forward_derivative(case: Case):
    args, tangents, _ = problem(case)
    function = flat(case.function)

    with interpreted():
        _, push = rune.linearize(function, *args)
        tangent, expected = push(*tangents), rune.jvp(function, args, tangents)[1]

    near(expected, tangent, relative=1e-10, why=F64)


@every_case
def test_second_derivatives_agree_in_every_order_of_modes(case: Case):
    args, first, weights = problem(case)
    second = directions(np.random.default_rng(2), args)
    gradient = rune.grad(weighted(case.function, weights), argnums=ALL)

    def slope(*xs: Any) -> Any:
        terms = [(g * t).sum() for g, t in zip(gradient(*xs), first, strict=True)]
        return sum(terms[1:], terms[0])

    with interpreted():
        forward_over_reverse = inner(rune.jvp(gradient, args, first)[1], second)
        reverse_over_reverse = inner(rune.grad(slope, argnums=ALL)(*args), second)
    twin = rune.grad(weighted(case.twin, weights), argnums=ALL)

    expected = inner(rune.jvp(twin, args, first)[1], second)
    near(expected, forward_over_reverse, relative=1e-9, why=F64)
    near(expected, reverse_over_reverse, relative=1e-9, why=F64)


@every_case
def test_programs_that_the_rules_write_pass_the_check_and_read_back(case: Case):
    args, tangents, weights = problem(case)
    function = weighted(case.function, weights)

    for program in (
        rune.make_program(case.function)(*args),
        rune.make_program(lambda *xs: rune.jvp(function, xs, tangents))(*args),
        rune.make_program(rune.grad(function, argnums=ALL))(*args),
    ):
        check_program(program)
        text = str(program)
        if "..." not in text:  # a long constant is not printed whole
            assert same_program(parse_program(text), program)


# --- single rules -----------------------------------------------------------------------------


def test_a_loop_of_no_steps_has_the_derivative_of_doing_nothing():
    def function(x: Any) -> Any:
        return rune.while_loop(lambda v: v < 0.0, lambda v: v * v * x, x)

    with interpreted():
        value, slope = rune.value_and_grad(function)(array(np.float64(2.0)))

    near([2.0, 1.0], [value, slope], relative=0, why="exact")


def test_a_scan_of_no_rows_has_the_derivative_of_doing_nothing():
    def function(x: Any, xs: Any) -> Any:
        last, ys = rune.scan(lambda c, r: (c * r, c), x, xs)
        return last + ys.sum()

    with interpreted():
        gradient = rune.grad(function, argnums=(0, 1))(array(3.0), array(np.ones((0,), np.float32)))

    near([np.float32(1.0), np.ones(0, np.float32)], list(gradient), relative=0, why="exact")


def test_the_number_of_steps_may_depend_on_differentiated_values():
    def function(x: Any) -> Any:
        return rune.while_loop(lambda v: v < 100.0, lambda v: v * v, x)

    with interpreted():
        value, slope = rune.value_and_grad(function)(3.0)

    # 3, 9, 81, 6561 = 3**8
    near([6561.0, 8.0 * 3.0**7], [value, slope], relative=1e-6, why="f32")


def test_integers_in_the_carry_have_no_derivative_and_do_no_harm():
    def function(x: Any) -> Any:
        def body(state: Any) -> Any:
            n, v, bits = state
            return n + 1, v * x, bits ^ n

        n, v, bits = rune.while_loop(lambda s: s[0] < 3, body, (0, x, 5))
        return v + n + bits

    with interpreted():
        near(4 * 2.0**3, rune.grad(function)(2.0), relative=1e-6, why="x**4")


def test_a_value_that_gets_its_tangent_only_in_the_loop_is_found():
    # The tangent of a goes to b in the first step, to c in the second.
    def function(x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            a, b, c = state
            return (a * x, a + b, b + c), c

        last, ys = rune.scan(step, (1.0, 0.0, 0.0), None, length=4)
        return last[2] + ys.sum()

    def twin(x: Any) -> Any:
        a, b, c, total = 1.0, 0.0, 0.0, 0.0
        for _ in range(4):
            total = total + c
            a, b, c = a * x, a + b, b + c
        return c + total

    with interpreted():
        result = rune.jvp(rune.grad(function), (2.0,), (1.0,))

    near(rune.jvp(rune.grad(twin), (2.0,), (1.0,)), result, relative=1e-6, why="f32")


def test_only_one_of_several_arguments_is_differentiated():
    w, h, xs = arguments()

    for case in CASES:
        gradients = None
        with interpreted():
            for number in ALL:
                gradients = rune.grad(lambda *a, f=case: sum(y.sum() for y in flat(f.function)(*a)), argnums=number)(
                    w, h, xs
                )
        twin = rune.grad(lambda *a, f=case: sum(y.sum() for y in flat(f.twin)(*a)), argnums=2)
        near(twin(w, h, xs), gradients, relative=1e-9, absolute=1e-12, why=F64)


def test_an_infinity_in_the_branch_not_taken_does_not_reach_the_gradient():
    def function(x: Any) -> Any:
        return rune.cond(x > 0.0, rnp_sqrt, lambda v: -v, x)

    def rnp_sqrt(v: Any) -> Any:
        return rune.numpy.sqrt(v)

    xs = array([4.0, 0.0, -1.0])
    with interpreted():
        inside = rune.vmap(rune.grad(function))(xs)
        outside = rune.grad(lambda v: rune.vmap(function)(v).sum())(xs)

    near(np.array([0.25, -1.0, -1.0], np.float32), inside, relative=1e-6, why="1 / 2 sqrt x")
    near(inside, outside, relative=1e-6, why="the same")


def test_a_finished_lane_sends_nothing_infinite_to_the_gradient():
    # The last value of a lane is below 0, where the body's square root is NaN.
    def function(x: Any, w: Any) -> Any:
        return rune.while_loop(lambda v: v > 0.0, lambda v: v - rune.numpy.sqrt(v) * w, x)

    def total(xs: Any, w: Any) -> Any:
        return rune.vmap(function, in_axes=(0, None))(xs, w).sum()

    xs, w = array([4.0, 1.0, 9.0]), array(1.5)
    with interpreted():
        gradients = rune.grad(total, argnums=(0, 1))(xs, w)
        lanes = [rune.grad(function, argnums=(0, 1))(x, w) for x in xs]

    assert np.isfinite(np.asarray(gradients[1]))
    expected = np.stack([np.asarray(dx) for dx, _ in lanes]), sum(np.asarray(dw) for _, dw in lanes)
    near(list(expected), list(gradients), relative=1e-6, why="f32")
