"""Functions of complex numbers by real and imaginary parts: the formulas that compilers use.

`PARTS[primitive](*operands, **params)` takes a pair for each complex operand and a plain array for
every other, and returns a pair or, if the result is real, an array. Arithmetic, roots and
exponentials are in pairs.py; this file has the circular and hyperbolic functions and their
inverses.

Source: W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as c
from rune.ops import pairs
from rune.ops import transcendental as t
from rune.ops.pairs import (
    EXPONENT,
    RANGES,
    Pair,
    Real,
    conj,
    cos_beside,
    div,
    is_infinite,
    like,
    mul,
    over_i,
    sqrt,
    times,
    times_i,
)

# --- circular and hyperbolic functions --------------------------------------------------------


def _sinh_cosh(x: Real) -> tuple[Real, Real, Real]:
    """(sinh x, cosh x, a factor to apply to both where they would overflow)."""
    far = a.gt(a.abs(x), like(RANGES[type_of(x).dtype].most, x))
    power = t.exp(a.sub(a.abs(x), like(EXPONENT, x)))
    factor = a.select(far, like(math.exp(EXPONENT) / 2, x), like(1, x))
    return a.select(far, a.copysign(power, x), t.sinh(x)), a.select(far, power, t.cosh(x)), factor


def _product(x: Real, y: Real) -> Real:
    """x · y; a zero of the right sign if either is zero, whatever the other is."""
    zero = like(0, x)
    has_zero = a.logical_or(a.eq(x, zero), a.eq(y, zero))
    zero_of_sign = a.mul(a.copysign(zero, x), a.copysign(like(1, y), y))
    return a.select(has_zero, zero_of_sign, a.mul(x, y))


def cosh(x: Pair) -> Pair:
    """Hyperbolic cosine."""
    sinh_, cosh_, factor = _sinh_cosh(x[0])
    real = a.mul(cos_beside(x[0], x[1]), cosh_)
    return times((real, _product(sinh_, t.sin(x[1]))), factor)


def sinh(x: Pair) -> Pair:
    """Hyperbolic sine."""
    sinh_, cosh_, factor = _sinh_cosh(x[0])
    real = _product(sinh_, cos_beside(x[0], x[1]))
    return times((real, _product(t.sin(x[1]), cosh_)), factor)


def tanh(x: Pair) -> Pair:
    """Hyperbolic tangent by Kahan's formula, which does not cancel; ±1 where the rest
    underflows.
    """
    limit = like(RANGES[type_of(x[0]).dtype].most / 4, x[0])
    length = a.abs(x[0])
    far = a.gt(length, limit)
    tangent, one = t.tan(x[1]), like(1, length)
    near = t.sinh(a.select(far, limit, length))
    secant = a.add(one, a.mul(tangent, tangent))
    divisor = a.add(one, a.mul(secant, a.mul(near, near)))
    numerator = a.mul(_product(secant, near), t.sqrt(a.add(one, a.mul(near, near))))
    real = a.select(far, one, _quotient(numerator, divisor))
    # At infinity the angle is arbitrary; elsewhere an infinite or NaN angle makes both parts NaN.
    imaginary = a.mul(t.sin(x[1]), t.cos(x[1]))
    imaginary = a.select(is_infinite(length), a.copysign(like(0, imaginary), x[1]), imaginary)
    real = a.select(a.ne(imaginary, imaginary), a.select(far, imaginary, real), real)
    limit_imag = a.mul(t.exp(a.mul(like(-2, length), length)), a.mul(like(4, imaginary), imaginary))
    return a.copysign(real, x[0]), a.select(far, limit_imag, _quotient(tangent, divisor))


def _quotient(x: Real, y: Real) -> Real:
    """x / y; zero if x is, even for a NaN y."""
    return a.select(a.eq(x, like(0, x)), x, a.div(x, y))


def _circular(hyperbolic: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """x -> h(ix) / i: the sine from sinh, the tangent from tanh, and so for the inverses."""
    return lambda x: over_i(hyperbolic(times_i(x)))


# --- their inverses ---------------------------------------------------------------------------


def _roots_beside(x: Pair) -> tuple[Pair, Pair]:
    """(sqrt(1 - x), sqrt(1 + x))."""
    one = like(1, x[0])
    return sqrt((a.sub(one, x[0]), a.neg(x[1]))), sqrt((a.add(one, x[0]), x[1]))


def _area(x: Pair, y: Pair) -> Real:
    """Im(conj(x) · y)."""
    return a.sub(a.mul(x[0], y[1]), a.mul(x[1], y[0]))


def _direction(x: Pair) -> tuple[Real, Pair]:
    """Whether x is infinite, and its direction if it is: each part 0 or ±1."""
    ends = tuple(map(is_infinite, x))

    def end(part: Real, infinite: Real) -> Real:
        # A NaN stays a NaN: its direction is not known.
        finite = a.select(a.eq(part, part), like(0, part), part)
        return a.copysign(a.select(infinite, like(1, part), finite), part)

    return a.logical_or(*ends), (end(x[0], ends[0]), end(x[1], ends[1]))


def asin(x: Pair) -> Pair:
    """Inverse sine."""
    root_minus, root_plus = _roots_beside(x)
    endless, (p, q) = _direction(x)
    above = a.select(endless, p, x[0])
    width = a.select(endless, a.abs(q), mul(root_minus, root_plus)[0])
    real = a.select(a.eq(x[0], like(0, x[0])), x[0], t.atan2(above, width))
    return real, _beyond(endless, t.asinh(_area(root_minus, root_plus)), x[1])


def _beyond(endless: Real, value: Real, sign: Real) -> Real:
    """The value, or an infinity of that sign where x is infinite, even beside a NaN."""
    return a.select(endless, a.copysign(like(math.inf, value), sign), value)


def _acos(x: Pair) -> Pair:
    root_minus, root_plus = _roots_beside(x)
    endless, (p, q) = _direction(x)
    near = a.mul(like(2, x[0]), t.atan2(root_minus[0], root_plus[0]))
    real = a.select(endless, t.atan2(a.abs(q), p), near)
    real = _right_on_axis(x[0], real, like(1, real))
    return real, _beyond(endless, t.asinh(_area(root_plus, root_minus)), a.neg(x[1]))


def _right_on_axis(x: Real, angle: Real, sign: Real) -> Real:
    """The angle; a right angle of that sign where x is 0, even beside a NaN."""
    right = a.copysign(like(math.pi / 2, angle), sign)
    return a.select(a.eq(x, like(0, x)), right, angle)


def _acosh(x: Pair) -> Pair:
    one = like(1, x[0])
    root_minus, root_plus = sqrt((a.sub(x[0], one), x[1])), sqrt((a.add(x[0], one), x[1]))
    endless, (p, q) = _direction(x)
    near = a.mul(like(2, x[0]), t.atan2(root_minus[1], root_plus[0]))
    angle = _right_on_axis(x[0], a.select(endless, t.atan2(q, p), near), x[1])
    return _beyond(endless, t.asinh(mul(conj(root_minus), root_plus)[0]), one), angle


def atanh(x: Pair) -> Pair:
    """Inverse hyperbolic tangent; far out, that of 1/x and a right angle."""
    one, p, q = like(1, x[0]), a.abs(x[0]), x[1]
    far = a.gt(a.max(p, a.abs(q)), like(2.0 ** RANGES[type_of(p).dtype].large, p))
    distance, square = a.sub(one, p), a.mul(q, q)
    divisor = a.add(a.mul(distance, distance), square)
    near = a.mul(t.log1p(a.div(a.mul(like(4, p), p), divisor)), like(0.25, p))
    # Near the pole, where only q is left and its square may vanish: log(2/|q|) / 2.
    at_pole = a.mul(a.sub(like(math.log(2), p), t.log(a.abs(q))), like(0.5, p))
    real = a.select(a.lt(divisor, like(2.0**-80, p)), at_pole, near)
    real = a.select(far, _over_square(p, q), real)
    nothing = a.logical_or(a.eq(p, like(0, p)), a.logical_or(is_infinite(p), is_infinite(q)))
    real = a.select(nothing, like(0, p), real)
    height = a.sub(a.mul(distance, a.add(one, p)), square)
    angle = a.mul(t.atan2(a.mul(like(2, q), q), height), like(0.5, q))
    right = a.copysign(like(math.pi / 2, q), q)
    return a.copysign(real, x[0]), a.select(a.logical_or(far, is_infinite(q)), right, angle)


def _over_square(p: Real, q: Real) -> Real:
    """Re(1 / (p + iq))."""
    return div((like(1, p), like(0, p)), (p, q))[0]


PARTS: Mapping[Primitive, Callable[..., Any]] = {
    c.real: lambda x: x[0],
    c.imag: lambda x: x[1],
    c.complex: lambda x, y: (x, y),
    c.conj: conj,
    a.add: pairs.add,
    a.sub: pairs.sub,
    a.neg: pairs.neg,
    a.mul: mul,
    a.div: div,
    a.eq: pairs.eq,
    a.ne: pairs.ne,
    a.select: pairs.select,
    a.abs: pairs.absolute,
    a.sign: pairs.sign,
    t.sqrt: sqrt,
    t.rsqrt: pairs.rsqrt,
    t.pow: pairs.power,
    t.exp: pairs.exp,
    t.exp2: pairs.exp2,
    t.expm1: pairs.expm1,
    t.logistic: pairs.logistic,
    t.log: pairs.log,
    t.log1p: pairs.log1p,
    t.log2: lambda x: times(pairs.log(x), like(1 / math.log(2), x[0])),
    t.sinh: sinh,
    t.cosh: cosh,
    t.tanh: tanh,
    t.sin: _circular(sinh),
    t.cos: lambda x: cosh(times_i(x)),
    t.tan: _circular(tanh),
    t.asin: asin,
    t.acos: _acos,
    t.atan: _circular(atanh),
    t.asinh: _circular(asin),
    t.acosh: _acosh,
    t.atanh: atanh,
}
