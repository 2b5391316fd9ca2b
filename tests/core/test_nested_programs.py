"""A property of a program and all programs in it is computed once for each program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.control.branch.primitive import cond
from rune.core import axes, higher, side_effects
from rune.core.program import Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.lowering.legalize import pairs

QUESTIONS = {"effects": side_effects.program_effect, "axes": axes.free_axes, "pairs": pairs.mentions_pairs}


def nested(depth: int) -> Callable[[Any], Any]:
    """Loops within loops."""
    if depth == 0:
        return lambda x: rnp.sin(x) * 2
    return lambda x: rune.lax.fori_loop(0, 3, lambda _, c: nested(depth - 1)(c), x)


def nest(depth: int) -> Program:
    """A program whose only equation calls a program twice as branches, and so on inwards."""
    program = rune.make_program(rnp.sin)(1.0)
    for _ in range(depth):
        variable = Var(program.inputs[0].type)
        number = Literal(np.asarray(0, np.int32), ArrayType((), dtypes.i32))
        result = Var(program.outputs[0].type)
        equation = Equation(cond, (number, variable), {"branches": (program, program)}, (result,))
        program = Program((variable,), (equation,), (result,))
    return program


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_answers_about_a_program_are_cached(ask: Callable[[Program], object], monkeypatch: pytest.MonkeyPatch):
    program = rune.make_program(nested(5))(1.0)
    answer, looks = ask(program), list[Equation]()
    monkeypatch.setattr(higher, "subprograms", looks.append)

    assert ask(program) == answer
    assert looks == []


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_deep_nest_of_shared_programs_takes_no_deep_recursion_and_no_doubling(ask: Callable[[Program], object]):
    program = nest(1500)

    assert not ask(program)


def test_every_program_within_a_program_is_visited_once_and_the_outer_ones_first():
    program = nest(37)
    visits = [*higher.programs_within(program)]

    assert visits[0] is program
    assert len(visits) == len({*visits}) == 38
    assert [e.primitive.name for e in higher.equations_within(program)] == [*["cond"] * 37, "sin"]
