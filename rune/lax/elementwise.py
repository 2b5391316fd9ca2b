"""Elementwise functions on operands of one dtype: arithmetic, comparisons, functions of reals.

Nothing is promoted: integers stay integers (`div` of integers truncates), and functions of reals
refuse them. Source: XLA operation semantics, elementwise operations.
"""

from __future__ import annotations

import enum
from typing import Any

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError
from rune.lax.arguments import alike, binary, truth, unary, weak, whole
from rune.numpy.arguments import static_int, value
from rune.ops import conventions, extrema
from rune.ops.complex_numbers import is_complex
from rune.ops.promote import constant
from rune.typing import ArrayLike

# --- functions of one real or complex number --------------------------------------------------

sqrt = unary("sqrt", ops.sqrt, "Square root.", "4.0", weak("2."))
rsqrt = unary("rsqrt", ops.rsqrt, "1 / sqrt(x).", "4.0", weak("0.5"))
cbrt = unary("cbrt", ops.cbrt, "Cube root, of negatives too.", "8.0", weak("2."), "floats")
exp = unary("exp", ops.exp, "e to the power x.", "0.0", weak("1."))
exp2 = unary("exp2", ops.exp2, "2 to the power x.", "3.0", weak("8."))
expm1 = unary("expm1", ops.expm1, "exp(x) - 1, accurate near 0.", "0.0", weak("0."))
log = unary("log", ops.log, "Natural logarithm.", "1.0", weak("0."))
log1p = unary("log1p", ops.log1p, "log(1 + x), accurate near 0.", "0.0", weak("0."))
logistic = unary("logistic", ops.logistic, "1 / (1 + exp(-x)).", "0.0", weak("0.5"))
sin = unary("sin", ops.sin, "Sine of x in radians.", "0.0", weak("0."))
cos = unary("cos", ops.cos, "Cosine of x in radians.", "0.0", weak("1."))
tan = unary("tan", ops.tan, "Tangent of x in radians.", "0.0", weak("0."))
asin = unary("asin", ops.asin, "Inverse sine.", "0.0", weak("0."))
acos = unary("acos", ops.acos, "Inverse cosine.", "1.0", weak("0."))
atan = unary("atan", ops.atan, "Inverse tangent.", "0.0", weak("0."))
sinh = unary("sinh", ops.sinh, "Hyperbolic sine.", "0.0", weak("0."))
cosh = unary("cosh", ops.cosh, "Hyperbolic cosine.", "0.0", weak("1."))
tanh = unary("tanh", ops.tanh, "Hyperbolic tangent.", "0.0", weak("0."))
asinh = unary("asinh", ops.asinh, "Inverse hyperbolic sine.", "0.0", weak("0."))
acosh = unary("acosh", ops.acosh, "Inverse hyperbolic cosine.", "1.0", weak("0."))
atanh = unary("atanh", ops.atanh, "Inverse hyperbolic tangent.", "0.0", weak("0."))
erf = unary("erf", ops.erf, "The error function.", "0.0", weak("0."), "floats")
erfc = unary("erfc", ops.erfc, "1 - erf(x), accurate for large x.", "0.0", weak("1."), "floats")
erf_inv = unary("erf_inv", ops.erf_inv, "The inverse of erf.", "0.0", weak("0."), "floats")
floor = unary("floor", ops.floor, "The next whole number below.", "1.5", weak("1."), "floats")
ceil = unary("ceil", ops.ceil, "The next whole number above.", "1.5", weak("2."), "floats")
is_finite = unary(
    "is_finite", ops.is_finite, "Neither NaN nor infinite.", "1.0", truth("True"), "floats; bool comes out"
)

# --- arithmetic -------------------------------------------------------------------------------

abs = unary("abs", ops.abs, "Absolute value; the modulus of complex numbers.", "-2.0", weak("2."), "numbers")
neg = unary("neg", ops.neg, "-x.", "2.0", weak("-2."), "numbers")
sign = unary("sign", ops.sign, "-1, 0 or 1; x / |x| of complex numbers.", "-2.0", weak("-1."), "numbers")
square = unary("square", lambda x: ops.mul(x, x), "x · x.", "3.0", weak("9."), "numbers")
reciprocal = unary(
    "reciprocal",
    lambda x: conventions.true_divide(constant(1, x), x),
    "1 / x.",
    "4.0",
    weak("0.25"),
    "all; bools and integers become floats",
)
add = binary("add", ops.add, "x + y.", "1.0, 2.0", weak("3."))
sub = binary("sub", ops.sub, "x - y.", "3.0, 2.0", weak("1."))
mul = binary("mul", ops.mul, "x · y.", "3.0, 2.0", weak("6."))
div = binary("div", ops.div, "x / y; of integers, rounded towards zero.", "-7, 2", whole("-3"))
rem = binary("rem", ops.rem, "x - y · trunc(x / y), of the sign of x.", "-7, 2", whole("-1"))
max = binary("max", extrema.larger, "The greater; NaN where either is.", "1.0, 2.0", weak("2."))
min = binary("min", extrema.smaller, "The lesser; NaN where either is.", "1.0, 2.0", weak("1."))
atan2 = binary("atan2", ops.atan2, "The angle of (y, x): atan2(y, x).", "0.0, 1.0", weak("0."), "floats")
nextafter = binary("nextafter", ops.nextafter, "The next number from x towards y.", "0.0, 0.0", weak("0."), "floats")


def pow(x: Any, y: Any) -> Any:
    """x to the power y. `y` may be an integer beside any x.

    Shapes: of one rank, broadcast together; or [] of Python numbers.
    Types:  that of `x` where y is an integer, else one dtype of both; bools become i32.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and complex numbers
            as `y`; ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> lax.pow(2.0, 3)
    Array(8., f32*[], cpu:0)
    """
    base, exponent = value("pow", x), value("pow", y)
    if type_of(exponent).dtype not in dtypes.INTEGER:
        base, exponent = alike("pow", x, y)
    if type(y) is int:
        return conventions.power(base, y)
    if type_of(exponent).dtype != type_of(base).dtype:
        exponent = ops.convert(exponent, dtype=type_of(base).dtype)
    return conventions.power(base, exponent)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to a whole power, by repeated multiplication.

    Shapes: any, kept. Types: numeric, that of `x`.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools as `x`, and for
            integers where y is below 0.

    >>> from rune import lax
    >>> lax.integer_pow(2.0, -1)
    Array(0.5, f32*[], cpu:0)
    """
    return ops.integer_pow(value("integer_pow", x), exponent=static_int("integer_pow", "y", y))


class RoundingMethod(enum.IntEnum):
    """Where halves go: away from zero, or to the even neighbour.

    >>> from rune import lax
    >>> lax.round(0.5, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(0.5)
    (Array(0., f32*[], cpu:0), Array(1., f32*[], cpu:0))
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest whole number; halves go where `rounding_method` says.

    Shapes: any, kept.
    Types:  floating, that of `x`.
    Errors: ArgumentError if an argument is not an array or the method is unknown; DtypeError for
            anything but floats.

    >>> from rune import lax
    >>> lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., f32*[], cpu:0), Array(2., f32*[], cpu:0))
    """
    number = value("round", x)
    if rounding_method not in tuple(RoundingMethod):
        raise ArgumentError(f"round: cannot round by {rounding_method!r} (a lax.RoundingMethod required)")
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return ops.round(number)
    truncated = ops.trunc(number)
    is_half = ops.ge(ops.abs(ops.sub(number, truncated)), constant(0.5, number))
    away = ops.copysign(ops.select(is_half, constant(1, number), constant(0, number)), number)
    return ops.add(truncated, away)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x, moved between `min` and `max`; `max` where they cross. The derivative at a bound is 0.

    Shapes: x any, kept; min and max that of x, or []. Types: one real dtype, kept.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> lax.clamp(0.0, 2.0, 1.0)
    Array(1., f32*[], cpu:0)
    """
    low, operand, high = alike("clamp", min, x, max)
    inside = ops.logical_and(ops.gt(operand, low), ops.lt(operand, high))
    clamped = ops.min(ops.max(ops.stop_gradient(operand), low), high)
    return ops.select(inside, operand, clamped)


# --- comparisons and selection ----------------------------------------------------------------

eq = binary("eq", ops.eq, "x == y.", "1.0, 1.0", truth("True"), "any; bool comes out")
ne = binary("ne", ops.ne, "x != y.", "1.0, 1.0", truth("False"), "any; bool comes out")
lt = binary("lt", ops.lt, "x < y.", "1.0, 2.0", truth("True"), "any but complex; bool comes out")
le = binary("le", ops.le, "x <= y.", "1.0, 1.0", truth("True"), "any but complex; bool comes out")
gt = binary("gt", ops.gt, "x > y.", "1.0, 2.0", truth("False"), "any but complex; bool comes out")
ge = binary("ge", ops.ge, "x >= y.", "1.0, 1.0", truth("True"), "any but complex; bool comes out")


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred`, of bools, holds, else `on_false`.

    Shapes: cases any, kept; pred that of the cases, or []. Types: one dtype of the cases, kept.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> lax.select(True, 1.0, 2.0)
    Array(1., f32*[], cpu:0)
    """
    return ops.select(value("select", pred), *alike("select", on_true, on_false))


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Element by element, the case that `which` (bool or integer) numbers.

    Numbers out of range take the nearest case.
    Shapes: cases any, kept; which that of the cases, or []. Types: one dtype of the cases, kept.
    Errors: ArgumentError if an argument is not an array; DtypeError for floats and complex numbers
            as `which` and cases of different dtypes; ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.select_n(rnp.array([2, 0]), rnp.zeros(2), rnp.ones(2), 2 * rnp.ones(2))
    Array([2., 0.], f32[2], cpu:0)
    """
    if not cases:
        raise ArgumentError("select_n: cannot choose among no cases (at least one required)")
    number, options = value("select_n", which), alike("select_n", *cases)
    if type_of(number).dtype in dtypes.INEXACT:
        raise DtypeError(f"select_n: cannot choose by {type_of(number)} (bool or integer required)")
    if type_of(number).dtype == dtypes.bool_:
        if len(options) > 2:
            raise ArgumentError(f"select_n: cannot choose among {len(options)} cases by a bool (two)")
        return ops.select(number, options[-1], options[0])
    chosen = options[-1]
    for k in range(len(options) - 2, -1, -1):
        chosen = ops.select(ops.le(number, constant(k, number)), options[k], chosen)
    return chosen


# --- complex numbers --------------------------------------------------------------------------


def real(x: Any) -> Any:
    """The real parts.

    Shapes: any, kept. Types: c64 -> f32, c128 -> f64.
    Errors: DtypeError for real numbers.

    >>> from rune import lax
    >>> lax.real(1 + 2j)
    Array(1., f32*[], cpu:0)
    """
    return ops.real(value("real", x))


def imag(x: Any) -> Any:
    """The imaginary parts.

    Shapes: any, kept. Types: c64 -> f32, c128 -> f64.
    Errors: DtypeError for real numbers.

    >>> from rune import lax
    >>> lax.imag(1 + 2j)
    Array(2., f32*[], cpu:0)
    """
    return ops.imag(value("imag", x))


def conj(x: Any) -> Any:
    """The complex conjugates; of real numbers, the numbers as complex ones.

    Shapes: any, kept.
    Types:  f32, f64, or complex -> complex.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers.

    >>> from rune import lax
    >>> lax.conj(1 + 2j)
    Array(1.-2.j, c64*[], cpu:0)
    """
    number = value("conj", x)
    return ops.conj(number if is_complex(number) else ops.complex(number, constant(0, number)))


complex = binary(
    "complex",
    ops.complex,
    "The complex numbers x + i y of two floats.",
    "1.0, 2.0",
    "Array(1.+2.j, c64*[], cpu:0)",
    "floats; complex numbers come out",
)
