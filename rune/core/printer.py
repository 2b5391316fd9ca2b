"""Print programs in the grammar of core/program.py. Variables are numbered in order of binding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import Tracer
from rune.core.values import Value
from rune.dims import Dim, Symbol, symbols, symbols_within

if TYPE_CHECKING:
    from rune.core.program import Atom, Equation, Program, Var
    from rune.core.types import ArrayType

INDENT = "  "
FULL = 16  # elements of a constant that are printed; a longer one is shortened


class Names:
    """Numbers for variables, in the order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[Var, int] = {}

    def of(self, var: Var) -> str:
        """`%3`."""
        return f"%{self._numbers.setdefault(var, len(self._numbers))}"

    def binding(self, var: Var) -> str:
        """`%3: f32[4]`."""
        return f"{self.of(var)}: {var.type}"

    def atom(self, atom: Atom) -> str:
        """A variable, or a literal with its type."""
        value = getattr(atom, "value", None)
        return self.of(atom) if value is None else f"{scalar(value)}: {atom.type}"  # type: ignore[arg-type]


def scalar(value: np.ndarray) -> str:
    """A rank-0 value as text from which the same number can be read back."""
    if value.dtype == dtypes.bool_:
        return "true" if value else "false"
    if value.dtype in dtypes.COMPLEX:
        return repr(complex(value))
    if value.dtype in dtypes.KEYS:
        high, low = dtypes.stored_words(value).tolist()
        return hex(high << 32 | low)
    if value.dtype in dtypes.INTEGER:
        return str(int(value))
    shortest = value.dtype in (dtypes.f32, dtypes.f16)
    return str(value[()]) if shortest else repr(float(value))


def program_text(program: Program, *, frames: bool = False, depth: int = 0) -> str:
    """The program; with `frames`, each equation's source line as a trailing comment."""
    names, pad = Names(), INDENT * depth
    inputs = ", ".join(map(names.binding, program.inputs))
    lines = [f"program {program.name}({inputs}){_where(program)} {{"]
    for var, value in program.constants:
        lines.append(f"{pad}{INDENT}const {names.binding(var)} = {array(value, var.type.dtype)}")
    lines += [f"{pad}{INDENT}{_equation(e, names, frames, depth + 1)}" for e in program.equations]
    outputs = ", ".join(map(names.atom, program.outputs))
    lines.append(f"{pad}{INDENT}return {outputs}".rstrip())
    return "\n".join([*lines, f"{pad}}}"])


def _where(program: Program) -> str:
    sizes = {s for t in _all_types(program) for s in _sizes(t.shape)}
    sizes |= {s for e in program.equations for s in _sizes(tuple(e.params.values()))}
    if not sizes:
        return ""
    bounds = (x for s in sizes for x in (s.low, 0 if s.high is None else s.high))
    sizes |= {s for dim in symbols_within(*bounds).values() for s in symbols(dim)}
    ranges = (
        f"{s.name} in {s.low}..{'inf' if s.high is None else s.high}"
        for s in sorted(sizes, key=lambda s: (s.depth, s.name))  # sizes in bounds come first
    )
    return " where " + ", ".join(ranges)


def _all_types(program: Program) -> Iterable[ArrayType]:
    yield from program.input_types
    for equation in program.equations:
        yield from (v.type for v in equation.results)


def _sizes(value: object) -> Iterable[Symbol]:
    if isinstance(value, Dim):
        yield from symbols(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _sizes(item)
    elif is_dataclass(value) and not hasattr(value, "equations") and not isinstance(value, type):
        yield from _sizes(tuple(getattr(value, f.name) for f in fields(value)))


def _equation(equation: Equation, names: Names, frames: bool, depth: int) -> str:
    operands = " ".join([equation.primitive.name, ", ".join(map(names.atom, equation.operands))])
    results = ", ".join(map(names.binding, equation.results))
    params = ", ".join(f"{k}={param(v, depth)}" for k, v in sorted(equation.params.items()))
    text = f"{results} = {operands.rstrip()}" + (f" {{{params}}}" if params else "")
    return f"{text}  # {equation.frame.short}" if frames and equation.frame else text


def param(value: Any, depth: int = 0) -> str:
    """A static parameter."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "(" + ", ".join(param(v, depth) for v in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, np.dtype):
        return dtypes.short(value)
    if isinstance(value, str):
        return repr(value)
    if hasattr(value, "equations"):
        return program_text(value, depth=depth)
    if _is_record(value):
        inner = ", ".join(f"{f.name}={param(getattr(value, f.name), depth)}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    return str(value)


def _is_record(value: object) -> bool:
    """Whether a value is a dataclass that prints as its fields, and not only as a name."""
    if not is_dataclass(value) or isinstance(value, Dim | type):
        return False
    return type(value).__dataclass_params__.repr  # type: ignore[attr-defined]


def array(value: Value, dtype: np.dtype) -> str:
    """A constant: all elements, exactly, or the first and last of more than FULL elements."""
    if isinstance(value, Tracer):
        return "..."  # traced outside the program: it has no elements yet
    data = np.asarray(value, dtype)
    if data.size <= FULL:
        return _nested(data)
    flat = data.reshape(-1)
    ends = [*map(scalar, flat[:2]), "...", *map(scalar, flat[-2:])]
    return f"[{', '.join(ends)}]"


def _nested(data: np.ndarray) -> str:
    items = (_nested(np.asarray(item)) for item in data) if data.ndim else ()
    return f"[{', '.join(items)}]" if data.ndim else scalar(data)
