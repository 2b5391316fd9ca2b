"""Structural equality of programs: equal up to variables, names and frames.

Elsewhere programs and variables are compared by identity; this is for tests and for finding
duplicate programs. Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.core.value_keys import value_key


def same_program(a: Program, b: Program) -> bool:
    """Whether both have the same equations, constants and results, in the same order."""
    if a is b:
        return True
    match: dict[Var, Var] = {}
    return (
        _bound(match, tuple(v for v, _ in a.constants), tuple(v for v, _ in b.constants))
        and all(_same_constant(*pair) for pair in zip(a.constants, b.constants))
        and _bound(match, a.inputs, b.inputs)
        and len(a.equations) == len(b.equations)
        and all(_same_equation(match, e, f) for e, f in zip(a.equations, b.equations))
        and _same_atoms(match, a.outputs, b.outputs)
    )


def _bound(match: dict[Var, Var], first: tuple[Var, ...], second: tuple[Var, ...]) -> bool:
    """Pair variables where they are bound; False if their types differ."""
    match.update(zip(first, second))
    return [v.type for v in first] == [v.type for v in second]


def _same_constant(a: tuple[Var, object], b: tuple[Var, object]) -> bool:
    (x, value), (y, other) = a, b
    return _same_value(np.asarray(value, x.type.dtype), np.asarray(other, y.type.dtype))


def _same_equation(match: dict[Var, Var], a: Equation, b: Equation) -> bool:
    return (
        a.primitive is b.primitive
        and _same_atoms(match, a.operands, b.operands)
        and _same_params(a.params, b.params)
        and _bound(match, a.results, b.results)
    )


def _same_atoms(match: Mapping[Var, Var], first: tuple[Atom, ...], second: tuple[Atom, ...]) -> bool:
    return len(first) == len(second) and all(
        _same_literal(x, y) if isinstance(x, Literal) else match.get(x) is y for x, y in zip(first, second)
    )


def _same_literal(a: Literal, b: Atom) -> bool:
    return isinstance(b, Literal) and a.type is b.type and _same_value(a.value, b.value)


def _same_params(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    return a.keys() == b.keys() and all(_same_param(a[k], b[k]) for k in a)


def _same_param(a: object, b: object) -> bool:
    if isinstance(a, Program) and isinstance(b, Program):
        return same_program(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same_param(x, y) for x, y in zip(a, b))
    if a is b or type(a) is not type(b):
        return a is b
    try:
        return value_key(a) == value_key(b)
    except TypeError:  # it has an element without a hash
        return a == b


def _same_value(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the bits are equal, except for the payload of NaNs, which text does not show."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return x.tobytes() == y.tobytes() or _same_but_nan(x, y)


def _same_but_nan(x: np.ndarray, y: np.ndarray) -> bool:
    if x.dtype.kind in "biu" or x.dtype in dtypes.KEYS:
        return False
    if x.dtype.kind == "c":
        x, y = (np.stack([np.real(v), np.imag(v)]) for v in (x, y))
    nan = x != x
    zeros = np.where(nan, np.zeros((), x.dtype), x), np.where(nan, np.zeros((), x.dtype), y)
    return bool((nan == (y != y)).all()) and zeros[0].tobytes() == zeros[1].tobytes()


# --- the same as a key ------------------------------------------------------------------------


def program_key(program: Program) -> tuple[Hashable, ...]:
    """A hashable value that only identical programs share, with the user's lines.

    For programs without constants. Cost: linear in the number of equations, nested ones included.
    """
    return _key(program, {})


class _Itself:
    """A parameter of a user's operation that has no hash: equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(program: Program, program_numbers: dict[Program, int]) -> tuple[Hashable, ...]:
    assert not program.constants, "captured values are inputs"
    numbers: dict[Var, int] = {}

    def bound(variables: tuple[Var, ...]) -> tuple[ArrayType, ...]:
        first = len(numbers)  # evaluated before the update, which changes it
        numbers.update((v, first + i) for i, v in enumerate(variables))
        return tuple(v.type for v in variables)

    def read(atoms: tuple[Atom, ...]) -> tuple[Any, ...]:
        return tuple(numbers[a] if isinstance(a, Var) else a.key for a in atoms)

    inputs = bound(program.inputs)
    lines = tuple(
        (e.primitive, read(e.operands), _params_key(e.params, program_numbers), bound(e.results), e.frame)
        for e in program.equations
    )
    return program.name, inputs, lines, read(program.outputs)


def _params_key(params: Mapping[str, object], program_numbers: dict[Program, int]) -> tuple[Hashable, ...]:
    return tuple((name, _param_key(params[name], program_numbers)) for name in sorted(params))


def _param_key(value: object, program_numbers: dict[Program, int]) -> Hashable:
    if isinstance(value, tuple):
        return tuple(_param_key(v, program_numbers) for v in value)
    if not isinstance(value, Program):
        try:
            hash(value)
        except TypeError:
            return _Itself(value)
        return value_key(value)
    if value in program_numbers:  # held twice: written out once
        return program_numbers[value]
    program_numbers[value] = len(program_numbers)
    return _key(value, program_numbers)
