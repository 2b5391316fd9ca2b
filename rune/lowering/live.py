"""Live: leave out what no result needs, in nested programs too, before anything is lowered.

Before   %1, %2 = jvp_f %0 { … custom_lin … };  return %1   After   %1 = jvp_f %0 { … };  return %1

An equation may have a meaning in transformations alone, as the tangent of a custom_vjp has, whose
rule says only what it means backwards. Where nothing reads it there is nothing to refuse.
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
    pruned, _ = prune(program, (True,) * len(program.outputs))
    return replace(pruned, inputs=program.inputs, constants=program.constants)


PASS = Pass("live", "leave out what no result needs", live)
