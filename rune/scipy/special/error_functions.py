"""The error function and related functions, and the normal distribution.

erfcx(x) = exp(x²) erfc(x) is a polynomial for x >= 0; logarithms and ratios of tails are computed
from it, so that nothing underflows. Squares in exponents are split in two, so that exp does not
magnify their rounding.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.scipy.special import normal_of_f32
from rune.scipy.special.arguments import centred, continued, elementwise, of_lists, quotient, with_slopes
from rune.scipy.special.faddeeva import wofz_of_complex
from rune.scipy.special.tables_error import (
    DAWSN_FAR,
    DAWSN_FAR_AT,
    DAWSN_MIDDLE,
    DAWSN_MIDDLE_AT,
    DAWSN_NEAR,
    ERFC_INV_FAR,
    ERFC_INV_MID,
    ERFC_INV_MIDDLE,
    ERFC_INV_NEAR,
    ERFCX,
)

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2)


@elementwise
def erf(x: Array) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import erf
    >>> erf(0.5)
    Array(0.5204999, f32*[], cpu:0)
    """
    return ops.erf(x)


@elementwise
def erfc(x: Array) -> Array:
    """1 - erf(x), accurate where that is small.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import erfc
    >>> erfc(3.0)
    Array(2.2090497e-05, f32*[], cpu:0)
    """
    return ops.erfc(x)


@elementwise
def erfinv(x: Array) -> Array:
    """The inverse of erf: infinite at -1 and 1, NaN beyond.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to the inverse of DLMF 7.2.1, in 50 digits.

    >>> from rune.scipy.special import erfinv
    >>> erfinv(0.5)
    Array(0.47693628, f32*[], cpu:0)
    """
    return ops.erf_inv(x)


def parts_of_exp(factor: float, x: Array) -> tuple[Array, Array]:
    """Two factors of exp(factor x²), as accurate as exp: of an exact square, and of the small rest.

    factor: a power of two, or minus one.  |x| <= 40; beyond, they are those of 40.
    """
    grid = 2.0**7 if rnp.finfo(x.dtype).bits == 32 else 2.0**20
    bounded_x = rnp.clip(x, -40.0, 40.0)
    coarse = ops.stop_gradient(rnp.round(bounded_x * grid) / grid)
    fine = (bounded_x - coarse) * (bounded_x + coarse)
    return rnp.exp(factor * coarse * coarse), rnp.exp(factor * fine)


def exp_of_square(factor: float, x: Array) -> Array:
    """exp(factor x²)."""
    first, second = parts_of_exp(factor, x)
    return rnp.where(rnp.abs(x) > 40.0, rnp.exp(factor * x * x), first * second)


@continued(lambda z: wofz_of_complex(1j * z))
@with_slopes(lambda t, y, x: t * (2.0 * x * y - 2.0 / _ROOT_PI))
def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x), which does not underflow.

    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import erfcx
    >>> erfcx(100.0)
    Array(0.00564161, f32*[], cpu:0)
    """
    size = rnp.abs(x)
    near = rnp.minimum(size, 1e30)  # beyond, the quotient is 1
    q = (near - 4.0) / (near + 4.0)
    above = quotient(q, ERFCX) / (1.0 + 2.0 * size)
    return rnp.where(x < 0, 2.0 * exp_of_square(1.0, x) - above, above)


# --- inverses ---------------------------------------------------------------------------------


def erfc_inv_of_small(log_y: Array) -> Array:
    """The inverse of erfc at exp(log_y), for log_y <= -0.69."""
    s = rnp.sqrt(-rnp.where(log_y == -rnp.inf, -1.0, log_y))
    near = quotient(centred(rnp.clip(s, 0.8, 1.4), (1.1, 0.3)), ERFC_INV_NEAR)
    mid = quotient(centred(rnp.clip(s, 1.4, 3.0), (2.2, 0.8)), ERFC_INV_MID)
    inverse = 1.0 / rnp.maximum(s, 3.0)
    middle = quotient(rnp.maximum(inverse, 1 / 8.5), ERFC_INV_MIDDLE)
    far = quotient(inverse, ERFC_INV_FAR)
    low = rnp.where(s <= 1.4, near, rnp.where(s <= 3.0, mid, middle))
    return rnp.where(log_y == -rnp.inf, rnp.inf, s * rnp.where(s <= 8.5, low, far))


@elementwise
@with_slopes(lambda t, x, y: -0.5 * _ROOT_PI * t * exp_of_square(1.0, x))
def erfcinv(y: Array) -> Array:
    """The inverse of erfc: infinite at 0 and 2, NaN beyond.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to the inverse of DLMF 7.2.1, in 50 digits.

    >>> from rune.scipy.special import erfcinv
    >>> erfcinv(1.0)
    Array(0., f32*[], cpu:0)
    """
    small = rnp.minimum(y, 2.0 - y)
    is_tail = small < 0.5
    tail = erfc_inv_of_small(rnp.log(rnp.where(is_tail, rnp.maximum(small, 0.0), 0.5)))
    out = rnp.where(is_tail, rnp.where(y < 1.0, tail, -tail), ops.erf_inv(1.0 - y))
    return rnp.where((y < 0) | (y > 2), rnp.nan, out)


# --- the normal distribution ------------------------------------------------------------------


@of_lists
@elementwise
def ndtr(x: Array) -> Array:
    """Φ(x), the normal distribution function.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import ndtr
    >>> ndtr(0.0)
    Array(0.5, f32*[], cpu:0)
    """
    return normal_cdf(x)


@with_slopes(lambda t, y, x: t * normal_pdf(x))
def normal_cdf(x: Array) -> Array:
    """Φ(x) of a floating array."""
    if x.dtype == dtypes.f32:
        return normal_of_f32.cdf(x)
    u = x * (1 / _ROOT_2)
    # erfc would magnify the rounding of x / √2 in the tail.
    tail = 0.5 * erfcx(rnp.abs(u)) * exp_of_square(-0.5, x)
    middle = 0.5 * ops.erfc(-u)
    return rnp.where(x < -1.0, tail, middle)


def normal_pdf(x: Array) -> Array:
    """exp(-x²/2) / √(2π)."""
    return exp_of_square(-0.5, x) * (1 / math.sqrt(2 * math.pi))


@with_slopes(lambda t, y, x: t * math.sqrt(2 / math.pi) / erfcx(x * (-1 / _ROOT_2)))
def log_normal_cdf(x: Array) -> Array:
    """log Φ(x) of a floating array."""
    if x.dtype == dtypes.f32:
        return normal_of_f32.log_cdf(x)
    low = rnp.minimum(x, -1.0)
    below = rnp.log(0.5 * erfcx(-low * (1 / _ROOT_2))) - 0.5 * low * low
    below = rnp.where(low == -rnp.inf, -rnp.inf, below)
    above = rnp.log1p(-normal_cdf(-rnp.maximum(x, -1.0)))
    return rnp.where(x < -1.0, below, above)


@of_lists
@elementwise
def log_ndtr(x: Array) -> Array:
    """log Φ(x), even where Φ underflows.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import log_ndtr
    >>> log_ndtr(-100.0)
    Array(-5005.5244, f32*[], cpu:0)
    """
    return log_normal_cdf(x)


@with_slopes(lambda t, x, p: t / normal_pdf(x))
def normal_ppf(p: Array) -> Array:
    """The inverse of Φ, of a floating array."""
    if p.dtype == dtypes.f32:
        return normal_of_f32.ppf(p)
    small = rnp.minimum(p, 1.0 - p)
    is_tail = small < 0.25
    tail = erfc_inv_of_small(rnp.log(2.0 * rnp.where(is_tail, rnp.maximum(small, 0.0), 0.25)))
    out = rnp.where(is_tail, rnp.where(p < 0.5, -tail, tail), ops.erf_inv(2.0 * (p - 0.5)))
    return rnp.where((p < 0) | (p > 1), rnp.nan, _ROOT_2 * out)


@elementwise
def ndtri(p: Array) -> Array:
    """The inverse of Φ: infinite at 0 and 1, NaN beyond.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to the inverse of DLMF 7.2.1, in 50 digits.

    >>> from rune.scipy.special import ndtri
    >>> ndtri(0.975)
    Array(1.9599643, f32*[], cpu:0)
    """
    return normal_ppf(p)


@elementwise
@with_slopes(lambda t, x, y: t * math.sqrt(math.pi / 2) * erfcx(-x * (1 / _ROOT_2)))
def ndtri_exp(y: Array) -> Array:
    """The inverse of log Φ.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to the inverse of DLMF 7.2.1, in 50 digits.

    >>> from rune.scipy.special import ndtri_exp
    >>> ndtri_exp(-100.0)
    Array(-13.888476, f32*[], cpu:0)
    """
    is_low = y < math.log(0.25)
    tail = -_ROOT_2 * erfc_inv_of_small(math.log(2) + rnp.where(is_low, y, -2.0))
    # The table ends at the smallest f64. Beyond, one step of Newton's is exact: √(-2 log Φ(x)) is
    # almost a straight line there.
    is_far = (y < -700.0) & (y > -1e30) & (tail > -rnp.inf)
    at = rnp.where(is_far, tail, -1.0)
    root = rnp.sqrt(-2.0 * log_normal_cdf(at))
    apart = root - rnp.sqrt(-2.0 * rnp.where(is_far, y, -2.0))
    step = apart * root * erfcx(-at * (1 / _ROOT_2)) * math.sqrt(math.pi / 2)
    tail = rnp.where(is_far, at + step, tail)
    tail = rnp.where(y <= -1e30, -_ROOT_2 * rnp.sqrt(rnp.maximum(-y, 1.0)), tail)  # to rounding
    return rnp.where(is_low, tail, -normal_ppf(-rnp.expm1(rnp.where(is_low, -1.0, y))))


# --- Dawson's function ------------------------------------------------------------------------


def _dawsn_slope(x: Array, y: Array) -> Array:
    """1 - 2xD(x); for large x, where the difference cancels, by the series in 1/(2x²)."""
    is_far = rnp.abs(x) > float(rnp.finfo(x.dtype).eps) ** -0.2
    inverse = 1.0 / rnp.where(is_far, x, 1.0)
    s = 0.5 * inverse * inverse
    near = 1.0 - 2.0 * rnp.where(is_far, 0.0, x) * y
    return rnp.where(is_far, -s * (1.0 + s * (3.0 + 15.0 * s)), near)


@elementwise
@with_slopes(lambda t, y, x: t * _dawsn_slope(x, y))
def dawsn(x: Array) -> Array:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import dawsn
    >>> dawsn(1.0)
    Array(0.5380795, f32*[], cpu:0)
    """
    size = rnp.abs(x)
    near = size * quotient(rnp.minimum(size, 3.0) ** 2, DAWSN_NEAR)
    t = 1.0 / rnp.maximum(size, 3.0)
    square = t * t
    middle = quotient(centred(rnp.maximum(square, 1 / 36), DAWSN_MIDDLE_AT), DAWSN_MIDDLE)
    far = quotient(centred(rnp.minimum(square, 1 / 36), DAWSN_FAR_AT), DAWSN_FAR)
    out = rnp.where(size <= 3, near, t * rnp.where(size <= 6, middle, far))
    return rnp.where(x < 0, -out, out)


@elementwise
def erfi(x: Array) -> Array:
    """-i erf(ix), 2/√π times the integral of exp(t²) from 0 to x.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of polynomials fitted to DLMF 7.2, in 50 digits.

    >>> from rune.scipy.special import erfi
    >>> erfi(1.0)
    Array(1.6504257, f32*[], cpu:0)
    """
    first, second = parts_of_exp(0.5, x)
    # Each half is multiplied by Dawson's integral, so that neither overflows before the result.
    value = first * (2 / _ROOT_PI * dawsn(x) * second * second * first)
    return rnp.where(rnp.abs(x) > 40.0, rnp.sign(x) * rnp.inf, value)
