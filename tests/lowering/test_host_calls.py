"""Calls of Python in programs: when they are kept, their order, and their steps in the plan."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import device_named
from rune.core.check import check_program
from rune.core.dead_code import prune
from rune.core.higher import subprograms
from rune.core.primitive import Effect
from rune.core.program import Program
from rune.core.side_effects import program_effect
from rune.lowering.call_order import in_order
from rune.lowering.decompose import decompose
from rune.lowering.host_calls import TOKEN, host_call
from rune.lowering.plan import Call, all_steps
from rune.lowering.plan_text import to_text
from rune.lowering.simplify.eliminate_common import eliminate_common
from rune.lowering.simplify.eliminate_dead import eliminate_dead
from rune.lowering.stages import stages

F32 = rune.ShapeDtypeStruct((), "f32")


def note(x: Any) -> None:
    """A Python function to call."""


def ordered(function: Any, *args: Any) -> Program:
    """The program of a function, its calls in order."""
    program = in_order(decompose(rune.make_program(function)(*args)))
    check_program(program)
    return program


def calls(program: Program) -> list[Any]:
    """The calls of Python in a program, and in those it holds, in order."""
    host_calls = []
    for equation in program.equations:
        host_calls += [equation] if equation.primitive is host_call else []
        host_calls += [c for p in subprograms(equation) for c in calls(p)]
    return host_calls


# --- effects ------------------------------------------------------------------------------------


def test_a_program_has_the_strongest_effect_of_its_equations_and_of_those_within():
    def unordered(x: Any) -> Any:
        return rune.jit(lambda v: (rune.debug.print("{}", v), v)[1])(x)

    def both(x: Any) -> Any:
        rune.debug.print("{}", x, ordered=True)
        return unordered(x)

    effects = [program_effect(rune.make_program(f)(1.0)) for f in (rnp.sin, unordered, both)]

    assert effects == [None, Effect.UNORDERED, Effect.ORDERED]


def test_dead_code_keeps_what_has_an_effect_and_drops_what_is_pure():
    def function(x: Any) -> Any:
        rune.jit(lambda v: rune.debug.callback(note, rnp.exp(v)))(x)
        rune.pure_callback(note, F32, x)
        return rnp.sin(x), rnp.cos(x)

    smaller, _ = prune(rune.make_program(function)(1.0), [False, True])

    assert [e.primitive.name for e in smaller.equations] == ["jit", "cos"]


def test_the_passes_neither_drop_nor_merge_a_side_effect():
    def function(x: Any) -> Any:
        rune.pure_callback(note, F32, x)
        return x

    def effectful(x: Any) -> Any:
        inner = rune.jit(lambda v: rune.io_callback(note, F32, v))  # twice the same program
        return function(inner(x) + inner(x) + function(x))

    program = decompose(rune.make_program(effectful)(1.0))

    assert len(calls(program)) == 4
    assert len(calls(eliminate_dead(program))) == 2
    assert len(calls(eliminate_common(program))) == 4


# --- order --------------------------------------------------------------------------------------


def test_each_call_takes_the_token_of_the_one_before():
    def function(x: Any) -> Any:
        rune.debug.callback(note, x)
        y = rune.pure_callback(note, F32, x)
        rune.debug.callback(note, y)
        return y

    first, pure, second = calls(ordered(function, 1.0))

    assert first.results[-1].type is TOKEN
    assert second.operands[-1] is first.results[-1]
    assert TOKEN not in [a.type for a in (*pure.operands, *pure.results)]


def test_loops_and_branches_carry_the_token():
    def function(x: Any) -> Any:
        rune.debug.callback(note, x)
        x = rune.fori_loop(0, 3, lambda i, c: (rune.debug.callback(note, c), c + 1)[1], x)
        rune.cond(x > 0, lambda: rune.debug.callback(note, x), lambda: None)
        rune.while_loop(lambda c: c < 3, lambda c: (rune.debug.callback(note, c), c + 1)[1], x)
        rune.debug.callback(note, x)
        return x

    program = ordered(function, 1.0)

    holding = [e for e in program.equations if e.primitive is host_call or subprograms(e)]
    for before, after in itertools.pairwise(holding):
        tokens = [v for v in before.results if v.type is TOKEN]
        assert tokens[-1] in after.operands


def test_a_program_without_side_effects_is_returned_unchanged():
    program = decompose(rune.make_program(lambda x: rune.pure_callback(note, F32, x))(1.0))

    assert in_order(program) is program


@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_a_condition_that_calls_back_is_computed_before_and_in_each_step(
    device: str, capsys: pytest.CaptureFixture[str]
):
    def condition(c: Any) -> Any:
        rune.debug.print("is {} < 3", c)
        return c < 3.0

    def body(c: Any) -> Any:
        rune.debug.print("step {}", c)
        return c + 1.0

    total = rune.jit(lambda x: rune.while_loop(condition, body, x), device=device)(1.0)

    assert float(total) == 3.0
    assert capsys.readouterr().out.splitlines() == ["is 1.0 < 3", "step 1.0", "is 2.0 < 3", "step 2.0", "is 3.0 < 3"]


# --- plans --------------------------------------------------------------------------------------


def test_a_call_is_a_step_of_the_plan_and_kernels_stand_around_it():
    def function(x: Any) -> Any:
        y = rune.pure_callback(note, rune.ShapeDtypeStruct((8,), "f32"), rnp.exp(x) * 2.0)
        return rnp.sin(y) + 1.0

    program = rune.make_program(function)(rnp.ones(8))
    plan = stages(program, device_named("cpu:0").target, check=True).plan

    assert [type(s).__name__ for s in plan.steps] == ["Launch", "Call", "Launch"]
    assert to_text(plan).count("call callback {function=<note>}") == 1


def test_a_call_within_a_loop_is_within_the_plan_of_its_body():
    def function(x: Any) -> Any:
        return rune.fori_loop(0, 3, lambda i, c: (rune.debug.callback(note, c), c * 2.0)[1], x)

    program = rune.make_program(function)(np.ones(4, np.float32))
    plan = stages(program, device_named("cpu:0").target, check=True).plan

    assert not any(isinstance(s, Call) for s in plan.steps)
    assert sum(isinstance(s, Call) for s in all_steps(plan)) == 1
