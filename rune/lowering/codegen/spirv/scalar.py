"""The scalar operations of kernel expressions as SPIR-V instructions.

`operation` and `convert` follow SCALAR_MEANING to the letter: integers wrap. NaN is told by its
bits; where a driver may assume that there is none, floats are compared by theirs, too. Divisions,
shifts and integers of floats are SPIR-V's own: the scalar library keeps them from what Vulkan
leaves undefined. f16 is divided and rooted in f32; functions that no instruction gives exactly
enough are those of legalize/scalars.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.spirv.module import KINDS, width
from rune.lowering.codegen.spirv.words import Glsl, Op
from rune.lowering.codegen.spirv.writer import Value
from rune.lowering.codegen.target import Native, every
from rune.lowering.scalar.table import COMPARISONS, OPERATIONS

_SIGNED = {
    "lt": Op.SLessThan,
    "le": Op.SLessThanEqual,
    "gt": Op.SGreaterThan,
    "ge": Op.SGreaterThanEqual,
    "eq": Op.IEqual,
    "ne": Op.INotEqual,
}
_UNSIGNED = _SIGNED | {"lt": Op.ULessThan, "le": Op.ULessThanEqual, "gt": Op.UGreaterThan, "ge": Op.UGreaterThanEqual}
_ORDERED = {
    "lt": Op.FOrdLessThan,
    "le": Op.FOrdLessThanEqual,
    "gt": Op.FOrdGreaterThan,
    "ge": Op.FOrdGreaterThanEqual,
    "eq": Op.FOrdEqual,
    "ne": Op.FUnordNotEqual,
}

Rendering = Callable[..., Value]


def operation(name: str, operand: np.dtype, args: tuple[Value, ...]) -> Value:
    """An operation on values of dtype `operand`; of `select`, that of the values.

    Errors: CompileError for an operation that SPIR-V does not have on this dtype.
    """
    if name == "select":
        return args[0].writer.select(*args)
    if operand == dtypes.bool_:
        return _of_bools(name, args)
    if name in COMPARISONS:
        return compare(name, operand, *args)
    family = _FLOAT | _WIDE if operand in dtypes.FLOATING else _INTEGER
    if name in family:
        return family[name](operand, *args)
    unsupported = f"{name} of {dtypes.short(operand)}"
    raise CompileError(f"spirv: cannot render {unsupported} (no such operation)")


def compare(name: str, dtype: np.dtype, a: Value, b: Value | float) -> Value:
    """A comparison of two values of a dtype."""
    if not a.is_float:
        return a.binary((_UNSIGNED if dtype in dtypes.UNSIGNED else _SIGNED)[name], b, "bool")
    if a.writer.module.compares(a.kind):
        return a.binary(_ORDERED[name], b, "bool")
    if name == "ne":
        return ~compare("eq", dtype, a, b)
    b = a.like(b)
    ordered = _place(a).binary(_SIGNED[name], _place(b), "bool")
    return ordered & ~is_nan(a) & ~is_nan(b)


def _place(x: Value) -> Value:
    """The bits as an integer in the order of the numbers; both zeros are 0."""
    bits = x.bits()
    least = -(1 << (width(x.kind) - 1))
    return x.writer.select(bits < 0, least - bits, bits)


def _of_bools(name: str, args: tuple[Value, ...]) -> Value:
    """Logic; false is less than true."""
    if name == "not":
        return ~args[0]
    a, b = args
    table: dict[str, Callable[[], Value]] = {
        "and": lambda: a & b,
        "min": lambda: a & b,
        "or": lambda: a | b,
        "max": lambda: a | b,
        "xor": lambda: a ^ b,
        "ne": lambda: a ^ b,
        "eq": lambda: a.binary(Op.LogicalEqual, b),
        "lt": lambda: ~a & b,
        "gt": lambda: a & ~b,
        "le": lambda: ~a | b,
        "ge": lambda: a | ~b,
    }
    return table[name]()


# --- floats -----------------------------------------------------------------------------------


def _magnitude(x: Value) -> Value:
    """The bits of |x|."""
    return x.bits() & ((1 << (width(x.kind) - 1)) - 1)


def _infinity_bits(kind: str) -> int:
    bits = width(kind)
    return int(np.array(np.inf, f"f{bits // 8}").view(f"u{bits // 8}"))


def is_nan(x: Value) -> Value:
    """Whether x is NaN, by its bits."""
    return _magnitude(x).binary(Op.UGreaterThan, _infinity_bits(x.kind), "bool")


def _is_finite(dtype: np.dtype, x: Value) -> Value:
    return _magnitude(x).binary(Op.ULessThan, _infinity_bits(x.kind), "bool")


def _plain(compute: Callable[..., Value]) -> Rendering:
    return lambda dtype, *args: compute(*args)


def _negative(x: Value) -> Value:
    if x.writer.module.keeps_specials(x.kind):
        return -x
    return (x.bits() ^ -(1 << (width(x.kind) - 1))).as_kind(x.kind)


def _root(x: Value) -> Value:
    """The root, for which a device may go by way of 1/sqrt(x); undefined left of 0."""
    select = x.writer.select
    is_zero = _magnitude(x).binary(Op.IEqual, 0, "bool")
    is_negative = compare("lt", dtypes.f32, x, 0.0)
    return select(is_zero, x, select(is_negative, math.nan, x.glsl(Glsl.Sqrt)))


def _copysign(x: Value, y: Value) -> Value:
    sign = -(1 << (width(x.kind) - 1))
    return (_magnitude(x) | (y.bits() & sign)).as_kind(x.kind)


_FLOAT: dict[str, Rendering] = {
    "add": _plain(lambda a, b: a + b),
    "sub": _plain(lambda a, b: a - b),
    "mul": _plain(lambda a, b: a * b),
    "neg": _plain(_negative),
    "fma": _plain(lambda a, b, c: a.glsl(Glsl.Fma, b, c)),
    "abs": _plain(lambda x: _magnitude(x).as_kind(x.kind)),
    "floor": _plain(lambda x: x.glsl(Glsl.Floor)),
    "ceil": _plain(lambda x: x.glsl(Glsl.Ceil)),
    "round": _plain(lambda x: x.glsl(Glsl.RoundEven)),
    "trunc": _plain(lambda x: x.glsl(Glsl.Trunc)),
    "is_finite": _is_finite,
    "copysign": _plain(_copysign),
}
# Of f16 these are only exact enough when rounded from f32.
_WIDE: dict[str, Rendering] = {
    "div": _plain(lambda a, b: a / b),
    "quotient": _plain(lambda a, b: a / b),
    "root": _plain(lambda x: x.glsl(Glsl.Sqrt)),
    "sqrt": _plain(_root),
}

# --- integers ---------------------------------------------------------------------------------


def _signed(signed: Op, unsigned: Op) -> Rendering:
    """The instruction for the signedness of the dtype."""
    return lambda dtype, a, b: a.binary(signed if dtype in dtypes.SIGNED else unsigned, b)


def _words(x: Value) -> tuple[Value, Value | None]:
    """The low and the high 32 bits; of a narrow integer the low ones, filled up with zeros."""
    if width(x.kind) < 64:
        return x if x.kind == "i32" else x.unary(Op.UConvert, "i32"), None
    upper = x.binary(Op.ShiftRightLogical, 32)
    return x.unary(Op.UConvert, "i32"), upper.unary(Op.UConvert, "i32")


def _popcount(dtype: np.dtype, x: Value) -> Value:
    low, high = _words(x)
    count = low.unary(Op.BitCount)
    return resized(count if high is None else count + high.unary(Op.BitCount), dtypes.u32, x.kind)


def _leading_zeros(dtype: np.dtype, x: Value) -> Value:
    low, high = _words(x)
    # The highest set bit, -1 where there is none.
    top = low.glsl(Glsl.FindUMsb)
    if high is not None:
        none = high.binary(Op.IEqual, 0, "bool")
        top = x.writer.select(none, top, high.glsl(Glsl.FindUMsb) + 32)
    return resized((width(x.kind) - 1) - top, dtypes.u32, x.kind)


_INTEGER: dict[str, Rendering] = {
    "add": _plain(lambda a, b: a + b),
    "sub": _plain(lambda a, b: a - b),
    "mul": _plain(lambda a, b: a * b),
    "quotient": _signed(Op.SDiv, Op.UDiv),
    "neg": _plain(lambda x: -x),
    "and": _plain(lambda a, b: a & b),
    "or": _plain(lambda a, b: a | b),
    "xor": _plain(lambda a, b: a ^ b),
    "not": _plain(lambda x: ~x),
    "shift_left": _signed(Op.ShiftLeftLogical, Op.ShiftLeftLogical),
    "shift_right": _signed(Op.ShiftRightArithmetic, Op.ShiftRightLogical),
    "popcount": _popcount,
    "clz": _leading_zeros,
}

# What is neither here nor a comparison is a function; what is not spelled of f16 is one of f32.
NATIVE = Native(
    every(_FLOAT.keys() | COMPARISONS | {"select", "bitcast", "integer_part"}, dtypes.FLOATING)
    | every(_WIDE, [dtypes.f32, dtypes.f64])
    | every(_INTEGER.keys() | COMPARISONS | {"select", "bitcast"}, dtypes.INTEGER)
    | every(OPERATIONS, [dtypes.bool_]),
    {dtypes.f16: dtypes.f32},
)

# --- conversions ------------------------------------------------------------------------------


def resized(x: Value, dtype: np.dtype, kind: str) -> Value:
    """An integer of a dtype as one of another width."""
    if x.kind == kind:
        return x
    if dtype not in dtypes.SIGNED or width(kind) < width(x.kind):
        return x.unary(Op.UConvert, kind)
    if kind != "i64":
        return x.unary(Op.SConvert, kind)
    # Mesa (22.3) mistakes a comparison of what SConvert gives with a constant: so by shifts.
    unused = 64 - width(x.kind)
    shifted = x.unary(Op.UConvert, kind).binary(Op.ShiftLeftLogical, unused)
    return shifted.binary(Op.ShiftRightArithmetic, unused)


def convert(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """A value of dtype `source` as one of `target`; of a float as an integer, see integer_part."""
    kind = KINDS[target]
    if source == target:
        return x
    if target == dtypes.bool_:
        return compare("ne", source, x, 0)
    if source == dtypes.bool_:
        return x.writer.select(x, x.writer.constant(kind, 1), 0)
    if source in dtypes.FLOATING and target in dtypes.FLOATING:
        return _resized_float(x, kind)
    if target in dtypes.FLOATING:
        return _to_float(x, source, kind)
    return resized(x, source, kind)


def _resized_float(x: Value, kind: str) -> Value:
    """A float in another format; denormals of f32 by their bits, where they would become 0."""
    converted, kinds = x.unary(Op.FConvert, kind), (x.kind, kind)
    if x.writer.module.compares("f32") or kinds not in (("f32", "f64"), ("f64", "f32")):
        return converted
    return _widened(x, converted) if kind == "f64" else _narrowed(x, converted)


def _widened(x: Value, converted: Value) -> Value:
    """f32 as f64: a denormal number is its bits, in units of the smallest one."""
    select, bits = x.writer.select, x.bits()
    magnitude = _magnitude(x)
    signed = select(bits < 0, -magnitude, magnitude)
    number = signed.unary(Op.ConvertSToF, "f64") * 2.0**-149
    # Neither zero is among them: of 0 the count below is the greatest word.
    is_denormal = (magnitude - 1).binary(Op.ULessThan, 0x7FFFFF, "bool")
    return select(is_denormal, number, converted)


def _narrowed(x: Value, converted: Value) -> Value:
    """f64 as f32: below the normal numbers by adding 2^52, which rounds to units."""
    size = _magnitude(x).as_kind("f64")
    units = (size * 2.0**149 + 2.0**52).bits().unary(Op.UConvert, "i32")
    sign = x.bits().binary(Op.ShiftRightLogical, 32).unary(Op.UConvert, "i32") & -(1 << 31)
    is_small = size.binary(Op.FOrdLessThan, 2.0**-126, "bool")
    return x.writer.select(is_small, (units | sign).as_kind("f32"), converted)


def _to_float(x: Value, source: np.dtype, kind: str) -> Value:
    """An integer as a float. What f16 can hold, f32 holds exactly."""
    wide = x if width(x.kind) >= 32 else resized(x, source, "i32")
    op = Op.ConvertSToF if source in dtypes.SIGNED else Op.ConvertUToF
    if kind == "f16":
        return wide.unary(op, "f32").unary(Op.FConvert, kind)
    return wide.unary(op, kind)


def integer_part(x: Value, target: np.dtype) -> Value:
    """Towards zero, of a float that the integer holds."""
    kind = KINDS[target]
    op = Op.ConvertFToS if target in dtypes.SIGNED or target.itemsize < 4 else Op.ConvertFToU
    near = x.unary(op, kind if width(kind) >= 32 else "i32")
    return near if near.kind == kind else near.unary(Op.UConvert, kind)


def bitcast(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """The same bits in another dtype of the same size."""
    if dtypes.bool_ in (source, target):
        return convert(x, source, target)
    return x.as_kind(KINDS[target])


__all__ = ["NATIVE", "bitcast", "compare", "convert", "integer_part", "is_nan", "operation", "resized"]
