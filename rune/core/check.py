"""The check of a program: variables are bound once and before use, and types follow their rules.

Literals and constants have values of their types, and an equation that holds a program passes it
arguments of the types of its inputs. A program that several equations hold is checked once.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import NoReturn

import numpy as np

from rune.core.higher import equation_program, programs_within
from rune.core.interpreter import type_of
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.sizes import match_sizes, type_with_sizes, untold_sizes
from rune.core.types import NONE, ArrayType, Shape
from rune.core.values import Value
from rune.errors import CheckError


def result_types(equation: Equation) -> tuple[ArrayType, ...]:
    """The types of the results by the type rule of the primitive."""
    types = [a.type for a in equation.operands]
    out = equation.primitive.type_rule(*types, **equation.params)
    return tuple(out) if equation.primitive.multiple_results else (out,)


def check_program(program: Program) -> None:
    """Raise CheckError at the first broken rule, with the program printed.

    Errors: CheckError "check: cannot accept <program> (<what>)".
    """
    checker()(program)


def checker() -> Callable[[Program], None]:
    """`check_program` for programs that passes make of each other, which share most equations.

    The types of an equation are derived again only if one of its parameters is another object.
    """
    typed: _Typed = {}

    def check(program: Program) -> None:
        for inner in programs_within(program):
            _check(inner, typed)

    return check


# By equation, the parameters with which its types were right.
_Typed = dict[Equation, list[object]]


def _check(program: Program, typed: _Typed) -> None:
    bound: set[Var] = set()
    for var, value in program.constants:
        _define(program, bound, var)
        _check_value(program, "a constant", var.type, value)
    for var in program.inputs:
        _define(program, bound, var)
    for equation in program.equations:
        _check_equation(program, bound, equation, typed)
    for atom in program.outputs:
        _check_use(program, bound, atom, "return")


def _fail(program: Program, problem: str) -> NoReturn:
    raise CheckError(f"check: cannot accept {program.name} ({problem})\n{program}")


def _define(program: Program, bound: set[Var], var: Var) -> None:
    if var in bound:
        _fail(program, f"a variable of type {var.type} is bound twice")
    bound.add(var)


def _check_value(program: Program, role: str, type: ArrayType, value: Value) -> None:
    actual = type_of(value)
    if actual.shape != type.shape or actual.dtype != type.dtype:
        _fail(program, f"{role} of type {type} holds {actual}")


def _check_use(program: Program, bound: set[Var], atom: Atom, where: str) -> None:
    if isinstance(atom, Literal):
        _check_value(program, f"a literal of {where}", atom.type, atom.value)
    elif atom not in bound:
        _fail(program, f"{where} uses a variable before it is bound")


def _check_equation(program: Program, bound: set[Var], equation: Equation, typed: _Typed) -> None:
    for atom in equation.operands:
        _check_use(program, bound, atom, equation.primitive.name)
    params, known = [*equation.params.values()], typed.get(equation)
    # By identity, as a pass might change parameters in place.
    if known is None or len(known) != len(params) or not all(map(is_, known, params)):
        _check_types(program, equation)
        typed[equation] = params
    for var in equation.results:
        _define(program, bound, var)


def _check_types(program: Program, equation: Equation) -> None:
    name = equation.primitive.name
    _check_call(program, equation)
    # Type rules do not handle variation along a mesh (varying.py), so it is left out here.
    rule_types = tuple(t.along(NONE) for t in result_types(equation))
    actual_types = tuple(v.type.along(NONE) for v in equation.results)
    if rule_types != actual_types:
        _fail(program, f"{name} gives {_text(rule_types)}, not {_text(actual_types)}")


def _check_call(program: Program, equation: Equation) -> None:
    inner = equation_program(equation)
    if inner is None:
        return
    operand_types = tuple(a.type for a in equation.operands)
    input_types, name = inner.input_types, equation.primitive.name
    if len(operand_types) == len(input_types):
        untold = ", ".join(untold_sizes(inner))
        if untold:
            _fail(program, f"{name} holds {inner.name}, whose inputs do not tell the size {untold}")
        sizes = match_sizes(input_types, operand_types, f"check: cannot accept {name} of {inner.name}")
        input_types = tuple(type_with_sizes(t, sizes) for t in input_types)
    if _layouts(operand_types) != _layouts(input_types):
        _fail(program, f"{name} takes {_text(input_types)}, not {_text(operand_types)}")


def _layouts(types: tuple[ArrayType, ...]) -> list[tuple[Shape, np.dtype]]:
    # Weakness is ignored: a known argument may be stronger than the type traced for it.
    return [(t.shape, t.dtype) for t in types]


def _text(types: tuple[ArrayType, ...]) -> str:
    return f"({', '.join(map(str, types))})"
