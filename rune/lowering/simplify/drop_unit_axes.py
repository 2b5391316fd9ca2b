"""Drop unit axes: elementwise equations run on shapes without axes of size 1.

Before   %1: f32[8,1] = reshape %0;  %2: f32[8,1] = log %1
After    %1: f32[8] = reshape %0;  %3: f32[8] = log %1;  %2: f32[8,1] = reshape %3
Invariant: every value is the same; reshapes are index expressions and cost nothing.
Cost:      linear in the number of equations.

A row's statistic kept as [n, 1] is then a value per row, and fuses as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rune.core.lower import Bitcast, Convert, Scalar
from rune.core.program import Atom, Equation, Program, Var
from rune.core.types import ArrayType
from rune.lowering.passes import Pass
from rune.ops.family import reshape


def drop_unit_axes(program: Program) -> Program:
    """The program with every elementwise equation on squeezed shapes."""
    if not any(map(_has_unit_axes, program.equations)):
        return program
    return program.with_equations(
        (new for e in program.equations for new in _squeezed(e)), program.outputs
    )


def _has_unit_axes(equation: Equation) -> bool:
    elementwise = isinstance(equation.primitive.lower, Scalar | Convert | Bitcast)
    return elementwise and any(d == 1 for d in equation.results[0].type.shape)


def _without_ones(type: ArrayType) -> ArrayType:
    return type.with_shape(tuple(d for d in type.shape if d != 1))


def _reshaped(source: Atom, target: Var, equation: Equation) -> Equation:
    return Equation(reshape, (source,), {"shape": target.type.shape}, (target,), equation.frame)


def _squeezed(equation: Equation) -> Iterator[Equation]:
    if not _has_unit_axes(equation):
        yield equation
        return
    operands: list[Atom] = []
    for atom in equation.operands:
        small = _without_ones(atom.type)
        if small is atom.type:
            operands.append(atom)
            continue
        squeezed = Var(small)
        yield _reshaped(atom, squeezed, equation)
        operands.append(squeezed)
    (result,) = equation.results
    computed = Var(_without_ones(result.type))
    yield replace(equation, operands=tuple(operands), results=(computed,))
    yield _reshaped(computed, result, equation)


PASS = Pass("drop-unit-axes", "run elementwise equations without axes of size 1", drop_unit_axes)
