"""The meaning of functions of complex numbers in NumPy, where its own is missing or inexact.

For real numbers the references are in scalars.py. Where NumPy's own function is accurate, that is
the meaning; ops/parts.py has the formulas that compilers use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rune import dtypes
from rune.ops.scalars import ByDtype

Function = Callable[..., Any]
Plane = NDArray[np.complexfloating]


def either(real: Function, plane: Function) -> ByDtype:
    """One function, which is `real` for real numbers and `plane` for complex ones."""
    return ByDtype(real, dtypes.COMPLEX, plane)


def _from_parts(real: np.ndarray, imag: np.ndarray, dtype: np.dtype) -> Plane:
    """real + imag i; not computed as a sum, which turns an infinite part into NaN."""
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    out.real, out.imag = real, imag
    return out


def product(x: Plane, y: Plane) -> Plane:
    """x · y by the definition, each of its four terms rounded.

    NumPy fuses two of the products with their sums, on some processors and in some loops, so that
    there a term that overflows can leave a finite result. Where no term can overflow, NumPy's
    result is within one rounding of the definition, and fast.
    """
    most = np.finfo(x.dtype).max / 4  # bounds every term; a sum is at most twice that
    if np.vdot(x, x).real <= most and (y is x or np.vdot(y, y).real <= most):
        return np.multiply(x, y)
    real = x.real * y.real - x.imag * y.imag
    return _from_parts(real, x.real * y.imag + x.imag * y.real, x.dtype)


def quotient(x: Plane, y: Plane) -> Plane:
    """x / y by NumPy; where that is not finite, Smith's formula without its reciprocal, which can
    overflow.
    """
    result = np.divide(x, y)
    if np.vdot(result, result).real < np.inf:  # one check for all takes a tenth of the time
        return result
    wide = np.abs(y.real) >= np.abs(y.imag)
    large, small = np.where(wide, y.real, y.imag), np.where(wide, y.imag, y.real)
    p, q = np.where(wide, x.real, x.imag), np.where(wide, x.imag, x.real)
    ratio = np.where(large == 0, small, small / large)
    by_zero = (large == 0) & (small == 0)
    divisor = np.where(by_zero, np.abs(large), large + small * ratio)
    imag = np.where(wide, q - p * ratio, p * ratio - q)
    exact = _from_parts(
        np.where(by_zero, x.real, p + q * ratio) / divisor, np.where(by_zero, x.imag, imag) / divisor, x.dtype
    )
    return np.where(np.isfinite(result), result, exact)


def whole_power(x: Plane, exponent: int) -> Plane:
    """x ** exponent by repeated squaring."""
    result, square, bits = None, x, abs(exponent)
    while bits:
        if bits & 1:
            result = square if result is None else product(result, square)
        bits >>= 1
        square = product(square, square) if bits else square
    one = np.ones((), x.dtype)
    result = np.ones_like(x) if result is None else result
    return result if exponent >= 0 else quotient(one, result)


def sign(x: Plane) -> Plane:
    """x / |x|; NumPy's result at zeros and infinities, NaN where either part is NaN."""
    length = np.abs(x)
    near = _from_parts(x.real / length, x.imag / length, x.dtype)
    far = np.where(np.isnan(x), x.dtype.type(complex(np.nan, np.nan)), np.sign(x))
    return np.where((length > 0) & np.isfinite(length), near, far)


def rsqrt(x: Plane) -> Plane:
    """1 / sqrt(x)."""
    return quotient(np.ones((), x.dtype), np.sqrt(x))


def logistic(x: Plane) -> Plane:
    """1 / (1 + exp(-x)), computed from whichever of exp(x) and exp(-x) does not overflow."""
    below, one = x.real < 0, x.dtype.type(1)
    power = np.exp(np.where(below, x, -x))
    return np.where(below, power, one) / (one + power)


def expm1(x: Plane) -> Plane:
    """exp(x) - 1, accurate near 0; NumPy's gives NaN where the result is infinite."""
    half = np.sin(x.imag / 2)
    power: Any = np.exp(x)
    near = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    return _from_parts(np.where(np.isinf(x.real), power.real - 1, near), power.imag, x.dtype)


def log1p(x: Plane) -> Plane:
    """log(1 + x), accurate near 0, where NumPy's is not."""
    a, b = x.real, x.imag
    near = np.abs(a) + np.abs(b) < 0.5
    close = np.log1p(np.where(near, a * (2 + a) + b * b, 0)) / 2
    return _from_parts(np.where(near, close, np.log(np.hypot(1 + a, b))), np.arctan2(b, 1 + a), x.dtype)
