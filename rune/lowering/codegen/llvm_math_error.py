"""The error function, its complement and its inverse as IR, for f32 and f64.

Every range is computed and the right one selected, so that lanes need no branch.
Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py. erfc(x) exp(x²) (1 + 2x) over (x - 4)/(x + 4) is nearly
a polynomial: Shepherd & Laframboise 1981, Math. Comp. 36. erf_inv over w = -log(1 - x²) and its
root: Giles 2010, GPU Computing Gems 2.
"""

from __future__ import annotations

import math

from rune.lowering.codegen import llvm_math_exp as e
from rune.lowering.codegen.llvm_text import Value, horner
from rune.lowering.scalar.errors import (
    ERF_LARGE_F32,
    ERF_SMALL_F32,
    ERF_SMALL_F64,
    ERFC_F64,
    INVERSE_CENTRAL_F32,
    INVERSE_CENTRAL_F64,
    INVERSE_FAR_F64,
    INVERSE_LAST_F64,
    INVERSE_TAIL_F64,
)

INVERSE_TAIL_F32 = (
    2.7915758114484786, -4.098175521389605, 3.7524957441364686, -1.5127898674607805,
    0.3511141216127411, -0.04328771263461023, 0.00161278512875654, 0.0001938980546961955,
    -1.7118245157114984e-05,
)  # fmt: skip


def erf(x: Value) -> Value:
    """The error function: an odd polynomial near 0, else 1 less what is left."""
    size, square = x.abs(), x * x
    if x.scalar_type == "float":
        near = horner(square, ERF_SMALL_F32).fma(size, size)
        t = e.at_most(size, 4.1)
        far = 1.0 - e.exp(-(horner(t, ERF_LARGE_F32) * t))
        return x.writer.select(size < 0.95, near, far).copysign(x)
    near = horner(square, ERF_SMALL_F64).fma(size, size)
    return x.writer.select(size < 1.0, near, 1.0 - _erfc_positive(size)).copysign(x)


def erfc(x: Value) -> Value:
    """The complement 1 - erf(x), with small results as accurate as large ones."""
    wide = x.cast("fpext", "double")
    near = 1.0 - horner(wide * wide, ERF_SMALL_F64).fma(wide, wide)
    upper = _erfc_positive(wide.abs())
    far = x.writer.select(wide < 0.0, 2.0 - upper, upper)
    return x.writer.select(wide.abs() < 0.5, near, far).cast("fptrunc", x.type)


def _erfc_positive(x: Value) -> Value:
    """erfc(x) = exp(-x²) g(t)/(1 + 2x) with t = (x - 4)/(x + 4), for x >= 0."""
    x = e.at_most(x, 28.0)
    t = (x - 4.0) / (x + 4.0)
    denominator = x.fma(2.0, x.like(1.0))
    square = x * x
    high, low, n = e.reduce(-square)
    tail = e.exp_tail(high, low - x.fma(x, -square))
    g = horner(t, ERFC_F64)
    quotient = g / denominator
    # What rounding took from denominator and quotient; 0.88 stands for 1/g, which is near enough.
    lost = (-quotient).fma(denominator, g) - (x * 2.0 - (denominator - 1.0)) * quotient
    tail = lost.fma(0.88, tail)
    return e.scale_twice(tail.fma(quotient, quotient), n)


def erf_inv(x: Value) -> Value:
    """The inverse of erf: infinite at ±1, NaN beyond."""
    wide = x.cast("fpext", "double")
    factor = _inverse_f32(wide) if x.scalar_type == "float" else _inverse_f64(wide)
    infinite = wide.like(math.inf).copysign(wide)
    result = x.writer.select(wide.abs().equals(1.0), infinite, factor * wide)
    return result.cast("fptrunc", x.type)


def _inverse_f32(x: Value) -> Value:
    """erf_inv(x)/x, good to f32."""
    w = -e.log1p(-(x * x))
    near, far = horner(w, INVERSE_CENTRAL_F32), horner(w.call("sqrt"), INVERSE_TAIL_F32)
    return x.writer.select(w < 6.25, near, far)


def _inverse_f64(x: Value) -> Value:
    """erf_inv(x)/x; the polynomials are in the distance from the middle of their ranges."""
    size, select = x.abs(), x.writer.select
    w = -e.log((1.0 - size) * (1.0 + size))
    far, last = horner(w - 17.125, INVERSE_FAR_F64), horner(w - 29.75, INVERSE_LAST_F64)
    tail = select(w < 12.25, horner(w - 9.25, INVERSE_TAIL_F64), select(w < 22.0, far, last))
    return select(w < 6.25, horner(w - 3.125, INVERSE_CENTRAL_F64), tail)
