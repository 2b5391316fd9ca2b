"""Operations of floats that follow from comparisons, the root, or their bits. NaN stays NaN."""

from __future__ import annotations

from rune.lowering.scalar.number import Number, select


def larger(a: Number, b: Number) -> Number:
    """The larger; NaN where either is NaN."""
    # The inner select gives b where either is NaN; compilers make one instruction of it.
    return select(a.apply("ne", a), a, select(a > b, a, b))


def smaller(a: Number, b: Number) -> Number:
    """The smaller; NaN where either is NaN."""
    return select(a.apply("ne", a), a, select(a < b, a, b))


def sign(x: Number) -> Number:
    """-1, 0 or 1; of NaN itself."""
    zero_or_nan = select(x.equals(0.0), 0.0, x)
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, zero_or_nan))


def reciprocal_root(x: Number) -> Number:
    """1/√x, of the rounded root."""
    return 1.0 / x.sqrt()


def next_after(x: Number, y: Number) -> Number:
    """The number after x towards y, by bits alone: a device may take denormal numbers for 0."""
    bits, start, end = x.bits(), _order(x), _order(y)
    # Bits are in the order of magnitudes: up from a positive x, and down from a negative one.
    step = select((start < end) ^ (bits < 0), bits + 1, bits - 1)
    least = (y.bits() ^ y.magnitude()) | 1
    neighbour = select(start.equals(0), least, step)
    number = select(start.equals(end) | y.is_nan(), y.bits(), neighbour)
    return select(x.is_nan(), bits, number).bits_as(x.dtype)


def _order(x: Number) -> Number:
    """An integer in the order of the numbers; of both zeros it is 0."""
    return select(x.bits() < 0, -x.magnitude(), x.magnitude())
