"""Programs and their text: the Python functions that a program holds, by their text."""

from __future__ import annotations

from typing import Any

from rune.core.higher import subprograms
from rune.core.program import Program


def functions_in(program: Program) -> dict[str, Any]:
    """The functions that `parse_program` needs to read the program back."""
    named_functions: dict[str, Any] = {}
    for equation in program.equations:
        values = (v for v in equation.params.values() if not isinstance(v, Program | type))
        named_functions.update((repr(v), v) for v in values if repr(v).startswith("<"))
        for inner in subprograms(equation):
            named_functions.update(functions_in(inner))
    return named_functions
