"""Zeros that no compiler recognises, for drivers that simplify literal ones incorrectly.

Before   x * 0.0
After    x * bitcast(zero)        where `zero` is a u32 that the kernel computes at run time

Mesa's CPU driver folds x * 0.0 to 0.0 and x + 0.0 to x, whatever x is and the module requests.

Invariant: values stay the same. Cost: linear in the code.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import Cast, Const, Expr, Local, Op, const
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import all_names, fresh, map_exprs

_FOLDED = frozenset({"add", "sub", "mul", "div"})
_SIGN = 1 << 31


def hide_zeros(code: KernelCode) -> tuple[KernelCode, str | None]:
    """The code, and the name of the u32 that replaces its zeros; None if it computes with none."""
    zero = Local(fresh("zero", all_names(code)), dtypes.u32)

    def hidden(arg: Expr) -> Expr:
        if not (isinstance(arg, Const) and arg.dtype in dtypes.FLOATING and arg.value == 0):
            return arg
        bits = Op("or", (zero, const(_SIGN, dtypes.u32)), dtypes.u32) if np.signbit(arg.value) else zero
        number = Op("bitcast", (bits,), dtypes.f32)
        return number if arg.dtype == dtypes.f32 else Cast(number, arg.dtype)

    def on_expr(part: Expr) -> Expr:
        if isinstance(part, Op) and part.name in _FOLDED:
            return replace(part, args=tuple(map(hidden, part.args)))
        return part

    body = map_exprs(on_expr, code.body)
    return (code, None) if body == code.body else (replace(code, body=body), zero.name)


__all__ = ["hide_zeros"]
