"""Operations of floats that follow from comparisons and the root. NaN stays NaN."""

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
