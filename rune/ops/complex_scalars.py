"""What functions of complex numbers mean, in NumPy, where NumPy has no function or an inexact one.

The references of the primitives that are in scalars.py for real numbers. For what NumPy has, its
own function is the meaning; ops/parts.py is how compilers get there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rune import dtypes

Function = Callable[..., Any]
Plane = NDArray[np.complexfloating]


def either(real: Function, plane: Function) -> Function:
    """The function of real numbers and that of complex ones as one."""

    def apply(*args: np.ndarray) -> np.ndarray:
        return (plane if args[0].dtype in dtypes.COMPLEX else real)(*args)

    return apply


def _made_of(real: Any, imag: Any, like: Plane) -> Plane:
    out = np.empty_like(like)
    out.real, out.imag = real, imag
    return out


def sign(x: Plane) -> Plane:
    """x / |x|; NumPy's own at zeros and infinities, NaN wherever a part is one."""
    length = np.abs(x)
    near = _made_of(x.real / length, x.imag / length, x)
    far = np.where(np.isnan(x), x.dtype.type(complex(np.nan, np.nan)), np.sign(x))
    return np.where((length > 0) & np.isfinite(length), near, far)


def rsqrt(x: Plane) -> Plane:
    """1 / sqrt(x)."""
    return np.divide(x.dtype.type(1), np.sqrt(x))


def logistic(x: Plane) -> Plane:
    """1 / (1 + exp(-x)), from whichever of exp(x) and exp(-x) does not overflow."""
    below, one = x.real < 0, x.dtype.type(1)
    power = np.exp(np.where(below, x, -x))
    return np.where(below, power, one) / (one + power)


def expm1(x: Plane) -> Plane:
    """exp(x) - 1, accurate near 0; NumPy's own makes NaN of what is infinite."""
    half = np.sin(x.imag / 2)
    power: Any = np.exp(x)
    near = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    return _made_of(np.where(np.isinf(x.real), power.real - 1, near), power.imag, x)


def log1p(x: Plane) -> Plane:
    """log(1 + x), accurate near 0, as NumPy's own is not."""
    a, b = x.real, x.imag
    near = np.abs(a) + np.abs(b) < 0.5
    close = np.log1p(np.where(near, a * (2 + a) + b * b, 0)) / 2
    return _made_of(np.where(near, close, np.log(np.hypot(1 + a, b))), np.arctan2(b, 1 + a), x)
