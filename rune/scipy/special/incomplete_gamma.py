"""The incomplete gamma functions and their inverse.

a >= 20, x within 30% of a   the uniform expansion: a polynomial in two variables
x < a + 1                    the series of P;  near 0 for small a, the series of Q
else                         the continued fraction of Q

Every lane computes all of them; those that it does not need are evaluated where they end at once.
The factor x**a exp(-x) / Γ(a + 1) before them is accurate for large parameters (densities.py). The
derivative in x is the density; the one in a comes from differentiating the loops (loops.py).

Source: DLMF 8.7.1, 8.9.2 and 8.12; Temme 1979, SIAM J. Math. Anal. 10.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.scipy.special.arguments import elementwise, polynomial, with_slopes
from rune.scipy.special.densities import deviance, enough, poisson
from rune.scipy.special.gammas import log_gamma, log_gamma_near_one
from rune.scipy.special.inversion import Function, invert, normal_guess
from rune.scipy.special.loops import Limit, State, in_one_program
from rune.scipy.special.tables_gamma import TEMME
from rune.transforms.derivatives.directional import jvp


def _series_start(a: Array, x: Array) -> State:
    one = rnp.ones_like(x)
    return State((one,), (one,))


def _series_step(n: Array, s: State, a: Array, x: Array) -> State:
    term = s.others[0] * x / (a + n)
    return State((s.watched[0] + term,), (term,))


_series = Limit(_series_start, _series_step)  # Σ x^n / ((a + 1) … (a + n))


def _fraction_start(a: Array, x: Array) -> State:
    first = 1.0 / (x + 1.0 - a)
    return State((first,), (rnp.full_like(x, 1e30), first))


def _fraction_step(n: Array, s: State, a: Array, x: Array) -> State:
    above, below = n * (a - n), x + 1.0 - a + 2.0 * n
    d = 1.0 / (above * s.others[1] + below)
    c = below + above / s.others[0]
    return State((s.watched[0] * c * d,), (c, d))


_fraction = Limit(_fraction_start, _fraction_step)  # Q Γ(a) exp(x) / x**a, by Lentz' method


def _uniform(a: Array, x: Array) -> tuple[Array, Array]:
    """P and Q for large a and x near a."""
    u = (x - a) / a
    half_square = -deviance(u, x / a)  # η² / 2
    # The square root has no derivative at u = 0, where η is u - u²/3.
    is_near = rnp.abs(u) < 1e-3
    root = rnp.sqrt(2.0 * rnp.where(is_near, 1.0, half_square))
    series = u * (1.0 + u * (-1 / 3 + u * (7 / 36 + u * (-73 / 540 + u * (1331 / 12960)))))
    eta = rnp.where(is_near, series, rnp.where(u < 0, -root, root))
    inverse, total = 1.0 / a, 0.0
    eps = float(rnp.finfo(a.dtype).eps)
    rows = [enough(row, 0.36, eps * 20.0**j) for j, row in enumerate(TEMME)]  # |η| < 0.36
    for row in reversed([row for row in rows if row]):
        total = total * inverse + polynomial(eta, row)
    correction = rnp.exp(-a * half_square) * total / rnp.sqrt(2 * math.pi * a)
    half = eta * rnp.sqrt(0.5 * a)
    return 0.5 * ops.erfc(-half) - correction, 0.5 * ops.erfc(half) + correction


def _small_upper(a: Array, x: Array) -> Array:
    """Q for a <= 1/2 and x <= 1.1, which is near 1 - x**a. Source: DLMF 8.7.3."""
    total: Array | float = 0.0
    for k in range(20, 0, -1):
        total = (total + a / (a + float(k))) * (-x / k)
    log_power = a * rnp.log(rnp.where(x == 0, 1.0, x)) - log_gamma_near_one(a)
    return -rnp.expm1(log_power) - rnp.exp(log_power) * total


def _both(a: Array, x: Array) -> tuple[Array, Array]:
    """P and Q for finite a > 0 and x > 0."""
    is_uniform = (a >= 20.0) & (rnp.abs(x - a) < 0.3 * a)
    is_small = (a <= 0.5) & (x <= 1.1)
    is_series = (x < a + 1.0) & ~is_uniform
    is_fraction = ~is_uniform & ~is_series
    front = poisson(a, x)
    series = front * _series(a, rnp.where(is_series, x, 0.0))
    far = rnp.where(is_fraction, a, 0.5), rnp.where(is_fraction, x, 1e4)
    fraction = a * front * _fraction(*far)
    near = rnp.where(is_uniform, a, 20.0), rnp.where(is_uniform, x, 20.0)
    uniform = _uniform(*near)
    small = _small_upper(rnp.where(is_small, a, 0.5), rnp.where(is_small, x, 1.0))
    low = rnp.where(is_series, series, 1.0 - fraction)
    high = rnp.where(is_series, rnp.where(is_small, small, 1.0 - series), fraction)
    return rnp.where(is_uniform, uniform[0], low), rnp.where(is_uniform, uniform[1], high)


def _guarded(a: Array, x: Array, is_upper: bool) -> Array:
    """P or Q with the limits at the edges of the domain."""
    is_inside = (a > 0) & (x > 0) & (a < rnp.inf) & (x < rnp.inf)
    share = _both(rnp.where(is_inside, a, 1.0), rnp.where(is_inside, x, 1.0))[is_upper]
    full, zero = (0.0, 1.0) if is_upper else (1.0, 0.0)
    edge = rnp.where((x == 0) | (a == rnp.inf), zero, full)
    outside = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | ((a == rnp.inf) & (x == rnp.inf))
    edge = rnp.where(outside | rnp.isnan(a) | rnp.isnan(x), rnp.nan, edge)
    return rnp.where(is_inside, share, edge)


@with_slopes(lambda t, y, a, x: t * _slope_in_a(a, x), lambda t, y, a, x: t * density(a, x))
@in_one_program
def lower(a: Array, x: Array) -> Array:
    """P(a, x) of floating arrays."""
    return _guarded(a, x, False)


@with_slopes(lambda t, y, a, x: -t * _slope_in_a(a, x), lambda t, y, a, x: -t * density(a, x))
@in_one_program
def upper(a: Array, x: Array) -> Array:
    """Q(a, x) of floating arrays."""
    return _guarded(a, x, True)


@in_one_program
def _slope_in_a(a: Array, x: Array) -> Array:
    """∂P/∂a, through the loops; 0 where P is at a limit, NaN where it is not defined."""
    is_inside = (a > 0) & (x > 0) & (a < rnp.inf) & (x < rnp.inf)
    at = rnp.where(is_inside, a, 1.0), rnp.where(is_inside, x, 1.0)
    low, high = jvp(lambda p: _both(p, at[1]), (at[0],), (rnp.ones_like(a),))[1]
    # The smaller of the two sums has the digits.
    edge = rnp.where((a > 0) & (x >= 0), 0.0, rnp.nan)
    return rnp.where(is_inside, rnp.where(x < a, low, -high), edge)


def density(a: Array, x: Array) -> Array:
    """x**(a - 1) exp(-x) / Γ(a); at x = 0 it is infinite, 1 or 0, by a."""
    at = rnp.where(x == 0, 1.0, x)
    start = rnp.where(a < 1, rnp.inf, rnp.where(a == 1, 1.0, 0.0))
    return rnp.where((x == 0) & (a > 0), start, poisson(a, at) * (a / at))


@elementwise
def gammainc(a: Array, x: Array) -> Array:
    """P(a, x), the integral of t**(a - 1) exp(-t) from 0 to x, over Γ(a).

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for negative arguments.
    Source: DLMF 8.7.1, 8.9.2 and 8.12; Temme 1979, SIAM J. Math. Anal. 10.

    >>> from rune.scipy.special import gammainc
    >>> gammainc(1.0, 1.0)
    Array(0.63212055, f32[], cpu:0)
    """
    return lower(a, x)


@elementwise
def gammaincc(a: Array, x: Array) -> Array:
    """Q(a, x) = 1 - P(a, x), accurate where that is small.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for negative arguments.
    Source: DLMF 8.7.1, 8.9.2 and 8.12; Temme 1979, SIAM J. Math. Anal. 10.

    >>> from rune.scipy.special import gammaincc
    >>> gammaincc(1.0, 10.0)
    Array(4.539994e-05, f32[], cpu:0)
    """
    return upper(a, x)


# --- inverses ---------------------------------------------------------------------------------


def _log_residual(a: Array, p: Array, q: Array) -> Function:
    """The equation log P = log p, or for large p log Q = log q, in t = log x."""

    def function(t: Array) -> tuple[Array, Array]:
        x = rnp.exp(t)
        low, high = _both(a, x)
        power = a * poisson(a, x)  # x times the density
        is_low = p <= q
        residual = rnp.where(is_low, rnp.log(low / p), rnp.log(q / high))
        slope = power / rnp.where(is_low, low, high)
        # Halley's step is Newton's with the slope halfway; a - x ∓ slope is the change of the
        # slope. Far from the root it misleads, and steps would become endlessly short.
        change = a - x - rnp.where(is_low, slope, -slope)
        return residual, rnp.clip(slope - 0.5 * residual * change, 0.5 * slope, 2.0 * slope)

    return function


def _log_guess(a: Array, p: Array, q: Array) -> Array:
    """An estimate of log x: from the first terms of P where x is small, of Q where a is small and p
    is not, and else from the cube root of x / a, which is nearly normal.

    Source: Didonato & Morris 1986, ACM Transactions on Mathematical Software 12(4), section 3.
    """
    log_first = (rnp.log(p) + log_gamma(a + 1.0)) / a  # P is about x**a / Γ(a + 1)
    low = log_first + rnp.minimum(rnp.exp(rnp.minimum(log_first, 0.0)) / (a + 1.0), 1.0)
    root = 1.0 - 1.0 / (9.0 * a) + normal_guess(p, q) / (3.0 * rnp.sqrt(a))
    middle = rnp.log(a) + 3.0 * rnp.log(rnp.maximum(root, 0.1))
    y = -(rnp.log(q) + log_gamma(a))
    first = rnp.maximum(y, 0.7)
    second = first - (1.0 - a) * rnp.log(first)
    high = rnp.log(rnp.maximum(first - (1.0 - a) * rnp.log(rnp.maximum(second, 0.1)), 0.1))
    is_high, is_middle = (a < 1.0) & (y > 0.7), (a >= 1.0) & (root > 0.4)
    return rnp.where(is_high, high, rnp.where(is_middle, middle, low))


def inverse_of(a: Array, p: Array, q: Array) -> Array:
    """The x with P(a, x) = p and Q(a, x) = q."""
    info = rnp.finfo(a.dtype)
    least, most = math.log(float(info.tiny)), math.log(float(info.max)) - 1.0
    is_inside = (a > 0) & (p > 0) & (q > 0) & (a < rnp.inf)
    a1, p1, q1 = (rnp.where(is_inside, v, c) for v, c in ((a, 1.0), (p, 0.5), (q, 0.5)))
    function, start = _log_residual(a1, p1, q1), _log_guess(a1, p1, q1)
    t, correction = invert(function, start, rnp.full_like(a, least), rnp.full_like(a, most))
    inner = rnp.where(rnp.abs(correction) < 1e-3, rnp.exp(t) * (1.0 + correction), rnp.exp(t + correction))
    edge = rnp.where(p == 0, 0.0, rnp.where(q == 0, rnp.inf, rnp.nan))
    return rnp.where(is_inside, inner, rnp.where(a > 0, edge, rnp.nan))


@with_slopes(lambda t, x, a, p: -t * _slope_in_a(a, x) / density(a, x), lambda t, x, a, p: t / density(a, x))
@in_one_program
def lower_inverse(a: Array, p: Array) -> Array:
    """The inverse of P in x, of floating arrays."""
    return inverse_of(a, p, 1.0 - p)


@with_slopes(lambda t, x, a, q: -t * _slope_in_a(a, x) / density(a, x), lambda t, x, a, q: -t / density(a, x))
@in_one_program
def upper_inverse(a: Array, q: Array) -> Array:
    """The inverse of Q in x, of floating arrays."""
    return inverse_of(a, 1.0 - q, q)


@elementwise
def gammaincinv(a: Array, y: Array) -> Array:
    """The x with P(a, x) = y.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for y outside [0, 1] or a <= 0.
    Source: DLMF 8.7.1, 8.9.2 and 8.12; Temme 1979, SIAM J. Math. Anal. 10.

    >>> from rune.scipy.special import gammaincinv
    >>> gammaincinv(1.0, 0.5)
    Array(0.6931471, f32[], cpu:0)
    """
    return lower_inverse(a, y)


@elementwise
def gammainccinv(a: Array, y: Array) -> Array:
    """The x with Q(a, x) = y.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for y outside [0, 1] or a <= 0.
    Source: DLMF 8.7.1, 8.9.2 and 8.12; Temme 1979, SIAM J. Math. Anal. 10.

    >>> from rune.scipy.special import gammainccinv
    >>> gammainccinv(1.0, 0.5)
    Array(0.6931471, f32[], cpu:0)
    """
    return upper_inverse(a, y)
