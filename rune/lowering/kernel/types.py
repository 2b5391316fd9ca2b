"""Types of scalar expressions: whether one node conforms to the table of operations."""

from __future__ import annotations

from rune import dtypes
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.scalar.table import ROWS, result_dtype

_KNOWN = dtypes.INTEGER | dtypes.FLOATING | {dtypes.bool_}


def type_error(expr: Expr) -> str | None:
    """What is wrong with the dtypes of this one node, or None."""
    match expr:
        case Op():
            return _operation_error(expr)
        case Const(bits=bits, dtype=dtype):
            wrong = len(bits) != dtype.itemsize
            return f"{len(bits)} bytes for a constant {dtypes.short(dtype)}" if wrong else None
        case Index(dtype=dtype):
            return None if dtype == dtypes.i64 else f"an index is i64, not {dtypes.short(dtype)}"
        case Load(guard=guard) if guard is not None and guard.dtype != dtypes.bool_:
            return f"a guard is bool, not {dtypes.short(guard.dtype)}"
        case Cast(arg=arg, dtype=dtype):
            known = {arg.dtype, dtype} <= _KNOWN
            return None if known else f"no cast {dtypes.short(arg.dtype)} -> {dtype}"
        case Load() | Local():
            return None


def _operation_error(op: Op) -> str | None:
    known = ROWS.get(op.name)
    if known is None or known.arity != len(op.args):
        arity = known.arity if known else "no such operation"
        return f"{op.name} with {len(op.args)} operands, not {arity}"
    # A select's condition is bool whatever its values are.
    values = op.args[1:] if op.name == "select" else op.args
    operand = values[0].dtype
    if op.name == "select" and op.args[0].dtype != dtypes.bool_:
        return f"select({_operand_dtypes(op)}): the condition is not bool"
    if operand not in known.dtypes:
        return f"{op.name}({_operand_dtypes(op)})"
    for other in values[1:]:
        if other.dtype != operand:
            return f"{op.name}({_operand_dtypes(op)})"
    result = result_dtype(op.name, operand)
    if op.name == "bitcast":
        same = operand.itemsize == op.dtype.itemsize
        return None if same else f"bitcast of {_operand_dtypes(op)} to {dtypes.short(op.dtype)}: other size"
    is_right = op.dtype in dtypes.INTEGER if result is None else op.dtype == result
    return None if is_right else f"{op.name}({_operand_dtypes(op)}) -> {dtypes.short(op.dtype)}"


def _operand_dtypes(op: Op) -> str:
    return ", ".join(dtypes.short(a.dtype) for a in op.args)
