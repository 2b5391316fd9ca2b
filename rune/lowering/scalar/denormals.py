"""Arithmetic of f32 that does not wait for denormal numbers, with the same bits.

Processors of x86 take some 150 cycles for a product, a quotient or a fused step with a denormal
operand or result, but no longer than usual for sums and for conversions between f32 and f64. In f64
no f32 is denormal, nor is a product or a quotient of two of them. Operands that may be tiny are
therefore compared first, and vectors with a tiny lane are computed in f64 behind a branch.

Rounding twice is rounding once: a product of two f32 is exact in f64, a quotient or root of numbers
of 24 bits is further from the middle between two f32 than f64 rounds (also between denormal ones,
which have fewer bits), and a fused step is rounded to odd first (Boldo & Melquiond 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rune import dtypes
from rune.lowering.scalar.number import Number, select

LIMIT = 2.0**-63  # numbers below are tiny; the product of two others is normal
# Keeps LLVM from computing in f32 what would have the same bits there.
_SCALE = 2.0**64


def product(a: Number, b: Number) -> Number:
    """a b in f64."""
    return (a * _SCALE) * b * (1.0 / _SCALE)


def quotient(a: Number, b: Number) -> Number:
    """a/b in f64."""
    return (a * _SCALE) / b * (1.0 / _SCALE)


def root(x: Number) -> Number:
    """The root of x in f64."""
    return (x * _SCALE).sqrt() * _SCALE**-0.5


def fused(a: Number, b: Number, c: Number) -> Number:
    """a b + c in f64, such that rounding it to f32 is the only rounding."""
    exact = a * b
    total = exact + c
    back = total - exact
    error = (exact - (total - back)) + (c - back)
    bits = total.bits()
    # Adding 1 to the bits is a step in magnitude, because the sign is a separate bit.
    neighbour = bits + select((error < 0.0) ^ (total < 0.0), bits.like(-1), 1)
    # False for NaN, the error beside an infinity, which has no neighbour.
    is_inexact = error.abs() > 0.0
    return select(is_inexact & (bits & 1).equals(0), neighbour, bits).bits_as(dtypes.f64)


IN_F64: Mapping[str, Callable[..., Number]] = {"mul": product, "div": quotient, "sqrt": root, "fma": fused}
ROUNDED_LIMIT = 2.0**-26  # below it the next functions round to their value at 0, or to the number
NEAR_IDENTITY = frozenset({"log1p", "expm1", "tanh", "sin", "tan", "sinh", "asinh", "atan", "atanh", "asin"})
NEAR_CONSTANT = frozenset({"exp", "exp2", "cos", "cosh", "acos", "logistic"})


def in_f64(name: str, *args: Number) -> Number:
    """The arithmetic operation on any f32."""
    return IN_F64[name](*(x.convert(dtypes.f64) for x in args)).convert(dtypes.f32)


def near_zero(name: str, x: Number) -> Number:
    """One of the functions of any f32, whose polynomials do not meet powers of a tiny number."""
    tiny = is_tiny(x.magnitude(), ROUNDED_LIMIT)
    result = select(tiny, 0.0, x).apply(name)
    return select(tiny, x, result) if name in NEAR_IDENTITY else result


def is_tiny(bits: Number, limit: float) -> Number:
    """Whether an f32 with these bits, which is not negative, is below a limit but not 0."""
    # One comparison for both ends: 0 less 1 is the largest number without a sign.
    return (bits - 1).bits_as(dtypes.u32) < int(np.float32(limit).view(np.int32)) - 1
