"""Eliminate common equations: the same operation on the same operands is done once.

Before   %1 = exp %0;  %2 = exp %0;  %3 = add %1, %2      After   %1 = exp %0;  %3 = add %1, %1
Invariant: primitive, operands (literals by bits), parameters (by type and value) and result types
           are all compared whole; equal hashes alone decide nothing.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from rune.core.program import Atom, Equation, Literal, Program, Var, substitute
from rune.core.side_effects import effect_of
from rune.lowering.passes import Pass


def eliminate_common(program: Program) -> Program:
    """The program with every repeated equation replaced by its first occurrence."""
    firsts: dict[Hashable, Equation] = {}
    replaced: dict[Var, Atom] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        key = _key(equation, replaced)
        first = None if key is None else firsts.setdefault(key, equation)
        if first is None or first is equation:
            equations.append(equation)
        else:
            # Later keys use the first result, so chains of duplicates collapse in one walk.
            replaced.update(zip(equation.results, first.results))
    return substitute(program, replaced, equations) if replaced else program


def _key(equation: Equation, replaced: Mapping[Var, Atom]) -> Hashable | None:
    """What equal equations have in common; None for one that must stay or cannot be compared."""
    # Equal effects are still two: a callback runs as often as it is written.
    if effect_of(equation) is not None:
        return None
    operands = tuple(_operand(a, replaced) for a in equation.operands)
    params = tuple(sorted((name, _typed(v)) for name, v in equation.params.items()))
    key = (equation.primitive, operands, _Params(params), tuple(v.type for v in equation.results))
    # Parameters may be unhashable, such as lists; such equations are not shared.
    try:
        hash(key)
    except TypeError:
        return None
    return key


class _Params(tuple):
    """Sorted (name, value) pairs."""

    __slots__ = ()


def _operand(atom: Atom, replaced: Mapping[Var, Atom]) -> Hashable:
    if isinstance(atom, Literal):
        return atom.key
    return replaced.get(atom, atom)


def _typed(value: object) -> Hashable:
    """The value with its type, because 1, 1.0 and True are equal."""
    if isinstance(value, tuple):
        return tuple, tuple(map(_typed, value))
    return type(value), value


PASS = Pass("eliminate-common", "compute equal equations once", eliminate_common)
