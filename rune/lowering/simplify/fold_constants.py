"""Fold constants: compute now what depends only on literals.

Before   %1: f32[] = mul 2.0, 3.0;  %2 = add %0, %1       After   %2 = add %0, 6.0
Before   %1: f32[8] = broadcast 2.0;  %2 = mul %0, %1     After   %2 = mul %0, 2.0

Only rank-0 values are folded, by the primitive's own meaning and in the dtype of the program, never
in the host's double. Logarithms or sines are not folded: executors have polynomials of their own,
and a number must have the same bits whether or not it was known while tracing. A rank-0 value that
was broadcast for an elementwise operation becomes an operand without the broadcast.

Invariant: every value keeps its bits.  Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rune.core.lower import Bitcast, Convert, Lowering, Scalar, View
from rune.core.program import Atom, Equation, Literal, Program, Var, substitute
from rune.core.types import ArrayType
from rune.lowering.passes import Pass
from rune.lowering.scalar.table import OPERATIONS
from rune.ops.family import broadcast
from rune.records import replace

ELEMENTWISE = (Scalar, Convert, Bitcast)


def fold_constants(program: Program) -> Program:
    """The program with rank-0 constants computed and placed where they are used."""
    replacements: dict[Var, Atom] = {}
    scalars: dict[Var, Atom] = {}  # broadcasts of one rank-0 value
    body: list[Equation] = []
    for equation in program.equations:
        new_equation = resolved(equation, replacements)
        new_equation = _with_scalars(new_equation, scalars)
        constant = _fold(new_equation)
        if constant is not None:
            replacements[equation.results[0]] = constant
            continue
        body.append(new_equation)
        if (source := _broadcast_scalar(new_equation)) is not None:
            scalars[new_equation.results[0]] = source
    if not replacements and all(a is b for a, b in zip(body, program.equations)):
        return program
    return substitute(program, replacements, body)


def resolved(equation: Equation, replacements: Mapping[Var, Atom]) -> Equation:
    """The equation with the replacements of its operands."""
    if replacements.keys().isdisjoint(equation.operands):
        return equation
    return replace(equation, operands=_replaced(equation.operands, replacements))


def _replaced(operands: Iterable[Atom], replacements: Mapping[Var, Atom]) -> tuple[Atom, ...]:
    return tuple([replacements.get(a, a) if isinstance(a, Var) else a for a in operands])


def _broadcast_scalar(equation: Equation) -> Atom | None:
    """The rank-0 operand of a broadcast, if the equation is one."""
    if equation.primitive is not broadcast or equation.operands[0].type.shape:
        return None
    return equation.operands[0]


def _with_scalars(equation: Equation, scalars: Mapping[Var, Atom]) -> Equation:
    """An elementwise equation with rank-0 operands in place of their broadcasts."""
    if not isinstance(equation.primitive.lower, ELEMENTWISE):
        return equation
    if scalars.keys().isdisjoint(equation.operands):
        return equation
    operands = _replaced(equation.operands, scalars)
    if not any(a.type.shape for a in operands):
        return equation  # the result would lose its shape; `narrow` handles that case
    new_equation = replace(equation, operands=operands)
    return new_equation if type_of_result(new_equation) is equation.results[0].type else equation


def type_of_result(equation: Equation) -> ArrayType:
    """The type of an equation's result, by the rule of its primitive."""
    return equation.primitive.type_rule(*(a.type for a in equation.operands), **equation.params)


def _fold(equation: Equation) -> Literal | None:
    """The value of a rank-0 equation whose operands are all literals."""
    primitive, results = equation.primitive, equation.results
    if len(results) != 1 or results[0].type.shape or primitive.reference is None or primitive.lower is None:
        return None
    # An operation without operands, such as iota, is not folded.
    if not equation.operands or not all(isinstance(a, Literal) for a in equation.operands):
        return None
    if not _is_exact(primitive.lower):
        return None
    values = [a.value for a in equation.operands if isinstance(a, Literal)]
    # Overflow and division by zero give values here, as they do when the program runs.
    with np.errstate(all="ignore"):
        value = np.asarray(primitive.reference(*values, **equation.params))
    return Literal(value.astype(results[0].type.dtype, copy=False), results[0].type)


def _is_exact(lower: Lowering | None) -> bool:
    """Whether every executor computes the same bits as the primitive's meaning."""
    match lower:
        case Scalar(op=op):
            return OPERATIONS[op].is_exact
        case _:
            # Conversions, bit casts and views give the same bits everywhere.
            return isinstance(lower, (*ELEMENTWISE, View))


PASS = Pass("fold-constants", "compute what depends on literals alone", fold_constants)
