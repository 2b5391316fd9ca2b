"""The meaning of scalar operations in NumPy, written once for all that must agree with it.

Primitives take these functions as their references, and through them the constant folder, the
interpreter of kernel code (lowering/kernel/scalar.py) and every test of an executor. This file has
the operations that NumPy lacks, or defines differently:

Integers wrap and nothing traps: x div 0 is -1 (all bits set), x rem 0 is x, the least integer div
-1 is itself; a shift by the width or more leaves 0 or the sign; an integer to a negative power is
0 unless the base is 1 or -1. Float to integer saturates, and NaN gives 0. Half types compute in
f32 and round once, 4-bit integers compute in 8 bits. The sign of max(0.0, -0.0) is unspecified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container
from typing import Any

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.errors import DtypeError
from rune.number_tables import numbers

Function = Callable[..., Any]
NIBBLES = {dtypes.i4: dtypes.i8, dtypes.u4: dtypes.u8}  # 4-bit integers, and the dtypes they compute in
HALVES = dtypes.FLOATING - {dtypes.f32, dtypes.f64}


# --- narrow dtypes ----------------------------------------------------------------------------


def bit_width(dtype: np.dtype) -> int:
    """Number of bits of a value: 4 for i4, whatever its storage.

    >>> bit_width(dtypes.i4), bit_width(dtypes.f32)
    (4, 32)
    """
    return 4 if dtype in NIBBLES else dtype.itemsize * 8


@functools.cache
def int_bounds(dtype: np.dtype) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    width = bit_width(dtype)
    if dtype in dtypes.SIGNED:
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1


def order_limits(dtype: np.dtype) -> tuple[complex, complex]:
    """The identities of max and of min: the least and the greatest value of a dtype.

    Some 8-bit formats have no infinity; their identity is NaN.
    Errors: DtypeError for a dtype whose elements are not numbers.
    """
    if dtype == dtypes.bool_:
        return False, True
    if dtype in dtypes.INTEGER:
        return int_bounds(dtype)
    if dtype in dtypes.COMPLEX:
        return complex(-np.inf, -np.inf), complex(np.inf, np.inf)
    if dtype not in dtypes.FLOATING:
        raise DtypeError(f"order_limits: cannot order {dtypes.short(dtype)} (numbers required)")
    greatest = np.inf if np.isinf(np.asarray(np.inf).astype(dtype)) else float(ml_dtypes.finfo(dtype).max)
    return -greatest, greatest


def holds(dtype: np.dtype, number: int) -> bool:
    """Whether an integer dtype can hold a number."""
    low, high = int_bounds(dtype)
    return low <= number <= high


def wrapped(number: int, dtype: np.dtype) -> int:
    """`number` modulo 2**bits, as a value of an integer dtype."""
    low, high = int_bounds(dtype)
    return (number - low) % (high - low + 1) + low


class ByDtype:
    """A function that is replaced by another one where its first operand has certain dtypes."""

    __slots__ = ("dtypes", "function", "special")

    def __init__(self, function: Function, dtypes: Container[np.dtype], special: Function):
        self.function, self.dtypes, self.special = function, dtypes, special

    def __call__(self, *args: np.ndarray, **params: object) -> np.ndarray:
        return (self.special if args[0].dtype in self.dtypes else self.function)(*args, **params)


def of_dtype(function: Function, dtype: np.dtype) -> Function:
    """The function that applies where the first operand has this dtype.

    >>> of_dtype(widened(np.exp), dtypes.f32) is np.exp
    True
    """
    while isinstance(function, ByDtype):
        function = function.special if dtype in function.dtypes else function.function
    return function


def widened(function: Function) -> ByDtype:
    """`function` computed in f32 for the half types and rounded once."""

    def rounded(*args: np.ndarray) -> np.ndarray:
        return np.asarray(function(*(a.astype(np.float32) for a in args))).astype(args[0].dtype)

    return ByDtype(function, HALVES, rounded)


def nibbles(function: Function) -> ByDtype:
    """`function` computed in 8 bits and wrapped for 4-bit integers, for which NumPy has no
    loops.
    """

    def in_bytes(*args: np.ndarray, **params: object) -> np.ndarray:
        dtype = args[0].dtype
        wide = (a.astype(NIBBLES[dtype]) if a.dtype == dtype else a for a in args)
        return np.asarray(function(*wide, **params)).astype(dtype)

    return ByDtype(function, NIBBLES, in_bytes)


MANY = 10_000  # elements from which it pays to count how often a mask changes


def choose(mask: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a where the mask holds, else b.

    NumPy's loop branches on each element. Where the branches are unpredictable and elements have
    32 bits, selecting by bits takes a quarter of the time (64 bits gain nothing, measured).
    """
    if mask.size < MANY or a.dtype.itemsize != 4:
        return np.where(mask, a, b)
    flat = mask.reshape(-1)
    if np.count_nonzero(flat[1:] != flat[:-1]) * 16 < mask.size:
        return np.where(mask, a, b)
    first, second = _bits(a), _bits(b)
    spread = np.negative(mask.view(np.int8)).astype(np.int32).view(np.uint32)
    spread &= first ^ second
    spread ^= second
    return spread.view(a.dtype)


# --- floats -----------------------------------------------------------------------------------


def rsqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x) in the dtype of x."""
    return np.asarray(np.reciprocal(np.sqrt(x))).astype(x.dtype, copy=False)


@widened
def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), computed from exp(-|x|) so that small results keep their digits."""
    one = x.dtype.type(1)
    small = np.exp(np.copysign(x, -one))
    return np.where(x >= 0, one, small) / (one + small)


@widened
def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger; NaN if either is NaN."""
    return np.maximum(a, b)


@widened
def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller; NaN if either is NaN."""
    return np.minimum(a, b)


def nextafter(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The next number of the dtype after a, towards b; b itself if the two are equal."""
    return np.where(a == b, b, np.nextafter(a, b))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; +0 for both zeros, as in the array API standard."""
    return np.sign(x) + np.zeros((), x.dtype)


def _by_element(function: Callable[[float], float]) -> Function:
    ufunc = np.frompyfunc(function, 1, 1)

    def apply(x: np.ndarray) -> np.ndarray:
        return np.asarray(ufunc(np.asarray(x).astype(np.float64))).astype(x.dtype)

    return apply


erf = _by_element(math.erf)
erfc = _by_element(math.erfc)

# M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2010), single precision.
ERF_INV_CENTRAL = numbers("""
    2.81022636e-08           3.43273939e-07          -3.5233877e-06           -4.39150654e-06
    0.00021858087           -0.00125372503           -0.00417768164            0.246640727
    1.50140941
""")
ERF_INV_TAIL = numbers("""
   -0.000200214257           0.000100950558           0.00134934322           -0.00367342844
    0.00573950773           -0.0076224613             0.00943887047            1.00167406
    2.83297682
""")


def _erf_inv_start(a: np.ndarray) -> np.ndarray:
    """Starting digits of erf_inv: Giles' formula up to 1 - 1e-7, which f32 resolves, then the
    asymptote.
    """
    w = -np.log((1 - a) * (1 + a))
    central = np.polyval(ERF_INV_CENTRAL, w - 2.5)
    near = np.where(w < 5, central, np.polyval(ERF_INV_TAIL, np.sqrt(w) - 3)) * a
    # erfc(x) is about exp(-x²)/(x sqrt(pi)).
    far = w + np.log1p(a) - math.log(math.pi) / 2
    return np.where(w < 16, near, np.sqrt(far - np.log(np.maximum(far, 1)) / 2))


def erf_inv(y: np.ndarray) -> np.ndarray:
    """The inverse of erf: infinite at -1 and 1, NaN beyond."""
    # An approximation, then Halley steps in f64 on erfc, which keeps the digits of the tail.
    a = np.abs(np.asarray(y).astype(np.float64))
    x = _erf_inv_start(a)
    for _ in range(4):
        error = np.where(a < 0.5, erf(x) - a, (1 - a) - erfc(x))
        step = error * (math.sqrt(math.pi) / 2) * np.exp(x * x)
        x = x - step / (1 + x * step)
    x = np.where(a < 1, x, np.where(a == 1, np.inf, np.nan))
    return np.copysign(x, y).astype(y.dtype)


# --- powers -----------------------------------------------------------------------------------


@nibbles
def power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ** b as in C; for integers, wrapped, with the integer part for a negative exponent."""
    if a.dtype in dtypes.SIGNED:
        return _signed_power(a, b)
    half = b == 0.5
    if a.dtype in dtypes.FLOATING and np.count_nonzero(half):
        # NumPy takes a square root if all elements share an exponent 1/2; C differs at -0 and -inf.
        a = np.where(half & ((a == 0) | (a == -np.inf)), np.abs(a), a)
    return np.power(a, b)


def _signed_power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    one, zero = a.dtype.type(1), a.dtype.type(0)
    odd = np.where(b & one == one, a, one)
    inverse = np.where((a == one) | (a == -one), odd, zero)
    return np.where(b < 0, inverse, np.power(a, np.where(b < 0, zero, b)))


# --- integers ---------------------------------------------------------------------------------


def div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """True division of floats; integers truncate, x / 0 is -1 (all bits set), and nothing traps."""
    if a.dtype not in dtypes.INTEGER:
        return np.divide(a, b)
    by_zero = b == 0
    safe = np.where(by_zero, np.array(1, b.dtype), b) if np.any(by_zero) else b
    if a.dtype.itemsize <= 4:  # f64 holds all of them exactly, and its quotient truncates to the same integer
        quotient = np.divide(a, safe, dtype=np.float64).astype(np.int64).astype(a.dtype)
    else:
        quotient = np.floor_divide(a, safe)
        up = (quotient * safe != a) & ((a < 0) != (safe < 0))
        quotient = quotient + up.astype(a.dtype)
    if safe is b:
        return quotient
    return np.where(by_zero, np.invert(np.zeros((), a.dtype)), quotient)


def rem(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Remainder with the dividend's sign; for integers, x rem 0 is x."""
    if a.dtype not in dtypes.INTEGER:
        return np.fmod(a, b)
    by_zero = b == 0
    if not np.any(by_zero):
        return np.fmod(a, b)
    return np.where(by_zero, a, np.fmod(a, np.where(by_zero, np.array(1, b.dtype), b)))


def _bits(x: np.ndarray) -> np.ndarray:
    """The bits as unsigned integers; those of 4-bit dtypes in the low half of a byte."""
    bits = np.ascontiguousarray(x).view(np.dtype(f"u{x.dtype.itemsize}")).reshape(np.shape(x))
    return bits & np.uint8(15) if x.dtype in NIBBLES else bits


def _is_inside(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Where a shift count is less than the width."""
    return _bits(np.asarray(count)) < a.dtype.itemsize * 8


def shl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shift left; 0 for a count of the width or more."""
    inside = _is_inside(a, b)
    if np.all(inside):
        return np.left_shift(a, b)
    return np.where(inside, np.left_shift(a, np.where(inside, b, np.array(0, b.dtype))), _zero(a))


def shr(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shift right, arithmetic for signed dtypes; large counts leave copies of the sign."""
    inside = _is_inside(a, b)
    if np.all(inside):
        return np.right_shift(a, b)
    sign = np.where(a < 0, np.array(-1).astype(a.dtype), _zero(a))
    return np.where(inside, np.right_shift(a, np.where(inside, b, np.array(0, b.dtype))), sign)


def _zero(a: np.ndarray) -> np.ndarray:
    return np.zeros((), a.dtype)


def _count_ones(bits: np.ndarray) -> np.ndarray:
    # H. S. Warren, Hacker's Delight (2nd ed., 2012), section 5-1.
    u = np.uint64
    bits = bits - ((bits >> u(1)) & u(0x5555555555555555))
    bits = (bits & u(0x3333333333333333)) + ((bits >> u(2)) & u(0x3333333333333333))
    bits = (bits + (bits >> u(4))) & u(0x0F0F0F0F0F0F0F0F)
    return (bits * u(0x0101010101010101)) >> u(56)


def popcount(x: np.ndarray) -> np.ndarray:
    """The number of one bits."""
    if hasattr(np, "bitwise_count"):  # from NumPy 2 on
        return np.bitwise_count(_bits(np.asarray(x))).astype(x.dtype)
    return _count_ones(_bits(np.asarray(x)).astype(np.uint64)).astype(x.dtype)


def clz(x: np.ndarray) -> np.ndarray:
    """The number of leading zero bits; the width for 0."""
    bits = _bits(np.asarray(x)).astype(np.uint64)
    for step in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(step))
    return (np.uint64(bit_width(x.dtype)) - _count_ones(bits)).astype(x.dtype)


# --- conversion -------------------------------------------------------------------------------


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """NumPy's conversion, except that float to integer saturates, and NaN becomes 0.

    >>> convert(np.float32([1e9, -1.5, np.nan, 300.0]), dtypes.i8)
    array([127,  -1,   0, 127], dtype=int8)
    """
    x = np.asarray(x)
    if dtype == dtypes.bool_:  # NumPy does not treat -0.0 of an 8-bit float as zero
        return (x.astype(np.float32) if x.dtype in HALVES else x) != 0
    if x.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        x = np.real(x)
    if x.dtype in dtypes.FLOATING and dtype in dtypes.INTEGER:
        return _saturate(x if x.dtype == dtypes.f32 else x.astype(np.float64), dtype)
    if x.dtype in dtypes.INTEGER and dtype in HALVES:
        return x.astype(np.float32).astype(dtype)
    if x.dtype in NIBBLES and dtype in NIBBLES:  # NumPy cannot convert one into the other
        x = x.astype(NIBBLES[x.dtype])
    return x.astype(dtype)


def _saturate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    low, high = int_bounds(dtype)
    # Without NaN or anything out of range, a third of the passes through memory.
    if x.size and low < x.min() and x.max() < high:
        return x.astype(dtype)
    x = x.astype(np.float64)
    inside = np.where(np.isnan(x) | (x <= low) | (x >= high), 0.0, x).astype(dtype)
    inside = np.where(x <= low, np.array(low, dtype), inside)
    return np.where(x >= high, np.array(high, dtype), inside)
