"""Operations of integers that few devices have."""

from __future__ import annotations

from rune import dtypes
from rune.lowering.scalar.number import Number, select


def power(x: Number, y: Number) -> Number:
    """By squaring, a round for each digit of y; negative powers as they truncate: 0, or a unit."""
    bits = 8 * x.dtype.itemsize
    result, square, exponent = (v.variable() for v in (x.like(1), x, y))

    def step() -> None:
        factor, digits, product = square.get(), exponent.get(), result.get()
        result.set(select((digits & 1).equals(1), product * factor, product))
        square.set(factor * factor)
        exponent.set(digits >> 1)

    (bits - y.apply("clz")).repeat(bits, step)
    product = result.get()
    if x.dtype in dtypes.UNSIGNED:
        return product
    odd = select((y & 1).equals(1), x, 1)
    unit = x.equals(1) | x.equals(-1)
    return select(y < 0, select(unit, odd, 0), product)
