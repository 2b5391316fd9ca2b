"""Roots of unity, accurate for every index: exp(-2πi t/n) for integers t.

The angle is reduced to within ±π/4 in integers, where nothing is rounded, so that the reduced
angle has a relative error of one rounding. Squares of indices, which may exceed 32 bits, are formed
modulo n digit by digit: no device needs wider integers for lengths below LARGEST.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, literal_like
from rune.core.values import Value
from rune.dims import Size
from rune.ops import arithmetic as a
from rune.ops.creation import iota
from rune.ops.pairs import Pair
from rune.ops.transcendental import cos, sin

if TYPE_CHECKING:
    from rune.array import Array

LARGEST = 1 << 27  # shorter lengths have 32-bit indices


def indices(size: Size, n: int) -> Any:
    """0, 1, … size-1, in integers that can hold nine times n."""
    return iota(shape=(size,), axis=0, dtype=dtypes.i32 if n < LARGEST else dtypes.i64)


def unit_roots(t: Value, n: Value, dtype: np.dtype) -> Pair:
    """exp(-2πi t/n) in floats of `dtype`, for 0 <= t <= n; `n` is a number, or a value like t."""
    n = literal_like(n, t) if isinstance(n, int) else n
    two, four, eight = (literal_like(k, t) for k in (2, 4, 8))
    quarter = a.div(a.add(a.mul(t, eight), n), a.mul(n, two))
    remainder = a.sub(a.mul(t, four), a.mul(quarter, n))  # quarter turns / n, within ±n/2
    unit = a.div(literal(math.pi / 2, dtype), a.cast(n, dtype))
    angle = a.mul(a.cast(remainder, dtype), unit)
    c, s = cos(angle), sin(angle)
    is_odd, is_high = _has_bit(quarter, 1), _has_bit(quarter, 2)
    real, imag = a.select(is_odd, s, c), a.select(is_odd, c, s)
    is_left = a.ne(is_odd, is_high)  # in the second and third quarter
    return a.select(is_left, a.neg(real), real), a.select(is_high, imag, a.neg(imag))


def _has_bit(x: Value, bit: int) -> Array:
    return a.ne(a.logical_and(x, literal_like(bit, x)), literal_like(0, x))


def square_modulo(x: Value, n: int) -> Value:
    """x² mod n for 0 <= x < n: Horner's rule over hexadecimal digits, none of which overflows."""
    result, modulus = literal_like(0, x), literal_like(n, x)
    for shift in reversed(range(0, max(1, (n - 1).bit_length()), 4)):
        digit = a.logical_and(a.shr(x, literal_like(shift, x)), literal_like(15, x))
        sixteenfold = a.rem(a.mul(result, literal_like(16, x)), modulus)
        result = a.rem(a.add(sixteenfold, a.rem(a.mul(digit, x), modulus)), modulus)
    return result
