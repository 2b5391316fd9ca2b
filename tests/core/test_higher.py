"""Equations that hold programs declare the programs, their operands, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.core.higher import Calls, Runs, equation_calls, equation_program, subprograms
from rune.core.program import Equation, Program
from rune.lowering.decompose import decompose
from rune.ops.repeat import repeat, repeat_rows, repeat_while

Function = Callable[[Any], Any]

_square = rune.custom_jvp(lambda x: x * x)
_square.defjvp(lambda primals, tangents: (_square(*primals), 2 * primals[0] * tangents[0]))
_cube = rune.custom_vjp(lambda x: x**3)
_cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))


def _scan(x: Any) -> Any:
    shift = rnp.sin(x[0])
    return rune.lax.scan(lambda c, row: (c + shift, c * row), x[0], x)[1]


def _while(x: Any, reverse: Any = None) -> Any:
    limit, factor = rnp.sum(x) + 100.0, rnp.cos(x[0]) + 2.0
    options = {} if reverse is None else {"reverse": reverse}
    return rune.lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1.0, c[1] * factor), (x[0], x), **options)[1]


def _solve(x: Any) -> Any:
    return rune.lax.custom_linear_solve(lambda v: x * v, x, lambda _, b: b / x, symmetric=True)


WRITTEN: dict[str, Function] = {
    "jit": rune.jit(rnp.sin),
    "checkpoint": rune.checkpoint(rnp.sin),
    "custom_jvp": _square,
    "custom_vjp": _cube,
    "cond": lambda x: rune.lax.cond(x[0] > 0, rnp.sin, rnp.cos, x),
    "scan": _scan,
    "while": _while,
    "custom_linear_solve": _solve,
    "loop": lambda x: repeat(3, lambda i, c: [c * x], x)[0],
    "loop with a condition": lambda x: repeat_while(lambda c: c[0] < x[0] + 9, lambda c: [c + 1], x)[0],
    "loop over rows": lambda x: repeat_rows(lambda c, r: ([c[0] + x[0]], [r[0]]), [x[0]], [x])[1][0],
}
ONCE = {"jit", "checkpoint", "custom_jvp", "custom_vjp", "custom_linear_solve"}
LOOPS = {"scan", "while", "loop", "loop with a condition", "loop over rows"}


def traced(function: Function) -> Program:
    return rune.make_program(function)(rnp.ones(3))


def inner_programs(equation: Equation) -> list[Program]:
    """The programs among the parameters, whatever their names."""
    values = [v if isinstance(v, tuple) else (v,) for v in equation.params.values()]
    return [p for items in values for p in items if isinstance(p, Program)]


def equations(program: Program) -> Iterator[Equation]:
    for equation in program.equations:
        yield equation
        for inner in inner_programs(equation):
            yield from equations(inner)


def holding(name: str) -> Equation:
    return next(e for e in equations(traced(WRITTEN[name])) if e.primitive.name == name.split()[0])


def _fits(call: Calls) -> bool:
    pairs = zip(call.program.inputs, call.operands, strict=True)
    return all(a is None or a.type.strong() == v.type.strong() for v, a in pairs)


def checked(program: Program) -> list[Equation]:
    """The equations that hold programs, after a comparison of each with its calls."""
    holders = [e for e in equations(program) if inner_programs(e)]
    for equation in holders:
        assert set(subprograms(equation)) == set(inner_programs(equation))
        assert all(map(_fits, equation_calls(equation)))
    return holders


@pytest.mark.parametrize("name", WRITTEN)
def test_an_equation_names_every_program_that_it_holds_and_operands_of_the_types_of_its_inputs(name: str):
    assert name.split()[0] in {e.primitive.name for e in checked(traced(WRITTEN[name]))}


@pytest.mark.parametrize("name", WRITTEN)
def test_decomposed_loops_and_branches_pass_the_check(name: str):
    if name == "custom_vjp":
        return
    primitives = {e.primitive.name for e in checked(decompose(traced(WRITTEN[name])))}
    assert primitives == ({"loop"} if name in LOOPS else {"branch"} if name == "cond" else set())


def test_so_does_what_reverse_mode_of_a_while_loop_writes():
    def loss(x: Any) -> Any:
        return rnp.sum(_while(x, rune.Checkpoints(4)))

    linear = rune.make_program(lambda x, t: rune.linearize(loss, x)[1](t))
    program = linear(rnp.ones(3), rnp.ones(3))

    assert "while_linear" in {e.primitive.name for e in checked(program)}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_program_that_runs_once_takes_all_operands_in_order(name: str):
    equation = holding(name)
    program = equation_program(equation)

    assert (program is not None) == (name in ONCE)
    if program is not None:
        first, *_ = equation_calls(equation)
        assert first == Calls(program, equation.operands, Runs.ONCE)


def test_an_operation_without_programs_calls_none():
    (equation,) = traced(rnp.sin).equations

    assert equation_calls(equation) == ()
