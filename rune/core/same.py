"""Structural equality of programs: equal but for which variables they use, names and frames.

Programs and variables are compared by identity elsewhere; this is for tests and for finding
programs that are written twice. Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rune.core.program import Atom, Equation, Literal, Program, Var


def same_program(a: Program, b: Program) -> bool:
    """Whether the two are the same equations, constants and results, in the same order."""
    if a is b:
        return True
    match: dict[Var, Var] = {}
    return (
        _bound(match, tuple(v for v, _ in a.constants), tuple(v for v, _ in b.constants))
        and all(_same_value(x, y) for (_, x), (_, y) in zip(a.constants, b.constants))
        and _bound(match, a.inputs, b.inputs)
        and len(a.equations) == len(b.equations)
        and all(_same_equation(match, e, f) for e, f in zip(a.equations, b.equations))
        and _same_atoms(match, a.outputs, b.outputs)
    )


def _bound(match: dict[Var, Var], left: tuple[Var, ...], right: tuple[Var, ...]) -> bool:
    """Pair variables at their binding; False where their types differ."""
    match.update(zip(left, right))
    return [v.type for v in left] == [v.type for v in right]


def _same_equation(match: dict[Var, Var], a: Equation, b: Equation) -> bool:
    return (
        a.primitive is b.primitive
        and _same_atoms(match, a.operands, b.operands)
        and _same_params(a.params, b.params)
        and _bound(match, a.results, b.results)
    )


def _same_atoms(match: Mapping[Var, Var], left: tuple[Atom, ...], right: tuple[Atom, ...]) -> bool:
    return len(left) == len(right) and all(
        _same_literal(x, y) if isinstance(x, Literal) else match.get(x) is y
        for x, y in zip(left, right)
    )


def _same_literal(a: Literal, b: Atom) -> bool:
    return isinstance(b, Literal) and a.type is b.type and _same_value(a.value, b.value)


def _same_params(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(_same_param(a[k], b[k]) for k in a)


def _same_param(a: Any, b: Any) -> bool:
    if isinstance(a, Program) and isinstance(b, Program):
        return same_program(a, b)
    return type(a) is type(b) and a == b


def _same_value(a: Any, b: Any) -> bool:
    """Equal bits, but for the payload of NaNs, which text does not show."""
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return x.tobytes() == y.tobytes() or _same_but_nan(x, y)


def _same_but_nan(x: np.ndarray, y: np.ndarray) -> bool:
    if x.dtype.kind in "biu":
        return False
    if x.dtype.kind == "c":
        x, y = (np.stack([np.real(v), np.imag(v)]) for v in (x, y))
    nan = x != x
    zeros = np.where(nan, np.zeros((), x.dtype), x), np.where(nan, np.zeros((), x.dtype), y)
    return bool((nan == (y != y)).all()) and zeros[0].tobytes() == zeros[1].tobytes()
