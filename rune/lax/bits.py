"""Integers and floats as bits: logic, shifts, the same bits in another dtype, fewer bits."""

from __future__ import annotations

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal_like, type_of
from rune.core.types import ArrayType
from rune.errors import DtypeError, ShapeError
from rune.lax.arguments import alike, binary, unary
from rune.numpy import stack
from rune.numpy.arguments import value
from rune.ops import conventions
from rune.ops.elementwise_rows import INTEGERS, Row, integer
from rune.ops.elementwise_table import ROWS
from rune.ops.family import stretch
from rune.ops.precision import bits_of
from rune.ops.scalars import bit_width
from rune.typing import ArrayLike, DTypeLike

bitwise_not = unary(ROWS["bitwise_not"])
bitwise_and = binary(ROWS["bitwise_and"])
bitwise_or = binary(ROWS["bitwise_or"])
bitwise_xor = binary(ROWS["bitwise_xor"])
population_count = unary(ROWS["population_count"])
clz = unary(ROWS["clz"])
shift_left = binary(ROWS["shift_left"])


def _as_words(x: Array, is_signed: bool) -> Array:
    dtype = type_of(x).dtype
    kind = "int" if is_signed else "uint"
    return ops.bitcast(x, dtype=np.dtype(f"{kind}{bit_width(dtype)}"))


def _shift_right(x: Array, y: Array, arithmetic: bool) -> Array:
    """Shifts right; reinterprets x with the other signedness if its own shift is the other kind."""
    dtype = type_of(x).dtype
    if (dtype in dtypes.SIGNED) == arithmetic:
        return ops.shr(x, y)
    result = ops.shr(_as_words(x, arithmetic), _as_words(y, arithmetic))
    return ops.bitcast(result, dtype=dtype)


shift_right_arithmetic = binary(
    Row(
        "shift_right_arithmetic",
        lambda x, y: _shift_right(x, y, True),
        "x / 2^y, shifting in copies of the sign bit.",
        "-8, 1",
        integer("-4"),
        INTEGERS,
    )
)
shift_right_logical = binary(
    Row(
        "shift_right_logical",
        lambda x, y: _shift_right(x, y, False),
        "The bits of x shifted right by y, shifting in zeros.",
        "-8, 28",
        "Array(15, i32[], cpu:0)",
        INTEGERS,
    )
)


# --- conversion -------------------------------------------------------------------------------


def convert_element_type(operand: ArrayLike, new_dtype: str) -> Array:
    """The numbers in another dtype.

    Shapes: any, unchanged.
    Types:  new_dtype.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers as real
            ones and an unknown dtype.

    >>> from rune import lax
    >>> lax.convert_element_type(1.5, "i32")
    Array(1, i32[], cpu:0)
    """
    return conventions.converted(value("convert_element_type", operand), dtypes.as_dtype(new_dtype))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits read as another dtype.

    Shapes: [*S] -> [*S]; to a dtype W times as narrow [*S, W], the low bits first, and from [*S, W]
            to one W times as wide.
    Types:  new_dtype, numeric.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype, and for
            bools as anything but bools; ShapeError for a last axis that is not the ratio of the
            widths.

    >>> from rune import lax
    >>> lax.bitcast_convert_type(1.0, "u16")
    Array([    0, 16256], u16[2], cpu:0)
    """
    x, new = value("bitcast_convert_type", operand), dtypes.as_dtype(new_dtype)
    if type_of(x).dtype == new == dtypes.bool_:
        return x
    old_bits, new_bits = bit_width(type_of(x).dtype), bit_width(new)
    if new_bits == old_bits:
        return ops.bitcast(x, dtype=new)
    if type_of(x).dtype == dtypes.c128:
        return _from_parts(x, new)
    if new == dtypes.c128:
        return _to_parts(x)
    if new_bits < old_bits:
        return _divided(x, new, old_bits // new_bits)
    return _joined(x, new, new_bits // old_bits)


def _from_parts(x: Array, new: np.dtype) -> Array:
    """c128 read as another dtype: no integer is as wide, so that both parts are read."""
    parts = bitcast_convert_type(stack([ops.real(x), ops.imag(x)], -1), new)
    return parts.reshape(*type_of(x).shape, -1)


def _to_parts(x: Array) -> Array:
    """Another dtype read as c128."""
    type, ratio = type_of(x), 128 // bit_width(type_of(x).dtype)
    _require_last(type, dtypes.c128, ratio)
    lead = type.shape[:-1]
    parts = bitcast_convert_type(x.reshape(*lead, 2, *[ratio // 2][: ratio > 2]), dtypes.f64)
    return ops.complex(parts[..., 0], parts[..., 1])


def _require_last(type: ArrayType, new: np.dtype, ratio: int) -> None:
    if not type.shape or type.shape[-1] != ratio:
        raise ShapeError(
            f"bitcast_convert_type: cannot read {type} as {dtypes.short(new)} (a last axis of size {ratio} required)"
        )


def _divided(x: Array, new: np.dtype, ratio: int) -> Array:
    bits = ops.bitcast(x, dtype=bits_of(type_of(x).dtype))
    shape = (*type_of(x).shape, ratio)
    wide = stretch(bits, shape)
    dtype = type_of(bits).dtype
    by = ops.iota(shape=shape, axis=len(shape) - 1, dtype=dtype)
    parts = ops.shr(wide, ops.mul(by, literal_like(bit_width(new), by)))
    mask = literal_like((1 << bit_width(new)) - 1, parts)
    return ops.bitcast(ops.convert(ops.logical_and(parts, mask), dtype=bits_of(new)), dtype=new)


def _joined(x: Array, new: np.dtype, ratio: int) -> Array:
    type = type_of(x)
    _require_last(type, new, ratio)
    wide = ops.convert(ops.bitcast(x, dtype=bits_of(type.dtype)), dtype=bits_of(new))
    by = ops.iota(shape=type.shape, axis=type.ndim - 1, dtype=bits_of(new))
    parts = ops.shl(wide, ops.mul(by, literal_like(bit_width(type.dtype), by)))
    return ops.bitcast(ops.reduce_or(parts, axes=(type.ndim - 1,)), dtype=new)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """The numbers rounded to fewer bits, in the same dtype.

    Above the range of the exponent they become infinite, below it zero, as in XLA. Tangents are
    rounded likewise.
    Shapes: any, unchanged. Types: floating, that of `operand`.
    Errors: ArgumentError if an argument is not an array; DtypeError unless `operand` is floating,
            and unless `exponent_bits` and `mantissa_bits` are integers or bools.

    >>> from rune import lax
    >>> lax.reduce_precision(1.2345678, 8, 7)
    Array(1.234375, f32*[], cpu:0)
    """
    return ops.reduce_precision(
        value("reduce_precision", operand), exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )


def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """The upper half of the product of two integers of one dtype.

    Computed on half words: the product of the low halves carries into the sum of the cross
    products.
    Shapes: equal, or [] of Python numbers. Types: one integer dtype, unchanged.
    Source: Warren, Hacker's Delight, section 8-2.
    Errors: DtypeError if an argument is not an integer.

    >>> from rune import lax
    >>> import numpy as np
    >>> lax.mulhi(np.uint8(200), np.uint8(200))
    Array(156, u8[], cpu:0)
    """
    a, b = alike("mulhi", x, y)
    dtype = type_of(a).dtype
    if dtype not in dtypes.INTEGER:
        raise DtypeError(f"mulhi: cannot multiply {type_of(a)} (integers required)")
    half = literal_like(bit_width(dtype) // 2, a)
    mask = literal_like((1 << (bit_width(dtype) // 2)) - 1, a)
    a_low, a_high = ops.logical_and(a, mask), ops.shr(a, half)
    b_low, b_high = ops.logical_and(b, mask), ops.shr(b, half)
    carry = shift_right_logical(ops.mul(a_low, b_low), half)
    cross = ops.add(ops.mul(a_high, b_low), carry)
    low = ops.add(ops.mul(a_low, b_high), ops.logical_and(cross, mask))
    return ops.add(ops.add(ops.mul(a_high, b_high), ops.shr(cross, half)), ops.shr(low, half))
