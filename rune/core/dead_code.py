"""Dead code: equations and inputs that no used output needs are dropped, in nested programs too.

Before   %1 = sin %0;  %2 = cos %0;  return %1        After   %1 = sin %0;  return %1
Invariant: the used outputs keep their values, and side effects happen.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.core.lists import pick
from rune.core.program import Atom, Equation, Program
from rune.core.side_effects import effect_of
from rune.core.sizes import carriers, untold_sizes


def with_inputs_picked(program: Program, flags: Sequence[bool]) -> Program:
    """The program with only the flagged inputs; it reads no others."""
    return replace(program, inputs=tuple(pick(program.inputs, flags)))


def narrowed(equation: Equation, operands: Sequence[bool], results: Sequence[bool], **params: object) -> Equation:
    """The equation with only the flagged operands and results, and with these parameters."""
    return replace(
        equation,
        operands=tuple(pick(equation.operands, operands)),
        results=tuple(pick(equation.results, results)),
        params={**equation.params, **params},
    )


def prune(program: Program, used_outputs: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The program with only the used outputs, and which inputs it still takes."""
    outputs = tuple(pick(program.outputs, used_outputs))
    body, live = live_equations(program.equations, outputs)
    used_inputs = tuple(v in live for v in program.inputs)
    constants = tuple(c for c in program.constants if c[0] in live)
    smaller = replace(program, equations=body, outputs=outputs, constants=constants)
    return with_inputs_picked(smaller, used_inputs), used_inputs


def without_dead_code(program: Program) -> Program:
    """The program with the equations that its outputs need, and all of its inputs."""
    equations, _ = live_equations(program.equations, program.outputs)
    return replace(program, equations=equations)


def live_equations(equations: Sequence[Equation], outputs: Sequence[Atom]) -> tuple[tuple[Equation, ...], set[Atom]]:
    """The equations that the outputs need, and all atoms that these and the outputs read."""
    live = {*outputs}
    backwards: list[Equation] = []
    for equation in reversed(equations):
        used_results = [v in live for v in equation.results]
        if not any(used_results) and effect_of(equation) is None:
            continue
        smaller = equation if all(used_results) else shrunk(equation, tuple(used_results))
        backwards.append(smaller)
        live.update(smaller.operands)
    return tuple(backwards[::-1]), live


def needed_inputs(program: Program, used_outputs: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The program with the used outputs and all inputs, and which of the inputs it needs.

    An input that no equation reads is needed if a size is known only from its shape.
    """
    smaller, used_inputs = prune(program, used_outputs)
    same_inputs = replace(smaller, inputs=program.inputs)
    size_inputs = carriers(program.input_types, untold_sizes(smaller))
    return same_inputs, tuple(r or i in size_inputs for i, r in enumerate(used_inputs))


def shrunk(equation: Equation, used_results: tuple[bool, ...]) -> Equation:
    """The equation without its unused results, if its primitive can drop them.

    An equation with side effects keeps all results: an unread one may be the token of its effect.
    """
    rule = equation.primitive.dead_code
    if rule is None or all(used_results) or effect_of(equation) is not None:
        return equation
    return rule(used_results, equation)
