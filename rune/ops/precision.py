"""reduce_precision: floats rounded to fewer bits of exponent and mantissa, in their own dtype.

The rounding works on the bits, halves to even. Numbers beyond the exponent's range become infinite
or 0. Rounding counts as linear: the tangent and the cotangent are rounded in the same way.

Source: XLA operation semantics, ReducePrecision.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.ops import arithmetic as a
from rune.ops.family import KINDS, elementwise, require
from rune.ops.scalars import bit_width


def _reduce_precision_type(x: ArrayType, *, exponent_bits: int, mantissa_bits: int) -> ArrayType:
    require("reduce_precision", KINDS["floating"], "floating", x)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ArgumentError(
            f"reduce_precision: cannot round to {exponent_bits} bits of exponent and "
            f"{mantissa_bits} of mantissa (at least 1 and 0)"
        )
    return x


def _limits(dtype: np.dtype, exponent_bits: int) -> tuple[float | None, float | None]:
    """The bounds from which numbers become infinite, and up to which they become 0; None where the
    dtype has no such number.
    """
    largest = (1 << (exponent_bits - 1)) - 1
    info = ml_dtypes.finfo(dtype)
    top = 2.0 ** (largest + 1) if largest < info.maxexp - 1 else None
    least = 2.0 ** (1 - largest) if largest <= 1023 else None
    smallest = float(info.smallest_normal)
    return top, least if least is not None and least > smallest else None


def bits_of(dtype: np.dtype) -> np.dtype:
    """The unsigned dtype of the same width."""
    return np.dtype(f"uint{bit_width(dtype)}")


def _dropped(dtype: np.dtype, mantissa_bits: int) -> int:
    return max(0, ml_dtypes.finfo(dtype).nmant - mantissa_bits)


def _reduce_precision_reference(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    x = np.asarray(x)
    nearest = _rounded(x, _dropped(x.dtype, mantissa_bits))
    top, least = _limits(x.dtype, exponent_bits)
    size = np.abs(nearest)
    if top is not None:
        nearest = np.where(size >= np.asarray(top, x.dtype), np.copysign(np.inf, x), nearest)
    if least is not None:
        nearest = np.where(size < np.asarray(least, x.dtype), np.copysign(0, x), nearest)
    return np.where(np.isnan(x), x, nearest).astype(x.dtype, copy=False)


def _rounded(x: np.ndarray, bit_count: int) -> np.ndarray:
    """The nearest numbers whose last `bit_count` bits are 0, halves to even."""
    if not bit_count:
        return x
    bits = x.reshape(-1).view(bits_of(x.dtype)).reshape(x.shape)
    one, unit = bits.dtype.type(1), bits.dtype.type(bit_count)
    half = ((bits >> unit) & one) + bits.dtype.type((1 << (bit_count - 1)) - 1)
    rounded_bits = (((bits + half) >> unit) << unit).astype(bits.dtype)
    return np.where(np.isfinite(x), rounded_bits.reshape(-1).view(x.dtype).reshape(x.shape), x)


def _reduce_precision_expand(x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    dtype = type_of(x).dtype
    nearest = _rounded_mantissa(x, _dropped(dtype, mantissa_bits))
    top, least = _limits(dtype, exponent_bits)
    size = a.abs(nearest)
    if top is not None:
        infinite = a.copysign(literal_like(np.inf, x), nearest)
        nearest = a.select(a.ge(size, literal_like(top, x)), infinite, nearest)
    if least is not None:
        zero = a.copysign(literal_like(0, x), nearest)
        nearest = a.select(a.lt(size, literal_like(least, x)), zero, nearest)
    return a.select(a.ne(x, x), x, nearest)


def _rounded_mantissa(x: Value, bit_count: int) -> Value:
    if not bit_count:
        return x
    dtype = type_of(x).dtype
    bits = a.bitcast(x, dtype=bits_of(dtype))
    last = a.logical_and(a.shr(bits, literal_like(bit_count, bits)), literal_like(1, bits))
    half = a.add(last, literal_like((1 << (bit_count - 1)) - 1, bits))
    mask = literal_like(((1 << bit_width(dtype)) - 1) ^ ((1 << bit_count) - 1), bits)
    nearest = a.bitcast(a.logical_and(a.add(bits, half), mask), dtype=dtype)
    return a.select(a.is_finite(x), nearest, x)


reduce_precision: Primitive = elementwise(
    "reduce_precision",
    "rounding",
    _reduce_precision_type,
    _reduce_precision_reference,
    (lambda dx, x, y, **params: reduce_precision(dx, **params),),
    transpose=lambda ct, linear, x, **params: [reduce_precision(ct, **params)],
    expand=_reduce_precision_expand,
)
PRIMITIVES = (reduce_precision,)
