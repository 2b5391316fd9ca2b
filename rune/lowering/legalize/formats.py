"""Narrow floats by their bits: to f32 and back, by operations on u32 that every device has.

    decode   bits (u32) -> the number as f32, exactly
    encode   f32 -> the nearest bits, ties to even; denormals, infinities and NaN as the format has

A value that is too large becomes infinite, or NaN in a format without infinities (e4m3fn), as
everywhere in rune; users clip first if they want saturation. No step depends on how a device treats
f32 denormals: multiplying integers makes the smallest numbers of each format.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import Cast, Expr, Op, const
from rune.lowering.legalize.recorder import Bound, Recorded
from rune.lowering.scalar import floats
from rune.lowering.scalar.table import result_dtype
from rune.records import dataclass

Bind = Callable[[Expr], Expr]  # gives a name to an expression that is used several times

F32_MANTISSA, F32_BIAS = 23, 127
F32_INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating format of `bits` bits: sign, exponent, mantissa."""

    bits: int
    mantissa: int
    bias: int
    largest: int  # the magnitude bits of values that are too large: infinity, or else NaN
    nan: int

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def shift(self) -> int:
        """How many more bits an f32 mantissa has."""
        return F32_MANTISSA - self.mantissa

    @property
    def has_infinity(self) -> bool:
        """Whether the highest exponent is reserved for infinity and NaN."""
        return self.largest != self.nan


FORMATS: dict[np.dtype, Format] = {
    dtypes.f8_e4m3: Format(8, mantissa=3, bias=7, largest=0x7F, nan=0x7F),
    dtypes.f8_e5m2: Format(8, mantissa=2, bias=15, largest=0x7C, nan=0x7E),
    dtypes.f16: Format(16, mantissa=10, bias=15, largest=0x7C00, nan=0x7E00),
    dtypes.bf16: Format(16, mantissa=7, bias=127, largest=0x7F80, nan=0x7FC0),
}


def operation(name: str, *args: Expr) -> Op:
    """An operation on operands of one dtype; for `select`, the last two."""
    dtype = result_dtype(name, args[-1].dtype)
    assert dtype is not None
    return Op(name, args, dtype)


def word(value: int) -> Expr:
    """A u32 constant."""
    return const(value, dtypes.u32)


def bits_of(x: Expr, dtype: np.dtype = dtypes.u32) -> Expr:
    """The bits of x as another dtype of the same size."""
    return Op("bitcast", (x,), dtype)


def decode(bits: Expr, format: Format, bind: Bind) -> Expr:
    """The number with these bits (u32, zero above the format's) as f32."""
    # bf16 is the upper half of an f32, so shifting is enough.
    if format.bias == F32_BIAS:
        return bits_of(operation("shl", bits, word(32 - format.bits)), dtypes.f32)
    bits = bind(bits)
    magnitude = bind(operation("and", bits, word(format.sign - 1)))
    sign = operation("shl", operation("and", bits, word(format.sign)), word(32 - format.bits))
    digits = operation("shl", magnitude, word(format.shift))
    # Rebias the exponent; the mantissa is already in place.
    normal = operation("add", digits, word((F32_BIAS - format.bias) << F32_MANTISSA))
    # The smallest denormal; every denormal is exactly its magnitude bits times this.
    step = const(2.0 ** (1 - format.bias - format.mantissa), dtypes.f32)
    tiny = bits_of(operation("mul", Cast(magnitude, dtypes.f32), step))
    is_tiny = operation("lt", magnitude, word(1 << format.mantissa))
    length = operation("select", is_tiny, tiny, _special(magnitude, normal, format))
    return bits_of(operation("or", sign, length), dtypes.f32)


def _special(magnitude: Expr, normal: Expr, format: Format) -> Expr:
    """The bits of a number that is not tiny, with infinities and NaN in their place."""
    if format.has_infinity:
        # Setting all exponent bits keeps the mantissa: 0 for infinity, a payload for NaN.
        endless = operation("ge", magnitude, word(format.largest))
        special = operation("or", normal, word(F32_INFINITY))
        return operation("select", endless, special, normal)
    is_nan = operation("eq", magnitude, word(format.nan))
    return operation("select", is_nan, word(F32_INFINITY | 1 << (F32_MANTISSA - 1)), normal)


def encode(x: Expr, format: Format, bind: Bind) -> Expr:
    """The bits (u32) of the number nearest to an f32."""
    bits = bind(bits_of(x))
    length = bind(operation("and", bits, word(0x7FFFFFFF)))
    # Magnitude bits are ordered like the numbers, so `min` turns an overflow into infinity, or NaN.
    nearest = operation("min", _nearest(length, format, bind), word(format.largest))
    is_nan = operation("gt", length, word(F32_INFINITY))
    length_bits = operation("select", is_nan, word(format.nan), nearest)
    sign = operation("and", operation("shr", bits, word(32 - format.bits)), word(format.sign))
    return operation("or", sign, length_bits)


def _nearest(length: Expr, format: Format, bind: Bind) -> Expr:
    """Magnitude bits after rounding, as if exponents were unbounded."""
    odd = operation("and", operation("shr", length, word(format.shift)), word(1))
    # Adding just under half a step, plus the last kept bit, rounds to nearest, ties to even.
    half = word((1 << (format.shift - 1)) - 1)
    # A carry out of the mantissa raises the exponent, as rounding up should.
    total = operation("add", operation("add", length, half), odd)
    bias_bits = (F32_BIAS - format.bias) << format.mantissa
    normal = operation("sub", operation("shr", total, word(format.shift)), word(bias_bits))
    if format.bias == F32_BIAS:
        return normal
    # Adding a number whose last bit is the format's smallest step rounds to such steps.
    exponent = 1 - format.bias + format.shift
    large = const(2.0**exponent, dtypes.f32)
    sum_bits = bits_of(operation("add", bits_of(length, dtypes.f32), large))
    tiny = operation("sub", sum_bits, word((exponent + F32_BIAS) << F32_MANTISSA))
    limit = word((F32_BIAS - format.bias + 1) << F32_MANTISSA)
    return operation("select", operation("lt", length, limit), tiny, normal)


def to_odd(x: Expr, bind: Bind) -> Expr:
    """An f64 as an f32 that gives, when rounded once more, the same as rounding x once."""
    result = floats.to_odd(Recorded(Bound(give=bind), bind(x)))
    assert isinstance(result, Recorded)
    return result.expr


def next_after(x: Expr, y: Expr, format: Format, bind: Bind) -> Expr:
    """The number of the format after x towards y: its bits are in the order of magnitudes."""
    x, y = bind(x), bind(y)
    bits, zero = bind(encode(x, format, bind)), const(0, dtypes.f32)
    # Away from zero: upwards from a positive x, or downwards from a negative one.
    grows = operation("eq", operation("lt", x, y), operation("gt", x, zero))
    step = operation("select", grows, *(operation(n, bits, word(1)) for n in ("add", "sub")))
    sign = operation("and", encode(y, format, bind), word(format.sign))
    first = operation("or", sign, word(1))
    bits_after = operation("select", operation("eq", x, zero), first, step)
    neighbour = operation("select", operation("eq", x, y), y, decode(bits_after, format, bind))
    nan = operation("or", operation("ne", x, x), operation("ne", y, y))
    return operation("select", nan, operation("add", x, y), neighbour)
