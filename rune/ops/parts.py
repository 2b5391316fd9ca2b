"""Every function of complex numbers by real and imaginary parts: what a compiler computes.

A number is a pair (real, imaginary) of real arrays, each of the shape of the whole or of rank 0.
`PARTS[primitive](*operands, **params)` takes a pair for each complex operand, a plain array for
every other, and gives a pair or, where the result is real, an array. The formulas neither overflow
nor cancel where the result is an ordinary number: lengths are taken of numbers scaled by a power
of two, logarithms near 1 through log1p. Errors are a few ulps in the plane, not of each part.

Source: W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987 (roots, inverse functions,
tanh, and the signs of zeros on the cuts); R. L. Smith, CACM 5(8), 1962, algorithm 116 (division).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as c
from rune.ops import transcendental as t

Real = Any  # an array, a tracer, or a rank-0 NumPy constant
Pair = tuple[Real, Real]


def _like(value: float, x: Real) -> np.ndarray:
    return literal_like(value, x)


def _times(x: Pair, factor: Real) -> Pair:
    return a.mul(x[0], factor), a.mul(x[1], factor)


def _times_i(x: Pair) -> Pair:
    return a.neg(x[1]), x[0]


def _over_i(x: Pair) -> Pair:
    return x[1], a.neg(x[0])


def _is_infinite(x: Real) -> Real:
    return a.eq(a.abs(x), _like(math.inf, x))


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
    """x with the other sign of the imaginary part."""
    return x[0], a.neg(x[1])


def mul(x: Pair, y: Pair) -> Pair:
    """x times y, by the definition: what is infinite may become NaN, as in NumPy."""
    real = a.sub(a.mul(x[0], y[0]), a.mul(x[1], y[1]))
    return real, a.add(a.mul(x[0], y[1]), a.mul(x[1], y[0]))


def div(x: Pair, y: Pair) -> Pair:
    """x / y, both divided by the larger part of y first."""
    wide = a.ge(a.abs(y[0]), a.abs(y[1]))
    large, small = a.select(wide, y[0], y[1]), a.select(wide, y[1], y[0])
    p, q = a.select(wide, x[0], x[1]), a.select(wide, x[1], x[0])
    ratio = a.div(small, large)
    # Of zero parts, so that x / 0 is infinite and not NaN.
    ratio = a.select(a.eq(large, _like(0, large)), small, ratio)
    divisor = a.add(large, a.mul(small, ratio))
    imaginary = a.div(a.sub(q, a.mul(p, ratio)), divisor)
    real = a.div(a.add(p, a.mul(q, ratio)), divisor)
    return real, a.select(wide, imaginary, a.neg(imaginary))


def _eq(x: Pair, y: Pair) -> Real:
    return a.logical_and(a.eq(x[0], y[0]), a.eq(x[1], y[1]))


def _ne(x: Pair, y: Pair) -> Real:
    return a.logical_or(a.ne(x[0], y[0]), a.ne(x[1], y[1]))


def _select(condition: Real, x: Pair, y: Pair) -> Pair:
    return a.select(condition, x[0], y[0]), a.select(condition, x[1], y[1])


# --- lengths ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Range:
    """Powers of four by which numbers whose squares leave the range of a dtype are scaled."""

    large: int  # above 2**large, the factor is 2**-down
    down: int
    small: int  # below 2**-small, the factor is 2**up
    up: int
    most: float  # the largest whole number whose exp is finite


_RANGES = {
    dtypes.f32: _Range(60, 70, 50, 100, 88.0),
    dtypes.f64: _Range(500, 600, 400, 700, 709.0),
}


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A number times `factor`, a power of four; `length` is the length of that product."""

    number: Pair
    length: Real
    large: Real  # where the factor is below 1
    small: Real  # ... above 1

    def by_exponent(self, power: Callable[[int], float]) -> Real:
        """power(e) where the factor is 2**e."""
        limits = _RANGES[type_of(self.length).dtype]
        down, up, none = (_like(power(e), self.length) for e in (-limits.down, limits.up, 0))
        return a.select(self.large, down, a.select(self.small, up, none))


def _scaled(x: Pair) -> _Scaled:
    limits = _RANGES[type_of(x[0]).dtype]
    most = a.max(a.abs(x[0]), a.abs(x[1]))
    large = a.gt(most, _like(2.0**limits.large, most))
    small = a.lt(most, _like(2.0**-limits.small, most))
    up, down, one = (_like(v, most) for v in (2.0**limits.up, 2.0**-limits.down, 1))
    p, q = _times(x, a.select(large, down, a.select(small, up, one)))
    square = a.add(a.mul(p, p), a.mul(q, q))
    infinite = a.logical_or(_is_infinite(p), _is_infinite(q))
    length = a.select(infinite, _like(math.inf, square), t.sqrt(square))
    return _Scaled((p, q), length, large, small)


def absolute(x: Pair) -> Real:
    """|x|; infinite if a part is, even beside a NaN."""
    found = _scaled(x)
    return a.mul(found.length, found.by_exponent(lambda e: 2.0**-e))


def _sign(x: Pair) -> Pair:
    found = _scaled(x)
    zero = a.eq(found.length, _like(0, found.length))
    length = a.select(zero, _like(1, found.length), found.length)
    return a.div(found.number[0], length), a.div(found.number[1], length)


def _angle(x: Pair) -> Real:
    return t.atan2(x[1], x[0])


# --- roots ------------------------------------------------------------------------------------


def sqrt(x: Pair) -> Pair:
    """The root with a real part that is not negative; on the cut, the sign of zero decides."""
    found = _scaled(x)
    p, q = found.number
    half = _like(0.5, p)
    larger = t.sqrt(a.mul(a.add(a.abs(p), found.length), half))
    zero = _like(0, p)
    is_zero = a.eq(larger, zero)
    safe = a.select(is_zero, _like(1, p), larger)
    smaller = a.select(is_zero, zero, a.div(a.mul(a.abs(q), half), safe))
    right = a.ge(p, zero)
    back = found.by_exponent(lambda e: 2.0 ** (-e // 2))
    real = a.mul(a.select(right, larger, smaller), back)
    imaginary = a.mul(a.select(right, smaller, larger), back)
    endless = _is_infinite(x[1])
    infinity = _like(math.inf, p)
    imaginary = a.copysign(a.select(endless, infinity, imaginary), x[1])
    return a.select(endless, infinity, real), imaginary


def _rsqrt(x: Pair) -> Pair:
    one = (_like(1, x[0]), _like(0, x[0]))
    return div(one, sqrt(x))


# --- exponentials and logarithms --------------------------------------------------------------


def _cos(length: Real, angle: Real) -> Real:
    """cos angle; 1 where the length is infinite and the angle no number, as C has it."""
    lost = a.logical_and(_is_infinite(length), a.logical_not(a.is_finite(angle)))
    return a.select(lost, _like(1, angle), t.cos(angle))


def _at_angle(length: Real, angle: Real) -> Pair:
    """length · (cos angle, sin angle); of length 0 at any angle, at angle ±0 of any length."""
    zero = _like(0, length)
    on_axis, gone = a.eq(angle, zero), a.eq(length, zero)
    lost = a.logical_and(gone, a.logical_not(a.is_finite(angle)))
    angle = a.select(lost, zero, angle)
    real, imaginary = a.mul(length, _cos(length, angle)), a.mul(length, t.sin(angle))
    return real, a.select(on_axis, angle, imaginary)


EXPONENT = 32.0  # whole, so that taking it off a large exponent is exact


def exp(x: Pair) -> Pair:
    """e to the power x, in two factors where e to the real part alone would be infinite."""
    far = a.gt(x[0], _like(_RANGES[type_of(x[0]).dtype].most, x[0]))
    length = t.exp(a.select(far, a.sub(x[0], _like(EXPONENT, x[0])), x[0]))
    factor = a.select(far, _like(math.exp(EXPONENT), length), _like(1, length))
    return _times(_at_angle(length, x[1]), factor)


def _exp2(x: Pair) -> Pair:
    return _at_angle(t.exp2(x[0]), a.mul(x[1], _like(math.log(2), x[1])))


def _expm1(x: Pair) -> Pair:
    half = t.sin(a.mul(x[1], _like(0.5, x[1])))
    below = a.mul(_like(2, half), a.mul(half, half))
    real = a.sub(a.mul(t.expm1(x[0]), t.cos(x[1])), below)
    return real, exp(x)[1]


def _logistic(x: Pair) -> Pair:
    left = a.lt(x[0], _like(0, x[0]))
    power = exp(_select(left, x, neg(x)))
    one = _like(1, x[0]), _like(0, x[0])
    return div(_select(left, power, one), add(one, power))


def _log_length(x: Pair, square_less_one: Real, near: Real) -> Real:
    """log |x|; where `near` holds, from |x|² - 1."""
    found = _scaled(x)
    far = a.add(t.log(found.length), found.by_exponent(lambda e: -e * math.log(2)))
    close = a.mul(t.log1p(square_less_one), _like(0.5, far))
    return a.select(near, close, far)


def _log_length_of(x: Pair) -> Real:
    p, q = a.abs(x[0]), a.abs(x[1])
    large, small, one = a.max(p, q), a.min(p, q), _like(1, p)
    beyond = a.mul(a.sub(large, one), a.add(large, one))
    less_one = a.add(beyond, a.mul(small, small))
    bound = _like(0.5, p)
    near = a.logical_and(a.gt(large, bound), a.lt(less_one, bound))
    return _log_length(x, less_one, near)


def log(x: Pair) -> Pair:
    """The logarithm with an imaginary part in [-π, π]."""
    return _log_length_of(x), _angle(x)


def _log1p(x: Pair) -> Pair:
    one, two, bound = (_like(v, x[0]) for v in (1, 2, 0.5))
    less_one = a.add(a.mul(x[0], a.add(two, x[0])), a.mul(x[1], x[1]))
    near = a.lt(a.max(a.abs(x[0]), a.abs(x[1])), bound)
    moved = a.add(one, x[0]), x[1]
    far = _log_length_of(moved)
    close = a.mul(t.log1p(a.select(near, less_one, _like(0, one))), bound)
    return a.select(near, close, far), _angle(moved)


def power(x: Pair, y: Pair) -> Pair:
    """x to the power y: |x|^re(y) and exp at the angle; 1 where y is 0."""
    length, angle = absolute(x), _angle(x)
    turned = a.mul(y[1], _log_length_of(x))
    turned = a.select(a.eq(y[1], _like(0, turned)), _like(0, turned), turned)
    made = a.mul(t.pow(length, y[0]), t.exp(a.neg(a.mul(y[1], angle))))
    return _at_angle(made, a.add(a.mul(y[0], angle), turned))


# --- circular and hyperbolic functions --------------------------------------------------------


def _sinh_cosh(x: Real) -> tuple[Real, Real, Real]:
    """(sinh x, cosh x, a factor that both lack where they would be infinite)."""
    far = a.gt(a.abs(x), _like(_RANGES[type_of(x).dtype].most, x))
    power = t.exp(a.sub(a.abs(x), _like(EXPONENT, x)))
    factor = a.select(far, _like(math.exp(EXPONENT) / 2, x), _like(1, x))
    return a.select(far, a.copysign(power, x), t.sinh(x)), a.select(far, power, t.cosh(x)), factor


def _product(x: Real, y: Real) -> Real:
    """x · y; a zero of the right sign if either is one, whatever the other."""
    zero = _like(0, x)
    gone = a.logical_or(a.eq(x, zero), a.eq(y, zero))
    signed = a.mul(a.copysign(zero, x), a.copysign(_like(1, y), y))
    return a.select(gone, signed, a.mul(x, y))


def cosh(x: Pair) -> Pair:
    """Hyperbolic cosine."""
    sinh_, cosh_, factor = _sinh_cosh(x[0])
    real = a.mul(_cos(cosh_, x[1]), cosh_)
    return _times((real, _product(sinh_, t.sin(x[1]))), factor)


def sinh(x: Pair) -> Pair:
    """Hyperbolic sine."""
    sinh_, cosh_, factor = _sinh_cosh(x[0])
    real = _product(sinh_, _cos(cosh_, x[1]))
    return _times((real, _product(t.sin(x[1]), cosh_)), factor)


def tanh(x: Pair) -> Pair:
    """Hyperbolic tangent: Kahan's, which does not cancel; ±1 where that is all there is."""
    limit = _like(_RANGES[type_of(x[0]).dtype].most / 4, x[0])
    length = a.abs(x[0])
    far = a.gt(length, limit)
    tangent, one = t.tan(x[1]), _like(1, length)
    near = t.sinh(a.select(far, limit, length))
    secant = a.add(one, a.mul(tangent, tangent))
    divisor = a.add(one, a.mul(secant, a.mul(near, near)))
    grown = a.mul(_product(secant, near), t.sqrt(a.add(one, a.mul(near, near))))
    real = a.select(far, one, _quotient(grown, divisor))
    turned = a.mul(t.sin(x[1]), t.cos(x[1]))
    rest = _product(t.exp(a.mul(_like(-2, length), length)), a.mul(_like(4, turned), turned))
    return a.copysign(real, x[0]), a.select(far, rest, _quotient(tangent, divisor))


def _quotient(x: Real, y: Real) -> Real:
    """x / y; zero if x is, even of NaN."""
    return a.select(a.eq(x, _like(0, x)), x, a.div(x, y))


def _circular(hyperbolic: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """x -> h(ix) / i: sine of sinh, tangent of tanh, and for the inverses alike."""
    return lambda x: _over_i(hyperbolic(_times_i(x)))


# --- their inverses ---------------------------------------------------------------------------


def _roots_beside(x: Pair) -> tuple[Pair, Pair]:
    """(sqrt(1 - x), sqrt(1 + x))."""
    one = _like(1, x[0])
    return sqrt((a.sub(one, x[0]), a.neg(x[1]))), sqrt((a.add(one, x[0]), x[1]))


def _area(x: Pair, y: Pair) -> Real:
    """Im(conj(x) · y)."""
    return a.sub(a.mul(x[0], y[1]), a.mul(x[1], y[0]))


def _direction(x: Pair) -> tuple[Real, Pair]:
    """Whether x is infinite, and where it lies then: each part 0 or ±1."""
    ends = tuple(map(_is_infinite, x))

    def end(part: Real, infinite: Real) -> Real:
        # A NaN stays one: its direction is not known.
        rest = a.select(a.eq(part, part), _like(0, part), part)
        return a.copysign(a.select(infinite, _like(1, part), rest), part)

    return a.logical_or(*ends), (end(x[0], ends[0]), end(x[1], ends[1]))


def asin(x: Pair) -> Pair:
    """Inverse sine."""
    left, right = _roots_beside(x)
    endless, (p, q) = _direction(x)
    above = a.select(endless, p, x[0])
    beside = a.select(endless, a.abs(q), mul(left, right)[0])
    return t.atan2(above, beside), t.asinh(_area(left, right))


def _acos(x: Pair) -> Pair:
    left, right = _roots_beside(x)
    endless, (p, q) = _direction(x)
    near = a.mul(_like(2, x[0]), t.atan2(left[0], right[0]))
    real = a.select(endless, t.atan2(a.abs(q), p), near)
    return real, t.asinh(_area(right, left))


def _acosh(x: Pair) -> Pair:
    one = _like(1, x[0])
    left, right = sqrt((a.sub(x[0], one), x[1])), sqrt((a.add(x[0], one), x[1]))
    endless, (p, q) = _direction(x)
    near = a.mul(_like(2, x[0]), t.atan2(left[1], right[0]))
    return t.asinh(mul(conj(left), right)[0]), a.select(endless, t.atan2(q, p), near)


def atanh(x: Pair) -> Pair:
    """Inverse hyperbolic tangent; far out, that of 1/x and a right angle."""
    one, p, q = _like(1, x[0]), a.abs(x[0]), x[1]
    far = a.gt(a.max(p, a.abs(q)), _like(2.0 ** _RANGES[type_of(p).dtype].large, p))
    left, square = a.sub(one, p), a.mul(q, q)
    divisor = a.add(a.mul(left, left), square)
    near = a.mul(t.log1p(a.div(a.mul(_like(4, p), p), divisor)), _like(0.25, p))
    # Beside the pole, where only q is left and its square may vanish: log(2/|q|) / 2.
    beside = a.mul(a.sub(_like(math.log(2), p), t.log(a.abs(q))), _like(0.5, p))
    real = a.select(a.lt(divisor, _like(2.0**-80, p)), beside, near)
    real = a.select(far, _over_square(p, q), real)
    behind = a.sub(a.mul(left, a.add(one, p)), square)
    angle = a.mul(t.atan2(a.mul(_like(2, q), q), behind), _like(0.5, q))
    right = a.copysign(_like(math.pi / 2, q), q)
    return a.copysign(real, x[0]), a.select(far, right, angle)


def _over_square(p: Real, q: Real) -> Real:
    """Re(1 / (p + iq)); 0 where q is infinite."""
    found = div((_like(1, p), _like(0, p)), (p, q))[0]
    return a.select(_is_infinite(q), _like(0, p), found)


PARTS: Mapping[Primitive, Callable[..., Any]] = {
    c.real: lambda x: x[0],
    c.imag: lambda x: x[1],
    c.complex: lambda x, y: (x, y),
    c.conj: conj,
    a.add: add, a.sub: sub, a.neg: neg, a.mul: mul, a.div: div,
    a.eq: _eq, a.ne: _ne, a.select: _select, a.abs: absolute, a.sign: _sign,
    t.sqrt: sqrt, t.rsqrt: _rsqrt, t.pow: power,
    t.exp: exp, t.exp2: _exp2, t.expm1: _expm1, t.logistic: _logistic,
    t.log: log, t.log1p: _log1p,
    t.log2: lambda x: _times(log(x), _like(1 / math.log(2), x[0])),
    t.sinh: sinh, t.cosh: cosh, t.tanh: tanh,
    t.sin: _circular(sinh), t.cos: lambda x: cosh(_times_i(x)), t.tan: _circular(tanh),
    t.asin: asin, t.acos: _acos, t.atan: _circular(atanh),
    t.asinh: _circular(asin), t.acosh: _acosh, t.atanh: atanh,
}  # fmt: skip
