"""Roots, exponentials, logarithms, circular and hyperbolic functions: elementwise, in floats.

Integers and bools are taken as f32 (64-bit integers as f64); weak scalars stay weak. Composite
functions are written so that values and derivatives of every order are right where branches meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.errors import DtypeError
from rune.numpy.arguments import inexact, value
from rune.numpy.composites import composite
from rune.numpy.docstrings import broadcast, documented_row, elementwise
from rune.numpy.operands import operands_alone
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.elementwise_rows import INEXACT, Row, weak
from rune.ops.elementwise_table import ROWS
from rune.ops.promote import constant, promoted
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

Unary = Callable[[ArrayLike], Array]


_FLOATS = "bools and integers become floats"
_NO_COMPLEX = "DtypeError for complex numbers"


def _real(name: str, row: Row) -> Unary:
    def function(x: ArrayLike, /) -> Array:
        return row.rule(inexact(name, x))

    function = function if isinstance(row.rule, Primitive) else tiered(function)
    facts = elementwise(_FLOATS, "" if row.takes == INEXACT else _NO_COMPLEX)
    return operands_alone(documented_row(function, name, row, facts, "rnp"))


def same_dtype(name: str, row: Row, errors: str) -> Unary:
    """A function whose result has the dtype of its operand, under NumPy's name."""

    def function(x: ArrayLike, /) -> Array:
        return row.rule(value(name, x))

    return operands_alone(documented_row(function, name, row, elementwise("that of `x`", errors), "rnp"))


def real_pair(name: str, row: Row) -> Callable[[ArrayLike, ArrayLike], Array]:
    """A function of two reals under NumPy's name: promoted together, as floats."""

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return row.rule(*promoted(name, x1, x2, kind="inexact"))

    return operands_alone(documented_row(function, name, row, broadcast(_FLOATS, _NO_COMPLEX), "rnp"))


def _scaled(factor: float) -> Unary:
    return lambda x: ops.mul(x, constant(factor, x))


def _log10(x: ArrayLike) -> Array:
    if type_of(x).dtype not in dtypes.COMPLEX:
        return _scaled(math.log10(2))(ops.log2(x))  # exact at the powers of ten
    # Part by part: a complex product gives NaN where one part is infinite.
    natural, scale = ops.log(x), _scaled(math.log10(math.e))
    return ops.complex(scale(ops.real(natural)), scale(ops.imag(natural)))


sqrt = _real("sqrt", ROWS["sqrt"])
cbrt = _real("cbrt", ROWS["cbrt"])
exp = _real("exp", ROWS["exp"])
exp2 = _real("exp2", ROWS["exp2"])
expm1 = _real("expm1", ROWS["expm1"])
log = _real("log", ROWS["log"])
log2 = _real("log2", ROWS["log2"])
log1p = _real("log1p", ROWS["log1p"])
log10 = _real("log10", Row("log10", _log10, "Logarithm to base 10.", "1.0", weak("0."), INEXACT))
sin = _real("sin", ROWS["sin"])
cos = _real("cos", ROWS["cos"])
tan = _real("tan", ROWS["tan"])
arcsin = _real("arcsin", ROWS["asin"])
arccos = _real("arccos", ROWS["acos"])
arctan = _real("arctan", ROWS["atan"])
sinh = _real("sinh", ROWS["sinh"])
cosh = _real("cosh", ROWS["cosh"])
tanh = _real("tanh", ROWS["tanh"])
arcsinh = _real("arcsinh", ROWS["asinh"])
arccosh = _real("arccosh", ROWS["acosh"])
arctanh = _real("arctanh", ROWS["atanh"])
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh
deg2rad = _real("deg2rad", Row("deg2rad", _scaled(math.pi / 180), "Degrees to radians.", "0.0", weak("0."), INEXACT))
rad2deg = _real("rad2deg", Row("rad2deg", _scaled(180 / math.pi), "Radians to degrees.", "0.0", weak("0."), INEXACT))
radians, degrees = deg2rad, rad2deg


arctan2 = real_pair("arctan2", ROWS["atan2"])
atan2 = arctan2


@composite
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1² + x2²) without intermediate overflow.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.hypot(3.0, 4.0)
    Array(5., f32*[], cpu:0)
    """
    x1, x2 = promoted("hypot", x1, x2, kind="inexact")
    if type_of(x1).dtype in dtypes.COMPLEX:
        raise DtypeError(f"hypot: cannot take {type_of(x1)} (real dtype required)")
    x1, x2 = ops.abs(x1), ops.abs(x2)
    above = ops.gt(x1, x2)  # not max and min, whose derivatives at NaN are 0
    large, small = ops.select(above, x1, x2), ops.select(above, x2, x1)
    zero, one = constant(0, large), constant(1, large)
    ratio = ops.div(small, ops.select(ops.eq(large, zero), one, large))
    finite = ops.mul(large, ops.sqrt(ops.add(one, ops.mul(ratio, ratio))))
    infinity = constant(np.inf, large)
    is_infinite = ops.logical_or(ops.eq(x1, infinity), ops.eq(x2, infinity))
    mean = ops.mul(constant(0.5, large), ops.add(large, small))  # 0, with slopes of 1/2
    both = ops.eq(ops.add(large, small), zero)  # the larger of the two is 0 next to a NaN, too
    return ops.select(is_infinite, infinity, ops.select(both, mean, finite))


def _ordered(x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    """The larger, and (smaller - larger), which is 0 for equal infinities.

    Chosen by select, not by maximum, so that a tie is differentiated like the smooth function; for
    equal infinities, whose difference is NaN, the larger one is the mean.
    """
    above = ops.gt(c.real(x1), c.real(x2))
    high, low = ops.select(above, x1, x2), ops.select(above, x2, x1)
    size = ops.abs(high)
    same = ops.logical_and(ops.eq(high, low), ops.eq(size, constant(np.inf, size)))
    gap = ops.select(same, constant(0, high), ops.sub(low, high))
    if type_of(high).dtype in dtypes.COMPLEX:
        return high, gap
    half = constant(0.5, high)
    return ops.select(same, ops.add(ops.mul(half, high), ops.mul(half, low)), high), gap


@composite
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow; the principal value for complex numbers.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.logaddexp(1000.0, -1000.0)
    Array(1000., f32*[], cpu:0)
    """
    high, gap = _ordered(*promoted("logaddexp", x1, x2, kind="inexact"))
    return _principal(ops.add(high, ops.log1p(ops.exp(gap))), 2 * math.pi)


def _principal(x: ArrayLike, period: float) -> Any:
    """A logarithm with its imaginary part within half a period of 0."""
    if type_of(x).dtype not in dtypes.COMPLEX:
        return x
    angle = ops.imag(x)
    turns = ops.round(ops.div(angle, constant(period, angle)))
    return ops.complex(ops.real(x), ops.sub(angle, ops.mul(turns, constant(period, angle))))


@composite
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow; the principal value for complex numbers.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.logaddexp2(3.0, 3.0)
    Array(4., f32*[], cpu:0)
    """
    high, gap = _ordered(*promoted("logaddexp2", x1, x2, kind="inexact"))
    total = ops.add(high, _scaled(1 / math.log(2))(ops.log1p(ops.exp2(gap))))
    return _principal(total, 2 * math.pi / math.log(2))


@composite
def sinc(x: ArrayLike, /) -> Array:
    """sin(πx) / (πx), and 1 at 0; derivatives up to the seventh hold there and around it.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.sinc(0.0)
    Array(1., f32*[], cpu:0)
    """
    x = inexact("sinc", x)
    turns, x = x, _scaled(math.pi)(x)
    size = ops.abs(x)
    # Up to here the series is exact, and so is its derivative; that of sin(x)/x is a difference,
    # which cancels. Where the series is not chosen its argument is 0, since powers of x overflow.
    is_small = ops.lt(size, constant(float(finfo(type_of(size).dtype).eps) ** 0.125, size))
    safe = ops.select(is_small, constant(1, x), x)
    small = ops.select(is_small, x, constant(0, x))
    series = _sinc_series(ops.mul(small, small))
    return ops.select(is_small, series, ops.div(_sine_of_pi(turns), safe))


def _sine_of_pi(x: ArrayLike) -> Array:
    """sin(πx); for a real x exactly 0 at whole numbers, and finite where πx overflows."""
    if type_of(x).dtype in dtypes.COMPLEX:
        return ops.sin(_scaled(math.pi)(x))
    turns = ops.sub(x, _scaled(2.0)(ops.round(_scaled(0.5)(x))))
    mirror = ops.sub(ops.copysign(constant(1, x), turns), turns)
    is_obtuse = ops.gt(ops.abs(turns), constant(0.5, x))
    return ops.sin(_scaled(math.pi)(ops.select(is_obtuse, mirror, turns)))


def _sinc_series(square: ArrayLike) -> Array:
    """1 - s/3! + s²/5! - s³/7!, in Horner's form."""
    out: Any = constant(-1 / 5040, square)
    for coefficient in (1 / 120, -1 / 6, 1.0):
        out = ops.add(ops.mul(out, square), constant(coefficient, square))
    return out


__all__ = ["acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin"]
__all__ += ["asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1"]
__all__ += ["hypot", "log", "log1p", "log2", "log10", "rad2deg", "radians", "sin", "sinc", "sinh", "sqrt", "tan"]
__all__ += ["tanh"]
