"""vmap of loops and branches, for every choice of batched operands, and of their derivatives.

Each lane gives what the function gives for that lane alone, even if other lanes take other branches
or numbers of steps; and vmap commutes with derivatives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import Checkpoints, GrowingResiduals, tree
from rune.errors import TransformError
from tests.control.cases import CASES, Case, arguments, flat, interpreted
from tests.support.arrays import array
from tests.support.close import near, same

F64 = "f64, sums in another order"
CHOICES = [c for c in itertools.product((True, False), repeat=3) if any(c)]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def lanes_of(has_lanes: Sequence[bool]) -> list[Any]:
    """Three lanes of every batched argument, in which branches and steps differ."""
    rows = [arguments(seed) for seed in (0, 3, 4)]
    return [
        array(np.stack([np.asarray(x) for x in column])) if b else column[0] for column, b in zip(zip(*rows), has_lanes)
    ]


def lane(args: Sequence[Any], has_lanes: Sequence[bool], number: int) -> list[Any]:
    return [array(np.asarray(a)[number]) if b else a for a, b in zip(args, has_lanes)]


def in_axes(has_lanes: Sequence[bool]) -> tuple[int | None, ...]:
    return tuple(0 if b else None for b in has_lanes)


def stacked(function: Callable[..., Any], args: Sequence[Any], has_lanes: Sequence[bool]) -> Any:
    """The results of a Python loop over the lanes."""
    rows = [function(*lane(args, has_lanes, i)) for i in range(3)]
    return tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs]), *rows)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum(y.sum() for y in flat(function)(*args))


@every_case
def test_a_lane_is_the_function_of_that_lane(case: Case):
    for has_lanes in CHOICES:
        args = lanes_of(has_lanes)

        with interpreted():
            lanes = rune.vmap(flat(case.function), in_axes(has_lanes))(*args)

        near(stacked(flat(case.twin), args, has_lanes), lanes, relative=1e-11, why=F64)


@every_case
def test_a_lane_of_the_gradient_is_the_gradient_of_that_lane(case: Case):
    numbers = (0, 1, 2)
    for has_lanes in CHOICES[::3]:
        args = lanes_of(has_lanes)

        with interpreted():
            gradient = rune.grad(total(case.function), argnums=numbers)
            gradients = rune.vmap(gradient, in_axes(has_lanes))(*args)

        twin = rune.grad(total(case.twin), argnums=numbers)
        near(stacked(twin, args, has_lanes), gradients, relative=1e-9, absolute=1e-11, why=F64)


@every_case
def test_the_gradient_of_all_lanes_is_that_of_every_lane(case: Case):
    numbers = (0, 1, 2)
    for has_lanes in ((True, True, True), (False, True, False)):
        args = lanes_of(has_lanes)

        lanes = rune.vmap(total(case.function), in_axes(has_lanes))
        with interpreted():
            gradients = rune.grad(lambda *xs, f=lanes: f(*xs).sum(), argnums=numbers)(*args)

        alone = stacked(rune.grad(total(case.twin), argnums=numbers), args, has_lanes)
        expected = [g if b else g.sum(0) for g, b in zip(alone, has_lanes)]
        near(expected, list(gradients), relative=1e-9, absolute=1e-11, why=F64)


# --- predicates and steps that differ ---------------------------------------------------------


def test_an_unbatched_predicate_stays_a_branch():
    program = rune.make_program(rune.vmap(lambda p, x: rune.cond(p, lambda v: v, lambda v: -v, x), in_axes=(None, 0)))(
        True, rnp.ones(3)
    )

    assert "cond" in [e.primitive.name for e in program.equations]


def test_a_batched_predicate_becomes_a_select():
    program = rune.make_program(rune.vmap(lambda p, x: rune.cond(p, lambda v: v, lambda v: -v, x)))(
        np.array([True, False]), rnp.ones(2)
    )

    names = [e.primitive.name for e in program.equations]
    assert "cond" not in names
    assert "select" in names


def test_a_batched_index_out_of_range_means_the_nearest_branch():
    def choose(i: Any) -> Any:
        return rune.switch(i, [lambda: 10, lambda: 20, lambda: 30])

    values = rune.vmap(choose)(np.array([-5, 0, 1, 2, 9], np.int32))

    same(np.array([10, 10, 20, 30, 30], np.int32), values)


def test_operands_of_a_batched_branch_may_be_integers_and_bools():
    def choose(p: Any, n: Any, b: Any) -> Any:
        return rune.cond(p, lambda n, b: (n + 1, b), lambda n, b: (n * 2, ~b), n, b)

    with interpreted():
        n, b = rune.vmap(choose, in_axes=(0, None, 0))(np.array([True, False]), 5, np.array([True, True]))

    same(np.array([6, 10], np.int32), n)
    same(np.array([True, False]), b)


def test_lanes_that_have_finished_keep_their_value():
    def halve(x: Any) -> Any:
        return rune.while_loop(lambda v: v[1] > 1.0, lambda v: (v[0] + 1, v[1] / 2.0), (0, x))

    with interpreted():
        steps, values = rune.vmap(halve)(array([1.0, 64.0, 5.0]))

    same(np.array([0, 6, 3], np.int32), steps)
    same(np.array([1.0, 1.0, 0.625], np.float32), values)


def counted_down(x: Any) -> Any:
    """x less 1 until it is not positive, with a loop in each step that would never end on 0."""

    def body(v: Any) -> Any:
        small = rune.while_loop(lambda u: u < 0.5, lambda u: u * 2.0, v * 0.125)
        return v - 1.0 + small * 0.0

    return rune.while_loop(lambda v: v > 0.0, body, x)


def test_a_loop_in_the_body_of_a_finished_lane_does_not_run_on_its_last_value():
    # A lane ends on 0.
    with interpreted():
        lanes = rune.vmap(counted_down)(array([1.0, 3.0]))

    same(np.zeros(2, np.float32), lanes)


def test_a_loop_in_the_body_does_not_run_on_a_lane_that_takes_no_step():
    with interpreted():
        same(np.zeros(3, np.float32), rune.vmap(counted_down)(array([0.0, 3.0, 0.0])))
        gradient = rune.grad(lambda xs: rune.vmap(counted_down)(xs).sum())
        same(np.ones(3, np.float32), gradient(array([0.0, 3.0, 0.0])))


def test_a_loop_in_a_branch_does_not_run_on_lanes_that_did_not_choose_it():
    # On numbers below 0 the loop would never end.
    def grown(x: Any) -> Any:
        return rune.while_loop(lambda v: v < 100.0, lambda v: v * 3.0, x)

    def choose(x: Any) -> Any:
        return rune.cond(x > 0.0, grown, lambda v: v, x)

    with interpreted():
        same(np.array([-1, 162, 0], np.float32), rune.vmap(choose)(array([-1.0, 2.0, 0.0])))
        same(np.array([-1, 0], np.float32), rune.vmap(choose)(array([-1.0, 0.0])))
        slopes = rune.vmap(rune.grad(choose))(array([-1.0, 2.0, 0.0]))
        same(np.array([1, 81, 1], np.float32), slopes)
        slopes_of_sum = rune.grad(lambda xs: rune.vmap(choose)(xs).sum())(array([-1.0, 2.0, 0.0]))
        same(np.array([1, 81, 1], np.float32), slopes_of_sum)


def test_a_map_over_zero_lanes_is_empty():
    def choose(x: Any) -> Any:
        power = rune.while_loop(lambda v: v < 100.0, lambda v: v * 3.0, x)
        return rune.cond(x > 0.0, rnp.sin, lambda v: v, power)

    same(np.zeros(0, np.float32), rune.vmap(choose)(rnp.ones(0)))


def test_the_condition_alone_may_be_batched():
    def count(limit: Any) -> Any:
        return rune.while_loop(lambda i: i < limit, lambda i: i + 1, 0)

    lanes = rune.vmap(count)(np.array([3, 0, 7], np.int32))

    same(np.array([3, 0, 7], np.int32), lanes)


def test_a_scan_with_no_lanes_inside_is_computed_once():
    def function(x: Any) -> Any:
        last, _ = rune.scan(lambda c, _: (c * 2.0, None), 1.0, None, length=3)
        return x * last

    program = rune.make_program(rune.vmap(function))(rnp.ones(5))

    (equation,) = [e for e in program.equations if e.primitive.name == "scan"]
    assert [v.type.shape for v in equation.results] == [()]


def test_lanes_in_any_axis_go_in_and_out():
    xs = array(np.arange(24, dtype=np.float32).reshape(2, 3, 4))

    with interpreted():
        lanes = rune.vmap(running_sums, in_axes=2, out_axes=1)(xs)

    same(np.cumsum(np.asarray(xs), 0).transpose(0, 2, 1), lanes)


def running_sums(xs: Any) -> Any:
    return rune.scan(lambda c, x: (c + x, c + x), rnp.zeros(xs.shape[1]), xs)[1]


# --- lanes of linear maps ---------------------------------------------------------------------


FEW = Checkpoints(2)


def iterated(x: Any, reverse: Any = FEW) -> Any:
    def body(state: Any) -> Any:
        return state[0] + 1, rnp.sin(state[1]) * x + state[1]

    return rune.while_loop(lambda s: s[0] < 5, body, (0, x), reverse=reverse)[1]


def test_a_linear_map_of_a_loop_runs_on_lanes_of_tangents():
    x = array(np.array([0.3, -0.7]))

    with interpreted():
        _, push = rune.linearize(iterated, x)
        tangents = rune.vmap(push)(array(np.eye(2)))
        expected = rune.jacfwd(iterated)(x)

    near(np.asarray(expected).T, tangents, relative=1e-12, why="f64")


def test_a_linear_map_of_a_loop_on_lanes_transposes():
    x = array(np.array([0.3, -0.7]))

    with interpreted():
        _, push = rune.linearize(iterated, x)
        pull = rune.linear_transpose(rune.vmap(push), array(np.eye(2)))
        (cotangents,) = pull(array(np.eye(2)))
        expected = rune.jacrev(iterated)(x)

    near(expected, cotangents, relative=1e-12, why="f64")


def test_lanes_with_their_own_numbers_of_steps_are_linearized():
    def run(x: Any) -> Any:
        return rune.while_loop(lambda v: v < 10.0, lambda v: v * v, x)

    def slope(x: Any) -> Any:
        _, push = rune.linearize(run, x)
        return push(1.0)

    with interpreted():
        slopes = rune.vmap(slope)(array([2.0, 3.0, 20.0]))

    # 2 -> 16 = x**4, 3 -> 81 = x**4, 20 -> 20
    near(np.array([32.0, 108.0, 1.0], np.float32), slopes, relative=1e-6, why="f32")


def test_growing_residuals_need_a_number_of_steps_that_is_known():
    def slope(x: Any) -> Any:
        return rune.grad(lambda v: iterated(v, GrowingResiduals()))(x)

    def different(x: Any) -> Any:
        return rune.grad(lambda v: rune.while_loop(lambda u: u < 10.0, lambda u: u * u, v, reverse=GrowingResiduals()))(
            x
        )

    with interpreted():
        same(slope(0.5), rune.vmap(slope)(array([0.5]))[0])  # all lanes take five steps
        with pytest.raises(TransformError, match="its number of steps is not known here"):
            rune.vmap(different)(array([2.0, 3.0]))
