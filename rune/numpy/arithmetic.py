"""Sums, products, quotients, powers, signs, extrema and rounding: elementwise with promotion.

Where no derivative exists, JAX's conventions apply: that of |x| is 1 at 0, a tie in maximum or
minimum gives each side 1/2, and that of rounding and sign is 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.numpy.arguments import default_inexact, floating, inexact, refuse, static_int, value
from rune.numpy.composites import composite
from rune.numpy.docstrings import broadcast, documented, documented_row, elementwise
from rune.numpy.operands import operands_alone
from rune.numpy.transcendental import real_pair, same_dtype
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops import extrema
from rune.ops.elementwise_rows import Row
from rune.ops.elementwise_table import ROWS
from rune.ops.promote import apply, as_type, broadcast_together, constant, promoted, unrounded
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

Unary = Callable[[ArrayLike], Array]
_OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
Binary = Callable[[ArrayLike, ArrayLike], Array]
Rule = Callable[[Any], Any]  # of a converted argument


_NO_COMPLEX, _NO_BOOLS = "DtypeError for complex numbers", "DtypeError for bools"
_TOGETHER = "promoted together"
_ORDERED = f"{_TOGETHER}; complex numbers by their real parts, then by the imaginary"
_NUMBERS, _FLOATS = f"{_TOGETHER}; bools become integers", "bools and integers become floats"
_KEPT = "that of `x`"


def _binary(name: str, row: Row, types: str = _TOGETHER, errors: str = "") -> Binary:
    of_arrays = _OPERATORS.get(name)

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        if of_arrays and type(x1) is Array and type(x2) is Array:
            return of_arrays(x1, x2)  # native code, once it was called often
        return apply(row.primitive, x1, x2)

    return documented_row(function, name, row, broadcast(types, errors), "rnp")


def _convention(name: str, rule: Binary, doc: str, call: str, result_text: str, types: str, errors: str = "") -> Binary:
    @tiered
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return rule(x1, x2)

    return operands_alone(documented(function, name, doc, broadcast(types, errors), f"rnp.{call}", result_text))


def _extremum(name: str, row: Row) -> Binary:
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return row.rule(x1, x2)

    return documented_row(function, name, row, broadcast(_ORDERED), "rnp")


add = _binary("add", ROWS["add"], f"{_TOGETHER}; for bools, the logical or")
subtract = _binary("subtract", ROWS["sub"], errors=_NO_BOOLS)
multiply = _binary("multiply", ROWS["mul"], f"{_TOGETHER}; for bools, the logical and")
divide = _convention(
    "divide",
    c.true_divide,
    "x1 / x2; integers divide as floats.",
    "divide(rnp.arange(2), 2)",
    "Array([0. , 0.5], f32[2], cpu:0)",
    _FLOATS,
)
true_divide = divide
floor_divide = _convention(
    "floor_divide",
    c.floor_divide,
    "Quotient rounded towards minus infinity.",
    "floor_divide(rnp.array([7, -7]), 2)",
    "Array([ 3, -4], i32[2], cpu:0)",
    _NUMBERS,
    _NO_COMPLEX,
)
remainder = _convention(
    "remainder",
    c.remainder,
    "Remainder of x1 / x2 with the sign of x2.",
    "remainder(rnp.array([7, -7]), 3)",
    "Array([1, 2], i32[2], cpu:0)",
    _NUMBERS,
    _NO_COMPLEX,
)
mod = remainder
power = _convention(
    "power",
    c.power,
    "x1 ** x2. A Python integer exponent becomes repeated multiplication.",
    "power(rnp.arange(3), 2)",
    "Array([0, 1, 4], i32[3], cpu:0)",
    _NUMBERS,
    "DtypeError for an integer to a negative Python integer",
)
pow = power
maximum = _extremum("maximum", ROWS["max"])
minimum = _extremum("minimum", ROWS["min"])


@tiered
@operands_alone
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Remainder of x1 / x2 with the sign of x1.

    Shapes: broadcast together. Types: promoted together; bools become integers.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.fmod(rnp.array([7, -7]), 3)
    Array([ 1, -1], i32[2], cpu:0)
    """
    return c.truncated_remainder(x1, x2)


@composite
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide, remainder).

    Shapes: broadcast together. Types: promoted together; bools become integers.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.divmod(rnp.array([-7]), 3)
    (Array([-3], i32[1], cpu:0), Array([2], i32[1], cpu:0))
    """
    return c.floor_divide(x1, x2), c.remainder(x1, x2)


@tiered
@operands_alone
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2 in floats.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.float_power(rnp.array([2, 4]), -1)
    Array([0.5 , 0.25], f32[2], cpu:0)
    """
    return ops.pow(*promoted("float_power", x1, x2, kind="inexact"))


@composite
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2; a NaN loses to a number.

    Shapes: broadcast together.
    Types:  promoted together; complex numbers by their real parts, then by the imaginary.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.fmax(rnp.array([1.0, rnp.nan]), 0.0)
    Array([1., 0.], f32[2], cpu:0)
    """
    return extrema.larger_number(x1, x2)


@composite
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2; a NaN loses to a number.

    Shapes: broadcast together.
    Types:  promoted together; complex numbers by their real parts, then by the imaginary.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.fmin(rnp.array([1.0, rnp.nan]), 0.0)
    Array([0., 0.], f32[2], cpu:0)
    """
    return extrema.smaller_number(x1, x2)


# --- one argument -----------------------------------------------------------------------------


def _unary(name: str, rule: Rule, doc: str, call: str, result_text: str, types: str, errors: str = "") -> Unary:
    @tiered
    def function(x: ArrayLike, /) -> Array:
        return c.distinct(rule(value(name, x)), x)

    return operands_alone(documented(function, name, doc, elementwise(types, errors), f"rnp.{call}", result_text))


def _rounding(name: str, row: Row) -> Unary:
    def function(x: ArrayLike, /) -> Array:
        return _rounded(name, row, x)

    return operands_alone(_documented_rounding(function, name, row))


def _rounded(name: str, row: Row, x: ArrayLike) -> Array:
    """Round floats; integers and bools are returned unchanged."""
    number = value(name, x)
    return row.rule(number) if type_of(number).dtype in dtypes.INEXACT else c.distinct(number, x)


def _documented_rounding(function: Unary, name: str, row: Row) -> Unary:
    return documented_row(function, name, row, elementwise(f"{_KEPT}; integers as they are", _NO_COMPLEX), "rnp")


@operands_alone
def _trunc(x: ArrayLike) -> Array:
    """Truncate; JAX accepts this argument by name, too."""
    return _rounded("trunc", ROWS["trunc"], x)


def _square(x: ArrayLike) -> Array:
    (x,) = promoted("square", x, kind="numeric")
    return ops.square(x)


def _reciprocal(x: Array) -> Array:
    x = inexact("reciprocal", x)
    return ops.div(constant(1, x), x)


positive = _unary(
    "positive", lambda x: x, "x itself.", "positive(rnp.array([-1]))", "Array([-1], i32[1], cpu:0)", _KEPT
)
negative = same_dtype("negative", ROWS["neg"], _NO_BOOLS)
absolute = _unary(
    "absolute",
    c.absolute,
    "Magnitude; the derivative at 0 is 1.",
    "absolute(rnp.array([1, -2]))",
    "Array([1, 2], i32[2], cpu:0)",
    f"{_KEPT}; complex numbers give reals",
)
abs = absolute
fabs = _unary(
    "fabs",
    lambda x: ops.abs(floating("fabs", x)),
    "Magnitude, as a float.",
    "fabs(rnp.array([1, -2]))",
    "Array([1., 2.], f32[2], cpu:0)",
    _FLOATS,
    _NO_COMPLEX,
)
sign = same_dtype("sign", ROWS["sign"], _NO_BOOLS)
square = _unary(
    "square",
    _square,
    "x times x.",
    "square(rnp.array([3, -2]))",
    "Array([9, 4], i32[2], cpu:0)",
    f"{_KEPT}; bools become integers",
)
reciprocal = _unary(
    "reciprocal",
    _reciprocal,
    "1 / x; integers as floats.",
    "reciprocal(rnp.array([2, 4]))",
    "Array([0.5 , 0.25], f32[2], cpu:0)",
    _FLOATS,
)
floor = _rounding("floor", ROWS["floor"])
ceil = _rounding("ceil", ROWS["ceil"])
trunc = _documented_rounding(_trunc, "trunc", ROWS["trunc"])
fix = trunc
rint = _unary(
    "rint",
    lambda x: c.by_parts(ops.round, default_inexact("rint", x)),
    "The nearest whole number, halves to even.",
    "rint(rnp.array([0.5, 1.5]))",
    "Array([0., 2.], f32[2], cpu:0)",
    _FLOATS,
)


@tiered
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to `decimals` places, halves to even; integers change only if it is negative.

    Shapes: any, unchanged. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array or `decimals` is not an integer; DtypeError
            for bools.

    >>> import rune.numpy as rnp
    >>> rnp.round(rnp.array([1.24, 2.5]), 1), rnp.round(rnp.array([15, 25]), -1)
    (Array([1.2, 2.5], f32[2], cpu:0), Array([20, 20], i32[2], cpu:0))
    """
    refuse("round", out=out)
    return c.distinct(c.round(value("round", a), static_int("round", "a number of decimals", decimals)), a)


around = round


@tiered
@operands_alone
def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """`arr` limited to [min, max]; None leaves a side open. At a bound the derivative is 1/2.

    Shapes: broadcast together. Types: promoted together.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.clip(rnp.arange(4), 1, 2)
    Array([1, 1, 2, 2], i32[4], cpu:0)
    """
    if min is None and max is None:
        return c.distinct(value("clip", arr), arr)
    return c.clip(arr, min, max) if min is None or max is None else _between(arr, min, max)


@composite
def _between(arr: ArrayLike, low: ArrayLike, high: ArrayLike, /) -> Array:
    return c.clip(arr, low, high)


copysign = real_pair("copysign", ROWS["copysign"])
nextafter = real_pair("nextafter", ROWS["nextafter"])


@tiered
@operands_alone
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 below zero, 1 above, x2 at zero; NaN for NaN.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.heaviside(rnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], f32[3], cpu:0)
    """
    x1, x2 = promoted("heaviside", x1, x2, kind="inexact")
    zero = constant(0, x1)
    step = ops.select(ops.gt(x1, zero), constant(1, x1), ops.select(ops.lt(x1, zero), zero, x1))
    return ops.select(ops.eq(x1, zero), x2, step)


@tiered
@operands_alone
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """(fraction, whole part), both with the sign of x.

    Shapes: any, unchanged in both. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.modf(-1.5)
    (Array(-0.5, f32*[], cpu:0), Array(-1., f32*[], cpu:0))
    """
    refuse("modf", out=out)
    x = inexact("modf", x)
    integer = ops.trunc(x)
    infinite = ops.eq(ops.abs(x), constant(np.inf, x))
    fraction = ops.select(infinite, constant(0, x), ops.sub(x, integer))
    # A zero takes the sign of x; sums, unlike copysign, keep the derivative 1 there.
    zero = constant(0, x)
    is_negative = ops.lt(ops.copysign(constant(1, x), x), zero)
    signed_fraction = ops.select(is_negative, ops.neg(ops.sub(zero, fraction)), ops.add(fraction, zero))
    return signed_fraction, integer


@composite
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """`x` with NaN replaced by `nan` and infinities by the largest and smallest finite numbers.

    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.nan_to_num(rnp.array([rnp.nan, rnp.inf]), posinf=9.0)
    Array([0., 9.], f32[2], cpu:0)
    """
    out: Array = value("nan_to_num", x)
    dtype = type_of(out).dtype
    if dtype in dtypes.COMPLEX:
        return c.by_parts(lambda part: nan_to_num(part, copy, nan, posinf, neginf), out)
    if dtype not in dtypes.FLOATING:
        return c.distinct(out, x)
    largest = float(finfo(dtype).max)
    out = _replaced(out, ops.ne(out, out), nan)
    out = _replaced(out, ops.eq(out, constant(np.inf, out)), largest if posinf is None else posinf)
    return _replaced(out, ops.eq(out, constant(-np.inf, out)), -largest if neginf is None else neginf)


def _replaced(x: ArrayLike, where: ArrayLike, by: ArrayLike) -> Array:
    x_type = type_of(x)
    replacement = as_type(unrounded("nan_to_num", by), x_type.dtype, x_type.weak)
    return ops.select(*broadcast_together("nan_to_num", [where, replacement, x]))
