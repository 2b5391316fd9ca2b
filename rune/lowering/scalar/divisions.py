"""Division and root of f32, rounded once, for devices that compute them loosely or flush denormals.

Vulkan and WGSL promise a quotient within 2.5 ulps for divisors from 2^-126 to 2^126, and a root by
way of 1/√x, within 2 ulps of that. So the device divides mantissas between 1 and 2, where nothing
is denormal; the remainder shows by how much the quotient is off, and the exponent is added as bits.
The remainder is exact: for a quotient that is off by a few ulps it has 26 bits, so 32-bit integers
hold it although its parts have 48. Denormal operands and results keep their values, even if the
device's arithmetic flushes them.

Cost: some 60 integer operations for a quotient, 30 for a root.
"""

from __future__ import annotations

from rune import dtypes
from rune.lowering.scalar.number import Number, select

_STORED = 23  # bits of a fraction
_ONE = 1 << _STORED  # the bit above it
_BIAS = 127
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_MOST_SHIFT = 26  # a longer shift to the right leaves nothing of a mantissa


def divide(a: Number, b: Number) -> Number:
    """a/b for any operands."""
    (x, x_exponent), (y, y_exponent) = _parts(a.magnitude()), _parts(b.magnitude())
    is_below = x < y
    dividend = x.apply("shift_left", select(is_below, x.like(_STORED + 1), _STORED))
    near = _as_float(x).apply("quotient", _as_float(y)).bits()
    start = near - select(is_below, x.like(_BIAS - 2), _BIAS - 1).apply("shift_left", _STORED)
    quotient, remainder = _nearest(start, dividend, y)
    exponent = x_exponent - y_exponent + select(is_below, x.like(_BIAS - 1), _BIAS)
    return _special(a, b, _composed(quotient, remainder, exponent)).bits_as(a.dtype)


def _parts(magnitude: Number) -> tuple[Number, Number]:
    """(m, e): the number is m 2^(e - 150) with m of 24 bits; meaningless for 0 and infinity."""
    exponent = magnitude.apply("shift_right", _STORED)
    shift = magnitude.apply("clz") - 8
    is_denormal = exponent.equals(0)
    fraction = magnitude.apply("shift_left", select(is_denormal, shift, 0))
    return (fraction & (_ONE - 1)) | _ONE, select(is_denormal, 1 - shift, exponent)


def _as_float(mantissa: Number) -> Number:
    """A mantissa as a float between 1 and 2."""
    return (mantissa + (_BIAS - 1) * _ONE).bits_as(dtypes.f32)


def _nearest(quotient: Number, dividend: Number, divisor: Number) -> tuple[Number, Number]:
    """The nearest integer to dividend/divisor and its remainder, from an integer a few off."""
    start = dividend - quotient * divisor
    rough = _rough(start, divisor)
    remainder = start - rough * divisor
    up, down = _one_if(remainder * 2 > divisor), _one_if(remainder * 2 < -divisor)
    step = up - down
    return quotient + rough + step, remainder - step * divisor


def _rough(remainder: Number, divisor: Number) -> Number:
    """How often the divisor goes into the remainder: a few times, and off by at most one."""
    times = remainder.convert(dtypes.f32).apply("quotient", divisor.convert(dtypes.f32))
    return times.apply("round").integer_part(dtypes.i32)


def _one_if(condition: Number) -> Number:
    return condition.convert(dtypes.i32)


def _composed(mantissa: Number, remainder: Number, exponent: Number) -> Number:
    """The bits of mantissa 2^(exponent - 150); `remainder` decides how denormals round."""
    normal = (exponent - 1).apply("shift_left", _STORED) + mantissa
    magnitude = select(exponent > 254, exponent.like(_INFINITY), normal)
    # In quarters, so that the sign of the remainder decides between a tie and its neighbours.
    beyond = _one_if(remainder > 0) - _one_if(remainder < 0)
    quarters = mantissa * 4 + beyond
    shift = 1 - exponent
    shift = select(shift > _MOST_SHIFT, shift.like(_MOST_SHIFT), select(shift < 0, shift.like(0), shift)) + 2
    odd = quarters.apply("shift_right", shift) & 1
    half = exponent.like(1).apply("shift_left", shift - 1)
    denormal = (quarters + (half - 1) + odd).apply("shift_right", shift)
    return select(exponent < 1, denormal, magnitude)


def _special(a: Number, b: Number, bits: Number) -> Number:
    """The bits with their sign; for operands that are 0, infinite or NaN, those of IEEE 754."""
    x, y = a.magnitude(), b.magnitude()
    is_zero = x.equals(0) | y.equals(_INFINITY)
    is_infinite = x.equals(_INFINITY) | y.equals(0)
    is_nan = (is_zero & is_infinite) | (x > _INFINITY) | (y > _INFINITY)
    magnitude = select(is_zero, x.like(0), select(is_infinite, x.like(_INFINITY), bits))
    sign = (a.bits() ^ b.bits()) ^ (x ^ y)
    return select(is_nan, x.like(_NAN), magnitude | sign)


def root(x: Number) -> Number:
    """√x; NaN below 0."""
    magnitude = x.magnitude()
    mantissa, exponent_bits = _parts(magnitude)
    odd = (exponent_bits - _BIAS) & 1
    # The mantissa is between 1 and 4, so that the remaining exponent is even.
    near = (mantissa + (odd + (_BIAS - 1)).apply("shift_left", _STORED)).bits_as(x.dtype).apply("root")
    square = mantissa.apply("shift_left", odd + _STORED)
    start = near.bits() - (_BIAS - 1) * _ONE
    # (s + k)² is s² + 2sk + k², and k is small.
    integer = start + _rough(square - start * start, start * 2)
    remainder = square - integer * integer
    up, down = _one_if(remainder > integer), _one_if(remainder + integer < 1)
    exponent = (exponent_bits - _BIAS).apply("shift_right", 1) + (_BIAS - 1)
    bits = exponent.apply("shift_left", _STORED) + (integer + up - down)
    is_same = magnitude.equals(0) | x.bits().equals(_INFINITY) | (magnitude > _INFINITY)
    is_undefined = x.bits() < 0
    return select(is_same, x.bits(), select(is_undefined, bits.like(_NAN), bits)).bits_as(x.dtype)
