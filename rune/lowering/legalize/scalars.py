"""Functions of kernel code for the operations that few devices compute exactly enough.

    expansion("log2", f32)  ->  Function("log2_f32", (a,), body, result)

A body is straight-line statements of kernel code, here and there a loop, over operations that
every renderer has: arithmetic, comparisons, bits, roots and roundings of the function's own
dtype. A renderer writes each function that it needs once, and calls it.

Not here: f16 and bf16, which are computed in f32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import Expr, Local
from rune.lowering.kernel.nodes import Stmt
from rune.lowering.legalize.formats import to_odd
from rune.lowering.legalize.recorder import Block, Recorded
from rune.lowering.scalar.number import Number
from rune.lowering.scalar.table import OPERATIONS


@dataclass(frozen=True, slots=True)
class Function:
    """A function of scalars: statements, then its value."""

    name: str
    params: tuple[Local, ...]
    body: tuple[Stmt, ...]
    result: Expr


@functools.cache
def expansion(name: str, dtype: np.dtype) -> Function | None:
    """The function for an operation on operands of a dtype; None where there is none.

    >>> log = expansion("log", dtypes.f32)
    >>> log.name, log.params[0].name, expansion("add", dtypes.f32)
    ('log_f32', 'a', None)
    """
    form = OPERATIONS[name].form(dtype)
    return None if form is None else _recorded(name, dtype, OPERATIONS[name].arity, form)


@functools.cache
def conversion(source: np.dtype, target: np.dtype) -> Function | None:
    """The function that converts between two dtypes; None where every renderer does it itself."""
    if (source, target) != (dtypes.f64, dtypes.f16):
        return None
    return _recorded("to_f16", source, 1, _to_f16)


def _recorded(name: str, dtype: np.dtype, arity: int, write: Callable[..., Number]) -> Function:
    params = tuple(Local("abc"[k], dtype) for k in range(arity))
    block = Block()
    result = write(*(Recorded(block, p) for p in params))
    assert isinstance(result, Recorded)
    return Function(f"{name}_{dtypes.short(dtype)}", params, tuple(block.stmts), result.expr)


def _to_f16(x: Recorded) -> Recorded:
    """f64 rounded once, though the device may convert by way of f32."""
    return x.bound(to_odd(x.expr, x.block.bind)).convert(dtypes.f16)
