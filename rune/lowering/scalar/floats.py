"""Operations of floats that follow from comparisons, the root, or their bits. NaN stays NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.lowering.scalar.number import Ability, Number, at_least, at_most, select


def larger(a: Number, b: Number) -> Number:
    """The larger; NaN if either is NaN."""
    # The inner select gives b if either is NaN; compilers turn it into one instruction.
    return select(a.apply("ne", a), a, select(a > b, a, b))


def smaller(a: Number, b: Number) -> Number:
    """The smaller; NaN if either is NaN."""
    return select(a.apply("ne", a), a, select(a < b, a, b))


def sign(x: Number) -> Number:
    """-1, 0 or 1; NaN for NaN."""
    zero_or_nan = select(x.equals(0.0), 0.0, x)
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, zero_or_nan))


def reciprocal_root(x: Number) -> Number:
    """1/√x, from the rounded root."""
    return 1.0 / x.sqrt()


def next_after(x: Number, y: Number) -> Number:
    """The number after x towards y; by bits alone if the device may flush denormals to 0."""
    bits = x.bits()
    start, end = (x, y) if x.has(Ability.DENORMALS) else (_order(x), _order(y))
    # Bits are in the order of magnitudes: up from a positive x, and down from a negative one.
    step = select((start < end) ^ (bits < 0), bits + 1, bits - 1)
    least = (y.bits() ^ y.magnitude()) | 1
    neighbour = select(start.equals(0), least, step)
    number = select(start.equals(end) | y.is_nan(), y.bits(), neighbour)
    return select(x.is_nan(), bits, number).bits_as(x.dtype)


def _order(x: Number) -> Number:
    """An integer in the order of the numbers; 0 for both zeros."""
    return select(x.bits() < 0, -x.magnitude(), x.magnitude())


# --- by their bits, for devices that flush denormals to 0 or may ignore NaN ---------------------


def comparison(name: str) -> Callable[[Number, Number], Number]:
    """A comparison that is false if either is NaN: all but `ne`."""

    def compare(a: Number, b: Number) -> Number:
        return _order(a).apply(name, _order(b)) & ~a.is_nan() & ~b.is_nan()

    return compare


def differ(a: Number, b: Number) -> Number:
    """Whether two numbers differ, or either is NaN."""
    return ~comparison("eq")(a, b)


def negative(x: Number) -> Number:
    """-x, for NaN and 0 as well."""
    return (x.bits() ^ -(1 << (8 * x.dtype.itemsize - 1))).bits_as(x.dtype)


def widened(x: Number) -> Number:
    """f32 as f64: the bits of a denormal count units of the smallest one."""
    # Neither zero is among them: for 0 the subtraction below gives the greatest word.
    is_denormal = (x.magnitude() - 1).bits_as(dtypes.u32) < 0x7FFFFF
    return select(is_denormal, _order(x).convert(dtypes.f64) * 2.0**-149, x.nearest(dtypes.f64))


def narrowed(x: Number) -> Number:
    """f64 as f32: below the normal numbers, adding 2^52 rounds to units of the smallest one."""
    size = x.abs()
    units = (size * 2.0**149 + 2.0**52).bits().convert(dtypes.u32)
    sign = (x.bits() >> 32).convert(dtypes.u32) & (1 << 31)
    return select(size < 2.0**-126, (units | sign).bits_as(dtypes.f32), x.nearest(dtypes.f32))


# --- as other dtypes --------------------------------------------------------------------------


def to_integer(x: Number, dtype: np.dtype) -> Number:
    """Truncate an f32 or f64 and saturate at the ends of an integer's range; 0 for NaN."""
    info = np.iinfo(dtype)
    high = _greatest(int(info.max), x.dtype)
    part = at_most(_not_below(x, float(info.min)), high).integer_part(dtype)
    # In a format that lacks the greatest integer, the next number is beyond it.
    return part if high == info.max else select(x > high, int(info.max), part)


def _not_below(x: Number, low: float) -> Number:
    """x, or `low` if x is less; 0 for NaN."""
    if low == 0.0:
        return select(x > low, x, low)
    return select(x.equals(x), at_least(x, low), 0.0)


def _greatest(limit: int, dtype: np.dtype) -> float:
    """The greatest number of a format that is not above a limit."""
    nearest = dtype.type(limit)
    return float(nearest if int(nearest) <= limit else np.nextafter(nearest, dtype.type(0)))


def to_odd(x: Number) -> Number:
    """f64 as an f32 that gives, when rounded once more, the same as rounding x once.

    An inexact value rounds to the neighbour with an odd last bit (Boldo & Melquiond 2008).
    """
    near = x.convert(dtypes.f32)
    bits, back, size = near.bits(), near.convert(dtypes.f64), x.abs()
    # Infinity and NaN have no neighbours, and numbers this large are infinite in f16 anyway.
    inexact = back.apply("ne", x) & (bits & 1).equals(0) & (size < 2.0**127)
    # Adding 1 to the bits is a step in magnitude, because the sign is a separate bit.
    neighbour = select(back.abs() < size, bits + 1, bits - 1).bits_as(dtypes.f32)
    return select(inexact, neighbour, near)
