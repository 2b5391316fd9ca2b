"""Elementwise functions on operands of one dtype: arithmetic, comparisons, functions of reals.

Nothing is promoted: integers stay integers (`div` of integers truncates), and functions of reals
reject integers. Source: XLA operation semantics, elementwise operations.
"""

from __future__ import annotations

import enum

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError
from rune.lax.arguments import alike, binary, inexact_unary, named_pair, unary
from rune.numpy.arguments import static_int, value
from rune.ops import conventions
from rune.ops.complex_numbers import is_complex
from rune.ops.elementwise_rows import NUMBERS, Row, integer, weak
from rune.ops.elementwise_table import ROWS
from rune.ops.promote import constant
from rune.typing import ArrayLike

# --- functions of one real or complex number --------------------------------------------------

sqrt = inexact_unary(ROWS["sqrt"])
rsqrt = inexact_unary(ROWS["rsqrt"])
cbrt = inexact_unary(ROWS["cbrt"])
exp = inexact_unary(ROWS["exp"])
exp2 = inexact_unary(ROWS["exp2"])
expm1 = inexact_unary(ROWS["expm1"])
log = inexact_unary(ROWS["log"])
log1p = inexact_unary(ROWS["log1p"])
logistic = inexact_unary(ROWS["logistic"])
sin = inexact_unary(ROWS["sin"])
cos = inexact_unary(ROWS["cos"])
tan = inexact_unary(ROWS["tan"])
asin = unary(ROWS["asin"])
acos = unary(ROWS["acos"])
atan = unary(ROWS["atan"])
sinh = unary(ROWS["sinh"])
cosh = unary(ROWS["cosh"])
tanh = inexact_unary(ROWS["tanh"])
asinh = unary(ROWS["asinh"])
acosh = unary(ROWS["acosh"])
atanh = unary(ROWS["atanh"])
erf = unary(ROWS["erf"])
erfc = unary(ROWS["erfc"])
erf_inv = unary(ROWS["erf_inv"])
floor = unary(ROWS["floor"])
ceil = unary(ROWS["ceil"])
is_finite = unary(ROWS["is_finite"])

# --- arithmetic -------------------------------------------------------------------------------

abs = unary(ROWS["abs"])
neg = unary(ROWS["neg"])
sign = unary(ROWS["sign"])
square = unary(Row("square", ops.square, "x · x.", "3.0", weak("9."), NUMBERS))
reciprocal = unary(
    Row(
        "reciprocal",
        lambda x: conventions.true_divide(constant(1, x), x),
        "1 / x.",
        "4.0",
        weak("0.25"),
        "all; bools and integers become floats",
    )
)
add = binary(ROWS["add"])
sub = binary(ROWS["sub"])
mul = binary(ROWS["mul"])
div = binary(Row("div", ops.div, "x / y; of integers, rounded towards zero.", "-7, 2", integer("-3"), NUMBERS))
rem = binary(Row("rem", ops.rem, "x - y · trunc(x / y), of the sign of x.", "-7, 2", integer("-1"), NUMBERS))
max = binary(ROWS["max"])
min = binary(ROWS["min"])
atan2 = binary(ROWS["atan2"])
nextafter = named_pair(ROWS["nextafter"])


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power y. An integer `y` goes with any x.

    Shapes: of one rank, broadcast together; or [] of Python numbers.
    Types:  that of `x` where y is an integer, otherwise one dtype for both; bools become i32.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and complex numbers
            as `y`; ShapeError if the shapes do not match.

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

    Shapes: any, unchanged. Types: numeric, that of `x`.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools as `x`, and for
            integers where y is below 0.

    >>> from rune import lax
    >>> lax.integer_pow(2.0, -1)
    Array(0.5, f32*[], cpu:0)
    """
    return ops.integer_pow(value("integer_pow", x), exponent=static_int("integer_pow", "y", y))


class RoundingMethod(enum.IntEnum):
    """How halves are rounded: away from zero, or to the even neighbour.

    >>> from rune import lax
    >>> lax.round(0.5, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(0.5)
    (Array(0., f32*[], cpu:0), Array(1., f32*[], cpu:0))
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number; `rounding_method` says how halves are rounded.

    Shapes: any, unchanged.
    Types:  floating, that of `x`.
    Errors: ArgumentError if an argument is not an array or the method is unknown; DtypeError unless
            `x` is floating.

    >>> from rune import lax
    >>> lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., f32*[], cpu:0), Array(2., f32*[], cpu:0))
    """
    number = value("round", x)
    if rounding_method not in tuple(RoundingMethod):
        raise ArgumentError(f"round: cannot round by {rounding_method!r} (a lax.RoundingMethod required)")
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return ops.round(number)
    # Not trunc(x + 1/2), in which 0.49999997 + 0.5 rounds up to 1.
    whole_part = ops.trunc(number)
    is_half = ops.ge(ops.abs(ops.sub(number, whole_part)), constant(0.5, number))
    step = ops.copysign(ops.select(is_half, constant(1, number), constant(0, number)), number)
    return ops.add(whole_part, step)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x clamped between `min` and `max`; `max` where they cross. The derivative at a bound is 0.

    Shapes: x any, unchanged; min and max that of x, or []. Types: one real dtype, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> lax.clamp(0.0, 2.0, 1.0)
    Array(1., f32*[], cpu:0)
    """
    low, operand, high = alike("clamp", min, x, max)
    inside = ops.logical_and(ops.gt(operand, low), ops.lt(operand, high))
    constant_result = ops.min(ops.max(ops.stop_gradient(operand), low), high)
    return ops.select(inside, operand, constant_result)


# --- comparisons and selection ----------------------------------------------------------------

eq = binary(ROWS["eq"])
ne = binary(ROWS["ne"])
lt = binary(ROWS["lt"])
le = binary(ROWS["le"])
gt = binary(ROWS["gt"])
ge = binary(ROWS["ge"])


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred` holds (bool), or is 1 or greater (integer), otherwise `on_false`.

    Shapes: cases any, unchanged; pred that of the cases, or [].
    Types:  one dtype for all cases, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes.

    >>> from rune import lax
    >>> lax.select(True, 1.0, 2.0)
    Array(1., f32*[], cpu:0)
    """
    condition = value("select", pred)
    if type_of(condition).dtype != dtypes.bool_:
        return select_n(condition, on_false, on_true)
    return ops.select(condition, *alike("select", on_true, on_false))


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Element by element, the case whose number is in `which` (bool or integer).

    Numbers out of range choose the nearest case.
    Shapes: cases any, unchanged; which that of the cases, or [].
    Types:  one dtype for all cases, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for floats and complex numbers
            as `which` and cases of different dtypes; ShapeError if the shapes do not match.

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
    result = options[-1]
    for k in range(len(options) - 2, -1, -1):
        result = ops.select(ops.le(number, constant(k, number)), options[k], result)
    return conventions.distinct(result, cases[-1])


# --- complex numbers --------------------------------------------------------------------------


def real(x: object) -> Array:
    """The real parts.

    Shapes: any, unchanged. Types: c64 -> f32, c128 -> f64.
    Errors: DtypeError for real numbers.

    >>> from rune import lax
    >>> lax.real(1 + 2j)
    Array(1., f32*[], cpu:0)
    """
    return ops.real(value("real", x))


def imag(x: ArrayLike) -> Array:
    """The imaginary parts.

    Shapes: any, unchanged. Types: c64 -> f32, c128 -> f64.
    Errors: DtypeError for real numbers.

    >>> from rune import lax
    >>> lax.imag(1 + 2j)
    Array(2., f32*[], cpu:0)
    """
    return ops.imag(value("imag", x))


def conj(x: ArrayLike) -> Array:
    """The complex conjugates; real numbers become complex.

    Shapes: any, unchanged.
    Types:  f32, f64, or complex -> complex.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers.

    >>> from rune import lax
    >>> lax.conj(1 + 2j)
    Array(1.-2.j, c64*[], cpu:0)
    """
    number = value("conj", x)
    return ops.conj(number if is_complex(number) else ops.complex(number, constant(0, number)))


complex = binary(
    Row(
        "complex",
        ops.complex,
        "The complex numbers x + i y of two floats.",
        "1.0, 2.0",
        "Array(1.+2.j, c64*[], cpu:0)",
        "floats; the result is complex",
    )
)


__all__ = ["RoundingMethod", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cbrt"]
__all__ += ["ceil", "clamp", "complex", "conj", "cos", "cosh", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2"]
__all__ += ["expm1", "floor", "ge", "gt", "imag", "integer_pow", "is_finite", "le", "log", "log1p", "logistic"]
__all__ += ["lt", "max", "min", "mul", "ne", "neg", "nextafter", "pow", "real", "reciprocal", "rem", "round"]
__all__ += ["rsqrt", "select", "select_n", "sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh"]
