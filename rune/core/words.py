"""What a program says, as bytes: for caches that outlive the process.

Two programs share these bytes only if they compile to the same code: every type, operand, literal
and parameter is in them, numbers to the last bit. A parameter that is not a value (a Python
function, an array, a symbolic size), an operation of a user's and one with an effect have no words,
and a program with one of them has none: nothing is left out to make two programs look alike. Of a
call that stands for a program it runs once, that program is what counts: rules for derivatives are
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
    """Something that bytes cannot say."""


def program_words(program: Program) -> bytes | None:
    """The bytes; None where there are none."""
    try:
        return "\n".join(_program(program, {})).encode()
    except _Wordless:
        return None


def value_words(value: object) -> bytes | None:
    """The bytes of a value such as parameters have; None where there are none."""
    try:
        return _value(value, {}).encode()
    except _Wordless:
        return None


def _program(program: Program, numbered: dict[Program, int]) -> Iterator[str]:
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
        yield f"{_operation(equation, numbered)} ({operands}) -> {bound(equation.results)}"
    yield f"}} ({', '.join(map(atom, program.outputs))})"


def _operation(equation: Equation, numbered: dict[Program, int]) -> str:
    primitive, params = equation.primitive, equation.params
    is_higher = isinstance(primitive, HigherOrder)
    if primitive.family == EXTENSION or (primitive.effect is not None and not is_higher):
        raise _Wordless
    if is_higher and primitive.lower is None and primitive.expand is None:
        called = equation_program(equation)
        if called is not None:
            return f"call {_value(called, numbered)}"
    settings = ", ".join(f"{name}={_value(params[name], numbered)}" for name in sorted(params))
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


def _value(value: object, numbered: dict[Program, int]) -> str:
    match value:
        case Program():
            if value in numbered:  # held twice: written out once
                return f"program {numbered[value]}"
            numbered[value] = len(numbered)
            return "\n".join(_program(value, numbered))
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
            return f"({''.join(f'{_value(v, numbered)}, ' for v in value)})"
        case _ if type(value) is frozenset:
            return f"{{{', '.join(sorted(_value(v, numbered) for v in value))}}}"
        case _ if is_dataclass(value) and not isinstance(value, type):
            inner = ", ".join(f"{f.name}={_value(getattr(value, f.name), numbered)}" for f in fields(value))
            return f"{type(value).__module__}.{type(value).__qualname__}({inner})"
    raise _Wordless
