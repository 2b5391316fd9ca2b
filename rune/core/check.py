"""Check a program: variables bound once and before use, and every type what its rule says."""

from __future__ import annotations

from rune.core.program import Equation, Literal, Program, Var, subprograms
from rune.core.types import ArrayType
from rune.errors import CheckError


def result_types(equation: Equation) -> tuple[ArrayType, ...]:
    """What the primitive's type rule says of this equation."""
    types = [a.type for a in equation.operands]
    out = equation.primitive.type_rule(*types, **equation.params)
    return tuple(out) if equation.primitive.multiple_results else (out,)


def check_program(program: Program) -> None:
    """Raise CheckError at the first broken rule, with the program printed.

    Errors: CheckError "check: cannot accept <program> (<what>)".
    """
    bound: set[Var] = set()
    for var in (*(v for v, _ in program.constants), *program.inputs):
        _define(program, bound, var)
    for equation in program.equations:
        _check_equation(program, bound, equation)
    for atom in program.outputs:
        _check_use(program, bound, atom, "return")


def _fail(program: Program, what: str) -> None:
    raise CheckError(f"check: cannot accept {program.name} ({what})\n{program}")


def _define(program: Program, bound: set[Var], var: Var) -> None:
    if var in bound:
        _fail(program, f"a variable of type {var.type} is bound twice")
    bound.add(var)


def _check_use(program: Program, bound: set[Var], atom: object, where: str) -> None:
    if not isinstance(atom, Literal) and atom not in bound:
        _fail(program, f"{where} uses a variable before it is bound")


def _check_equation(program: Program, bound: set[Var], equation: Equation) -> None:
    for atom in equation.operands:
        _check_use(program, bound, atom, equation.primitive.name)
    for inner in subprograms(equation):
        check_program(inner)
    expected = result_types(equation)
    found = tuple(v.type for v in equation.results)
    if expected != found:
        _fail(program, f"{equation.primitive.name} gives {expected}, not {found}")
    for var in equation.results:
        _define(program, bound, var)
