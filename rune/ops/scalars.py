"""NumPy meanings that NumPy itself lacks or gives another meaning: the oracle's own functions.

Written for clarity and accuracy, not speed: half types compute in f32 and round once; integer
division never traps; conversions from float saturate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes

Function = Callable[..., Any]


def widened(function: Function) -> Function:
    """`function` computed in f32 for the half types and rounded once."""

    def apply(*args: np.ndarray) -> np.ndarray:
        dtype = args[0].dtype
        if dtype in (dtypes.f32, dtypes.f64) or dtype not in dtypes.FLOATING:
            return function(*args)
        return np.asarray(function(*(a.astype(np.float32) for a in args))).astype(dtype)

    return apply


NIBBLES = {dtypes.i4: dtypes.i8, dtypes.u4: dtypes.u8}  # 4-bit integers, and where they compute


def nibbles(function: Function) -> Function:
    """`function` in 8 bits, and wrapped, for the 4-bit integers, which NumPy has no loops for."""

    def apply(*args: np.ndarray, **params: Any) -> np.ndarray:
        dtype = args[0].dtype
        if dtype not in NIBBLES:
            return function(*args, **params)
        wide = (a.astype(NIBBLES[dtype]) if a.dtype == dtype else a for a in args)
        return np.asarray(function(*wide, **params)).astype(dtype)

    return apply


def _by_element(function: Callable[[float], float]) -> Function:
    vectorised = np.frompyfunc(function, 1, 1)

    def apply(x: np.ndarray) -> np.ndarray:
        return np.asarray(vectorised(x.astype(np.float64))).astype(x.dtype)

    return apply


def _erf_inv(y: float) -> float:
    # Giles' closed form in log((1-y)(1+y)) as a start, then Newton on erf, on erfc in the tail.
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    w = math.log((1 - y) * (1 + y))
    c = 2 / (math.pi * 0.147) + w / 2
    x = math.copysign(math.sqrt(math.sqrt(c * c - w / 0.147) - c), y)
    for _ in range(4):
        tail = (1 - abs(y)) - math.erfc(abs(x))
        error = math.erf(x) - y if abs(y) < 0.5 else tail * math.copysign(1, y)
        x -= error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x


erf = _by_element(math.erf)
erfc = _by_element(math.erfc)
erf_inv = _by_element(_erf_inv)


def rsqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x) in the dtype of x."""
    return np.asarray(np.reciprocal(np.sqrt(x))).astype(x.dtype, copy=False)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), computed from exp(-|x|) so that nothing overflows."""

    def stable(v: np.ndarray) -> np.ndarray:
        small = np.exp(-np.abs(v))
        one = v.dtype.type(1)
        return np.where(v >= 0, one / (one + small), small / (one + small))

    return np.asarray(widened(stable)(x)).astype(x.dtype, copy=False)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger; NaN if either is NaN."""
    return np.maximum(a, b)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller; NaN if either is NaN."""
    return np.minimum(a, b)


def nextafter(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The next number of the dtype after a, towards b; b itself where the two are equal."""
    return np.where(a == b, b, np.nextafter(a, b))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; +0 for both zeros, as in the array API standard."""
    return np.sign(x) + np.zeros((), x.dtype)


def bit_width(dtype: np.dtype) -> int:
    """Number of bits of a value: 4 for i4, whatever its storage."""
    return 4 if dtype in NIBBLES else dtype.itemsize * 8


def _bits(x: np.ndarray) -> np.ndarray:
    """The bits as unsigned integers; those of the 4-bit dtypes in the low half of a byte."""
    bits = np.ascontiguousarray(x).view(np.dtype(f"u{x.dtype.itemsize}")).reshape(np.shape(x))
    return bits & np.uint8(15) if x.dtype in NIBBLES else bits


def popcount(x: np.ndarray) -> np.ndarray:
    """Number of one bits."""
    bits = _bits(np.asarray(x))
    bytes_ = np.ascontiguousarray(bits).reshape(*bits.shape, 1).view(np.uint8)
    return np.unpackbits(bytes_, axis=-1).sum(-1).astype(x.dtype)


def clz(x: np.ndarray) -> np.ndarray:
    """Number of leading zero bits; the width for 0."""
    value, width = _bits(np.asarray(x)), bit_width(x.dtype)
    count = np.full(value.shape, width, np.int64)
    for bit in range(width):
        found = (value >> np.array(bit, value.dtype)) & np.array(1, value.dtype)
        count = np.where(found != 0, width - 1 - bit, count)
    return count.astype(x.dtype)


def div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """True division of floats; integers truncate, x / 0 is -1 (all bits set), and nothing traps."""
    if a.dtype not in dtypes.INTEGER:
        return np.divide(a, b)
    safe = np.where(b == 0, np.array(1, b.dtype), b)
    quotient, remainder = np.floor_divide(a, safe), np.remainder(a, safe)
    up = (remainder != 0) & ((a < 0) != (safe < 0))
    all_ones = np.invert(np.zeros((), a.dtype))
    return np.where(b == 0, all_ones, quotient + up.astype(a.dtype))


def rem(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Remainder with the dividend's sign; of integers, x rem 0 is x."""
    if a.dtype not in dtypes.INTEGER:
        return np.fmod(a, b)
    safe = np.where(b == 0, np.array(1, b.dtype), b)
    return np.where(b == 0, a, np.fmod(a, safe))


def _shift(function: Function, a: np.ndarray, b: np.ndarray, overflow: np.ndarray) -> np.ndarray:
    width = a.dtype.itemsize * 8
    count = _bits(np.asarray(b))
    inside = count < width
    safe = np.where(inside, b, np.array(0, b.dtype))
    return np.where(inside, function(a, safe), overflow)


def shl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shift left; 0 for a count of the width or more."""
    return _shift(np.left_shift, a, b, np.zeros((), a.dtype))


def shr(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shift right, arithmetic for signed dtypes; the sign fills for large counts."""
    sign = np.where(a < 0, np.array(-1).astype(a.dtype), np.zeros((), a.dtype))
    return _shift(np.right_shift, a, b, sign)


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """NumPy's conversion, but float to integer saturates and NaN becomes 0."""
    x = np.asarray(x)
    if x.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        x = np.real(x)
    if x.dtype in NIBBLES and dtype in NIBBLES:
        return x.astype(NIBBLES[x.dtype]).astype(dtype)
    if x.dtype not in dtypes.FLOATING or dtype not in dtypes.INTEGER:
        return x.astype(dtype)
    return _saturate(x.astype(np.float64), dtype)


def _saturate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    low, high = int_bounds(dtype)
    inside = np.where(np.isnan(x) | (x <= low) | (x >= high), 0.0, x).astype(dtype)
    inside = np.where(x <= low, np.array(low, dtype), inside)
    return np.where(x >= high, np.array(high, dtype), inside)


@functools.cache
def int_bounds(dtype: np.dtype) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    width = bit_width(dtype)
    if dtype in dtypes.SIGNED:
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1
