"""The meaning of every scalar operation, in NumPy: what all renderers must agree with.

`SCALAR_MEANING[name]` works on arrays and scalars of the operation's own dtype, never raises and
never warns: it is the constant folder in the target's arithmetic and the heart of the kernel
interpreter. 16-bit and 8-bit floats are computed in f32 and rounded once per operation.

Fixed here where C leaves it open: integers wrap; x div 0 is -1 (all bits set) and x rem 0 is x;
the least integer div -1 is itself; float to integer saturates and NaN gives 0; shifts of at least
the width give 0 or the sign; an integer to a negative power is 0 unless the base is 1 or -1.
The sign of max(0.0, -0.0) stays open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from rune import dtypes

Meaning = Callable[..., Any]

_WIDE = {
    dtypes.f16: dtypes.f32, dtypes.bf16: dtypes.f32,
    dtypes.f8_e4m3: dtypes.f32, dtypes.f8_e5m2: dtypes.f32,
    dtypes.i4: dtypes.i8, dtypes.u4: dtypes.u8,
}  # fmt: skip


def bit_width(dtype: np.dtype) -> int:
    """Number of bits of a value: 4 for i4, whatever its storage.

    >>> bit_width(dtypes.i4), bit_width(dtypes.f32)
    (4, 32)
    """
    return 4 if dtype in (dtypes.i4, dtypes.u4) else 8 * dtype.itemsize


def unsigned_of(dtype: np.dtype) -> np.dtype:
    """The NumPy unsigned integer that has the storage size of `dtype`."""
    return np.dtype(f"u{dtype.itemsize}")


def widened(function: Meaning) -> Meaning:
    """`function` computed in f32 (or i8) for the narrow dtypes, and rounded back."""

    def wide(*args: Any) -> Any:
        dtype = args[-1].dtype
        if dtype not in _WIDE:
            return function(*args)
        return function(*(a.astype(_WIDE[dtype]) for a in args)).astype(dtype)

    return wide


# --- integers ---------------------------------------------------------------------------------


def _is_integer(x: Any) -> bool:
    return x.dtype in dtypes.INTEGER


def _is_signed(x: Any) -> bool:
    return x.dtype in dtypes.SIGNED


def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    # NumPy floors; the quotient is moved towards zero where the signs differ.
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    rest = a - quotient * safe
    away = (rest != 0) & ((a < 0) != (b < 0))
    return quotient + away.astype(a.dtype), rest - np.where(away, safe, a.dtype.type(0))


def _div(a: Any, b: Any) -> Any:
    if not _is_integer(a):
        return np.true_divide(a, b)
    all_bits = np.array(-1).astype(a.dtype)
    return np.where(b == 0, all_bits, _divmod(a, b)[0])


def _rem(a: Any, b: Any) -> Any:
    if not _is_integer(a):
        return np.fmod(a, b)
    return np.where(b == 0, a, _divmod(a, b)[1])


def _pow(a: Any, b: Any) -> Any:
    if not _is_signed(a):
        return np.power(a, b)
    one, zero = a.dtype.type(1), a.dtype.type(0)
    odd = np.where(b & one == one, a, one)
    inverse = np.where((a == one) | (a == -one), odd, zero)
    return np.where(b < 0, inverse, np.power(a, np.where(b < 0, zero, b)))


def _in_range(amount: Any) -> Any:
    return (amount >= 0) & (amount < bit_width(amount.dtype))


def _shl(x: Any, amount: Any) -> Any:
    fits = _in_range(amount)
    zero = x.dtype.type(0)
    return np.where(fits, np.left_shift(x, np.where(fits, amount, zero)), zero)


def _shr(x: Any, amount: Any) -> Any:
    width = x.dtype.type(bit_width(x.dtype) - 1)
    fits = _in_range(amount)
    beyond = np.right_shift(x, width) if _is_signed(x) else x.dtype.type(0)
    return np.where(fits, np.right_shift(x, np.where(fits, amount, width)), beyond)


def _unsigned_bits(x: Any) -> Any:
    mask = np.uint64((1 << bit_width(x.dtype)) - 1)
    return np.asarray(x).astype(np.int64 if _is_signed(x) else np.uint64).astype(np.uint64) & mask


def _count_ones(bits: Any) -> Any:
    u = np.uint64
    bits = bits - ((bits >> u(1)) & u(0x5555555555555555))
    bits = (bits & u(0x3333333333333333)) + ((bits >> u(2)) & u(0x3333333333333333))
    bits = (bits + (bits >> u(4))) & u(0x0F0F0F0F0F0F0F0F)
    return (bits * u(0x0101010101010101)) >> u(56)


def _popcount(x: Any) -> Any:
    return _count_ones(_unsigned_bits(x)).astype(x.dtype)


def _clz(x: Any) -> Any:
    bits = _unsigned_bits(x)
    for step in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(step))
    return (np.uint64(bit_width(x.dtype)) - _count_ones(bits)).astype(x.dtype)


# --- floats -----------------------------------------------------------------------------------


def _sign(x: Any) -> Any:
    # Written out: np.sign of a bool or of an 8-bit float is missing or differs.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    if x.dtype in dtypes.UNSIGNED:
        return np.where(x > zero, one, zero)
    below = np.where(x < zero, -one, zero)
    sign = np.where(x > zero, one, below)
    return sign if _is_integer(x) else np.where(x == x, sign, x)


def _rsqrt(x: Any) -> Any:
    return np.true_divide(x.dtype.type(1), np.sqrt(x))


def _logistic(x: Any) -> Any:
    # exp of a non-positive number never overflows, so small results keep their digits.
    one = x.dtype.type(1)
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, one / (one + power), power / (one + power))


def _by_element(function: Callable[[float], float]) -> Meaning:
    raw = np.frompyfunc(function, 1, 1)

    def compute(x: Any) -> Any:
        return np.asarray(raw(np.asarray(x).astype(np.float64))).astype(x.dtype)

    return compute


_erf, _erfc = _by_element(math.erf), _by_element(math.erfc)

# M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2010), single precision.
ERF_INV_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
ERF_INV_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _erf_inv(y: Any) -> Any:
    # Giles' approximation, then Halley steps in f64 against erfc, which keeps the tail's digits.
    a = np.abs(np.asarray(y).astype(np.float64))
    w = -np.log((1 - a) * (1 + a))
    central = np.polyval(ERF_INV_CENTRAL, w - 2.5)
    x = np.where(w < 5, central, np.polyval(ERF_INV_TAIL, np.sqrt(w) - 3)) * a
    for _ in range(4):
        error = np.where(a < 0.5, _erf(x) - a, (1 - a) - _erfc(x))
        step = error * (math.sqrt(math.pi) / 2) * np.exp(x * x)
        x = x - step / (1 + x * step)
    x = np.where(a < 1, x, np.where(a == 1, np.inf, np.nan))
    return np.copysign(x, y).astype(y.dtype)


def _exact_fma(a: float, b: float, c: float) -> float:
    plain = a * b + c
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return plain
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fma(a: Any, b: Any, c: Any) -> Any:
    if a.dtype != dtypes.f32:
        exact = np.frompyfunc(_exact_fma, 3, 1)
        return np.asarray(exact(*np.broadcast_arrays(a, b, c))).astype(np.float64)
    # The product is exact in f64; the sum is rounded to odd there, so that rounding it to f32
    # equals one rounding (Boldo & Melquiond 2008).
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c).astype(np.float64)
    total = np.asarray(product + addend)
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + away, bits).view(np.float64).astype(np.float32)


def bitcast(x: Any, dtype: np.dtype) -> Any:
    """The bits of `x` read as `dtype` of the same size."""
    return np.asarray(x).view(dtype)


def convert(x: Any, dtype: np.dtype) -> Any:
    """`x` as `dtype`: NumPy's conversion, but float to integer saturates and NaN becomes 0.

    >>> convert(np.float32([1e9, -1.5, np.nan, 300.0]), dtypes.i8)
    array([127,  -1,   0, 127], dtype=int8)
    """
    with np.errstate(all="ignore"):
        source = x.dtype
        if source in dtypes.COMPLEX and dtype not in dtypes.COMPLEX and dtype != dtypes.bool_:
            x = x.real
        if x.dtype in dtypes.FLOATING and dtype in dtypes.INTEGER:
            return _saturate(np.asarray(x).astype(np.float64), dtype)
        if x.dtype in dtypes.FLOATING and dtype == dtypes.bool_:
            return np.asarray(x).astype(_WIDE.get(x.dtype, x.dtype)) != 0
        if x.dtype in dtypes.INTEGER and dtype in _WIDE and dtype in dtypes.FLOATING:
            return x.astype(dtypes.f32).astype(dtype)
        if bit_width(source) == 4:  # NumPy does not know how one 4-bit dtype becomes the other
            x = x.astype(_WIDE[source])
        return x.astype(dtype)


def _saturate(x: Any, dtype: np.dtype) -> Any:
    signed = dtype in dtypes.SIGNED
    bits = bit_width(dtype) - signed
    high = (1 << bits) - 1
    low = -high - 1 if signed else 0
    inside = (x > low - 1.0) & (x < 2.0**bits)
    near = np.trunc(np.where(inside, x, 0.0)).astype(np.int64 if signed else np.uint64)
    beyond = np.where(x > 0, np.array(high).astype(near.dtype), np.array(low).astype(near.dtype))
    return np.where(inside | np.isnan(x), near, beyond).astype(dtype)


def _nextafter(a: Any, b: Any) -> Any:
    # Equal numbers give b, as in C; NumPy's f16 gives a, which matters for the sign of zero.
    return np.where(a == b, b, np.nextafter(a, b))


# --- the table --------------------------------------------------------------------------------


def _quiet(function: Meaning) -> Meaning:
    def quiet(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return quiet


_DIRECT: dict[str, Meaning] = {
    "neg": np.negative, "abs": np.abs, "sign": _sign,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "sqrt": np.sqrt, "rsqrt": _rsqrt, "cbrt": np.cbrt,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": _erf, "erfc": _erfc, "erf_inv": _erf_inv, "logistic": _logistic,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _div, "rem": _rem, "pow": _pow,
    "atan2": np.arctan2, "max": np.maximum, "min": np.minimum, "fma": _fma, "not": np.invert,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": _shl, "shr": _shr,
}  # fmt: skip
_NATIVE: dict[str, Meaning] = {
    "is_finite": np.isfinite, "popcount": _popcount, "clz": _clz,
    "nextafter": _nextafter, "copysign": np.copysign,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "select": np.where,
    "bitcast": bitcast,
}  # fmt: skip

# Operation -> its meaning. `bitcast` takes the target dtype as a second argument.
SCALAR_MEANING: dict[str, Meaning] = {
    **{name: _quiet(widened(function)) for name, function in _DIRECT.items()},
    **{name: _quiet(function) for name, function in _NATIVE.items()},
}
_UNGUARDED: dict[str, Meaning] = {
    **{name: widened(function) for name, function in _DIRECT.items()},
    **_NATIVE,
}


def apply_unguarded(name: str, args: tuple[Any, ...], dtype: np.dtype) -> Any:
    """One operation on arrays; the caller has silenced NumPy's floating-point warnings."""
    if name == "bitcast":
        return bitcast(args[0], dtype)
    return _UNGUARDED[name](*args)
