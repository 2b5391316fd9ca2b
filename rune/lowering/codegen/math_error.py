"""The error function, its complement and its inverse in plain arithmetic, for f32 and f64.

Every range is computed and the right one selected. Error: erf 2 ulp, erfc and erf_inv 3 (tests
measure it).

Source: coefficients by tools/minimax.py; the forms are those of llvm_math_error.py, and the
square of an argument in two parts is fdlibm's.
"""

from __future__ import annotations

import math

from rune.lowering.codegen import llvm_math_error as known
from rune.lowering.codegen import math_exp as e
from rune.lowering.codegen.math_values import Number, at_most, horner, residual, select

ERFC_F32 = (
    1.232995117234906, -0.13962105861927548, 0.015379877206013146, 0.06809415937557037,
    -0.10104593448416894, 0.0937708196418598, -0.06624941818303993, 0.03699069522321719,
    -0.016605616755817683, 0.005251217234365989,
)  # fmt: skip
INVERSE_MIDDLE_F32 = (
    1.6536545691355098, 0.2401581803248365, -0.0060337171572722, -0.0007406966368379542,
    0.000186787986429903, -1.3888015292740539e-05, -1.388359939247556e-06, 4.258263018163481e-07,
    -2.4651389510009114e-08, -4.616185714690347e-09, 6.566036331674995e-10,
)  # fmt: skip
INVERSE_OUTER_F32 = (
    3.1341615248364407, 1.0057691353631342, 0.004844174116487726, -0.0032932447514376563,
    0.002096077369321751, -0.0014173264636219128, 0.0008647237199948981, -0.00035155205223882534,
    -1.1328529544797576e-05, 6.517808576162835e-05,
)  # fmt: skip


def erf(x: Number) -> Number:
    """The error function: an odd polynomial near 0, else 1 less what is left."""
    size, square = x.abs(), x * x
    if x.is_single:
        near = size + size * horner(square, known.ERF_SMALL_F32)
        t = at_most(size, 4.1)
        far = 1.0 - e.exp(-(horner(t, known.ERF_LARGE_F32) * t))
        return select(size < 0.95, near, far).copysign(x)
    near = size + size * horner(square, known.ERF_SMALL_F64)
    return select(size < 1.0, near, 1.0 - _erfc_positive(size)).copysign(x)


def erfc(x: Number) -> Number:
    """The complement 1 - erf(x), with small results as accurate as large ones."""
    coefficients = known.ERF_SMALL_F32 if x.is_single else known.ERF_SMALL_F64
    near = 1.0 - (x + x * horner(x * x, coefficients))
    upper = _erfc_positive(x.abs())
    far = select(x < 0.0, 2.0 - upper, upper)
    return select(x.abs() < 0.65, near, far)


def _erfc_positive(x: Number) -> Number:
    """erfc(x) = exp(-x²) g(t)/(1 + 2x) with t = (x - 4)/(x + 4), for x >= 0."""
    x = at_most(x, 10.5 if x.is_single else 28.0)
    t = (x - 4.0) / (x + 4.0)
    first = x.short()
    high, low, n = e.reduce(-(first * first))
    tail = e.exp_tail(high, low + (first - x) * (first + x))
    g = horner(t, ERFC_F32 if x.is_single else known.ERFC_F64)
    denominator = x * 2.0 + 1.0
    quotient = g / denominator
    # What rounding took from denominator and quotient; 0.88 stands for 1/g, which is near enough.
    lost = residual(g, quotient, denominator) - (x * 2.0 - (denominator - 1.0)) * quotient
    return e.scale(quotient + quotient * (tail + lost * 0.88), n)


def erf_inv(x: Number) -> Number:
    """The inverse of erf: infinite at ±1, NaN beyond."""
    size = x.abs()
    w = -e.log_of_positive((1.0 - size) * (size + 1.0))
    factor = _inverse_f32(w) if x.is_single else _inverse_f64(w)
    outside = select(size.equals(1.0), math.inf, x.like(math.nan))
    return select(size < 1.0, size * factor, outside).copysign(x)


def _inverse_f32(w: Number) -> Number:
    """erf_inv(x)/x over w = -log(1 - x²)."""
    outer = horner(w.sqrt() - 3.3, INVERSE_OUTER_F32)
    return select(w < 6.25, horner(w - 3.125, INVERSE_MIDDLE_F32), outer)


def _inverse_f64(w: Number) -> Number:
    """erf_inv(x)/x; the polynomials are in the distance from the middle of their ranges."""
    far, last = horner(w - 17.125, known.INVERSE_FAR_F64), horner(w - 29.75, known.INVERSE_LAST_F64)
    outer = select(w < 22.0, far, last)
    tail = select(w < 12.25, horner(w - 9.25, known.INVERSE_TAIL_F64), outer)
    return select(w < 6.25, horner(w - 3.125, known.INVERSE_CENTRAL_F64), tail)
