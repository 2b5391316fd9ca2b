"""Eliminate common equations: the same operation on the same operands is done once.

Before   %1 = exp %0;  %2 = exp %0;  %3 = add %1, %2      After   %1 = exp %0;  %3 = add %1, %1
Invariant: primitive, operands (literals by bits), parameters (by type and value) and result types
           are compared in full, never only by hash. Loops are equal if their programs are, equation
           by equation.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from rune.core.program import Atom, Equation, Literal, Program, Var, substitute
from rune.core.same import same_program
from rune.core.side_effects import effect_of
from rune.core.value_keys import value_key
from rune.lowering.passes import Pass
from rune.ops.loop import loop
from rune.records import dataclass


def eliminate_common(program: Program) -> Program:
    """The program with every repeated equation replaced by its first occurrence."""
    firsts: dict[Hashable, Equation] = {}
    replacements: dict[Var, Atom] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        first = _first(equation, replacements, firsts)
        if first is equation:
            equations.append(equation)
        else:
            # Later keys use the first result, so chains of duplicates collapse in one walk.
            replacements.update(zip(equation.results, first.results))
    return substitute(program, replacements, equations) if replacements else program


def _first(equation: Equation, replacements: Mapping[Var, Atom], firsts: dict[Hashable, Equation]) -> Equation:
    """The first equation that equals this one; itself, if it must stay or cannot be compared."""
    # Equal effects remain two: a callback runs as often as the program calls it.
    if effect_of(equation) is not None:
        return equation
    operands = tuple([_operand(a, replacements) for a in equation.operands])
    # The programs of branches may recompute something on purpose (decision 0014).
    value_of = _Structure if equation.primitive is loop else _itself
    params = tuple([(name, _typed(equation.params[name], value_of)) for name in sorted(equation.params)])
    key = (equation.primitive, operands, _Params(params), tuple([v.type for v in equation.results]))
    # Parameters may be unhashable, such as lists; such equations are not shared.
    try:
        hash(key)
    except TypeError:
        return equation
    return firsts.setdefault(key, equation)


class _Params(tuple):
    """Sorted (name, value) pairs."""

    __slots__ = ()


def _operand(atom: Atom, replacements: Mapping[Var, Atom]) -> Hashable:
    if isinstance(atom, Literal):
        return atom.key
    return replacements.get(atom, atom)


def _typed(value: object, value_of: Callable[[Program], Hashable]) -> Hashable:
    """The key of a value; a program by `value_of`."""
    if isinstance(value, tuple):
        return tuple, tuple(_typed(x, value_of) for x in value)
    return value_of(value) if isinstance(value, Program) else value_key(value)


def _itself(program: Program) -> Hashable:
    return program


@dataclass(frozen=True, slots=True, eq=False)
class _Structure:
    """A program, equal to others that differ only in the names of their variables."""

    program: Program

    def __hash__(self) -> int:
        program = self.program
        return hash((program.input_types, program.output_types, len(program.equations)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and same_program(self.program, other.program)


PASS = Pass("eliminate-common", "compute equal equations once", eliminate_common)
