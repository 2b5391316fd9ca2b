"""The error function, its complement and its inverse in plain arithmetic, for f32 and f64.

Every range is computed and the right one selected. Sums and products that would round twice are
kept as pairs. Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py; the forms are those of llvm_math_error.py, and the
square of an argument in two parts is fdlibm's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rune.lowering.codegen import llvm_math_error as known
from rune.lowering.codegen import math_exp as e
from rune.lowering.codegen.math_values import (
    Number,
    Pair,
    at_most,
    halves,
    horner,
    pair,
    residual,
    select,
)

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
    tail = x * horner(x * x, known.ERF_SMALL_F32 if x.is_single else known.ERF_SMALL_F64)
    # From 1/4 to 1 the difference x - 1/2 is exact.
    near = select(x < 0.25, 1.0 - (x + tail), 0.5 - ((x - 0.5) + tail))
    upper = _erfc_positive(x.abs())
    far = select(x < 0.0, 2.0 - upper, upper)
    return select(x.abs() < 0.65, near, far)


def _erfc_positive(x: Number) -> Number:
    """erfc(x) = exp(-x²) g(t)/(1 + 2x) with t = (x - 4)/(x + 4), for x >= 0."""
    x = at_most(x, 10.5 if x.is_single else 28.0)
    first = x.short()
    high, low, n = e.reduce(-(first * first))
    tail = e.exp_tail(high, low + (first - x) * (first + x))
    g, g_low = _polynomial((x - 4.0) / (x + 4.0), ERFC_F32 if x.is_single else known.ERFC_F64)
    denominator = x * 2.0 + 1.0
    quotient = g / denominator
    # What rounding took from g, quotient and denominator, over g; 1/g is nearly 1.8 - 0.8 g.
    lost = residual(g, quotient, denominator) + g_low
    lost = lost - (x * 2.0 - (denominator - 1.0)) * quotient
    beside = tail + lost * (1.8 - g * 0.8) * (tail + 1.0)
    return e.scale(quotient + quotient * beside, n)


def _polynomial(x: Number, coefficients: Sequence[float]) -> Pair:
    """The polynomial and what its rounding took, where its first coefficient outweighs the rest."""
    first, first_low = halves(coefficients[0], x.dtype)
    tail = x * horner(x, coefficients[1:]) + first_low
    value = tail + first
    return value, (first - value) + tail


def erf_inv(x: Number) -> Number:
    """The inverse of erf: infinite at ±1, NaN beyond."""
    size = x.abs()
    w = _minus_log(size)
    high, low = pair(*(_inverse_f32(w) if x.is_single else _inverse_f64(w)))
    # Products of short numbers are exact.
    first = size.short()
    inside = first * high + ((size - first) * high + size * low)
    outside = select(size.equals(1.0), math.inf, x.like(math.nan))
    return select(size < 1.0, inside, outside).copysign(x)


def _minus_log(x: Number) -> Number:
    """-log(1 - x²) for 0 <= x < 1; below 1/2 with what rounding takes from 1 - x²."""
    square, is_small = x * x, x < 0.5
    difference = select(is_small, 1.0 - square, (1.0 - x) * (x + 1.0))
    residual = select(is_small, (1.0 - difference) - square, 0.0)
    return -e.log_of_sum(difference, residual)


def _inverse_f32(w: Number) -> Pair:
    """erf_inv(x)/x over w = -log(1 - x²), as a sum."""
    pieces = (
        _polynomial(w, known.INVERSE_CENTRAL_F32),
        _polynomial(w - 3.125, INVERSE_MIDDLE_F32),
        _polynomial(w.sqrt() - 3.3, INVERSE_OUTER_F32),
    )
    return _piece(w, (1.25, 6.25), pieces)


def _inverse_f64(w: Number) -> Pair:
    """erf_inv(x)/x; the polynomials are in the distance from the middle of their ranges."""
    pieces = (
        _polynomial(w - 3.125, known.INVERSE_CENTRAL_F64),
        _polynomial(w - 9.25, known.INVERSE_TAIL_F64),
        _polynomial(w - 17.125, known.INVERSE_FAR_F64),
        _polynomial(w - 29.75, known.INVERSE_LAST_F64),
    )
    return _piece(w, (6.25, 12.25, 22.0), pieces)


def _piece(w: Number, bounds: Sequence[float], pieces: Sequence[Pair]) -> Pair:
    """The pair of the interval that w lies in; `bounds` are between one and the next."""
    high, low = pieces[-1]
    for bound, piece in zip(reversed(bounds), reversed(pieces[:-1]), strict=True):
        is_below = w < bound
        high, low = select(is_below, piece[0], high), select(is_below, piece[1], low)
    return high, low
