"""Put calls of Python functions in the order of the program, where they have side effects.

Before   = host_call %0 {...};  %2 = loop %1 {body: ... = host_call ...}
After    %t = host_call %0, false {...};  %2, %u = loop %1, %t {body takes and gives a token}

A call with side effects takes the token of the call before it and returns the next token, also
through loops and branches. So the order follows from data dependences, which every stage respects.

Invariant: the calls happen once each, in order; values do not change.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rune.core.program import Atom, Equation, Literal, Program, Var, map_programs
from rune.core.side_effects import effect_of, program_effect
from rune.core.types import ArrayType
from rune.lowering.host_calls import TOKEN
from rune.lowering.passes import Pass
from rune.ops import add
from rune.ops.branch import branch
from rune.ops.loop import COUNTER, LoopParams, loop

T = TypeVar("T")


def in_order(program: Program) -> Program:
    """The program with a token from each call with side effects to the next."""
    if program_effect(program) is None:
        return program
    # The first call takes a constant as its token.
    first = Literal(np.zeros((), TOKEN.dtype), TOKEN)
    equations, _ = _thread(program.equations, first)
    return program.with_equations(equations, program.outputs)


def _thread(equations: Iterable[Equation], token: Atom) -> tuple[list[Equation], Atom]:
    """The equations with a token passed through those with effects, and the last token."""
    sequence: list[Equation] = []
    for equation in itertools.chain.from_iterable(map(_rotated, equations)):
        # Loops and branches have the effect of the calls within them.
        if effect_of(equation) is not None:
            result = Var(TOKEN)
            equation = _behind(equation, token, result)
            token = result
        sequence.append(equation)
    return sequence, token


def _behind(equation: Equation, token: Atom, result: Var) -> Equation:
    """The equation, taking a token and returning the next."""
    operands = (*equation.operands, token)
    if equation.primitive is loop:
        return _loop_behind(equation, operands, result)
    if equation.primitive is branch:
        # Branches without calls get a token too, because all must have the same type.
        params = map_programs(equation.params, lambda b: _with_token(b, len(b.inputs), len(b.outputs)))
    else:
        params = {**equation.params, "has_token": True}
    results = (*equation.results, result)
    return replace(equation, operands=operands, results=results, params=params)


def _loop_behind(equation: Equation, operands: tuple[Atom, ...], result: Var) -> Equation:
    """The loop with a token as its last carry, before the arrays that the steps fill."""
    form = LoopParams.of(equation)
    condition, carries = form.condition, len(equation.operands) - form.consts
    new_form = replace(
        form,
        body=_with_token(form.body, 1 + len(equation.operands), carries),
        # The condition takes all carries; it makes no calls and ignores the token.
        condition=condition and replace(condition, inputs=(*condition.inputs, Var(TOKEN))),
    )
    results = _inserted(equation.results, carries, result)
    return replace(equation, operands=operands, results=results, params=new_form.params())


def _rotated(equation: Equation) -> list[Equation]:
    """A loop whose condition calls Python, with the condition computed before and in each step.

    The outcome becomes a carry, which is all that the new condition reads.
    """
    form = LoopParams.of(equation) if equation.primitive is loop else None
    condition = form and form.condition
    if form is None or condition is None or program_effect(condition) is None:
        return [equation]
    body, consts, count = form.body, form.consts, len(equation.operands)
    carries, t, zero, one = count - consts, Var(COUNTER), _integer(0), _integer(1)
    # The condition of step 0, computed before the loop.
    before, first = _copied(condition, (zero, *equation.operands))
    step = Equation(add, (body.inputs[0], one), {}, (t,))
    condition_operands = (t, *body.inputs[1 : 1 + consts], *body.outputs[:carries])
    after, goes_on = _copied(condition, condition_operands)
    new_form = replace(
        form,
        body=replace(
            body,
            # Here TOKEN only stands for bool[], the type of the condition's answer.
            inputs=_inserted(body.inputs, 1 + count, Var(TOKEN)),
            equations=(*body.equations, step, *after),
            outputs=_inserted(body.outputs, carries, goes_on),
        ),
        # The answer is the last carry, so the new condition returns its last input.
        condition=_last_input((*condition.input_types, TOKEN)),
    )
    results = _inserted(equation.results, carries, Var(TOKEN))
    operands = (*equation.operands, first)
    new_loop = replace(equation, operands=operands, results=results, params=new_form.params())
    return [*before, new_loop]


def _copied(program: Program, args: Sequence[Atom]) -> tuple[list[Equation], Atom]:
    """The equations of a program on these arguments, with new variables, and its result."""
    env: dict[Atom, Atom] = dict(zip(program.inputs, args, strict=True))
    equations = []
    for equation in program.equations:
        operands = tuple(env.get(a, a) for a in equation.operands)
        # The equations are inlined twice, so each copy needs its own variables.
        results = tuple(Var(v.type) for v in equation.results)
        env.update(zip(equation.results, results, strict=True))
        equations.append(replace(equation, operands=operands, results=results))
    return equations, env.get(program.outputs[0], program.outputs[0])


def _last_input(types: Sequence[ArrayType]) -> Program:
    inputs = tuple(map(Var, types))
    return Program(inputs, (), inputs[-1:], name="condition")


def _integer(value: int) -> Literal:
    return Literal(np.asarray(value, COUNTER.dtype), COUNTER)


def _inserted(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at:])


def _with_token(program: Program, at: int, out: int) -> Program:
    """The program with a token as input number `at` and output number `out`."""
    token = Var(TOKEN)
    equations, last = _thread(program.equations, token)
    inputs, outputs = _inserted(program.inputs, at, token), _inserted(program.outputs, out, last)
    return replace(program, inputs=inputs, equations=tuple(equations), outputs=outputs)


PASS = Pass("order-calls", "put calls with side effects in order", in_order)
