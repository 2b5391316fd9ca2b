"""Division and root of f32, rounded once, on devices that compute them loosely or flush denormals.

Vulkan and WGSL promise a quotient within 2.5 ulps for divisors from 2^-126 to 2^126, and a root by
way of 1/√x, within 2 ulps of that. So the device divides mantissas between 1 and 2, where nothing
is denormal; the remainder shows by how much the quotient is off, and exponents are put on as bits.
The remainder is exact: of a quotient that is off by a few ulps it has 26 bits, so integers of 32
bits hold it though its parts have 48. Denormal operands and results are numbers, whatever the
device's arithmetic takes them for.

Cost: some 60 operations of integers for a quotient, 30 for a root.
"""

from __future__ import annotations

from rune import dtypes
from rune.lowering.scalar.number import Number, select

_STORED = 23  # bits of a fraction
_ONE = 1 << _STORED  # the bit above it
_BIAS = 127
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_MOST_SHIFT = 26  # further right nothing is left of a mantissa


def divide(a: Number, b: Number) -> Number:
    """a/b, of operands that may be anything."""
    (x, x_exponent), (y, y_exponent) = _parts(a.magnitude()), _parts(b.magnitude())
    is_below = x < y
    dividend = x.apply("shift_left", select(is_below, x.like(_STORED + 1), _STORED))
    near = _as_float(x).apply("quotient", _as_float(y)).bits()
    start = near - select(is_below, x.like(_BIAS - 2), _BIAS - 1).apply("shift_left", _STORED)
    quotient, remainder = _nearest(start, dividend, y)
    exponent = x_exponent - y_exponent + select(is_below, x.like(_BIAS - 1), _BIAS)
    return _special(a, b, _composed(quotient, remainder, exponent)).bits_as(a.dtype)


def _parts(magnitude: Number) -> tuple[Number, Number]:
    """(m, e): the number is m 2^(e - 150) with m of 24 bits; of 0 and infinity anything."""
    exponent = magnitude.apply("shift_right", _STORED)
    shift = magnitude.apply("clz") - 8
    is_denormal = exponent.equals(0)
    shifted = magnitude.apply("shift_left", select(is_denormal, shift, 0))
    return (shifted & (_ONE - 1)) | _ONE, select(is_denormal, 1 - shift, exponent)


def _as_float(mantissa: Number) -> Number:
    """A mantissa as a float between 1 and 2."""
    return (mantissa + (_BIAS - 1) * _ONE).bits_as(dtypes.f32)


def _nearest(quotient: Number, dividend: Number, divisor: Number) -> tuple[Number, Number]:
    """The nearest integer to dividend/divisor and its remainder, from one a few beside it."""
    start = dividend - quotient * divisor
    rough = _rough(start, divisor)
    remainder = start - rough * divisor
    up, down = _one_if(remainder * 2 > divisor), _one_if(remainder * 2 < -divisor)
    step = up - down
    return quotient + rough + step, remainder - step * divisor


def _rough(remainder: Number, divisor: Number) -> Number:
    """How often the divisor goes into the remainder, a few times, or one more or less."""
    times = remainder.convert(dtypes.f32).apply("quotient", divisor.convert(dtypes.f32))
    return times.apply("round").integer_part(dtypes.i32)


def _one_if(condition: Number) -> Number:
    return condition.convert(dtypes.i32)


def _composed(mantissa: Number, remainder: Number, exponent: Number) -> Number:
    """The bits of mantissa 2^(exponent - 150); `remainder` says how denormal ones are rounded."""
    normal = (exponent - 1).apply("shift_left", _STORED) + mantissa
    bounded = select(exponent > 254, exponent.like(_INFINITY), normal)
    # In quarters, so that what the mantissa lacks or has too much is seen beside a half.
    beyond = _one_if(remainder > 0) - _one_if(remainder < 0)
    quarters = mantissa * 4 + beyond
    shift = 1 - exponent
    shift = select(shift > _MOST_SHIFT, shift.like(_MOST_SHIFT), select(shift < 0, shift.like(0), shift)) + 2
    odd = quarters.apply("shift_right", shift) & 1
    half = exponent.like(1).apply("shift_left", shift - 1)
    denormal = (quarters + (half - 1) + odd).apply("shift_right", shift)
    return select(exponent < 1, denormal, bounded)


def _special(a: Number, b: Number, bits: Number) -> Number:
    """The bits with their sign; of operands that are 0, infinite or NaN, what IEEE 754 says."""
    x, y = a.magnitude(), b.magnitude()
    is_zero = x.equals(0) | y.equals(_INFINITY)
    is_infinite = x.equals(_INFINITY) | y.equals(0)
    is_nan = (is_zero & is_infinite) | (x > _INFINITY) | (y > _INFINITY)
    magnitude = select(is_zero, x.like(0), select(is_infinite, x.like(_INFINITY), bits))
    sign = (a.bits() ^ b.bits()) ^ (x ^ y)
    return select(is_nan, x.like(_NAN), magnitude | sign)


def root(x: Number) -> Number:
    """√x; NaN left of 0."""
    magnitude = x.magnitude()
    mantissa, biased = _parts(magnitude)
    odd = (biased - _BIAS) & 1
    # Between 1 and 4, so that what is left of the exponent is even.
    near = (mantissa + (odd + (_BIAS - 1)).apply("shift_left", _STORED)).bits_as(x.dtype).apply("root")
    square = mantissa.apply("shift_left", odd + _STORED)
    start = near.bits() - (_BIAS - 1) * _ONE
    # (s + k)² is s² + 2sk + k², and k is small.
    integer = start + _rough(square - start * start, start * 2)
    remainder = square - integer * integer
    up, down = _one_if(remainder > integer), _one_if(remainder + integer < 1)
    exponent = (biased - _BIAS).apply("shift_right", 1) + (_BIAS - 1)
    bits = exponent.apply("shift_left", _STORED) + (integer + up - down)
    is_same = magnitude.equals(0) | x.bits().equals(_INFINITY) | (magnitude > _INFINITY)
    is_undefined = x.bits() < 0
    return select(is_same, x.bits(), select(is_undefined, bits.like(_NAN), bits)).bits_as(x.dtype)
