"""Modified Bessel functions of order 0 and 1.

Near 0 they are power series, further out polynomials in 1/x times an exponential.
Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special import tables_bessel as tables
from rune.scipy.special.arguments import centred, elementwise, leading, polynomial, quotient, with_slopes

_TERMS_OF_F32 = 15  # of the series at 8 that are not far below its rounding error
_I0 = tuple(1.0 / math.factorial(k) ** 2 for k in range(34))
_I1 = tuple(0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(34))


# --- modified, first kind ---------------------------------------------------------------------


def _modified(x: Array, order: int) -> tuple[Array, Array, Array]:
    """The series of I at |x| <= 8, √|x| exp(-|x|) I beyond, and √|x|."""
    size = rnp.abs(x)
    quarter = rnp.square(rnp.minimum(size, 8.0)) * 0.25
    series = leading(_I1 if order else _I0, _TERMS_OF_F32, x)
    near = polynomial(quarter, series) * rnp.minimum(size, 8.0) if order else polynomial(quarter, series)
    t = 1.0 / rnp.maximum(size, 8.0)
    far = (tables.I0_FAR, tables.I0_FAR_AT) if order == 0 else (tables.I1_FAR, tables.I1_FAR_AT)
    return near, quotient(centred(t, far[1]), far[0]), rnp.sqrt(t)


def _scaled_i(x: Array, order: int) -> Array:
    near, far, root = _modified(x, order)
    size = rnp.abs(x)
    out = rnp.where(size <= 8.0, near * rnp.exp(-rnp.minimum(size, 8.0)), far * root)
    return rnp.where(x < 0, -out, out) if order else out


def _plain_i(x: Array, order: int) -> Array:
    near, far, root = _modified(x, order)
    size = rnp.abs(x)
    half = rnp.exp(0.5 * size)  # multiplied twice, so that it does not overflow before the result
    out = rnp.where(size <= 8.0, near, rnp.where(size == rnp.inf, size, half * (far * root) * half))
    return rnp.where(x < 0, -out, out) if order else out


def odd_over(y: Array, x: Array) -> Array:
    """y / x for an odd function y of slope 1/2 at 0."""
    is_tiny = rnp.abs(x) < 2 * rnp.finfo(x.dtype).tiny  # y may have lost the last bits of x / 2
    return rnp.where(is_tiny, 0.5, y / rnp.where(is_tiny, 1.0, x))


@elementwise
@with_slopes(lambda t, y, x: t * i1(x))
def i0(x: Array) -> Array:
    """I0(x), the modified Bessel function of order 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import i0
    >>> i0(1.0)
    Array(1.2660658, f32*[], cpu:0)
    """
    return _plain_i(x, 0)


def _i1_slope(t: Array, y: Array, x: Array) -> Array:
    # Beyond overflow it is an infinity less another.
    return t * rnp.where(rnp.isinf(y), rnp.abs(y), i0(x) - odd_over(y, x))


@elementwise
@with_slopes(_i1_slope)
def i1(x: Array) -> Array:
    """I1(x), the modified Bessel function of order 1.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import i1
    >>> i1(0.0)
    Array(0., f32*[], cpu:0)
    """
    return _plain_i(x, 1)


@elementwise
@with_slopes(lambda t, y, x: t * (i1e(x) - rnp.sign(x) * y))
def i0e(x: Array) -> Array:
    """exp(-|x|) I0(x), which does not overflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import i0e
    >>> i0e(0.0)
    Array(1., f32*[], cpu:0)
    """
    return _scaled_i(x, 0)


def _i1e_slope(t: Array, y: Array, x: Array) -> Array:
    return t * (i0e(x) - odd_over(y, x) - rnp.sign(x) * y)


@elementwise
@with_slopes(_i1e_slope)
def i1e(x: Array) -> Array:
    """exp(-|x|) I1(x), which does not overflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import i1e
    >>> i1e(0.0)
    Array(0., f32*[], cpu:0)
    """
    return _scaled_i(x, 1)


# --- modified, second kind --------------------------------------------------------------------

_HARMONIC = tuple(sum(1.0 / i for i in range(1, k + 1)) for k in range(16))
_K0 = tuple((h - rnp.euler_gamma) / math.factorial(k) ** 2 for k, h in enumerate(_HARMONIC))
_K1 = tuple(
    -0.25
    * (_HARMONIC[k] + (_HARMONIC[k + 1] if k + 1 < 16 else 0.0) - 2 * rnp.euler_gamma)
    / (math.factorial(k) * math.factorial(k + 1))
    for k in range(15)
)


def _log_of_half(x: Array) -> Array:
    """log(x / 2), even where half of a denormal number is 0."""
    is_tiny = x < 1e-30
    return rnp.log(rnp.where(is_tiny, x, 0.5 * x)) - rnp.where(is_tiny, math.log(2.0), 0.0)


def _second_modified(x: Array, order: int) -> tuple[Array, Array]:
    """K at 0 < x <= 2, and √x exp(x) K beyond. Source: DLMF 10.31.1 and 10.31.2."""
    near = rnp.clip(x, 0.0, 2.0)
    quarter = 0.25 * near * near
    log_half = _log_of_half(near)
    if order == 0:
        series = polynomial(quarter, _K0) - log_half * polynomial(quarter, _I0[:16])
    else:
        first = near * polynomial(quarter, _I1[:16])
        series = 1.0 / near + log_half * first + near * polynomial(quarter, _K1)
    table = tables.K0_FAR if order == 0 else tables.K1_FAR
    return series, quotient(1.0 / rnp.maximum(x, 2.0), table)


def _k(x: Array, order: int, is_scaled: bool) -> Array:
    series, far = _second_modified(x, order)
    root = rnp.sqrt(rnp.maximum(x, 2.0))
    if is_scaled:
        out = rnp.where(x <= 2.0, series * rnp.exp(rnp.clip(x, 0.0, 2.0)), far / root)
    else:
        out = rnp.where(x <= 2.0, series, far / root * rnp.exp(-x))
    return rnp.where(x < 0, rnp.nan, rnp.where(x == 0, rnp.inf, out))


@elementwise
@with_slopes(lambda t, y, x: -t * k1(x))
def k0(x: Array) -> Array:
    """K0(x), the modified Bessel function of the second kind; infinite at 0, NaN below.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import k0
    >>> k0(1.0)
    Array(0.4210244, f32*[], cpu:0)
    """
    return _k(x, 0, False)


def _k1_slope(t: Array, y: Array, x: Array) -> Array:
    return -t * (k0(x) + y / x)


@elementwise
@with_slopes(_k1_slope)
def k1(x: Array) -> Array:
    """K1(x); infinite at 0, NaN below.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import k1
    >>> k1(1.0)
    Array(0.60190725, f32*[], cpu:0)
    """
    return _k(x, 1, False)


@elementwise
@with_slopes(lambda t, y, x: t * (y - k1e(x)))
def k0e(x: Array) -> Array:
    """exp(x) K0(x), which does not underflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import k0e
    >>> k0e(1.0)
    Array(1.1444631, f32*[], cpu:0)
    """
    return _k(x, 0, True)


def _k1e_slope(t: Array, y: Array, x: Array) -> Array:
    return t * (y - k0e(x) - y / x)


@elementwise
@with_slopes(_k1e_slope)
def k1e(x: Array) -> Array:
    """exp(x) K1(x), which does not underflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.25.2, 10.31.1, 10.40.1 and 10.40.2.

    >>> from rune.scipy.special import k1e
    >>> k1e(1.0)
    Array(1.6361537, f32*[], cpu:0)
    """
    return _k(x, 1, True)
