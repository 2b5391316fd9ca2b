"""Live: remove what no result needs, in nested programs too, before anything is lowered.

Before   %1, %2 = jvp_f %0 { … custom_lin … };  return %1   After   %1 = jvp_f %0 { … };  return %1

Some equations have a meaning only for transformations: the rule of a custom_vjp says how its
tangent is transposed, but not how it is computed. An unread equation of that kind is not an error.
Invariant: inputs, outputs and side effects stay.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from dataclasses import replace

from rune.core.dead_code import prune
from rune.core.program import Program
from rune.lowering.passes import Pass


def live(program: Program) -> Program:
    """The program without the equations that no output depends on."""
    live_program, _ = prune(program, (True,) * len(program.outputs))
    return replace(live_program, inputs=program.inputs, constants=program.constants)


PASS = Pass("live", "leave out what no result needs", live)
