"""Drop the equations and inputs that no used output needs; inside nested programs too.

Before   %1 = sin %0;  %2 = cos %0;  return %1        After   %1 = sin %0;  return %1
Invariant: the used outputs keep their values, and side effects happen.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.core.program import Atom, Equation, Program
from rune.core.side_effects import effect_of
from rune.core.sizes import carriers, untold_sizes


def prune(program: Program, used: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The program with only the used outputs, and which inputs it still takes."""
    outputs = tuple(a for a, u in zip(program.outputs, used, strict=True) if u)
    body, live = live_equations(program.equations, outputs)
    needed = tuple(v in live for v in program.inputs)
    inputs = tuple(v for v, n in zip(program.inputs, needed, strict=True) if n)
    constants = tuple(c for c in program.constants if c[0] in live)
    pruned = replace(program, inputs=inputs, equations=body, outputs=outputs, constants=constants)
    return pruned, needed


def live_equations(equations: Sequence[Equation], outputs: Sequence[Atom]) -> tuple[tuple[Equation, ...], set[Atom]]:
    """The equations that the outputs need, and all that these and the outputs read."""
    live = {*outputs}
    backwards: list[Equation] = []
    for equation in reversed(equations):
        wanted = [v in live for v in equation.results]
        if not any(wanted) and effect_of(equation) is None:
            continue
        smaller = equation if all(wanted) else shrunk(equation, tuple(wanted))
        backwards.append(smaller)
        live.update(smaller.operands)
    return tuple(backwards[::-1]), live


def needed_inputs(program: Program, wanted: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The program with the wanted outputs and all inputs, and which of the inputs it needs.

    An input that no equation reads is needed if a size is known only from its shape.
    """
    pruned, read = prune(program, wanted)
    same_inputs = replace(pruned, inputs=program.inputs)
    size_inputs = carriers(program.input_types, untold_sizes(pruned))
    return same_inputs, tuple(r or i in size_inputs for i, r in enumerate(read))


def shrunk(equation: Equation, wanted: tuple[bool, ...]) -> Equation:
    """The equation without its unused results, if its primitive can drop them.

    One with side effects keeps them all: its effect's token may be a result that nothing reads.
    """
    rule = equation.primitive.dead_code
    if rule is None or all(wanted) or effect_of(equation) is not None:
        return equation
    return rule(wanted, equation)
