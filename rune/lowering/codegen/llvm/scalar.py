"""The scalar operations of kernel expressions as LLVM IR, on scalars and on vectors alike.

`operation` and `convert` take register values (types.py) and follow SCALAR_MEANING to the
letter: integers wrap, float to integer saturates. Divisions and shifts are those that LLVM has;
scalar/integers.py keeps them from what traps or is undefined. No fast-math flag is set.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.llvm.names import with_scalar
from rune.lowering.codegen.llvm.text import Value
from rune.lowering.codegen.llvm.types import overload, register_type, round_to, stored_bits, value_of_bits
from rune.lowering.scalar.table import COMPARISONS

_SIGNED_PREDICATES = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED_PREDICATES = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}
# Ordered predicates are false for NaN, as comparisons should be; "une" is true, as != should be.
_FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


def operation(name: str, dtype: np.dtype, args: tuple[Value, ...], operand: np.dtype) -> Value:
    """The result, of `dtype`, of an operation on values of dtype `operand`.

    For `select`, `operand` is that of the values.
    Errors: CompileError for an operation that the cpu cannot do on this dtype.
    """
    if name == "select":
        return args[0].writer.select(*args)
    if name == "bitcast":
        return value_of_bits(stored_bits(args[0], operand), dtype)
    if name in COMPARISONS:
        return args[0].compare(_predicates(operand)[name], args[1])
    family = _FLOAT if operand in dtypes.FLOATING else _INTEGER
    if name in family:
        return family[name](operand, *args)
    raise CompileError(f"llvm: cannot render {name} of {dtypes.short(operand)} (no such operation)")


def spells(name: str, operand: np.dtype) -> bool:
    """Whether `operation` has it; all else is a function."""
    family = _FLOAT if operand in dtypes.FLOATING else _INTEGER
    return name in family or name in COMPARISONS or name in ("select", "bitcast")


def _predicates(dtype: np.dtype) -> dict[str, str]:
    if dtype in dtypes.FLOATING:
        return _FLOAT_PREDICATES
    return _SIGNED_PREDICATES if dtype in dtypes.SIGNED else _UNSIGNED_PREDICATES


# --- floats -----------------------------------------------------------------------------------

Rendering = Callable[..., Value]


def _exactly(compute: Callable[..., Value]) -> Rendering:
    """An operation whose result needs no rounding to a narrower dtype."""
    return lambda dtype, *args: compute(*args)


# Registers of f16 and bf16 are f32: the result has more bits than its dtype.
def _rounded(compute: Callable[..., Value]) -> Rendering:
    return lambda dtype, *args: round_to(compute(*args), dtype)


def _remainder(a: Value, b: Value) -> Value:
    return a.binary("frem", a, b)


_FLOAT: dict[str, Rendering] = {
    "add": _rounded(lambda a, b: a + b),
    "sub": _rounded(lambda a, b: a - b),
    "mul": _rounded(lambda a, b: a * b),
    "div": _rounded(lambda a, b: a / b),
    "rem": _rounded(_remainder),
    "fma": _rounded(lambda a, b, c: a.fma(b, c)),
    "sqrt": _rounded(lambda x: x.call("sqrt")),
    "quotient": _rounded(lambda a, b: a / b),
    "root": _rounded(lambda x: x.call("sqrt")),
    "neg": _exactly(lambda x: -x),
    "abs": _exactly(lambda x: x.abs()),
    "floor": _exactly(lambda x: x.call("floor")),
    "ceil": _exactly(lambda x: x.call("ceil")),
    "round": _exactly(lambda x: x.round()),
    "trunc": _exactly(lambda x: x.call("trunc")),
    "is_finite": _exactly(lambda x: x.abs() < math.inf),
    "copysign": _exactly(lambda x, y: x.copysign(y)),
}

# --- integers and bool ------------------------------------------------------------------------


def _division(op: str) -> Rendering:
    return lambda dtype, a, b: _quotient(op, "s" if dtype in dtypes.SIGNED else "u", dtype, a, b)


def _quotient(op: str, sign: str, dtype: np.dtype, a: Value, b: Value) -> Value:
    """a op b; in lanes by the division of floats, since no processor divides vectors of integers.

    a/b misses the next integer by at least 1/b, which is more than the rounding of a float with
    more bits than a has: truncating the rounded quotient gives the exact one.
    """
    # LLVM divides by a constant with a multiplication; no float has more bits than an i64.
    if not a.lanes or b.is_constant or dtype.itemsize == 8:
        return a.binary(f"{sign}{op}", a, b)
    wide = "double" if dtype.itemsize == 4 else "float"
    to_float, to_integer = {"s": ("sitofp", "fptosi"), "u": ("uitofp", "fptoui")}[sign]
    quotient = (a.cast(to_float, wide) / b.cast(to_float, wide)).cast(to_integer, a.type)
    return quotient if op == "div" else a - quotient * b


def _shift_right(dtype: np.dtype, x: Value, amount: Value) -> Value:
    return x.binary("ashr" if dtype in dtypes.SIGNED else "lshr", x, amount)


_INTEGER: dict[str, Rendering] = {
    "add": _exactly(lambda a, b: a + b),
    "sub": _exactly(lambda a, b: a - b),
    "mul": _exactly(lambda a, b: a * b),
    "quotient": _division("div"),
    "remainder": _division("rem"),
    "neg": _exactly(lambda x: -x),
    "and": _exactly(lambda a, b: a & b),
    "or": _exactly(lambda a, b: a | b),
    "xor": _exactly(lambda a, b: a ^ b),
    "not": _exactly(lambda x: x.invert()),
    "shift_left": _exactly(lambda x, amount: x.binary("shl", x, amount)),
    "shift_right": _shift_right,
    "popcount": _exactly(lambda x: x.call("ctpop")),
    "clz": _exactly(lambda x: x.writer.call(x.type, overload("ctlz", x.type), x, Value(x.writer, "i1", "false"))),
}


# --- conversions ------------------------------------------------------------------------------


def convert(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """A register value of dtype `source` as one of `target`; see llvm_functions for the others."""
    type = with_scalar(x.type, register_type(target))
    if source == target:
        return x
    # A comparison and not a truncation: 2 is true, and so is NaN.
    if target == dtypes.bool_:
        return x.compare("une" if source in dtypes.FLOATING else "ne", 0)
    if source in dtypes.FLOATING:
        return round_to(x.cast("fptrunc" if source == dtypes.f64 else "fpext", type), target)
    if target in dtypes.FLOATING:
        converted = x.cast("sitofp" if source in dtypes.SIGNED else "uitofp", type)
        return round_to(converted, target)
    if target.itemsize < source.itemsize:
        return x.cast("trunc", type)
    return x.cast("sext" if source in dtypes.SIGNED else "zext", type)


def integer_part(x: Value, target: np.dtype) -> Value:
    """Towards zero, of a float that the integer holds."""
    # Narrow targets go through i32, which holds all of u8 and u16 and is one instruction.
    op = "fptosi" if target in dtypes.SIGNED or target.itemsize < 4 else "fptoui"
    type = register_type(target)
    return x.cast(op, "i32" if target.itemsize < 4 else type).cast("trunc", type)
