"""Reciprocals: scores that are divided by a sum of scores are multiplied by its reciprocal.

Before   p = e / broadcast l                       l, the sum of e: one for each row
After    r = 1 / l;  p = e · broadcast r

A quotient takes ten instructions or more, and there are many scores but few sums. A sum of weights
relative to a peak is at least 1, so its reciprocal cannot overflow.

Invariant: values stay the same except for rounding.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rune.core.primitive import Primitive
from rune.core.program import Definitions, Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.lowering.kernelize.equations import apply
from rune.lowering.kernelize.scores import Component
from rune.lowering.kernelize.tracing import generic, same_elements, trace
from rune.ops.arithmetic import div, mul, sub
from rune.ops.family import broadcast, reduce_sum
from rune.ops.reduction import reduce_max
from rune.ops.transcendental import exp


def multiply_by_reciprocals(program: Program, components: Iterable[Component]) -> Program:
    """The program with products in place of quotients of scores by sums of exponentials."""
    definitions = program.definitions
    scores = {v for c in components for v in c.values}
    reciprocals: dict[Var, Var] = {}
    body: list[Equation] = []
    for equation in program.equations:
        divisor = _divisor(equation, definitions) if equation.results and equation.results[0] in scores else None
        if divisor is None:
            body.append(equation)
            continue
        spread, total = divisor
        if total not in reciprocals:
            one = Literal(np.ones((), total.type.dtype), ArrayType((), total.type.dtype))
            reciprocals[total] = apply(body, div, one, total)
        factor = apply(body, broadcast, reciprocals[total], **spread.params)
        body.append(replace(equation, primitive=mul, operands=(equation.operands[0], factor)))
    return program.with_equations(body, program.outputs)


def _divisor(equation: Equation, definitions: Definitions) -> tuple[Equation, Var] | None:
    """The broadcast of a sum of exponentials that an equation divides by, and the sum."""
    if equation.primitive is not div or not isinstance(equation.operands[1], Var):
        return None
    spread = definitions.get(equation.operands[1])
    total = spread.operands[0] if spread is not None and spread.primitive is broadcast else None
    if spread is None or not isinstance(total, Var):
        return None
    base = same_elements(total, definitions)
    sum_equation = definitions.get(base)
    return (spread, total) if _is_least_one(sum_equation, definitions) else None


def _is_least_one(total: Equation | None, definitions: Definitions) -> bool:
    """Whether a sum is of exponentials of x - max x, the largest of which is 1."""
    if total is None or total.primitive is not reduce_sum:
        return False
    weight = definitions.get(total.operands[0])
    shift = _definition(weight, exp, definitions)
    if shift is None or shift.primitive is not sub:
        return False
    score, peak = shift.operands
    base, _ = trace(peak, generic(peak.type.shape), definitions)
    largest = definitions.get(base)
    if largest is None or largest.primitive is not reduce_max or largest.params["axes"] != total.params["axes"]:
        return False
    indices = generic(score.type.shape)
    return trace(score, indices, definitions) == trace(largest.operands[0], indices, definitions)


def _definition(equation: Equation | None, primitive: Primitive, definitions: Definitions) -> Equation | None:
    """The equation of the operand of an equation, if that one is of a primitive."""
    if equation is None or equation.primitive is not primitive or not isinstance(equation.operands[0], Var):
        return None
    return definitions.get(equation.operands[0])


__all__ = ["multiply_by_reciprocals"]
