"""Scalars in SPIR-V: their operations as instructions, and conversions.

`x * y + 1.0` appends a multiply and an add. All follow SCALAR_MEANING to the letter: integers wrap.
NaN is recognised by its bits. Divisions, shifts and conversions from floats to integers are single
instructions, and the scalar library keeps from them all operands for which Vulkan leaves the result
undefined. f16 divides and takes roots in f32. Operations that no instruction computes exactly
enough are functions, which legalize/scalars.py writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.spirv.binary.module import KINDS, width
from rune.lowering.codegen.spirv.binary.words import Glsl, Op
from rune.lowering.codegen.spirv.binary.writer import Writer
from rune.lowering.codegen.target import Native, Target, every
from rune.lowering.scalar.number import Ability
from rune.lowering.scalar.operators import Operators, Plain
from rune.lowering.scalar.table import COMPARISONS, OPERATIONS
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Value(Operators["Value"]):
    """One scalar of a function: its dtype, which gives an integer its sign, and its id."""

    writer: Writer
    dtype: np.dtype
    id: int

    @property
    def kind(self) -> str:
        """The type: integers have no sign."""
        return KINDS[self.dtype]

    def like(self, other: Value | Plain) -> Value:
        """`other`, as a constant of this dtype if it is a Python number."""
        return other if isinstance(other, Value) else constant(self.writer, self.dtype, other)

    def apply(self, name: str, *others: Value | Plain) -> Value:
        return operation(name, self.dtype, (self, *map(self.like, others)))

    def swapped(self, name: str, other: Plain) -> Value:
        return self.like(other).apply(name, self)

    def emit(self, op: Op, *others: Value | Plain, dtype: np.dtype | None = None) -> Value:
        """An instruction on operands of this type, giving this dtype or another."""
        ids = [self.id, *(self.like(other).id for other in others)]
        return self.result(op, dtype or self.dtype, *ids)

    def result(self, op: Op, dtype: np.dtype, *operands: int) -> Value:
        """An instruction that gives a dtype."""
        return Value(self.writer, dtype, self.writer.emit(op, self.writer.module.type(KINDS[dtype]), *operands))

    def glsl(self, name: Glsl, *others: Value) -> Value:
        """An instruction of GLSL.std.450 that gives this type."""
        return self.result(Op.ExtInst, self.dtype, self.writer.module.glsl(), name, self.id, *(o.id for o in others))

    def as_dtype(self, dtype: np.dtype) -> Value:
        """The same bits as another dtype of this size; an integer only gets another sign."""
        if self.kind == KINDS[dtype]:
            return Value(self.writer, dtype, self.id)
        return self.emit(Op.Bitcast, dtype=dtype)

    def bits(self) -> Value:
        """The bits of a float as a signed integer."""
        return self.as_dtype(np.dtype(f"i{self.dtype.itemsize}"))

    def choose(self, a: Value | Plain, b: Value | Plain) -> Value:
        """For a bool: `a` if it holds, else `b`."""
        known = a if isinstance(a, Value) else b
        assert isinstance(known, Value)
        a, b = known.like(a), known.like(b)
        return a if a.id == b.id else a.result(Op.Select, a.dtype, self.id, a.id, b.id)


def constant(writer: Writer, dtype: np.dtype, value: Plain) -> Value:
    """A constant."""
    return Value(writer, dtype, writer.constant(KINDS[dtype], value))


# How an operation on operands of a dtype is written: one instruction, or a function of several.
Spelled = Op | Glsl | Callable[..., Value]
Table = Mapping[str, Spelled]


def operation(name: str, operand: np.dtype, args: tuple[Value, ...]) -> Value:
    """An operation on values of dtype `operand`; for `select`, the dtype of its two values.

    Errors: CompileError for an operation that SPIR-V does not have on this dtype.
    """
    if name == "select":
        return args[0].choose(*args[1:])
    match _table(operand).get(name):
        case Op() as op:
            return args[0].emit(op, *args[1:], dtype=dtypes.bool_ if name in COMPARISONS else None)
        case Glsl() as function:
            return args[0].glsl(function, *args[1:])
        case None:
            subject = f"{name} of {dtypes.short(operand)}"
            raise CompileError(f"spirv: cannot render {subject} (no such operation)")
        case compute:
            return compute(*args)


def _table(operand: np.dtype) -> Table:
    if operand == dtypes.bool_:
        return _BOOLS
    if operand in dtypes.FLOATING:
        return _FLOATS
    return _UNSIGNED if operand in dtypes.UNSIGNED else _SIGNED


# --- truth values: false is less than true ------------------------------------------------------

_BOOLS: Table = {
    **dict.fromkeys(("and", "min"), Op.LogicalAnd),
    **dict.fromkeys(("or", "max"), Op.LogicalOr),
    **dict.fromkeys(("xor", "ne"), Op.LogicalNotEqual),
    "not": Op.LogicalNot,
    "eq": Op.LogicalEqual,
    "lt": lambda a, b: ~a & b,
    "gt": lambda a, b: a & ~b,
    "le": lambda a, b: ~a | b,
    "ge": lambda a, b: a | ~b,
}

# --- floats -----------------------------------------------------------------------------------


def _sign_bit(x: Value) -> int:
    return -(1 << (width(x.kind) - 1))


def _magnitude(x: Value) -> Value:
    """The bits of |x|."""
    return x.bits() & ~_sign_bit(x)


def _against_infinity(op: Op) -> Callable[[Value], Value]:
    """How the bits of |x| compare with those of infinity."""

    def compare(x: Value) -> Value:
        infinity = np.array(np.inf, x.dtype).view(f"u{x.dtype.itemsize}")
        return _magnitude(x).emit(op, int(infinity), dtype=dtypes.bool_)

    return compare


def _root(x: Value) -> Value:
    """The square root. 0 is apart, since a device may compute x * (1 / sqrt(x)); so are negative
    numbers, for which GLSL leaves the result undefined."""
    is_zero, is_negative = _magnitude(x).equals(0), x.bits() < 0
    return is_zero.choose(x, is_negative.choose(math.nan, x.glsl(Glsl.Sqrt)))


def _other_format(x: Value) -> Value:
    return x.emit(Op.FConvert, dtype=dtypes.f64 if x.dtype == dtypes.f32 else dtypes.f32)


# In f16 these are exact enough only if they are computed in f32 and rounded.
_WIDE: Table = {"div": Op.FDiv, "quotient": Op.FDiv, "root": Glsl.Sqrt, "sqrt": _root, "nearest": _other_format}
_NARROW: Table = {
    "add": Op.FAdd,
    "sub": Op.FSub,
    "mul": Op.FMul,
    "neg": Op.FNegate,
    "fma": Glsl.Fma,
    "abs": lambda x: _magnitude(x).as_dtype(x.dtype),
    "floor": Glsl.Floor,
    "ceil": Glsl.Ceil,
    "round": Glsl.RoundEven,
    "trunc": Glsl.Trunc,
    "is_finite": _against_infinity(Op.ULessThan),
    "copysign": lambda x, y: (_magnitude(x) | (y.bits() & _sign_bit(x))).as_dtype(x.dtype),
    "lt": Op.FOrdLessThan,
    "le": Op.FOrdLessThanEqual,
    "gt": Op.FOrdGreaterThan,
    "ge": Op.FOrdGreaterThanEqual,
    "eq": Op.FOrdEqual,
    "ne": Op.FUnordNotEqual,
}
_FLOATS: Table = {**_NARROW, **_WIDE}

# --- integers ---------------------------------------------------------------------------------


_WORDS: Table = {"popcount": Op.BitCount, "clz": lambda x: 31 - x.glsl(Glsl.FindUMsb)}
_INTEGERS: Table = {
    "add": Op.IAdd,
    "sub": Op.ISub,
    "mul": Op.IMul,
    "neg": Op.SNegate,
    "and": Op.BitwiseAnd,
    "or": Op.BitwiseOr,
    "xor": Op.BitwiseXor,
    "not": Op.Not,
    "shift_left": Op.ShiftLeftLogical,
    "eq": Op.IEqual,
    "ne": Op.INotEqual,
    **_WORDS,
}
_SIGNED: Table = {
    **_INTEGERS,
    "quotient": Op.SDiv,
    "shift_right": Op.ShiftRightArithmetic,
    "lt": Op.SLessThan,
    "le": Op.SLessThanEqual,
    "gt": Op.SGreaterThan,
    "ge": Op.SGreaterThanEqual,
}
_UNSIGNED: Table = {
    **_INTEGERS,
    "quotient": Op.UDiv,
    "shift_right": Op.ShiftRightLogical,
    "lt": Op.ULessThan,
    "le": Op.ULessThanEqual,
    "gt": Op.UGreaterThan,
    "ge": Op.UGreaterThanEqual,
}

# Operations in no table are functions, and f16 computes in f32 those that it lacks.
NATIVE = Native(
    every(_NARROW.keys() | {"select", "bitcast", "integer_part"}, dtypes.FLOATING)
    | every(_WIDE, [dtypes.f32, dtypes.f64])
    | every(_SIGNED.keys() - _WORDS.keys() | {"select", "bitcast"}, dtypes.INTEGER)
    | every(_WORDS, [dtypes.i32, dtypes.u32])
    | every(OPERATIONS, [dtypes.bool_]),
    {dtypes.f16: dtypes.f32},
    abilities=frozenset({Ability.COUNTS}),
)


def loose_operations(target: Target) -> frozenset[tuple[str, np.dtype]]:
    """Operations that a device computes less exactly than defined: those that it makes no promise
    about, and those that its target names."""
    exact_dtypes = {d for d in dtypes.FLOATING if ("specials", 8 * d.itemsize) in target.float_controls}
    single = target.loose | (COMPARISONS if "comparisons" in target.loose else frozenset())
    loose = every(COMPARISONS | {"neg"}, dtypes.FLOATING - exact_dtypes) | every(single, [dtypes.f32])
    # A device that may compare denormals as 0 may convert them to 0, too.
    return loose | {("to_f64", dtypes.f32), ("to_f32", dtypes.f64)} if ("lt", dtypes.f32) in loose else loose


# --- conversions ------------------------------------------------------------------------------


def resized(x: Value, kind: str) -> Value:
    """An integer as one of another width, of the same sign."""
    dtype = np.dtype(f"{x.dtype.kind}{width(kind) // 8}")
    if x.kind == kind:
        return x
    if x.dtype not in dtypes.SIGNED or width(kind) < width(x.kind):
        return x.emit(Op.UConvert, dtype=dtype)
    if kind != "i64":
        return x.emit(Op.SConvert, dtype=dtype)
    # By shifts, since Mesa (22.3) miscompiles comparisons of SConvert's result with a constant.
    spare = 64 - width(x.kind)
    return x.emit(Op.UConvert, dtype=dtype).emit(Op.ShiftLeftLogical, spare).emit(Op.ShiftRightArithmetic, spare)


def convert(x: Value, target: np.dtype) -> Value:
    """A value converted to another dtype; for a float to an integer see integer_part."""
    if x.dtype == target:
        return x
    if target == dtypes.bool_:
        return x.apply("ne", 0)
    if x.dtype == dtypes.bool_:
        return x.choose(constant(x.writer, target, 1), 0)
    if x.dtype in dtypes.FLOATING and target in dtypes.FLOATING:
        return x.emit(Op.FConvert, dtype=target)
    if target in dtypes.FLOATING:
        return _to_float(x, target)
    return resized(x, KINDS[target]).as_dtype(target)


def _to_float(x: Value, target: np.dtype) -> Value:
    """An integer as a float. f16 goes through f32, which holds integers in f16's range exactly."""
    wide = x if width(x.kind) >= 32 else resized(x, "i32")
    op = Op.ConvertSToF if x.dtype in dtypes.SIGNED else Op.ConvertUToF
    if target == dtypes.f16:
        return wide.emit(op, dtype=dtypes.f32).emit(Op.FConvert, dtype=target)
    return wide.emit(op, dtype=target)


def integer_part(x: Value, target: np.dtype) -> Value:
    """A float truncated towards zero; the integer dtype can hold the result."""
    op = Op.ConvertFToS if target in dtypes.SIGNED or target.itemsize < 4 else Op.ConvertFToU
    near = x.emit(op, dtype=target if target.itemsize >= 4 else dtypes.i32)
    return near if near.kind == KINDS[target] else near.emit(Op.UConvert, dtype=target)


def bitcast(x: Value, target: np.dtype) -> Value:
    """The same bits in another dtype of the same size."""
    return convert(x, target) if dtypes.bool_ in (x.dtype, target) else x.as_dtype(target)


__all__ = ["NATIVE", "Value", "bitcast", "constant", "convert", "integer_part", "loose_operations", "operation"]
__all__ += ["resized"]
