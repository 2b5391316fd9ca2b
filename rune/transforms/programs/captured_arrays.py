"""The values that a rewritten program closes over, as operands of the equation that holds it.

A custom rule may close over arrays and traced values, so a program rewritten by it may have
constants. Programs in equations have none: the code that binds an equation passes the values as
leading operands.
"""

from __future__ import annotations

from dataclasses import replace

from rune.core.memo import per_program
from rune.core.program import Program
from rune.core.values import Value


def opened(program: Program) -> tuple[Program, list[Value]]:
    """The program with its constants as new leading inputs, and the values for these."""
    if not program.constants:
        return program, []
    # The rewritten program is memoised; the values are passed at each call.
    return _opened(program), [value for _, value in program.constants]


@per_program
def _opened(program: Program) -> Program:
    variables = (var for var, _ in program.constants)
    return replace(program, inputs=(*variables, *program.inputs), constants=())
