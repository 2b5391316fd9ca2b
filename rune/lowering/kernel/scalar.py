"""The meaning of every scalar operation of kernel code: that of the primitive which lowers to it.

`SCALAR_MEANING[name]` works on arrays and scalars of the operation's own dtype, never raises and
never warns: it is what all renderers must agree with, and the heart of the kernel interpreter.
rune/ops defines each operation once; this module defines only those that no primitive has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.lower import Scalar
from rune.ops import PRIMITIVES, scalars
from rune.ops.scalars import bit_width

Meaning = Callable[..., Any]


def unsigned_of(dtype: np.dtype) -> np.dtype:
    """The NumPy unsigned integer that has the storage size of `dtype`."""
    return np.dtype(f"u{dtype.itemsize}")


# --- what no primitive has --------------------------------------------------------------------


def _exact_fma(a: float, b: float, c: float) -> float:
    plain = a * b + c
    # A Fraction cannot hold infinity or NaN.
    if not (math.isfinite(a) and math.isfinite(b)):
        return plain
    if not math.isfinite(c):
        return c  # the exact product is finite, even if a * b overflows
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    # A Fraction has no signed zero; here plain arithmetic gives the sign that IEEE 754 asks for.
    if exact == 0:
        return plain
    try:
        # Python's division of integers rounds once, to nearest.
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@scalars.widened
def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    if a.dtype != dtypes.f32:
        # There is no wider float than f64, so the elements are computed one by one in integers.
        exact = np.frompyfunc(_exact_fma, 3, 1)
        return np.asarray(exact(*np.broadcast_arrays(a, b, c))).astype(np.float64)
    # The product is exact in f64; the sum is rounded to odd there, so that rounding it to f32
    # equals one rounding (Boldo & Melquiond 2008).
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c).astype(np.float64)
    total = np.asarray(product + addend)
    # TwoSum (Knuth): `error` is exactly what the addition rounded off.
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + step, bits).view(np.float64).astype(np.float32)


def bitcast(x: np.ndarray, dtype: np.dtype) -> Any:
    """The bits of `x` read as `dtype` of the same size."""
    return np.asarray(x).view(dtype)


# --- the table --------------------------------------------------------------------------------


def _quiet(function: Meaning) -> Meaning:
    def quiet(*args: np.ndarray) -> Any:
        # Overflow and NaN are valid results, and warnings are errors in the tests.
        with np.errstate(all="ignore"):
            return function(*args)

    return quiet


_UNGUARDED: dict[str, Meaning] = {
    **{p.lower.op: p.reference for p in PRIMITIVES if isinstance(p.lower, Scalar) and p.reference},
    "fma": _fma,
    "bitcast": bitcast,
}
# Operation -> its meaning. `bitcast` takes the target dtype as a second argument.
SCALAR_MEANING: dict[str, Meaning] = {name: _quiet(f) for name, f in _UNGUARDED.items()}
convert_unguarded = scalars.convert
convert = _quiet(convert_unguarded)


def apply_unguarded(name: str, args: tuple[np.ndarray, ...], dtype: np.dtype) -> Any:
    """One operation on arrays; the caller has silenced NumPy's floating-point warnings."""
    if name == "bitcast":
        return bitcast(args[0], dtype)
    return _UNGUARDED[name](*args)


__all__ = ["SCALAR_MEANING", "apply_unguarded", "bit_width", "bitcast", "convert", "convert_unguarded", "unsigned_of"]
