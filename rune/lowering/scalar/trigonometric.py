"""Trigonometric functions and their inverses in plain arithmetic, for f32 and f64 alike.

Arguments are reduced by multiples of π/2: moderate ones by subtracting n times its parts, which are
short enough for exact products; large ones by multiplying the integer mantissa with the bits of 2/π
that matter. Either way the remainder has two parts, and the sign of the argument is applied last.
Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py. The reduction of large arguments is Payne & Hanek 1983,
ACM SIGNUM 18; the kernels for a remainder in two parts, and the reduction of atan by atan(x) =
atan(c) + atan((x - c)/(1 + c x)), are those of fdlibm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rune import dtypes
from rune.lowering.scalar.exponential import nearest, power_of_two
from rune.lowering.scalar.formats import format_of
from rune.lowering.scalar.number import Ability, Number, Pair, Variable, halves, horner, residual, root, select
from rune.number_tables import numbers
from rune.records import dataclass

SIN_F32 = (-0.1666666666385861, 0.008333331875458027, -0.0001984008696421174, 2.7249940337260114e-06)
COS_F32 = (0.04166666666432331, -0.0013888887672447259, 2.480060048441923e-05, -2.7300962286282263e-07)
SIN_F64 = numbers("""
   -0.16666666666666666      0.008333333333333331    -0.00019841269841265063   2.755731921933705e-06
   -2.5052106231656522e-08   1.6058531486433155e-10  -7.586688951958782e-13
""")
COS_F64 = numbers("""
    0.041666666666666664    -0.0013888888888888887    2.4801587301584645e-05  -2.755731922140156e-07
    2.0876755790612846e-09  -1.1470460809912433e-11   4.745867145888444e-14
""")
ATAN = numbers("""
   -0.33333333333333326      0.19999999999988538     -0.14285714283280748      0.11111110909370649
   -0.09090900494053171      0.07692093159325714     -0.06663308175627397      0.058482301279529345
   -0.05036184284724823      0.03788026468274459     -0.01760469369115204
""")
ATAN_F32 = (-0.3333333090655191, 0.19999345843048397, -0.14257384722698102, 0.10675130832573083, -0.06233388768353823)
ATAN_F32_TO_1 = (  # on 0..1; ATAN_F32 ends at 7/16
    -0.333333331454096,
    0.19999959524235122,
    -0.14284271572770058,
    0.11090976816989438,
    -0.08945651624208309,
    0.07071525534287405,
    -0.04962809109529333,
    0.02696138718877372,
    -0.00949294204672164,
    0.001565755898686861,
)
ASIN_F32 = numbers("""
    0.16666666294795981      0.07500103158237265      0.04459662524420842      0.031131918119114164
    0.01700579396508892      0.033921068114783536
""")
ASIN = numbers("""
    0.16666666666666669      0.0749999999999824       0.04464285714672405      0.030381944110908936
    0.02237217401092121      0.017352368333095995     0.013971565614336767     0.011475821889742529
    0.010344108165003542     0.005368274633243191     0.017637965761795008    -0.015213700203208289
    0.028999389929083262
""")
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
ATAN_HALF = (0.4636476090008061, 2.2698777452961687e-17)
# The bits of 2/π after the binary point.
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1"
    "921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FF"
    "DE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB"
    "5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361DA9E391615EE61B08",
    16,
)
TWO_OVER_PI_BITS = 1344


@dataclass(frozen=True, slots=True)
class Reduction:
    """How arguments below `limit` are reduced: π/2 in parts, n times the first three exact."""

    limit: float
    parts: tuple[float, float, float, float]
    word: np.dtype  # an unsigned integer of the format's width
    words: int  # of 2/π, after one of zeros, that the largest argument needs


_F32 = Reduction(500.0, (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.563344151594519e-12), dtypes.u32, 8)
_F64 = Reduction(
    5.0e5, (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32), dtypes.u64, 20
)


@dataclass(frozen=True, slots=True)
class Remainder:
    """|x| minus `turns` quarter turns: a number and its rounding error."""

    high: Number
    low: Number
    turns: Number


def remainder(size: Number) -> Remainder:
    """The remainder of 0 <= size < inf by π/2, at most π/4 in magnitude."""
    form, zero = _F32 if size.is_single else _F64, size.like(0.0)
    parts = [x.variable() for x in (zero, zero, zero.bits_as(form.word))]
    (size < form.limit).when(lambda: _moderate(size, form, parts), lambda: _large(size, form, parts))
    high, low, turns = (v.get() for v in parts)
    return Remainder(high, low, turns)


def _moderate(size: Number, form: Reduction, parts: Sequence[Variable]) -> None:
    """n times each part is exact; `low` keeps the rounding errors of the differences."""
    n, integer = nearest(size * (2.0 / math.pi))
    first = size - n * form.parts[0]
    second, error = _less(first, n * form.parts[1])
    high, second_error = _less(second, n * form.parts[2])
    parts[0].set(high)
    parts[1].set((error + second_error) - n * form.parts[3])
    parts[2].set(integer.bits_as(form.word))


def _less(a: Number, b: Number) -> Pair:
    """a - b and its rounding error."""
    difference = a - b
    return difference, (a - difference) - b


def _large(size: Number, form: Reduction, parts: Sequence[Variable]) -> None:
    """The mantissa times three words of 2/π; the words before these add whole turns only."""
    width = 8 * form.word.itemsize
    fraction, turns, negative = _fraction(size, form, width)
    shift = fraction[0].apply("clz")
    bits = (fraction[0] << shift) | (fraction[1] >> (width - shift))
    # With half of the mantissa's bits, the high part has an exact product with a half of π/2.
    cut = width - (12 if size.is_single else 26)
    unit = power_of_two((-width - shift).bits_as(size.bits().dtype))
    high = (bits & -(1 << cut)).convert(size.dtype) * unit
    low = (bits & ((1 << cut) - 1)).convert(size.dtype) * unit
    first, second = halves(HALF_PI[0], size.dtype)
    product = high * first
    tail = high * (second + HALF_PI[1]) + low * HALF_PI[0]
    r = product + tail
    error = (product - r) + tail
    parts[0].set(select(negative, -r, r))
    parts[1].set(select(negative, -error, error))
    parts[2].set(turns)


def _fraction(size: Number, form: Reduction, width: int) -> tuple[Pair, Number, Number]:
    """(|f| as two words, n, f < 0) where size times 2/π is a multiple of 4, and n + f."""
    mantissa, bits = format_of(size).mantissa, size.bits_as(form.word)
    integer = (bits & ((1 << mantissa) - 1)) | (1 << mantissa)
    # The first bit of 2/π whose product with the mantissa is less than 4.
    position = (bits >> mantissa) - (format_of(size).bias + mantissa + 2 - width)
    a, b, c = _window(position, form, width)
    low = integer * b + _high_product(integer, c, width)
    carry = select(low < _high_product(integer, c, width), low.like(1), 0)
    top = integer * a + _high_product(integer, b, width) + carry
    high, low = (top << 2) | (low >> (width - 2)), low << 2
    negative = (high >> (width - 1)).equals(1)
    turns = (top >> (width - 2)) + select(negative, top.like(1), 0)
    up = select(low.equals(0), low.like(1), 0)
    size_high = select(negative, ~high + up, high)
    return (size_high, select(negative, -low, low)), turns, negative


def _window(position: Number, form: Reduction, width: int) -> list[Number]:
    """Three words of 2/π from a bit position on, which counts from a word of zeros ahead of it."""
    places = TWO_OVER_PI_BITS // width
    table = [0, *(TWO_OVER_PI >> width * (places - 1 - k) for k in range(places))]
    index, shift = position >> (width.bit_length() - 1), position & (width - 1)
    words = [_entry(index, table[k : form.words - 3 + k], width) for k in range(4)]
    return [(a << shift) | (b >> (width - shift)) for a, b in pairwise(words)]


def _entry(index: Number, table: Sequence[int], width: int) -> Number:
    """An entry of a small table."""
    entry = index.like(table[0])
    for k, word in enumerate(table[1:], 1):
        entry = select(index.equals(k), index.like(word % (1 << width)), entry)
    return entry


def _high_product(a: Number, b: Number, width: int) -> Number:
    """The high word of a product, from products of half words."""
    half = width // 2
    mask = (1 << half) - 1
    (a_low, a_high), (b_low, b_high) = ((x & mask, x >> half) for x in (a, b))
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


# --- sine, cosine, tangent --------------------------------------------------------------------


def sin(x: Number) -> Number:
    """The sine."""
    return _odd(x, _circular(remainder(x.abs()), 0))


def _odd(x: Number, magnitude: Number) -> Number:
    """The value of an odd function for x from that for |x|."""
    value = select(x.bits() < 0, -magnitude, magnitude)
    # A tiny number gives itself, -0 and denormals included.
    tiny = x.abs() < 2.0 ** -(format_of(x).mantissa // 2 + 2)
    return _of_finite(x, select(tiny, x, value))


def cos(x: Number) -> Number:
    """The cosine: the sine a quarter turn ahead."""
    return _of_finite(x, _circular(remainder(x.abs()), 1))


def _circular(r: Remainder, quarters: int) -> Number:
    turns = r.turns + quarters
    value = select((turns & 1).equals(0), _sine(r)[0], _cosine(r)[0])
    return select((turns & 2).equals(0), value, -value)


def _of_finite(x: Number, value: Number) -> Number:
    return select(x.abs() < math.inf, value, math.nan)


def tan(x: Number) -> Number:
    """The tangent, sin/cos: the quotient of both in two parts."""
    r = remainder(x.abs())
    sine, cosine = _sine(r), _cosine(r)
    odd = (r.turns & 1).equals(1)
    a = [select(odd, -c, s) for s, c in zip(sine, cosine)]
    b = [select(odd, s, c) for s, c in zip(sine, cosine)]
    quotient = a[0] / b[0]
    error = residual(a[0], quotient, b[0]) + (a[1] - quotient * b[1])
    return _odd(x, quotient + error / b[0])


def _sine(r: Remainder) -> Pair:
    square = r.high * r.high
    coefficients = SIN_F32 if square.is_single else SIN_F64
    tail = r.high * square * horner(square, coefficients) + r.low
    sine = r.high + tail
    return sine, (r.high - sine) + tail


def _cosine(r: Remainder) -> Pair:
    square = r.high * r.high
    half = square * 0.5
    coefficients = COS_F32 if square.is_single else COS_F64
    near = 1.0 - half
    tail = ((1.0 - near) - half) + (square * square * horner(square, coefficients) - r.high * r.low)
    cosine = near + tail
    return cosine, (near - cosine) + tail


# --- inverses ---------------------------------------------------------------------------------


def _parts(number: Sequence[float], times: float, dtype: np.dtype) -> tuple[float, float]:
    """A multiple of a constant in two parts: rounded to a dtype, and the rest."""
    high = float(np.asarray(number[0] * times, dtype))
    return high, (number[0] * times - high) + number[1] * times


def _atan_unit(x: Number) -> Pair:
    """(high, low) with high + low = atan(x) for 0 <= x <= 1."""
    if x.is_single and x.has(Ability.FUSED):
        square = x * x
        return x, horner(square, ATAN_F32_TO_1) * square * x
    middle, upper = x >= 0.4375, x >= 0.6875
    c = select(upper, x.like(1.0), select(middle, x.like(0.5), 0.0))
    t = (x - c) / x.times_plus(c, 1.0)
    quarter, half = _parts(HALF_PI, 0.5, x.dtype), _parts(ATAN_HALF, 1.0, x.dtype)
    base = select(upper, x.like(quarter[0]), select(middle, x.like(half[0]), 0.0))
    base_low = select(upper, x.like(quarter[1]), select(middle, x.like(half[1]), 0.0))
    square = t * t
    tail = (horner(square, ATAN_F32 if x.is_single else ATAN) * square).times_plus(t, base_low)
    high = base + t
    return high, ((base - high) + t) + tail


def atan(x: Number) -> Number:
    """The inverse tangent, by way of 1/x for |x| > 1."""
    size = x.abs()
    steep = size > 1.0
    high, low = _atan_unit(select(steep, 1.0 / size, size))
    half = _parts(HALF_PI, 1.0, x.dtype)
    difference, difference_low = _sum(x.like(half[0]), x.like(half[1]), -high, -low)
    angle = select(steep, difference + difference_low, high + low)
    tiny = size < 2.0 ** -(format_of(x).mantissa // 2 + 2)
    return select(tiny, x, select(size.is_nan(), x, angle.copysign(x)))


def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), from the quotient of the smaller side by the larger."""
    a, b = y.abs(), x.abs()
    steep = a > b
    large, small = select(steep, a, b), select(steep, b, a)
    equal = select(large.equals(0.0), x.like(0.0), 1.0)
    high, low = _atan_unit(select(small.equals(large), equal, small / large))
    half, turn = (_parts(HALF_PI, k, x.dtype) for k in (1.0, 2.0))
    for condition, base in ((steep, half), (x.bits() < 0, turn)):
        start = (select(condition, x.like(part), 0.0) for part in base)
        high, low = _sum(*start, *(select(condition, -v, v) for v in (high, low)))
    angle = (high + low).copysign(y)
    return select(y.is_nan(), y, select(x.is_nan(), x, angle))


def _sum(a: Number, a_low: Number, b: Number, b_low: Number) -> Pair:
    """The sum of two numbers in two parts, where |a| >= |b| or a is 0."""
    total = a + b
    return total, ((a - total) + b) + (a_low + b_low)


def _asin_tail(square: Number) -> Number:
    """asin(s)/s - 1 for s² <= 1/4."""
    return square * horner(square, ASIN_F32 if square.is_single else ASIN)


def _by_halves(size: Number) -> tuple[Number, Number, Pair]:
    """Whether |x| > 1/2; the tail of the inverse sine; and the root of its argument's square."""
    outer = size > 0.5
    square = select(outer, (1.0 - size) * 0.5, size * size)
    return outer, _asin_tail(square), root(square, square.like(0.0))


def asin(x: Number) -> Number:
    """The inverse sine: asin(x) = π/2 - 2 asin(sqrt((1 - x)/2)) in the outer half."""
    size = x.abs()
    outer, tail, (first, error) = _by_halves(size)
    half = _parts(HALF_PI, 1.0, x.dtype)
    below = (first + error).times_plus(tail, error) * 2.0 - half[1]
    far = (half[0] - first * 2.0) - below
    angle = select(outer, far, tail.times_plus(size, size)).copysign(x)
    return select(size <= 1.0, angle, math.nan)


def acos(x: Number) -> Number:
    """The inverse cosine, by the same two ranges."""
    size = x.abs()
    outer, tail, (first, error) = _by_halves(size)
    half, turn = (_parts(HALF_PI, k, x.dtype) for k in (1.0, 2.0))
    below = (first + error).times_plus(tail, error)
    negative = (turn[0] - first * 2.0) - (below * 2.0 - turn[1])
    far = select(x < 0.0, negative, (first + below) * 2.0)
    inner = half[0] - (x - (half[1] - x * tail))
    return select(size <= 1.0, select(outer, far, inner), math.nan)
