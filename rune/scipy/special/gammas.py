"""The gamma function, its logarithm and functions built on them.

Below 8, Γ(x) is Γ(x + 8) over a product of eight factors; from 8 on it is Stirling's series, whose
power x**(x - 1/2) is computed from x itself, so that no digits are lost in an exponent. Its
logarithm is a quotient of polynomials around 1 and 2, where it is zero. Negative numbers are
reflected.
"""

from __future__ import annotations

import math
from functools import partial

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special.arguments import continued, elementwise, polynomial, quotient, undefined, with_slopes
from rune.scipy.special.complex_gammas import digamma_of_complex, gamma_of_complex, log_gamma_of_complex
from rune.scipy.special.stirling import HALF_LOG_2PI, SHIFT, digamma_series, stirling_series
from rune.scipy.special.tables_gamma import LGAMMA, LGAMMA_TWO, PSI, PSI_BELOW_ZERO, PSI_ROOT, PSI_ROOT_BELOW_ZERO
from rune.typing import ArrayLike


def sine_of_pi(x: Array) -> Array:
    """sin(πx), exact at whole and half numbers."""
    nearest = rnp.round(x)
    sign = rnp.where(rnp.remainder(nearest, 2.0) == 0, 1.0, -1.0)
    return sign * rnp.sin(math.pi * (x - nearest))


def _rising_eight(x: Array) -> Array:
    """x (x + 1) … (x + 7), the factors in pairs with equal sums."""
    t = x * (x + 7.0)
    return t * (t + 6.0) * ((t + 10.0) * (t + 12.0))


def gamma_of_positive(x: Array) -> Array:
    """Γ(x) for x > 0."""
    is_low = x < SHIFT
    overflows = 36.0 if rnp.finfo(x.dtype).bits == 32 else 172.0
    y = rnp.minimum(rnp.where(is_low, x + float(SHIFT), x), overflows)
    # The rounding error of the sum, times the logarithmic derivative there.
    correction = rnp.where(is_low, x - (y - float(SHIFT)), 0.0) * (rnp.log(y) - 0.5 / y)
    # The power is computed in two halves, so that it does not overflow before the exponential.
    half = rnp.power(y, 0.5 * y - 0.25)
    at_shift = half * rnp.exp(-y) * half * math.sqrt(2 * math.pi) * rnp.exp(stirling_series(y) + correction)
    return at_shift / rnp.where(is_low, _rising_eight(rnp.where(is_low, x, 1.0)), 1.0)


@with_slopes(lambda t, y, x: t * y * digamma(x))
def gamma_function(x: Array) -> Array:
    size = rnp.abs(x)
    positive = gamma_of_positive(rnp.where(size == 0.0, 1.0, size))
    reflection = -math.pi / (x * sine_of_pi(x) * positive)
    is_pole = (x < 0) & (x == rnp.floor(x))
    # Far below 0, between the poles, the function is 0.
    below = rnp.where(positive == rnp.inf, 0.0 * x, reflection)
    out = rnp.where(x > 0, positive, rnp.where(is_pole, rnp.nan, below))
    out = rnp.where(size < 1e-20, 1.0 / x, out)  # there -1.0 / (x sin(πx) Γ(|x|)) is 0 times inf
    is_factorial = (x == rnp.floor(x)) & (x > 0) & (out * float(rnp.finfo(x.dtype).eps) < 0.5)
    return rnp.where(is_factorial, rnp.round(out), out)


@continued(gamma_of_complex)
def gamma(x: Array) -> Array:
    """Γ(x), the integral of t**(x - 1) exp(-t) over t > 0, continued to negative x.

    NaN at the negative integers, infinite at 0; of complex numbers NaN at 0 as well.
    Source: DLMF 5.5.3 and 5.11.3.
    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.scipy.special import gamma
    >>> gamma(5.0)
    Array(24., f32*[], cpu:0)
    """
    return gamma_function(x)


# --- the logarithm ----------------------------------------------------------------------------


def log_gamma_near_one(u: Array) -> Array:
    """log Γ(1 + u) for |u| <= 1/2, accurate near 0."""
    return u * quotient(u, LGAMMA)


@with_slopes(lambda t, y, x: t * digamma(x))
def log_gamma_of_positive(x: Array) -> Array:
    """log Γ(x) for x > 0."""
    is_first, is_third = x < 0.5, x > 1.5
    u = x - rnp.where(is_first, 0.0, rnp.where(is_third, 2.0, 1.0))
    inside = rnp.where(x <= 2.5, u, 0.0)
    near = inside * rnp.where(is_third, quotient(inside, LGAMMA_TWO), quotient(inside, LGAMMA))
    near = near - rnp.log(rnp.where(is_first, x, 1.0))
    middle = rnp.log(gamma_of_positive(rnp.clip(x, 1.0, float(SHIFT))))
    far = rnp.maximum(x, float(SHIFT))
    high = (far - 0.5) * (rnp.log(far) - 1.0) - 0.5 + HALF_LOG_2PI + stirling_series(far)
    high = rnp.where(far == rnp.inf, far, high)
    return rnp.where(x <= 2.5, near, rnp.where(x < SHIFT, middle, high))


@with_slopes(lambda t, y, x: t * digamma(x))
def log_gamma(x: Array) -> Array:
    """log |Γ(x)| of a floating array."""
    size = rnp.abs(x)
    positive = log_gamma_of_positive(rnp.where(size == 0.0, 1.0, size))
    is_pole = (x <= 0) & (x == rnp.floor(x))
    below = math.log(math.pi) - rnp.log(rnp.abs(x * sine_of_pi(x))) - positive
    is_even = (x > 0) | (size < 1e-20)  # to rounding, near 0; the product below underflows there
    return rnp.where(is_pole, rnp.inf, rnp.where(is_even, positive, below))


@elementwise
def gammaln(x: Array) -> Array:
    """log |Γ(x)|; infinite at 0 and the negative integers.

    Source: DLMF 5.5.3 and 5.11.1.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import gammaln
    >>> gammaln(5.0)
    Array(3.1780539, f32*[], cpu:0)
    """
    return log_gamma(x)


@continued(log_gamma_of_complex)
def loggamma(x: Array) -> Array:
    """log Γ(x): of a real x NaN below 0, of a complex x the principal branch, with its cut below 0.

    NaN at 0 and the negative integers if x is complex; of a real 0 infinite.

    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.
    Source: DLMF 5.5.3 and 5.11.1.

    >>> from rune.scipy.special import loggamma
    >>> loggamma(2.0)
    Array(0., f32*[], cpu:0)
    """
    return rnp.where(x < 0, rnp.nan, log_gamma(rnp.abs(x)))


@elementwise
def gammasgn(x: Array) -> Array:
    """The sign of Γ(x); NaN at the negative integers.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 5.5.3 and 5.11.1.

    >>> from rune.scipy.special import gammasgn
    >>> gammasgn(-0.5)
    Array(-1., f32*[], cpu:0)
    """
    floor = rnp.floor(x)
    odd = rnp.remainder(floor, 2.0) != 0
    below = rnp.where(floor == x, rnp.nan, rnp.where(odd, -1.0, 1.0))
    out = rnp.where(x > 0, 1.0, rnp.where(x == 0, rnp.copysign(1.0, x), below))
    return rnp.where(rnp.isnan(x), x, out)


# --- its derivatives --------------------------------------------------------------------------


def _psi_of_positive(x: Array) -> Array:
    near = rnp.clip(x, 1.0, 2.0)
    around = ((near - PSI_ROOT[0]) - PSI_ROOT[1]) * quotient(near, PSI)
    is_low = x < SHIFT
    low = rnp.where(is_low, x, 1.0)
    y = rnp.where(is_low, x + float(SHIFT), x)
    steps = sum(1.0 / (low + float(i)) for i in range(SHIFT))
    far = digamma_series(y) - rnp.where(is_low, steps, 0.0)
    return rnp.where((x >= 1) & (x <= 2), around, rnp.where(x == rnp.inf, x, far))


_BESIDE_ROOT = 0.0625  # from the root below 0, where the two terms of the reflection cancel


def _trigamma(x: Array) -> Array:
    """ψ'(x), of negative x as well. Source: DLMF 5.15.6."""
    sine = sine_of_pi(x)
    below = math.pi * math.pi / rnp.where(x > 0, 1.0, sine * sine)
    positive = zeta_of(rnp.full_like(x, 2.0), rnp.where(x > 0, x, 1.0 - x))
    return rnp.where(x > 0, positive, below - positive)


@continued(digamma_of_complex)
@with_slopes(lambda t, y, x: t * _trigamma(x))
def digamma(x: Array) -> Array:
    """ψ(x) = Γ'(x) / Γ(x); NaN at the negative integers.

    Source: DLMF 5.5.2, 5.5.4 and 5.11.2.
    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.scipy.special import digamma
    >>> digamma(1.0)
    Array(-0.5772157, f32*[], cpu:0)
    """
    argument = rnp.where(x > 0, x, rnp.where(x == 0, 1.0, 1.0 - x))
    positive = _psi_of_positive(argument)
    part = x - rnp.round(x)
    below = positive - math.pi / rnp.tan(math.pi * rnp.where(part == 0, 0.25, part))
    below = rnp.where(part == 0, rnp.nan, below)
    first, second, third = PSI_ROOT_BELOW_ZERO
    distance = ((x - first) - second) - third
    is_beside_root = rnp.abs(distance) <= _BESIDE_ROOT
    series = distance * polynomial(rnp.where(is_beside_root, distance, 0.0), PSI_BELOW_ZERO)
    below = rnp.where(is_beside_root, series, below)
    return rnp.where(x > 0, positive, rnp.where(x == 0, -1.0 / x, below))


psi = digamma


@elementwise
def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of ψ, n an integer, for x >= -4; infinite at the poles 0, -1, -2, …

    NaN for a negative n, and between the poles below -4.
    Not differentiable in n.
    Shapes: broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 5.15.1 and 25.11.5.

    >>> from rune.scipy.special import polygamma
    >>> polygamma(1, 1.0)
    Array(1.644934, f32*[], cpu:0)
    """
    order = rnp.where(n > 0, n, 1.0)
    sign = rnp.where(rnp.remainder(order, 2.0) == 0, -1.0, 1.0)
    high = sign * gamma_function(order + 1.0) * zeta_of(order + 1.0, rnp.where(n > 0, x, 1.0))
    is_pole = (n > 0) & (x <= 0) & (rnp.floor(x) == x)
    value = rnp.where(n == 0, digamma(rnp.where(n == 0, x, 1.0)), rnp.where(is_pole, sign * rnp.inf, high))
    # zeta_of sums nine terms; from there on the terms count as smooth.
    return undefined((n < 0) | ((n > 0) & (x < -4.0) & ~is_pole), value, x)


# --- the zeta function ------------------------------------------------------------------------

_TERMS = 9
# B(2k) / (2k)!
_EULER = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
)


def _zeta_wrt_s(t: Array, y: Array, s: Array, q: Array) -> Array:
    logs = sum(-rnp.log(q + float(k)) * rnp.power(q + float(k), -s) for k in range(_TERMS))
    return t * (logs + _zeta_tail_wrt_s(s, q + float(_TERMS)))


def _zeta_tail_wrt_s(s: Array, w: Array) -> Array:
    log, last = rnp.log(w), rnp.power(w, -s)
    total = -last * w / (s - 1.0) * (log + 1.0 / (s - 1.0)) - 0.5 * log * last
    factor, slope = s * last / w, last / w - log * s * last / w
    for k, coefficient in enumerate(_EULER):
        total = total + coefficient * slope
        a, b = s + float(2 * k + 1), s + float(2 * k + 2)
        slope = (slope * a * b + factor * (a + b)) / (w * w)
        factor = factor * a * b / (w * w)
    return total


def _zeta_wrt_q(t: Array, y: Array, s: Array, q: Array) -> Array:
    return -t * s * zeta_of(s + 1.0, q)


@with_slopes(_zeta_wrt_s, _zeta_wrt_q)
def zeta_of(s: Array, q: Array) -> Array:
    """Σ (q + k)**-s over k >= 0, by Euler and Maclaurin's formula after nine terms.

    Source: DLMF 25.11.5.
    """
    total = sum(rnp.power(q + float(k), -s) for k in range(_TERMS))
    w = q + float(_TERMS)
    last = rnp.power(w, -s)
    total = total + last * w / (s - 1.0) + 0.5 * last
    factor, term = s * last / w, 0.0
    for k, coefficient in enumerate(_EULER):
        term = term + coefficient * factor
        factor = factor * (s + float(2 * k + 1)) * (s + float(2 * k + 2)) / (w * w)
    # For large arguments the last terms are inf * 0.
    return rnp.where(last == 0, rnp.power(q, -s), total + term)


@partial(elementwise, name="zeta")
def _hurwitz(x: Array, q: Array) -> Array:
    floor = rnp.floor(q)
    is_pole = (x == 1) | ((x > 1) & (q <= 0) & (q == floor))
    is_above = (x > 1) & (q > 0)
    is_below = (x > 1) & (q < 0) & (q != floor) & (q > -rnp.inf) & (x == rnp.floor(x))
    # Below 0: the sum over all whole k, which depends on q's fraction alone, less that over k < 0.
    fraction = rnp.where(is_below, q - floor, 0.5)
    other = rnp.where(is_below, rnp.ceil(q) - q, 0.5)
    places = rnp.stack([rnp.where(is_above, q, fraction), other, rnp.where(is_below, 1.0 - q, 1.0)])
    sums = zeta_of(rnp.where(is_above | is_below, x, 2.0) + rnp.zeros_like(places), places)
    sign = rnp.where(rnp.remainder(x, 2.0) == 0, 1.0, -1.0)
    inner = sums[0] + rnp.where(is_below, sign * (sums[1] - sums[2]), 0.0)
    is_known = (is_above | is_below | is_pole) & ~rnp.isnan(q)
    return undefined(~is_known, rnp.where(is_pole, rnp.inf, inner), x + q)


def _gamma_over_turns(y: Array) -> Array:
    """Γ(y) / (2π)**y for y >= 1, which overflows later than Γ. Source: DLMF 5.11.1."""
    near, far = rnp.minimum(y, float(SHIFT)), rnp.maximum(y, float(SHIFT))
    low = gamma_of_positive(near) * rnp.power(2.0 * math.pi, -near)
    high = rnp.power(far / (2.0 * math.pi * math.e), far - 0.5)
    return rnp.where(y < SHIFT, low, high * rnp.exp(stirling_series(far) - 0.5))


@partial(elementwise, name="zeta")
def _riemann(x: Array) -> Array:
    is_low = x < -0.1  # nearer to 0, 1 - x would round x
    argument = rnp.where(is_low | (x == 1), 2.0, x)
    above = zeta_of(argument, rnp.ones_like(x))
    low = rnp.where(is_low, x, -1.0)
    sine, weight = sine_of_pi(0.5 * low), _gamma_over_turns(1.0 - low)
    weight = rnp.where((sine == 0) & (weight == rnp.inf), 0.0, weight)
    below = 2.0 * weight * sine * zeta_of(1.0 - low, rnp.ones_like(x))
    return rnp.where(is_low, below, rnp.where(x == 1, rnp.inf, above))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz' zeta function, Σ (q + k)**-x over k >= 0; without q Riemann's, for every x.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for x < 1 where q is given, and for q < 0 where x is not whole; infinite at x = 1
            and at whole q <= 0.
    Source: DLMF 25.4.2 and 25.11.5.

    >>> from rune.scipy.special import zeta
    >>> zeta(2.0, 1.0)
    Array(1.644934, f32*[], cpu:0)
    """
    return _riemann(x) if q is None else _hurwitz(x, q)
