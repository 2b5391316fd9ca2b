"""Functions that few devices compute exactly enough, as kernel code that every device runs.

    expansion("log2", f32)  ->  Function("log2_f32", (x,), body, result)

A body is straight-line statements of kernel code, here and there a loop, over operations that
every renderer has: arithmetic, comparisons, bits, roots and roundings of the function's own
dtype. A renderer writes each function that it needs once, and calls it. No error is more than
2 ulp where division and root are exact.

Not here: f16 and bf16, which are computed in f32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.lowering.codegen import math_error as error
from rune.lowering.codegen import math_exp as e
from rune.lowering.codegen import math_power as power
from rune.lowering.codegen import math_trig as trig
from rune.lowering.codegen.math_values import Block, Number
from rune.lowering.kernel.expr import SCALAR_OPS, Expr, Local
from rune.lowering.kernel.nodes import Stmt
from rune.lowering.legalize.formats import to_odd


@dataclass(frozen=True, slots=True)
class Function:
    """A function of scalars: statements, then its value."""

    name: str
    params: tuple[Local, ...]
    body: tuple[Stmt, ...]
    result: Expr


_FLOAT: dict[str, Callable[..., Number]] = {
    "exp": e.exp, "exp2": e.exp2, "expm1": e.expm1, "log": e.log, "log2": e.log2,
    "log1p": e.log1p, "sinh": e.sinh, "cosh": e.cosh, "tanh": e.tanh, "logistic": e.logistic,
    "asinh": e.asinh, "acosh": e.acosh, "atanh": e.atanh,
    "sin": trig.sin, "cos": trig.cos, "tan": trig.tan, "asin": trig.asin, "acos": trig.acos,
    "atan": trig.atan, "atan2": trig.atan2,
    "erf": error.erf, "erfc": error.erfc, "erf_inv": error.erf_inv,
    "pow": power.pow, "cbrt": power.cbrt, "rem": power.rem,
}  # fmt: skip


def _to_f16(x: Number) -> Number:
    """f64 rounded once, though the device may convert by way of f32."""
    return x.block.number(to_odd(x.expr, x.block.bind)).cast(dtypes.f16)


_TABLES: dict[np.dtype, dict[str, Callable[..., Number]]] = {
    dtypes.f32: _FLOAT,
    dtypes.f64: _FLOAT | {"to_f16": _to_f16},
    **{dtype: {"pow": power.pow_integer} for dtype in dtypes.INTEGER},
}


@functools.cache
def expansion(name: str, dtype: np.dtype) -> Function | None:
    """The function for an operation on operands of a dtype; None where there is none.

    "to_f16" is the conversion of f64 to f16.

    >>> found = expansion("exp", dtypes.f32)
    >>> found.name, found.params[0].name, expansion("add", dtypes.f32)
    ('exp_f32', 'a', None)
    """
    write = _TABLES.get(dtype, {}).get(name)
    if write is None:
        return None
    params = tuple(Local("abc"[k], dtype) for k in range(SCALAR_OPS.get(name, 1)))
    block = Block()
    result = write(*(Number(block, p) for p in params))
    return Function(f"{name}_{dtypes.short(dtype)}", params, tuple(block.stmts), result.expr)
