"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm.

Near 0 they are power series; for larger x, polynomials in 1/x times their decay or oscillation.
Derivatives are the integrands.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special import tables_integrals as tables
from rune.scipy.special.arguments import centred, elementwise, leading, of_lists, polynomial, quotient, with_slopes
from rune.scipy.special.gammas import digamma, gamma_function
from rune.scipy.special.loops import Limit, State
from rune.transforms.custom.jvp import custom_jvp

_EIN = tuple((-1.0) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(20))
_EI = tuple(1.0 / ((k + 1) * math.factorial(k + 1)) for k in range(36))
_EI_TERMS_OF_F32 = 24  # that are not far below the rounding error at 6


# --- exponential integrals --------------------------------------------------------------------


def _e1_scaled(x: Array) -> Array:
    """x exp(x) E1(x) for x >= 1."""
    t = 1.0 / x
    near = quotient(rnp.maximum(t, 0.25), tables.E1_NEAR)
    return rnp.where(t > 0.25, near, quotient(rnp.minimum(t, 0.25), tables.E1_FAR))


@elementwise
@with_slopes(lambda t, y, x: -t * rnp.exp(-x) / x)
def exp1(x: Array) -> Array:
    """E1(x), the integral of exp(-t) / t from x on; infinite at 0, NaN below (it is complex there).

    Source: DLMF 6.2.1 and 6.6.2.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import exp1
    >>> exp1(1.0)
    Array(0.21938396, f32*[], cpu:0)
    """
    is_near = x <= 1.0
    near = rnp.where(is_near, x, 1.0)
    series = near * polynomial(near, _EIN) - rnp.euler_gamma - rnp.log(near)
    far_x = rnp.where(is_near, 1.0, x)
    far = rnp.where(far_x == rnp.inf, 0.0, rnp.exp(-far_x) * _e1_scaled(far_x) / far_x)
    out = rnp.where(is_near, series, far)
    return rnp.where(x < 0, rnp.nan, out)


def _ei_scaled(x: Array) -> Array:
    """x exp(-x) Ei(x) for x >= 6."""
    t = 1.0 / x
    pieces = [quotient(rnp.clip(t, 0.1, 1 / 6), tables.EI_6)]
    for low, high, table, at in (
        (0.05, 0.1, tables.EI_10, tables.EI_10_AT),
        (0.025, 0.05, tables.EI_20, tables.EI_20_AT),
        (0.0, 0.025, tables.EI_40, tables.EI_40_AT),
    ):
        pieces.append(quotient(centred(rnp.clip(t, low, high), at), table))
    out = rnp.where(x <= 40.0, pieces[2], pieces[3])
    return rnp.where(x <= 10.0, pieces[0], rnp.where(x <= 20.0, pieces[1], out))


@elementwise
@with_slopes(lambda t, y, x: t * rnp.exp(x) / x)
def expi(x: Array) -> Array:
    """Ei(x), the principal value of the integral of exp(t) / t up to x.

    Types: relative to the result, except near its zero 0.3725.
    Source: DLMF 6.2.5 and 6.6.1.
    Shapes: any, unchanged.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import expi
    >>> expi(1.0)
    Array(1.8951178, f32*[], cpu:0)
    """
    is_positive, size = x > 0, rnp.abs(x)
    near = rnp.where(is_positive & (x < 6.0), x, 1.0)
    series = near * polynomial(near, leading(_EI, _EI_TERMS_OF_F32, x)) + rnp.euler_gamma + rnp.log(near)
    far = rnp.maximum(rnp.where(is_positive, x, 6.0), 6.0)
    half = rnp.exp(0.5 * far)
    above = rnp.where(far == rnp.inf, rnp.inf, half * (_ei_scaled(far) / far) * half)
    below = -exp1(rnp.where(is_positive, 1.0, size))
    out = rnp.where(is_positive, rnp.where(x < 6.0, series, above), below)
    return rnp.where(rnp.isnan(x), rnp.nan, out)


def _en_start(n: Array, x: Array) -> State:
    first = 1.0 / (x + n)
    return State((first,), (rnp.full_like(x, 1e30), first))


def _en_step(k: Array, s: State, n: Array, x: Array) -> State:
    above, below = -k * (n - 1.0 + k), x + n + 2.0 * k
    d = 1.0 / (above * s.others[1] + below)
    c = below + above / s.others[0]
    return State((s.watched[0] * c * d,), (c, d))


_en_fraction = Limit(_en_start, _en_step)  # exp(x) En(x). Source: DLMF 8.19.17


def _en_series(n: Array, x: Array) -> Array:
    """En(x) for integer n >= 1 and 0 < x <= 1. Source: DLMF 8.19.8."""
    total, power = 0.0, rnp.ones_like(x)
    for k in range(22):
        gap = k - n + 1.0
        total = total + rnp.where(gap == 0, 0.0, power / rnp.where(gap == 0, 1.0, gap))
        power = power * (-x / (k + 1.0))
    # (-x)^(n-1) / (n-1)!, whose sign needs an integer n; for large n it is 0.
    sign = rnp.where(rnp.remainder(n, 2.0) == 1, 1.0, -1.0)
    last = sign * rnp.power(x, n - 1.0) / gamma_function(n)
    return last * (digamma(n) - rnp.log(x)) - total


def _expn_slope(t: Array, y: Array, n: Array, x: Array) -> Array:
    """-E(n-1), which is exp(-x) (1 + 1/x) / x for n = 0."""
    inverse = 1.0 / x
    below = rnp.exp(-x) * inverse * (1.0 + inverse)
    return -t * rnp.where(n == 0, below, expn(rnp.where(n == 0, 1.0, n) - 1.0, x))


@of_lists
@elementwise
@with_slopes(None, _expn_slope)
def expn(n: Array, x: Array) -> Array:
    """En(x), the integral of exp(-x t) / t**n over t >= 1, for integer n >= 0 and x >= 0.

    Not differentiable in n. Errors: NaN for other n, and for negative x.
    Shapes: broadcast together. Types: bools and integers become floats.
    Source: DLMF 8.19.8 and 8.19.17.

    >>> from rune.scipy.special import expn
    >>> expn(2.0, 0.0)
    Array(1., f32[], cpu:0)
    """
    is_near, is_far = (x > 0) & (x <= 1) & (n >= 1), (x > 1) & (n >= 1)
    near = _en_series(rnp.where(is_near, n, 1.0), rnp.where(is_near, x, 1.0))
    far = rnp.where(is_far, x, 2.0)
    fraction = _en_fraction(rnp.where(is_far, n, 1.0), rnp.where(far == rnp.inf, 2.0, far))
    fraction = rnp.where(far == rnp.inf, 0.0, fraction * rnp.exp(-far))
    at_zero = rnp.where(n > 1, 1.0 / (rnp.where(n > 1, n, 2.0) - 1.0), rnp.inf)
    order_zero = rnp.exp(-x) / x
    out = rnp.where(is_near, near, rnp.where(is_far, fraction, at_zero))
    out = rnp.where(n == 0, order_zero, out)
    return rnp.where((x < 0) | (n < 0) | (n != rnp.round(n)) | rnp.isnan(x), rnp.nan, out)


# --- sine and cosine integrals ----------------------------------------------------------------

_SI = tuple((-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(16))
_CI = tuple((-1.0) ** (k + 1) / ((2 * k + 2) * math.factorial(2 * k + 2)) for k in range(16))


def _sici_far(x: Array) -> tuple[Array, Array]:
    """Si and Ci for x >= 4, by their auxiliary functions. Source: DLMF 6.2.19 and 6.2.20."""
    inverse = 1.0 / x
    t = inverse * inverse
    near, far, is_near = rnp.maximum(t, 1 / 64), rnp.minimum(t, 1 / 64), t > 1 / 64
    f = inverse * rnp.where(is_near, quotient(near, tables.SICI_F_NEAR), quotient(far, tables.SICI_F_FAR))
    g = t * rnp.where(is_near, quotient(near, tables.SICI_G_NEAR), quotient(far, tables.SICI_G_FAR))
    angle = rnp.where(x == rnp.inf, 0.0, x)
    sine, cosine = rnp.sin(angle), rnp.cos(angle)
    return math.pi / 2 - f * cosine - g * sine, f * sine - g * cosine


@custom_jvp
def _sici(x: Array) -> tuple[Array, Array]:
    size = rnp.abs(x)
    near = rnp.minimum(size, 4.0)
    square = near * near
    far = _sici_far(rnp.maximum(size, 4.0))
    sine = rnp.where(size <= 4.0, near * polynomial(square, _SI), far[0])
    cosine = square * polynomial(square, _CI) + rnp.euler_gamma + rnp.log(near)
    cosine = rnp.where(size <= 4.0, cosine, far[1])
    cosine = rnp.where(x == -rnp.inf, rnp.nan, cosine)
    return rnp.copysign(sine, x), cosine


@_sici.defjvp
def _sici_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (x,), (t,) = primals, tangents
    is_zero = x == 0
    sinc = rnp.where(is_zero, 1.0, rnp.sin(x) / rnp.where(is_zero, 1.0, x))
    return _sici(x), (t * sinc, t * rnp.cos(x) / x)


@elementwise
def sici(x: Array) -> tuple[Array, Array]:
    """Si(x) and Ci(x); below 0, where Ci is complex, its real part, which is Ci(-x).

    Shapes: any, unchanged in both. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 6.2.19 and 6.2.20.

    >>> from rune.scipy.special import sici
    >>> sici(0.0)[0]
    Array(0., f32*[], cpu:0)
    """
    return _sici(x)


# --- Fresnel's integrals ----------------------------------------------------------------------


def _fresnel_terms(first: int) -> tuple[float, ...]:
    """Coefficients of the series of S (first = 1) or C (0) in x**4."""
    half = math.pi / 2
    below = [math.factorial(2 * k + first) * (4 * k + 1 + 2 * first) for k in range(16)]
    return tuple((-1.0) ** k * half ** (2 * k + first) / b for k, b in enumerate(below))


_FRESNEL_S, _FRESNEL_C = _fresnel_terms(1), _fresnel_terms(0)


def _half_turns(x: Array) -> tuple[Array, Array]:
    """sin and cos of πx²/2, the square taken in two parts. Source: Dekker 1971, section 5."""
    is_single = rnp.finfo(x.dtype).bits == 32
    # For large x every number is a multiple of 4, and its square overflows.
    is_even = (rnp.abs(x) >= (2.0**25 if is_single else 2.0**54)) & (rnp.abs(x) < rnp.inf)
    x = rnp.where(is_even, 0.0, x)
    spread = x * (2.0**12 + 1.0 if is_single else 2.0**27 + 1.0)
    coarse = spread - (spread - x)
    fine = (x - coarse) * (x + coarse)
    turns = rnp.remainder(coarse * coarse, 4.0) + rnp.remainder(fine, 4.0)
    angle = 0.5 * math.pi * turns
    return rnp.sin(angle), rnp.cos(angle)


def _fresnel_far(x: Array) -> tuple[Array, Array]:
    """S and C for x >= 1.6. Source: DLMF 7.5.3 and 7.5.4."""
    inverse = 1.0 / x
    square = inverse * inverse
    t = square * square
    edge = 1 / 2.2**4
    near, far, is_near = rnp.maximum(t, edge), rnp.minimum(t, edge), t > edge
    f = quotient(near, tables.FRESNEL_F_NEAR), quotient(far, tables.FRESNEL_F_FAR)
    g = quotient(near, tables.FRESNEL_G_NEAR), quotient(far, tables.FRESNEL_G_FAR)
    f = rnp.where(is_near, *f) * inverse * (1 / math.pi)
    g = rnp.where(is_near, *g) * inverse * square * (1 / math.pi**2)
    sine, cosine = _half_turns(rnp.where(x == rnp.inf, 0.0, x))
    return 0.5 - f * cosine - g * sine, 0.5 + f * sine - g * cosine


@custom_jvp
def _fresnel(x: Array) -> tuple[Array, Array]:
    size = rnp.abs(x)
    near = rnp.minimum(size, 1.6)
    square = near * near
    t = square * square
    series = near * square * polynomial(t, _FRESNEL_S), near * polynomial(t, _FRESNEL_C)
    far = _fresnel_far(rnp.maximum(size, 1.6))
    parts = (rnp.where(size <= 1.6, a, b) for a, b in zip(series, far))
    sine, cosine = (rnp.where(rnp.isnan(x), x, rnp.copysign(v, x)) for v in parts)
    return sine, cosine


@_fresnel.defjvp
def _fresnel_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (x,), (t,) = primals, tangents
    sine, cosine = _half_turns(x)
    return _fresnel(x), (t * sine, t * cosine)


@elementwise
def fresnel(x: Array) -> tuple[Array, Array]:
    """S(x) and C(x), the integrals of sin(πt²/2) and cos(πt²/2) from 0 to x.

    Shapes: any, unchanged in both. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 7.5.3 and 7.5.4.

    >>> from rune.scipy.special import fresnel
    >>> fresnel(0.5)[1]
    Array(0.49234423, f32*[], cpu:0)
    """
    return _fresnel(x)


# --- the dilogarithm --------------------------------------------------------------------------


def _spence_slope(t: Array, y: Array, x: Array) -> Array:
    w = x - 1.0
    is_near = rnp.abs(w) < 1e-4
    series = -1.0 + w * (0.5 - w * (1 / 3 - w * 0.25))
    safe = rnp.where(is_near, 1.0, w)
    return t * rnp.where(is_near, series, -rnp.log(x) / safe)


@of_lists
@elementwise
@with_slopes(_spence_slope)
def spence(x: Array) -> Array:
    """The dilogarithm of 1 - x: minus the integral of log(t) / (t - 1) from 1 to x; NaN below 0.

    Source: DLMF 25.12.3, 25.12.4 and 25.12.6.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import spence
    >>> spence(0.0)
    Array(1.644934, f32*[], cpu:0)
    """
    is_far = x > 1.5
    y = rnp.where(is_far, 1.0 / rnp.where(is_far, x, 1.0), x)  # spence(x) from spence(1/x)
    is_low = y < 0.5
    w = rnp.where(is_low, -y, y - 1.0)
    inner = -w * quotient(w, tables.SPENCE)
    log_x = rnp.log(rnp.where(x > 0, x, 1.0))
    log_y = rnp.where(is_far, -log_x, log_x)
    # spence(y) = π²/6 - log(y) log(1 - y) - spence(1 - y)
    reflection = math.pi**2 / 6 - log_y * rnp.log1p(-rnp.where(is_low, y, 0.0)) - inner
    value = rnp.where(is_low, reflection, inner)
    value = rnp.where(is_far, -0.5 * log_x * log_x - value, value)
    value = rnp.where(x == 0, math.pi**2 / 6, rnp.where(x == rnp.inf, -rnp.inf, value))
    return rnp.where(x >= 0, value, rnp.nan)
