"""The words of a program: its content as bytes, for caches that outlive the process.

Two programs have the same bytes only if they compile to the same code: every type, operand, literal
and parameter is in them, numbers to the last bit. A parameter that is not a value (a Python
function, an array, a symbolic size), a user's operation and an operation with an effect have no
words, and neither has a program with one of them: nothing is left out that would make two programs
look alike. A call that runs a program once has the words of that program: rules for derivatives are
not compiled.

Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

import numpy as np

from rune import dtypes
from rune.core.higher import HigherOrder, equation_program
from rune.core.primitive import EXTENSION
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.types import ArrayType


class _Wordless(Exception):
    """Something that has no words."""


def program_words(program: Program) -> bytes | None:
    """The bytes of a program; None if it has no words."""
    try:
        return "\n".join(_program(program, {})).encode()
    except _Wordless:
        return None


def value_words(value: object) -> bytes | None:
    """The bytes of the value of a parameter; None if it has no words."""
    try:
        return _value(value, {}).encode()
    except _Wordless:
        return None


def _program(program: Program, program_numbers: dict[Program, int]) -> Iterator[str]:
    if program.constants:
        raise _Wordless
    numbers: dict[Var, int] = {}

    def bound(variables: Iterable[Var]) -> str:
        names = list(variables)
        numbers.update(zip(names, range(len(numbers), len(numbers) + len(names)), strict=True))
        return ", ".join(_type(v.type) for v in names)

    def atom(a: Atom) -> str:
        return _literal(a) if isinstance(a, Literal) else f"%{numbers[a]}"

    yield f"program {program.name!r} ({bound(program.inputs)}) {{"
    for equation in program.equations:
        operands = ", ".join(map(atom, equation.operands))
        yield f"{_operation(equation, program_numbers)} ({operands}) -> {bound(equation.results)}"
    yield f"}} ({', '.join(map(atom, program.outputs))})"


def _operation(equation: Equation, program_numbers: dict[Program, int]) -> str:
    primitive, params = equation.primitive, equation.params
    is_higher = isinstance(primitive, HigherOrder)
    if primitive.family == EXTENSION or (primitive.effect is not None and not is_higher):
        raise _Wordless
    if is_higher and primitive.lower is None and primitive.expand is None:
        called = equation_program(equation)
        if called is not None:
            return f"call {_value(called, program_numbers)}"
    settings = ", ".join(f"{name}={_value(params[name], program_numbers)}" for name in sorted(params))
    return f"{primitive.family}.{primitive.name} {{{settings}}}"


def _literal(literal: Literal) -> str:
    value = np.asarray(literal.value)
    return f"{_type(literal.type)} {value.dtype.str} {value.tobytes().hex()}"


def _type(type: ArrayType) -> str:
    if type.is_symbolic or type.varying:
        raise _Wordless
    return f"{_dtype(type.dtype)}{list(type.shape)}{'*' if type.weak else ''}"


def _dtype(dtype: np.dtype) -> str:
    return f"{dtypes.short(dtype)}:{dtype.str}"


def _value(value: object, program_numbers: dict[Program, int]) -> str:
    match value:
        case Program():
            if value in program_numbers:  # held twice: written out once
                return f"program {program_numbers[value]}"
            program_numbers[value] = len(program_numbers)
            return "\n".join(_program(value, program_numbers))
        case ArrayType():
            return _type(value)
        case np.dtype():
            return _dtype(value)
        case Enum():
            return f"{type(value).__module__}.{type(value).__qualname__}.{value.name}"
        case _ if type(value) is float:
            return value.hex()
        case _ if type(value) in (bool, int, str, complex, type(None)):
            return repr(value)
        case _ if type(value) is tuple:
            return f"({''.join(f'{_value(v, program_numbers)}, ' for v in value)})"
        case _ if type(value) is frozenset:
            return f"{{{', '.join(sorted(_value(v, program_numbers) for v in value))}}}"
        case _ if is_dataclass(value) and not isinstance(value, type):
            inner = ", ".join(f"{f.name}={_value(getattr(value, f.name), program_numbers)}" for f in fields(value))
            return f"{type(value).__module__}.{type(value).__qualname__}({inner})"
    raise _Wordless
