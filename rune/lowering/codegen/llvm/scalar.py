"""The scalar operations of kernel expressions as LLVM IR, on scalars and on vectors alike.

`spelling_of` and `convert` take register values (types.py) and follow SCALAR_MEANING to the
letter: integers wrap, float to integer saturates. Divisions and shifts are those that LLVM has;
scalar/integers.py keeps them from what traps or is undefined. No fast-math flag is set.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from rune import dtypes
from rune.lowering.codegen.llvm.ir.names import with_scalar
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.codegen.llvm.ir.types import register_type, round_to, stored_bits, value_of_bits
from rune.lowering.scalar.table import COMPARISONS

Spelling = Callable[..., Value]  # of the dtype of the operands, and these


@functools.cache
def spelling_of(name: str, operand: np.dtype) -> Spelling | None:
    """How an operation on values of this dtype is written; None for one that is a function.

    It takes the dtype of the operands (of `select`: of the values), and these; its result is not
    yet rounded to its dtype.
    """
    if name == "select":
        return lambda dtype, condition, a, b: condition.writer.select(condition, a, b)
    if name in COMPARISONS:
        predicate = _predicate(name, operand)
        return lambda dtype, a, b: a.compare(predicate, b)
    return _spellings(operand).get(name)


def _predicate(name: str, dtype: np.dtype) -> str:
    if dtype in dtypes.FLOATING:
        # Ordered predicates are false for NaN, as comparisons are; "une" is true, as != is.
        return "une" if name == "ne" else f"o{name}"
    sign = "s" if dtype in dtypes.SIGNED else "u"
    return name if name in ("eq", "ne") else f"{sign}{name}"


def _spellings(operand: np.dtype) -> Mapping[str, Spelling]:
    return _FLOATS if operand in dtypes.FLOATING else _INTEGERS


def _applied(names: str) -> dict[str, Spelling]:
    """Operations for which the type of a register says all."""
    return {name: partial(_apply, name) for name in names.split()}


def _apply(name: str, dtype: np.dtype, x: Value, *others: Value) -> Value:
    return x.apply(name, *others)


def _divided(op: str, dtype: np.dtype, a: Value, b: Value) -> Value:
    """a op b; in lanes by the division of floats, since no processor divides vectors of integers.

    a/b misses the next integer by at least 1/b, which is more than the rounding of a float with
    more bits than a has: truncating the rounded quotient gives the exact one.
    """
    sign = "s" if dtype in dtypes.SIGNED else "u"
    # LLVM divides by a constant with a multiplication; no float has more bits than an i64.
    if not a.lanes or b.is_constant or dtype.itemsize == 8:
        return a.binary(f"{sign}{op}", b)
    wide = "double" if dtype.itemsize == 4 else "float"
    quotient = a.cast(f"{sign}itofp", wide) / b.cast(f"{sign}itofp", wide)
    whole_quotient = quotient.cast(f"fpto{sign}i", a.type)
    return whole_quotient if op == "div" else a - whole_quotient * b


def _shift_right(dtype: np.dtype, x: Value, amount: Value) -> Value:
    return x.binary("ashr" if dtype in dtypes.SIGNED else "lshr", amount)


_FLOATS: Mapping[str, Spelling] = {
    **_applied("add sub mul div rem quotient neg fma sqrt root abs floor ceil round trunc copysign"),
    "is_finite": lambda dtype, x: x.abs() < math.inf,
}
_INTEGERS: Mapping[str, Spelling] = {
    **_applied("add sub mul neg and or xor not shift_left popcount"),
    "quotient": partial(_divided, "div"),
    "remainder": partial(_divided, "rem"),
    "shift_right": _shift_right,
    "clz": lambda dtype, x: x.writer.intrinsic("ctlz", x.type, x, Value(x.writer, "i1", "false")),
}


# --- conversions ------------------------------------------------------------------------------


def convert(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """A register value of dtype `source` as one of `target`; functions.py has other conversions."""
    type = with_scalar(x.type, register_type(target))
    if source == target:
        return x
    # A comparison and not a truncation: 2 is true, and so is NaN.
    if target == dtypes.bool_:
        return x.compare("une" if source in dtypes.FLOATING else "ne", 0)
    if source in dtypes.FLOATING:
        return round_to(x.cast("fptrunc" if source == dtypes.f64 else "fpext", type), target)
    if target in dtypes.FLOATING:
        number = x.cast("sitofp" if source in dtypes.SIGNED else "uitofp", type)
        return round_to(number, target)
    if target.itemsize < source.itemsize:
        return x.cast("trunc", type)
    return x.cast("sext" if source in dtypes.SIGNED else "zext", type)


def bitcast(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """The same bits in another dtype of the same size."""
    return value_of_bits(stored_bits(x, source), target)


def integer_part(x: Value, target: np.dtype) -> Value:
    """A float truncated towards zero; the integer dtype can hold the result."""
    # Narrow targets go through i32, which holds all of u8 and u16 and is one instruction.
    op = "fptosi" if target in dtypes.SIGNED or target.itemsize < 4 else "fptoui"
    type = register_type(target)
    return x.cast(op, "i32" if target.itemsize < 4 else type).cast("trunc", type)
