"""Complex numbers as pairs (real, imaginary): arithmetic, lengths, roots, exponentials, logarithms.

The parts are real arrays, each with the shape of the whole or of rank 0. Nothing overflows or
cancels where the result is an ordinary number: lengths are computed from numbers scaled by a power
of two, logarithms near 1 through log1p. Errors are a few ulps in the plane, not of each part;
infinities follow C99, annex G.

Source: W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987 (roots, and the signs of
zeros on the cuts); R. L. Smith, CACM 5(8), 1962, algorithm 116 (division).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.ops import arithmetic as a
from rune.ops import transcendental as t
from rune.records import dataclass

Real = Any  # an array, a tracer, or a rank-0 NumPy constant
Pair = tuple[Real, Real]


def like(value: float, x: Real) -> np.ndarray:
    """A constant in the dtype of x."""
    return literal_like(value, x)


def times(x: Pair, factor: Real) -> Pair:
    """Both parts times a real factor."""
    return a.mul(x[0], factor), a.mul(x[1], factor)


def times_i(x: Pair) -> Pair:
    """x times i."""
    return a.neg(x[1]), x[0]


def over_i(x: Pair) -> Pair:
    """x divided by i."""
    return x[1], a.neg(x[0])


def is_infinite(x: Real) -> Real:
    """Whether a real number is infinite."""
    return a.eq(a.abs(x), like(math.inf, x))


# --- arithmetic -------------------------------------------------------------------------------


def add(x: Pair, y: Pair) -> Pair:
    """x + y."""
    return a.add(x[0], y[0]), a.add(x[1], y[1])


def sub(x: Pair, y: Pair) -> Pair:
    """x - y."""
    return a.sub(x[0], y[0]), a.sub(x[1], y[1])


def neg(x: Pair) -> Pair:
    """-x."""
    return a.neg(x[0]), a.neg(x[1])


def conj(x: Pair) -> Pair:
    """x with the sign of the imaginary part reversed."""
    return x[0], a.neg(x[1])


def mul(x: Pair, y: Pair) -> Pair:
    """x times y, by the definition; an infinite operand may give NaN, as in NumPy."""
    real = a.sub(a.mul(x[0], y[0]), a.mul(x[1], y[1]))
    return real, a.add(a.mul(x[0], y[1]), a.mul(x[1], y[0]))


def div(x: Pair, y: Pair) -> Pair:
    """x / y, both divided by the larger part of y first; for y = 0, each part divided by |y|."""
    wide = a.ge(a.abs(y[0]), a.abs(y[1]))
    large, small = a.select(wide, y[0], y[1]), a.select(wide, y[1], y[0])
    p, q = a.select(wide, x[0], x[1]), a.select(wide, x[1], x[0])
    ratio = a.div(small, large)
    # Divided by |y| if y is zero, so that x / 0 is infinite and not NaN.
    ratio = a.select(a.eq(large, like(0, large)), small, ratio)
    divisor = a.add(large, a.mul(small, ratio))
    product = a.mul(p, ratio)
    imaginary = a.select(wide, a.sub(q, product), a.sub(product, q))
    real = a.add(p, a.mul(q, ratio))
    by_zero = a.eq(a.max(a.abs(large), a.abs(small)), like(0, large))
    divisor = a.select(by_zero, a.abs(large), divisor)
    return (a.div(a.select(by_zero, x[0], real), divisor), a.div(a.select(by_zero, x[1], imaginary), divisor))


def eq(x: Pair, y: Pair) -> Real:
    """Whether both parts are equal."""
    return a.logical_and(a.eq(x[0], y[0]), a.eq(x[1], y[1]))


def ne(x: Pair, y: Pair) -> Real:
    """Whether either part differs."""
    return a.logical_or(a.ne(x[0], y[0]), a.ne(x[1], y[1]))


def select(condition: Real, x: Pair, y: Pair) -> Pair:
    """x where the condition holds, else y."""
    return a.select(condition, x[0], y[0]), a.select(condition, x[1], y[1])


# --- lengths ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """Powers of four that scale numbers whose squares leave the range of a dtype."""

    large: int  # above 2**large, the factor is 2**-down
    down: int
    small: int  # below 2**-small, the factor is 2**up
    up: int
    most: float  # the largest whole number whose exp is finite


RANGES = {dtypes.f32: Range(60, 70, 50, 100, 88.0), dtypes.f64: Range(500, 600, 400, 700, 709.0)}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number times `factor`, a power of four; `length` is the length of the product."""

    number: Pair
    length: Real
    large: Real  # where the factor is below 1
    small: Real  # where it is above 1

    def by_exponent(self, power: Callable[[int], float]) -> Real:
        """power(e), where the factor is 2**e."""
        limits = RANGES[type_of(self.length).dtype]
        down, up, neither = (like(power(e), self.length) for e in (-limits.down, limits.up, 0))
        return a.select(self.large, down, a.select(self.small, up, neither))


def scaled(x: Pair) -> Scaled:
    """x times the power of four that keeps its square in range."""
    limits = RANGES[type_of(x[0]).dtype]
    most = a.max(a.abs(x[0]), a.abs(x[1]))
    large = a.gt(most, like(2.0**limits.large, most))
    small = a.lt(most, like(2.0**-limits.small, most))
    up, down, one = (like(v, most) for v in (2.0**limits.up, 2.0**-limits.down, 1))
    p, q = times(x, a.select(large, down, a.select(small, up, one)))
    square = a.add(a.mul(p, p), a.mul(q, q))
    infinite = a.logical_or(is_infinite(p), is_infinite(q))
    length = a.select(infinite, like(math.inf, square), t.sqrt(square))
    return Scaled((p, q), length, large, small)


def absolute(x: Pair) -> Real:
    """|x|; infinite if either part is, even beside a NaN."""
    unit = scaled(x)
    return a.mul(unit.length, unit.by_exponent(lambda e: 2.0**-e))


def sign(x: Pair) -> Pair:
    """x / |x|; 0 at zero, ±1 or ±i if one part is infinite, NaN if both are or a part is NaN."""
    direction, ends = scaled(x), (is_infinite(x[0]), is_infinite(x[1]))
    one, zero, nan = (like(v, x[0]) for v in (1, 0, math.nan))
    has_nan = a.logical_or(a.ne(x[0], x[0]), a.ne(x[1], x[1]))
    is_undefined = a.logical_or(has_nan, a.logical_and(*ends))

    def part(k: int) -> Real:
        is_zero = a.logical_or(a.eq(direction.length, zero), ends[1 - k])
        near = a.select(is_zero, zero, a.div(direction.number[k], direction.length))
        return a.select(is_undefined, nan, a.select(ends[k], a.copysign(one, x[k]), near))

    return part(0), part(1)


def angle_of(x: Pair) -> Real:
    """The angle from the positive real axis."""
    return t.atan2(x[1], x[0])


# --- roots ------------------------------------------------------------------------------------


def sqrt(x: Pair) -> Pair:
    """The root whose real part is not negative; on the cut, the sign of zero decides."""
    unit = scaled(x)
    p, q = unit.number
    half = like(0.5, p)
    larger = t.sqrt(a.mul(a.add(a.abs(p), unit.length), half))
    zero = like(0, p)
    is_zero = a.eq(larger, zero)
    safe = a.select(is_zero, like(1, p), larger)
    smaller = a.select(is_zero, zero, a.div(a.mul(a.abs(q), half), safe))
    right = a.ge(p, zero)
    back = unit.by_exponent(lambda e: 2.0 ** (-e // 2))
    real = a.mul(a.select(right, larger, smaller), back)
    imaginary = a.mul(a.select(right, smaller, larger), back)
    endless = is_infinite(x[1])
    infinity = like(math.inf, p)
    imaginary = a.copysign(a.select(endless, infinity, imaginary), x[1])
    return a.select(endless, infinity, real), imaginary


def rsqrt(x: Pair) -> Pair:
    """1 / sqrt(x)."""
    one = (like(1, x[0]), like(0, x[0]))
    return div(one, sqrt(x))


# --- exponentials and logarithms --------------------------------------------------------------


def cos_beside(exponent: Real, angle: Real) -> Real:
    """cos angle; 1 where the exponent is infinite and the angle infinite or NaN, as in C."""
    is_undefined = a.logical_and(is_infinite(exponent), a.logical_not(a.is_finite(angle)))
    return a.select(is_undefined, like(1, angle), t.cos(angle))


def at_angle(length: Real, angle: Real, exponent: Real) -> Pair:
    """length · (cos angle, sin angle); for angle ±0 at any length.

    exponent: where it is infinite, the length is 0 or infinite at any angle.
    """
    zero = like(0, length)
    on_axis, is_zero_times_infinity = a.eq(angle, zero), a.eq(length, zero)
    is_zero_times_infinity = a.logical_and(is_zero_times_infinity, is_infinite(exponent))
    is_undefined = a.logical_and(is_zero_times_infinity, a.logical_not(a.is_finite(angle)))
    angle = a.select(is_undefined, a.copysign(zero, angle), angle)
    real, imaginary = a.mul(length, cos_beside(exponent, angle)), a.mul(length, t.sin(angle))
    return real, a.select(on_axis, angle, imaginary)


EXPONENT = 32.0  # whole, so that subtracting it from a large exponent is exact


def exp(x: Pair) -> Pair:
    """e to the power x, in factors where e to the real part alone would overflow."""
    first, *others = _split_exp(x[0])
    return _times_all(at_angle(first, x[1], x[0]), others)


def _split_exp(x: Real) -> tuple[Real, Real, Real]:
    """exp(x) as a product: where it overflows, a part of a number times all three factors may
    not.
    """
    most = RANGES[type_of(x).dtype].most
    limit, one, factor = like(most, x), like(1, x), like(math.exp(most), x)
    far = a.logical_and(a.gt(x, limit), a.lt(x, like(3 * most, x)))
    less = a.select(far, a.sub(x, limit), x)
    needs_third = a.logical_and(far, a.gt(less, limit))
    last = t.exp(a.select(needs_third, a.sub(less, limit), less))
    return a.select(far, factor, last), a.select(needs_third, factor, one), a.select(far, last, one)


def _times_all(x: Pair, factors: Sequence[Real]) -> Pair:
    """x times real factors, one after another."""
    return reduce(times, factors, x)


def exp2(x: Pair) -> Pair:
    """2 to the power x."""
    return at_angle(t.exp2(x[0]), a.mul(x[1], like(math.log(2), x[1])), x[0])


def expm1(x: Pair) -> Pair:
    """exp(x) - 1, accurate near 0."""
    half, power = t.sin(a.mul(x[1], like(0.5, x[1]))), exp(x)
    below = a.mul(like(2, half), a.mul(half, half))
    real = a.sub(a.mul(t.expm1(x[0]), t.cos(x[1])), below)
    return a.select(is_infinite(x[0]), a.sub(power[0], like(1, real)), real), power[1]


def logistic(x: Pair) -> Pair:
    """1 / (1 + exp(-x)), from whichever of exp(x) and exp(-x) does not overflow."""
    is_negative = a.lt(x[0], like(0, x[0]))
    power = exp(select(is_negative, x, neg(x)))
    one = like(1, x[0]), like(0, x[0])
    return div(select(is_negative, power, one), add(one, power))


def _log_of(x: Pair, square_less_one: Real, near: Real) -> Real:
    """log |x|; where `near` holds, computed from |x|² - 1."""
    unit = scaled(x)
    far = a.add(t.log(unit.length), unit.by_exponent(lambda e: -e * math.log(2)))
    close = a.mul(t.log1p(square_less_one), like(0.5, far))
    return a.select(near, close, far)


def log_length(x: Pair) -> Real:
    """log |x|, accurate where |x| is near 1."""
    p, q = a.abs(x[0]), a.abs(x[1])
    large, small, one = a.max(p, q), a.min(p, q), like(1, p)
    beyond = a.mul(a.sub(large, one), a.add(large, one))
    less_one = a.add(beyond, a.mul(small, small))
    bound = like(0.5, p)
    near = a.logical_and(a.gt(large, bound), a.lt(less_one, bound))
    return _log_of(x, less_one, near)


def log(x: Pair) -> Pair:
    """The logarithm with an imaginary part in [-π, π]."""
    return log_length(x), angle_of(x)


def log1p(x: Pair) -> Pair:
    """log(1 + x), accurate near 0."""
    one, two, bound = (like(v, x[0]) for v in (1, 2, 0.5))
    less_one = a.add(a.mul(x[0], a.add(two, x[0])), a.mul(x[1], x[1]))
    near = a.lt(a.max(a.abs(x[0]), a.abs(x[1])), bound)
    x_plus_one = a.add(one, x[0]), x[1]
    far = log_length(x_plus_one)
    close = a.mul(t.log1p(a.select(near, less_one, like(0, one))), bound)
    return a.select(near, close, far), angle_of(x_plus_one)


def power(x: Pair, y: Pair) -> Pair:
    """x to the power y: |x|^re(y) and exp at the angle; 1 where y is 0, as in C's cpow."""
    angle, logarithm = angle_of(x), log_length(x)
    zero = like(0, angle)
    turn_of_length = a.select(a.eq(y[1], zero), zero, a.mul(y[1], logarithm))
    growth_of_length, shrunk = a.mul(y[0], logarithm), a.mul(y[1], angle)
    result = a.mul(t.pow(absolute(x), y[0]), t.exp(a.neg(shrunk)))
    turn = a.add(a.mul(y[0], angle), turn_of_length)
    # At infinities and NaN, and where a term overflows, it is exp(y log x), as C permits.
    exponent = _mul_infinities(y, (logarithm, angle))
    terms = _is_finite((growth_of_length, shrunk)), _is_finite((turn, turn_of_length))
    easy = a.logical_and(a.logical_and(_is_finite(x), _is_finite(y)), a.logical_and(*terms))
    growth, turn = select(easy, (a.sub(growth_of_length, shrunk), turn), exponent)
    # Where one factor leaves the range in which the product may stay, one exponential of both.
    most = like(RANGES[type_of(angle).dtype].most, angle)
    near = a.logical_and(easy, a.le(a.max(a.abs(growth_of_length), a.abs(shrunk)), most))
    first, *others = _split_exp(growth)
    length = a.select(near, result, first)
    others = [a.select(near, like(1, factor), factor) for factor in others]
    result = _times_all(at_angle(length, turn, a.select(easy, length, growth)), others)
    # 0 to a power whose real part is not positive has no value.
    of_zero = a.select(a.gt(y[0], zero), zero, like(math.nan, zero))
    result = select(a.eq(absolute(x), zero), (of_zero, of_zero), result)
    is_none = a.logical_and(a.eq(y[0], zero), a.eq(y[1], zero))
    return select(is_none, (like(1, angle), zero), result)


def _mul_infinities(x: Pair, y: Pair) -> Pair:
    """x times y; where both parts would be NaN, infinite if x, y or a term is: C99, annex G.5.1."""

    def numbers(z: Pair, where: Real) -> Pair:
        zero = like(0, z[0])
        p, q = (a.select(a.logical_and(where, a.ne(v, v)), a.copysign(zero, v), v) for v in z)
        return p, q

    def directions(z: Pair, where: Real) -> Pair:
        one, zero = like(1, z[0]), like(0, z[0])
        ends = (a.copysign(a.select(is_infinite(v), one, zero), v) for v in z)
        p, q = (a.select(where, end, v) for end, v in zip(ends, z))
        return p, q

    far_x, far_y = (a.logical_or(*map(is_infinite, z)) for z in (x, y))
    terms = [is_infinite(a.mul(v, w)) for v in x for w in y]
    overflows = a.logical_or(a.logical_or(*terms[:2]), a.logical_or(*terms[2:]))
    numbers_x = a.logical_or(far_y, overflows)
    numbers_y = a.logical_or(far_x, overflows)
    product = mul(x, y)
    direction = mul(numbers(directions(x, far_x), numbers_x), numbers(directions(y, far_y), numbers_y))
    is_nan = a.logical_and(a.ne(product[0], product[0]), a.ne(product[1], product[1]))
    is_nan = a.logical_and(is_nan, a.logical_or(far_x, numbers_x))
    return select(is_nan, times(direction, like(math.inf, x[0])), product)


def _is_finite(x: Pair) -> Real:
    return a.logical_and(a.is_finite(x[0]), a.is_finite(x[1]))
