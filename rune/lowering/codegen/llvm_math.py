"""Our own mathematical functions as LLVM IR: the table of them.

Names are those of scalar/table.py; values are of type float or double, scalars or vectors of any
number of lanes. A function appends its instructions to the writer of its arguments: it is part of
the loop that calls it, and runs in all lanes at once. A kernel that uses one very often calls it,
since LLVM's time grows with the text. Error: at most 2 ulp, where sin, cos and tan leave very large
arguments to the C library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rune.lowering.codegen import llvm_math_error as error
from rune.lowering.codegen import llvm_math_exp as e
from rune.lowering.codegen import llvm_math_power as power
from rune.lowering.codegen import llvm_math_trig as trig
from rune.lowering.codegen.llvm_names import suffix
from rune.lowering.codegen.llvm_text import Value, Writer

Function = Callable[..., Value]

UNARY: dict[str, Function] = {
    "exp": e.exp, "exp2": e.exp2, "expm1": e.expm1, "log": e.log, "log2": e.log2,
    "log1p": e.log1p, "sinh": e.sinh, "cosh": e.cosh, "tanh": e.tanh, "logistic": e.logistic,
    "sin": trig.sin, "cos": trig.cos, "tan": trig.tan,
    "asin": trig.asin, "acos": trig.acos, "atan": trig.atan,
    "erf": error.erf, "erfc": error.erfc, "erf_inv": error.erf_inv,
    "asinh": power.asinh, "acosh": power.acosh, "atanh": power.atanh, "cbrt": power.cbrt,
}  # fmt: skip
BINARY: dict[str, Function] = {"pow": power.pow, "atan2": trig.atan2}
FUNCTIONS = UNARY | BINARY


def apply(name: str, *args: Value) -> Value:
    """Append the function, or a call of it, to the writer of its arguments."""
    writer = args[0].writer
    if name not in writer.called:
        return FUNCTIONS[name](*args)
    types = tuple(a.type for a in args)
    text, declared = _function(name, types, writer.scalef)
    writer.declared |= {text, *declared}
    return writer.call(types[0], _symbol(name, types[0]), *args)


@functools.cache
def _function(
    name: str, types: tuple[str, ...], scalef: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """A mathematical function out of line, and the declarations that it needs."""
    writer = Writer(scalef=scalef, block="start")
    args = [Value(writer, type, f"%x{k}") for k, type in enumerate(types)]
    value = FUNCTIONS[name](*args)
    parameters = ", ".join(f"{a.type} {a.text}" for a in args)
    head = f"define internal {value.type} {_symbol(name, types[0])}({parameters}) #0 {{"
    lines = [head, "entry:", *writer.entry, "  br label %start", "start:", *writer.lines]
    return "\n".join([*lines, f"  ret {value.type} {value.text}", "}"]), frozenset(writer.declared)


def _symbol(name: str, type: str) -> str:
    return f"@math.{name}.{suffix(type)}"
