"""Floats split into a fraction and a power of two, and put together again, exactly.

A float is a sign, an exponent field and a fraction field; a power of two is made by writing its
exponent field. So nothing here rounds, except a result too small to be a normal number.

Source: IEEE 754-2019, section 3.4 (binary interchange formats).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import DtypeError
from rune.numpy.arguments import floating, value
from rune.numpy.composites import composite
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.promote import broadcast_together, constant
from rune.records import dataclass
from rune.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the exponent of a dtype is stored, and its bias."""

    fraction_bits: int
    bias: int
    integer: np.dtype  # integers of the same width


def _layout(dtype: np.dtype) -> _Layout:
    integer = {2: dtypes.i16, 4: dtypes.i32, 8: dtypes.i64}.get(dtype.itemsize)
    if integer is None:
        raise DtypeError(f"frexp: cannot take {dtypes.short(dtype)} apart (16 bits or more needed)")
    limits = finfo(dtype)
    return _Layout(int(limits.nmant), int(limits.maxexp) - 1, integer)


@composite
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(m, e) with x = m 2**e and 0.5 <= |m| < 1; (x, 0) for 0, infinities and NaN.

    Shapes: any, unchanged in both.
    Types:  m as x (integers as floats), e i32. The derivative of m is 2**-e.
    Errors: DtypeError for complex numbers and for floats of 8 bits.

    >>> import rune.numpy as rnp
    >>> rnp.frexp(rnp.array([8.0, -0.75]))
    (Array([ 0.5 , -0.75], f32[2], cpu:0), Array([4, 0], i32[2], cpu:0))
    """
    x = floating("frexp", value("frexp", x))
    layout = _layout(type_of(x).dtype)
    lift = layout.fraction_bits + 1
    tiny = constant(float(finfo(type_of(x).dtype).tiny), x)
    # The exponent field of a subnormal number is 0 until the number is scaled up.
    is_small = ops.lt(ops.abs(x), tiny)
    normal = ops.select(is_small, ops.mul(x, constant(2.0**lift, x)), x)
    field = _exponent_field(ops.stop_gradient(normal), layout)
    exponent = ops.sub(field, constant(layout.bias - 1, field))
    true_exponent = ops.select(is_small, ops.sub(exponent, constant(lift, exponent)), exponent)
    regular = ops.logical_and(c.is_finite(x), ops.ne(x, constant(0, x)))
    power = ops.select(regular, true_exponent, constant(0, true_exponent))
    return _times_power_of_two(x, ops.neg(power)), power


def _exponent_field(x: ArrayLike, layout: _Layout) -> Array:
    bits = ops.bitcast(x, dtype=layout.integer)
    field = ops.shr(bits, constant(layout.fraction_bits, bits))
    return ops.cast(ops.logical_and(field, constant(2 * layout.bias + 1, field)), dtypes.i32)


@composite
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 2**x2, without overflow on the way.

    Shapes: broadcast together. Types: x1 floating (integers as floats), x2 integers -> x1's dtype.
    Errors: DtypeError for exponents that are not integers, and for complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.ldexp(rnp.array([0.5, -0.75]), rnp.array([4, 0]))
    Array([ 8.  , -0.75], f32[2], cpu:0)
    """
    x, exponent = floating("ldexp", value("ldexp", x1)), value("ldexp", x2)
    if type_of(exponent).dtype not in dtypes.INTEGER | {dtypes.bool_}:
        raise DtypeError(f"ldexp: cannot use {type_of(exponent)} as exponents (integers required)")
    return _times_power_of_two(x, c.astype(exponent, dtypes.i32))


def _times_power_of_two(x: Array | ArrayLike, exponent: Array) -> Any:
    """x 2**exponent in three steps, since no single power of two spans the whole range."""
    layout = _layout(type_of(x).dtype)
    x, exponent = broadcast_together("ldexp", [x, exponent])
    for _ in range(3):
        low, high = (constant(e, exponent) for e in (1 - layout.bias, layout.bias))
        step = ops.min(ops.max(exponent, low), high)
        x = ops.mul(*broadcast_together("ldexp", [x, _power_of_two(step, x, layout)]))
        exponent = ops.sub(exponent, step)
    return x


def _power_of_two(exponent: ArrayLike, like: ArrayLike, layout: _Layout) -> Array:
    field = ops.cast(ops.add(exponent, constant(layout.bias, exponent)), layout.integer)
    bits = ops.shl(field, constant(layout.fraction_bits, field))
    return ops.bitcast(bits, dtype=type_of(like).dtype)


@composite
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from 0, with the sign of x; NaN for infinities.

    For f16 it is the distance to the next larger number, as in NumPy.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.numpy as rnp
    >>> float(rnp.spacing(rnp.float32(1.0))) == 2.0**-23
    True
    """
    x = floating("spacing", value("spacing", x))
    if type_of(x).dtype == dtypes.f16:
        step = ops.sub(ops.nextafter(x, constant(np.inf, x)), x)
        return ops.select(c.is_finite(x), step, constant(np.nan, x))
    size = ops.abs(x)
    step = ops.sub(ops.nextafter(size, constant(np.inf, x)), size)
    signed_step = ops.select(ops.lt(x, constant(0, x)), ops.neg(step), step)
    return ops.select(c.is_finite(x), signed_step, constant(np.nan, x))


__all__ = ["frexp", "ldexp", "spacing"]
