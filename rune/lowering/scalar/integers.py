"""Operations on integers, in terms of those that languages define only in part.

These functions never reach an undefined case (PARTIAL in table.py): they replace a divisor that is
0 or -1, and a shift amount that is not below the width. Where branches are cheap (Ability.BRANCHES)
they replace nothing, and special cases branch around the division.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np

from rune import dtypes
from rune.lowering.scalar.number import Number, Variable, select


def divide(a: Number, b: Number) -> Number:
    """Truncates; division by 0 sets all bits; the least integer over -1 is itself."""
    return _division("quotient", a, b, by_zero=a.like(-1), by_minus_one=a.__neg__)


def remainder(a: Number, b: Number) -> Number:
    """The remainder of truncating division, with the sign of a; a itself for b = 0."""
    return _division("remainder", a, b, by_zero=a, by_minus_one=lambda: a.like(0))


def _division(name: str, a: Number, b: Number, by_zero: Number, by_minus_one: Callable[[], Number]) -> Number:
    # Guards of a literal would hide that it is one, and it is divided by with a multiplication.
    if b.is_literal_besides(0, -1):
        return a.apply(name, b)
    is_zero = b.equals(0)
    divisor = select(is_zero, 1, b)
    if a.dtype in dtypes.UNSIGNED:
        return select(is_zero, by_zero, a.apply(name, divisor))
    is_minus_one = b.equals(-1)
    result = a.apply(name, select(is_minus_one, 1, divisor))
    return select(is_zero, by_zero, select(is_minus_one, by_minus_one(), result))


def remainder_by_quotient(a: Number, b: Number) -> Number:
    """For languages whose own remainder is undefined for negative numbers."""
    return a - a.apply("quotient", b) * b


def shift_left(x: Number, amount: Number) -> Number:
    """0 for amounts from the width on; negative amounts count as large ones."""
    inside = _unsigned(amount) < _width(x)
    return select(inside, x.apply("shift_left", select(inside, amount, 0)), 0)


def shift_right(x: Number, amount: Number) -> Number:
    """The sign, or 0, for amounts from the width on; negative amounts count as large ones."""
    inside = _unsigned(amount) < _width(x)
    if x.dtype in dtypes.SIGNED:
        return x.apply("shift_right", select(inside, amount, _width(x) - 1))
    return select(inside, x.apply("shift_right", select(inside, amount, 0)), 0)


def _width(x: Number) -> int:
    return 8 * x.dtype.itemsize


def _unsigned(x: Number) -> Number:
    return x.bits_as(np.dtype(f"u{x.dtype.itemsize}"))


def absolute(x: Number) -> Number:
    """The magnitude; the least integer for itself."""
    return x if x.dtype in dtypes.UNSIGNED else select(x < 0, -x, x)


def sign(x: Number) -> Number:
    """-1, 0 or 1."""
    positive = select(x.equals(0), x.like(0), 1)
    return positive if x.dtype in dtypes.UNSIGNED else select(x < 0, -1, positive)


def larger(a: Number, b: Number) -> Number:
    """The larger; for bools, their disjunction."""
    return select(a > b, a, b)


def smaller(a: Number, b: Number) -> Number:
    """The smaller; for bools, their conjunction."""
    return select(a < b, a, b)


def count_ones(x: Number) -> Number:
    """The number of bits that are set: counted in pairs, then in fours, then in bytes."""
    bits, every_byte = _unsigned(x), (1 << _width(x)) // 0xFF
    pairs = bits - ((bits >> 1) & every_byte * 0x55)
    fours = (pairs & every_byte * 0x33) + ((pairs >> 2) & every_byte * 0x33)
    count, shift = (fours + (fours >> 4)) & every_byte * 0x0F, 8
    while shift < _width(x):
        count, shift = count + (count >> shift), 2 * shift
    return (count & 0x7F).bits_as(x.dtype)


def leading_zeros(x: Number) -> Number:
    """The number of zeros before the highest bit that is set."""
    bits, shift = _unsigned(x), 1
    while shift < _width(x):
        bits, shift = bits | (bits >> shift), 2 * shift
    return count_ones(~bits).bits_as(x.dtype)


def _words(x: Number) -> list[Number]:
    """The bits as words, the low one first; a narrow integer gives one word, padded with zeros."""
    bits = _unsigned(x)
    return [(bits >> at if at else bits).convert(dtypes.u32) for at in range(0, _width(x), 32)]


def count_ones_by_words(x: Number) -> Number:
    """The same as `count_ones`."""
    counts = [word.apply("popcount") for word in _words(x)]
    return reduce(add, counts).convert(x.dtype)


def leading_zeros_by_words(x: Number) -> Number:
    """The same as `leading_zeros`."""
    *low, top = _words(x)
    zeros = top.apply("clz")
    if low:
        return select(top.equals(0), low[0].apply("clz") + 32, zeros).convert(x.dtype)
    return (zeros - (32 - _width(x))).convert(x.dtype)


def power(x: Number, y: Number) -> Number:
    """By squaring, a round for each bit of y; negative powers truncate to 0, or to 1 or -1."""
    bits = _width(x)
    result, square, exponent = (v.variable() for v in (x.like(1), x, y))

    def step() -> None:
        _square(result, square, exponent)

    (bits - y.apply("clz")).repeat(bits, step)
    product = result.get()
    if x.dtype in dtypes.UNSIGNED:
        return product
    return select(y < 0, _inverse_power(x, y), product)


def _square(result: Variable, square: Variable, exponent: Variable) -> None:
    """A round of a power: uses the lowest bit of the exponent, and drops it."""
    factor, digits, product = square.get(), exponent.get(), result.get()
    result.set(select((digits & 1).equals(1), product * factor, product))
    square.set(factor * factor)
    exponent.set(digits >> 1)


def _inverse_power(x: Number, y: Number) -> Number:
    """A negative power, truncated: 0, or 1 or -1 for such an x."""
    odd = select((y & 1).equals(1), x, 1)
    unit = x.equals(1) | x.equals(-1)
    return select(unit, odd, 0)


# --- the same with branches ------------------------------------------------------------------


def divide_by_branches(a: Number, b: Number) -> Number:
    """The same as `divide`."""
    return _branching_division("quotient", a, b, by_zero=a.like(-1), by_minus_one=a.__neg__)


def remainder_by_branches(a: Number, b: Number) -> Number:
    """The same as `remainder`."""
    return _branching_division("remainder", a, b, by_zero=a, by_minus_one=lambda: a.like(0))


def _branching_division(name: str, a: Number, b: Number, by_zero: Number, by_minus_one: Callable[[], Number]) -> Number:
    def division() -> Number:
        return a.apply(name, b)

    def signed_division() -> Number:
        return _where(b.apply("ne", -1), division, by_minus_one())

    return _where(b.apply("ne", 0), division if a.dtype in dtypes.UNSIGNED else signed_division, by_zero)


def _where(condition: Number, compute: Callable[[], Number], otherwise: Number) -> Number:
    """The result of `compute`, which runs only where the condition holds; else `otherwise`."""
    result = otherwise.variable()
    condition.when(lambda: result.set(compute()))
    return result.get()


def shift_left_by_branches(x: Number, amount: Number) -> Number:
    """The same as `shift_left`."""
    return _where(_unsigned(amount) < _width(x), lambda: x.apply("shift_left", amount), x.like(0))


def power_by_branches(x: Number, y: Number) -> Number:
    """The same as `power`; negative powers take no rounds."""
    # Unsigned integers of at least 32 bits: arithmetic on them needs no wrapping.
    wide = dtypes.u64 if x.dtype.itemsize == 8 else dtypes.u32
    result, square, exponent = (v.convert(wide).variable() for v in (x.like(1), x, y))

    def step() -> None:
        _square(result, square, exponent)

    def multiply() -> None:
        (8 * wide.itemsize - y.convert(wide).apply("clz")).repeat(8 * wide.itemsize, step)

    def invert() -> None:
        result.set(_inverse_power(x, y).convert(wide))

    if x.dtype in dtypes.UNSIGNED:
        multiply()
    else:
        (y < 0).when(invert, multiply)
    return result.get().convert(x.dtype)
