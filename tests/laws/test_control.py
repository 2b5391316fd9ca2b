"""Random functions with control flow give the results of Python's loops and branches.

Loops in branches in loops, in jit, checkpoints and custom rules, over random bodies, in every way
of running: interpreted, eager, compiled, on every executor, differentiated in both modes, on
lanes, and each inside the other. `./scripts/fuzz` draws many (tests/fuzz.py); a failure prints the
nodes that it shrank to, and the command that replays it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import dtypes
from rune.control import parse_program
from rune.core.check import check_program
from rune.core.same import same_program
from tests.control.cases import interpreted
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import directions, inner
from tests.support.examples import COMPILING, DRIVEN
from tests.support.random_control import Node, State, applied, lanes, nodes, states, unrolled
from tests.support.sampling import in_turn
from tests.support.text import functions_in

pytestmark = in_turn()

F64 = "f64, sums in another order, other polynomials"
OTHERS = [d for d in rune.devices() if not d.name.startswith(("cpu", "null"))]
# In f64 where available, so that rounding makes no difference.
IN_F64 = [d.name for d in OTHERS if dtypes.f64 in d.target.dtypes]
IN_F32 = [d.name for d in OTHERS if d.name not in IN_F64]
POLICIES = [None, rune.checkpoint_policies.save_only_these_names("moved"), rune.checkpoint_policies.everything_saveable]
near_enough = {"relative": 1e-8, "absolute": 1e-9, "why": F64}


def total(run: Callable[[Node, State], State], node: Node) -> Callable[..., Any]:
    """One number that depends on every value of the last state."""

    def function(*state: Any) -> Any:
        first, second = run(node, list(state))
        return (first * first).sum() + (second * 0.5).sum()

    return function


def value(run: Callable[[Node, State], State], node: Node) -> Callable[..., Any]:
    return lambda *state: run(node, list(state))


def gradient(run: Callable[[Node, State], State], node: Node) -> Callable[..., Any]:
    return rune.grad(total(run, node), argnums=(0, 1))


@given(nodes(), states())
def test_control_flow_gives_the_results_of_python(node: Node, state: State):
    with interpreted():
        near(unrolled(node, state), applied(node, state), **near_enough)


@COMPILING
@given(nodes(), states())
def test_compiled_it_means_the_same(node: Node, state: State):
    result = rune.jit(lambda *s: applied(node, list(s)))(*state)

    near(unrolled(node, state), result, **near_enough)


@COMPILING
@given(nodes(1), states(), st.booleans())
def test_eager_it_means_the_same(node: Node, state: State, is_gradient: bool):
    function = gradient if is_gradient else value

    near(function(unrolled, node)(*state), function(applied, node)(*state), **near_enough)


@pytest.mark.parametrize("device", IN_F64)
@DRIVEN
@given(node=nodes(1), state=states())
def test_every_executor_means_the_same(device: str, node: Node, state: State):
    slopes = rune.jit(gradient(applied, node), device=device)(*state)

    near(gradient(unrolled, node)(*state), slopes, **near_enough)


@pytest.mark.parametrize("device", IN_F64)
@DRIVEN
@given(node=nodes(1), state=states())
def test_every_executor_means_the_same_on_lanes(device: str, node: Node, state: State):
    rows = [state, [array(np.asarray(x) * -0.7) for x in state]]

    batch = rune.jit(rune.vmap(value(applied, node)), device=device)(*lanes(rows))

    near(lanes([unrolled(node, row) for row in rows]), batch, **near_enough)


@pytest.mark.parametrize("device", IN_F32)
@DRIVEN
@given(node=nodes(1, dtype=dtypes.f32), state=states(dtypes.f32))
def test_executors_without_f64_mean_the_same_in_f32(device: str, node: Node, state: State):
    result = rune.jit(value(applied, node), device=device)(*state)

    near(unrolled(node, state), result, relative=1e-3, absolute=1e-4, why="f32, their own exp")


@given(nodes(), states())
def test_forward_mode_is_that_of_the_loops_written_out(node: Node, state: State):
    tangents = directions(np.random.default_rng(0), state)

    with interpreted():
        result = rune.jvp(total(applied, node), state, tangents)

    near(rune.jvp(total(unrolled, node), state, tangents), result, **near_enough)


@given(nodes(reverse_only=True), states())
def test_reverse_mode_is_that_of_the_loops_written_out(node: Node, state: State):
    with interpreted():
        slopes = gradient(applied, node)(*state)

    near(gradient(unrolled, node)(*state), slopes, **near_enough)


@given(nodes(1), states())
def test_second_derivatives_are_those_of_the_loops_written_out(node: Node, state: State):
    first, second = (directions(np.random.default_rng(i), state) for i in (0, 1))
    slope = gradient(applied, node)

    def along(*s: Any) -> Any:
        return sum((g * t).sum() for g, t in zip(slope(*s), first))

    with interpreted():
        forward = inner(rune.jvp(slope, state, first)[1], second)
        reverse = inner(rune.grad(along, argnums=(0, 1))(*state), second)

    expected = inner(rune.jvp(gradient(unrolled, node), state, first)[1], second)
    near([expected, expected], [forward, reverse], relative=1e-6, absolute=1e-7, why=F64)


@COMPILING
@given(nodes(reverse_only=True), states())
def test_gradients_compile_inside_and_outside(node: Node, state: State):
    expected = gradient(unrolled, node)(*state)

    near(expected, rune.jit(gradient(applied, node))(*state), **near_enough)
    inside = rune.grad(rune.jit(total(applied, node)), argnums=(0, 1))(*state)
    near(expected, inside, **near_enough)


@given(nodes(reverse_only=True), states(), st.sampled_from(POLICIES))
def test_a_checkpoint_computes_the_same_gradient(node: Node, state: State, policy: Any):
    checkpoint_gradient = rune.grad(rune.checkpoint(total(applied, node), policy=policy), argnums=(0, 1))

    with interpreted():
        result = checkpoint_gradient(*state)

    near(gradient(unrolled, node)(*state), result, **near_enough)


@COMPILING
@given(nodes(1), states(), st.sampled_from(POLICIES))
def test_a_compiled_checkpoint_computes_the_same_gradient(node: Node, state: State, policy: Any):
    checkpoint_gradient = rune.grad(rune.checkpoint(total(applied, node), policy=policy), argnums=(0, 1))

    near(gradient(unrolled, node)(*state), rune.jit(checkpoint_gradient)(*state), **near_enough)


@given(nodes(), states(), st.booleans())
def test_lanes_are_the_loop_over_lanes(node: Node, state: State, is_gradient: bool):
    rows = [state, *([array(np.asarray(x) * f) for x in state] for f in (-0.7, 0.1))]
    make = gradient if is_gradient else value

    with interpreted():
        batch = rune.vmap(make(applied, node))(*lanes(rows))

    expected = lanes([list(make(unrolled, node)(*row)) for row in rows])
    near(expected, list(batch), **near_enough)


@COMPILING
@given(nodes(), states())
def test_forward_mode_over_lanes_compiles(node: Node, state: State):
    rows = [state, [array(np.asarray(x) * -0.7) for x in state]]
    batch = lanes(rows)
    tangents = directions(np.random.default_rng(0), batch)

    def function(*s: Any) -> Any:
        return rune.vmap(lambda *x: applied(node, list(x)))(*s)

    result = rune.jit(lambda s, t: rune.jvp(function, s, t)[1])(batch, tangents)

    alone = [
        rune.jvp(lambda *s: unrolled(node, list(s)), row, [t[i] for t in tangents])[1] for i, row in enumerate(rows)
    ]
    near(lanes(alone), result, **near_enough)


@given(nodes(reverse_only=True), states(), st.booleans())
def test_text_reads_back(node: Node, state: State, is_gradient: bool):
    make = gradient if is_gradient else value
    program = rune.make_program(make(applied, node))(*state)

    check_program(program)
    text = str(program)
    if "..." not in text:
        assert same_program(parse_program(text, functions_in(program)), program)
