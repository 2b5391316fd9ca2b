"""Types of scalar expressions: what each operation takes and gives, as a table.

`SIGNATURES[name]` = (dtypes of the operands, how the result follows from them). All operands of an
operation have one dtype, but for the condition of `select`. There are no complex numbers here:
lowering/legalize has made them pairs.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import (
    COMPARISONS,
    SCALAR_OPS,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Local,
    Op,
)

_REAL = dtypes.INTEGER | dtypes.FLOATING
_BITS = dtypes.INTEGER | {dtypes.bool_}
_ANY = _REAL | {dtypes.bool_}

_FAMILIES: dict[frozenset[np.dtype], tuple[str, ...]] = {
    _REAL: ("add", "sub", "mul", "div", "neg", "abs", "pow", "rem", "sign"),
    dtypes.FLOATING: (
        "floor", "ceil", "round", "trunc", "cbrt", "erf", "erfc", "erf_inv",
        "atan2", "nextafter", "copysign", "fma",
        "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logistic",
        "is_finite",
    ),
    dtypes.INTEGER: ("shl", "shr", "popcount", "clz"),
    _BITS: ("and", "or", "xor", "not"),
    _ANY: ("max", "min", "lt", "le", "gt", "ge", "eq", "ne", "select", "bitcast"),
}  # fmt: skip
OPERAND_DTYPES: dict[str, frozenset[np.dtype]] = {
    name: accepted for accepted, names in _FAMILIES.items() for name in names
}


def result_dtype(name: str, operand: np.dtype) -> np.dtype | None:
    """The dtype that an operation gives; None for `bitcast`, which says it itself."""
    if name == "bitcast":
        return None
    if name in COMPARISONS or name == "is_finite":
        return dtypes.bool_
    return operand


def type_error(expr: Expr) -> str | None:
    """What is wrong with the dtypes of this one node, or None."""
    match expr:
        case Const(bits=bits, dtype=dtype):
            wrong = len(bits) != dtype.itemsize
            return f"{len(bits)} bytes for a constant {dtypes.short(dtype)}" if wrong else None
        case Index(dtype=dtype):
            return None if dtype == dtypes.i64 else f"an index is i64, not {dtypes.short(dtype)}"
        case Load(guard=guard) if guard is not None and guard.dtype != dtypes.bool_:
            return f"a guard is bool, not {dtypes.short(guard.dtype)}"
        case Cast(arg=arg, dtype=dtype):
            known = {arg.dtype, dtype} <= _ANY
            return None if known else f"no cast {dtypes.short(arg.dtype)} -> {dtype}"
        case Op():
            return _operation_error(expr)
        case Load() | Local():
            return None


def _operation_error(op: Op) -> str | None:
    if SCALAR_OPS.get(op.name) != len(op.args):
        wanted = SCALAR_OPS.get(op.name, "no such operation")
        return f"{op.name} with {len(op.args)} operands, not {wanted}"
    values = op.args[1:] if op.name == "select" else op.args
    operand = values[0].dtype
    if op.name == "select" and op.args[0].dtype != dtypes.bool_:
        return f"select({_given(op)}): the condition is not bool"
    if operand not in OPERAND_DTYPES[op.name]:
        return f"{op.name}({_given(op)})"
    for other in values[1:]:
        if other.dtype != operand:
            return f"{op.name}({_given(op)})"
    result = result_dtype(op.name, operand)
    if result is None:
        same = operand.itemsize == op.dtype.itemsize
        return None if same else f"bitcast of {_given(op)} to {dtypes.short(op.dtype)}: other size"
    return None if result == op.dtype else f"{op.name}({_given(op)}) -> {dtypes.short(op.dtype)}"


def _given(op: Op) -> str:
    return ", ".join(dtypes.short(a.dtype) for a in op.args)
