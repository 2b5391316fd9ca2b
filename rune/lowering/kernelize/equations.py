"""Equations that passes of kernelize write in place of others."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Var
from rune.core.types import ArrayType
from rune.lowering.kernel.check import COMBINE
from rune.ops.arithmetic import convert

A = TypeVar("A", Atom, Var)


def apply(equations: list[Equation], primitive: Primitive, *operands: Atom, **params: object) -> Var:
    """Append an equation to `equations`, and return its result."""
    result = Var(primitive.type_rule(*(a.type for a in operands), **params))
    equations.append(Equation(primitive, operands, params, (result,)))
    return result


def cast(equations: list[Equation], x: A, dtype: np.dtype) -> A | Var:
    """The value in a dtype; itself if it has that one."""
    return x if x.type.dtype == dtype else apply(equations, convert, x, dtype=dtype)


def in_place_of(equation: Equation, equations: list[Equation]) -> list[Equation]:
    """The equations with the result of the one that they replace, and with its line.

    The last of them yields that result, so readers need no change.
    """
    equations[-1] = replace(equations[-1], results=equation.results)
    return [replace(e, frame=equation.frame) for e in equations]


def identity(combine: str, type: ArrayType) -> Literal:
    """The identity of a reduction of this type, such as 0 of a sum."""
    value = np.asarray(COMBINE[combine].identity(type.dtype).value)
    return Literal(value, ArrayType((), type.dtype))


def is_among(equation: Equation, values: Container[Var]) -> bool:
    """Whether the first result of an equation is one of these values."""
    return bool(equation.results) and equation.results[0] in values
