"""Compare indices in 32 bits if their bounds allow it.

Before   1000*i + j < 500000         in i64, the dtype of indices as values
After    i32(1000*i + j) < 500000

Invariant: values stay the same. Cost: linear in the code.
"""

from __future__ import annotations

from dataclasses import replace

from rune import dtypes
from rune.lowering.codegen.index_width import is_short
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Op, const
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import map_exprs
from rune.lowering.scalar.table import COMPARISONS


def compare_in_32_bits(code: KernelCode) -> KernelCode:
    """The code with comparisons of short indices in 32 bits."""
    body = map_exprs(_compared, code.body)
    return code if body == code.body else replace(code, body=body)


def _compared(part: Expr) -> Expr:
    if isinstance(part, Op) and part.name in COMPARISONS and all(map(_is_short, part.args)):
        return replace(part, args=tuple(map(_shortened, part.args)))
    return part


def _is_short(arg: Expr) -> bool:
    match arg:
        case Index(dim=dim):
            return is_short(dim)
        case Const(dtype=dtypes.i64):
            return is_short(int(arg.value))
        case _:
            return False


def _shortened(arg: Expr) -> Expr:
    return const(int(arg.value), dtypes.i32) if isinstance(arg, Const) else Cast(arg, dtypes.i32)


__all__ = ["compare_in_32_bits"]
