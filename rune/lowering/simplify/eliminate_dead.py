"""Eliminate dead equations, whose results nothing needs, and dead parts of loops.

Before   %1 = sin %0;  %2 = cos %0;  return %1        After   %1 = sin %0;  return %1
Before   %1, %2 = loop %0 { … };  return %1           After   %1 = loop %0 { … };  return %1
Before   %2 = loop %0, %1 { … reads no %0 }           After   %2 = loop %1 { … }
A const that nothing reads would keep its array alive: a carry that starts there could not be
updated in place.
Invariant: inputs, outputs and side effects stay; a program without dead equations is returned
itself.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from operator import is_

from rune.core.dead_code import shrunk
from rune.core.program import Equation, Program, Var
from rune.core.side_effects import effect_of
from rune.lowering.passes import Pass
from rune.ops.loop import LoopParams, loop, shrunk_loop


def eliminate_dead(program: Program) -> Program:
    """The program without equations that no output depends on."""
    live = {a for a in program.outputs if isinstance(a, Var)}
    live_equations: list[Equation] = []
    for equation in reversed(program.equations):
        # Result by result, because a loop can drop carries that nobody reads.
        results_read = tuple(v in live for v in equation.results)
        if any(results_read) or effect_of(equation) is not None:
            live_equations.append(_without_unread(shrunk(equation, results_read)))
            # The shrunk equation may read fewer operands than the original.
            live.update(a for a in live_equations[-1].operands if isinstance(a, Var))
    if len(live_equations) == len(program.equations) and all(map(is_, reversed(live_equations), program.equations)):
        return program
    return program.with_equations(reversed(live_equations), program.outputs)


def _without_unread(equation: Equation) -> Equation:
    """A loop without the consts that neither its body nor its condition reads."""
    if equation.primitive is not loop or effect_of(equation) is not None:
        return equation
    form = LoopParams.of(equation)
    programs = (form.body,) if form.condition is None else (form.body, form.condition)
    read = {a for p in programs for a in (*p.outputs, *(x for e in p.equations for x in e.operands))}
    consts = ([p.inputs[1 + k] for p in programs] for k in range(form.consts))
    if all(any(v in read for v in const) for const in consts):
        return equation
    return shrunk_loop((True,) * len(equation.results), equation)


PASS = Pass("eliminate-dead", "remove equations that no output needs", eliminate_dead)
