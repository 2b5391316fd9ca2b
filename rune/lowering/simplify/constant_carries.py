"""Constant carries: what every step of a loop returns unchanged is a constant of the loop.

Before   %2, %3 = loop %0, %1 { body(%x, %y): %z = mul %y, %x;  return %x, %z }   (carries %x, %y)
After    %3 = loop %0, %1 { body(%x, %y): %z = mul %y, %x;  return %z }   (constant %x), %2 is %0

A carry has memory of its own, into which it is copied before the loop, and nothing that depends on
one is computed before the loop.

Invariant: a loop computes the same; one whose carries are all constant and that has a condition
stays, since it may not end.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import TypeVar

from rune.core.program import Atom, Equation, Program
from rune.lowering.passes import Pass
from rune.ops.loop import LoopParams, loop
from rune.records import replace

A = TypeVar("A", bound=Atom)


def constant_carries(program: Program) -> Program:
    """The program with constants in place of carries that do not change."""
    operand_of: dict[Atom, Atom] = {}  # of each result that is an operand of its loop
    equations: list[Equation] = []
    for e in program.equations:
        if operand_of and not operand_of.keys().isdisjoint(e.operands):
            e = replace(e, operands=tuple(operand_of.get(a, a) for a in e.operands))
        is_constant = _constants(e) if e.primitive is loop else ()
        if any(is_constant):
            carries = e.operands[LoopParams.of(e).consts :]
            operand_of.update(zip(compress(e.results, is_constant), compress(carries, is_constant)))
            e = _with_constants(e, is_constant)
        equations.append(e)
    if not operand_of:
        return program
    return program.with_equations(equations, tuple(operand_of.get(a, a) for a in program.outputs))


def _constants(equation: Equation) -> Sequence[bool]:
    """Of each carry of a loop, whether every step returns it unchanged; empty if the loop stays."""
    form = LoopParams.of(equation)
    carries = equation.operands[form.consts :]
    inputs = form.body.inputs[1 + form.consts :]
    is_constant = [
        output is before and operand.type == result.type
        for output, before, operand, result in zip(form.body.outputs, inputs, carries, equation.results)
    ]
    return () if all(is_constant) and len(equation.results) == len(carries) else is_constant


def _with_constants(equation: Equation, is_constant: Sequence[bool]) -> Equation:
    """The loop whose carries of a kind are constants behind its others."""
    form = LoopParams.of(equation)
    changes = [*map(not_, is_constant), *([True] * (len(equation.results) - len(is_constant)))]
    smaller = replace(
        form,
        consts=form.consts + sum(is_constant),
        body=replace(
            form.body,
            inputs=_sorted(form.body.inputs, 1 + form.consts, is_constant),
            outputs=tuple(compress(form.body.outputs, changes)),
        ),
        condition=form.condition
        and replace(form.condition, inputs=_sorted(form.condition.inputs, 1 + form.consts, is_constant)),
    )
    return replace(
        equation,
        operands=_sorted(equation.operands, form.consts, is_constant),
        results=tuple(compress(equation.results, changes)),
        params=smaller.params(),
    )


def _sorted(values: tuple[A, ...], first: int, is_constant: Sequence[bool]) -> tuple[A, ...]:
    """The values with the constants before the other carries, which begin at `first`."""
    carries, others = values[first:][: len(is_constant)], values[first:][len(is_constant) :]
    changes = map(not_, is_constant)
    return (*values[:first], *compress(carries, is_constant), *compress(carries, changes), *others)


PASS = Pass("constant-carries", "make constants of carries that no step changes", constant_carries)
