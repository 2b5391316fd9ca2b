"""The incomplete beta function and its inverse.

A continued fraction computes the side of the mode where it converges fast; the other side is the
complement. The power before it is accurate for large parameters (densities.py). The derivative in
x is the density; those in a and b are those of the loop (loops.py).

Source: Didonato & Morris 1992, ACM Transactions on Mathematical Software 18(3), section 3.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.scipy.special.arguments import elementwise, with_slopes
from rune.scipy.special.densities import log_beta_power
from rune.scipy.special.inversion import Function, invert, normal_guess
from rune.scipy.special.loops import Limit, State, in_one_program
from rune.transforms.derivatives.directional import jvp
from rune.typing import ArrayLike


def _below(m: Array, a: Array, b: Array, x: Array, y: Array) -> Array:
    """The denominators of the fraction; x and y = 1 - x are both exact."""
    # Quotients come first: products of two large parameters would overflow.
    last = (a + m) / (a + 2.0 * m + 1.0) * (a * y - b * x + 1.0 + m * (1.0 + y))
    return m + m * ((b - m) * (x / (a + 2.0 * m - 1.0))) + last


def _start(a: Array, b: Array, x: Array, y: Array) -> State:
    first = a / (a + 1.0) * (a * y - b * x + 1.0)
    return State((first,), (first, rnp.zeros_like(x)))


def _step(m: Array, s: State, a: Array, b: Array, x: Array, y: Array) -> State:
    c, d = s.others
    scale = x / (a + 2.0 * m - 1.0)
    above = (a + m - 1.0) * ((b - m) * scale) * (m * ((a + b + m - 1.0) * scale))
    below = _below(m, a, b, x, y)
    d = 1.0 / (below + above * d)
    c = below + above / c
    return State((s.watched[0] * c * d,), (c, d))


# x^a y^b / (B(a, b) I_x(a, b)), by Lentz' method; of b = 0, x^a over ∫ t^(a - 1) / (1 - t) up to x
fraction = Limit(_start, _step)


def _power(a: Array, b: Array, x: Array, y: Array) -> Array:
    """x**a y**b / B(a, b)."""
    return rnp.exp(log_beta_power(a, b, x, y))


def both(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """I_x(a, b) and its complement, for x + y = 1 inside (0, 1) and finite a, b > 0."""
    is_low = x * (a + b + 2.0) < a + 1.0
    # For a small parameter, the side that converges more slowly is the small one. It is computed as
    # long as it is the small one: for small b the high side is about y**b, over 1/2 from there on.
    low_is_small, high_is_small = b * rnp.log(y) > -0.7, a * rnp.log(x) > -0.7
    is_low = is_low | ((b < 0.5) & (x < 0.999) & low_is_small)
    is_low = is_low & ~((a < 0.5) & (a < b) & (y < 0.999) & high_is_small)
    a1, b1 = rnp.where(is_low, a, b), rnp.where(is_low, b, a)
    x1, y1 = rnp.where(is_low, x, y), rnp.where(is_low, y, x)
    # The power is the same on both sides, and its code occurs once in every reader.
    share = _power(a, b, x, y) / fraction(a1, b1, x1, y1)
    return rnp.where(is_low, share, 1.0 - share), rnp.where(is_low, 1.0 - share, share)


def _is_inside(a: Array, b: Array, x: Array) -> Array:
    return (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < rnp.inf) & (b < rnp.inf)


def _placed(a: Array, b: Array, x: Array) -> tuple[Array, Array, Array, Array]:
    """The arguments where they are inside the domain, and valid replacements elsewhere."""
    inside = _is_inside(a, b, x)
    a, b, x = (rnp.where(inside, v, c) for v, c in ((a, 1.0), (b, 1.0), (x, 0.5)))
    return a, b, x, 1.0 - x


def _guarded(a: Array, b: Array, x: Array, is_upper: ArrayLike) -> Array:
    lower, upper = both(*_placed(a, b, x))
    share = _chosen(is_upper, upper, lower)
    is_full = (x >= 1) | ((a == 0) & (b > 0)) | ((b == rnp.inf) & (a < rnp.inf) & (x > 0))
    is_none = (x == 0) | ((b == 0) & (a > 0) & (x < 1)) | ((a == rnp.inf) & (x < 1))
    is_full = is_full & ~is_none
    full, zero = _chosen(is_upper, 0.0, 1.0), _chosen(is_upper, 1.0, 0.0)
    edge = rnp.where(is_full, full, zero)
    is_known = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    is_known = is_known & ~((a == 0) & (b == 0)) & ~((a == rnp.inf) & (b == rnp.inf))
    return rnp.where(_is_inside(a, b, x), share, rnp.where(is_known, edge, rnp.nan))


def _chosen(which: ArrayLike, yes: ArrayLike, no: ArrayLike) -> ArrayLike:
    if isinstance(which, bool):
        return yes if which else no
    return rnp.where(which, yes, no)


@with_slopes(
    lambda t, y, a, b, x: t * slope_in(0, a, b, x),
    lambda t, y, a, b, x: t * slope_in(1, a, b, x),
    lambda t, y, a, b, x: t * density(a, b, x),
)
@in_one_program
def lower(a: Array, b: Array, x: Array) -> Array:
    """I_x(a, b) of floating arrays."""
    return _guarded(a, b, x, False)


@with_slopes(
    lambda t, y, a, b, x: -t * slope_in(0, a, b, x),
    lambda t, y, a, b, x: -t * slope_in(1, a, b, x),
    lambda t, y, a, b, x: -t * density(a, b, x),
)
@in_one_program
def upper(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b) of floating arrays."""
    return _guarded(a, b, x, True)


@with_slopes(
    lambda t, y, a, b, x, u: t * rnp.where(u, -1.0, 1.0) * slope_in(0, a, b, x),
    lambda t, y, a, b, x, u: t * rnp.where(u, -1.0, 1.0) * slope_in(1, a, b, x),
    lambda t, y, a, b, x, u: t * rnp.where(u, -1.0, 1.0) * density(a, b, x),
    None,
)
@in_one_program
def side(a: Array, b: Array, x: Array, is_upper: Array) -> Array:
    """`upper` where a bool is true, else `lower`: both share one loop."""
    return _guarded(a, b, x, is_upper)


def _slope(i: int, a: Array, b: Array, x: Array, y: Array) -> Array:
    """`slope_in` for x + y = 1 inside (0, 1) and finite a, b > 0."""
    unit = rnp.ones_like(a)
    directions = (unit, rnp.zeros_like(a)) if i == 0 else (rnp.zeros_like(a), unit)
    low, high = jvp(lambda p, q: both(p, q, x, y), (a, b), directions)[1]
    return rnp.where(x * (a + b) < a, low, -high)


def slope_in(i: int, a: Array, b: Array, x: Array) -> Array:
    """∂I/∂a for i = 0, ∂I/∂b for i = 1, through the loop; 0 at a limit, NaN beyond."""
    slope = _slope(i, *_placed(a, b, x))
    return rnp.where(_is_inside(a, b, x), slope, _beyond(a, b, x))


def _beyond(a: Array, b: Array, x: Array) -> Array:
    """The derivative outside the domain: 0 where there is a limit, otherwise undefined."""
    return rnp.where((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1), 0.0, rnp.nan)


def density(a: Array, b: Array, x: Array) -> Array:
    """x**(a - 1) (1 - x)**(b - 1) / B(a, b)."""
    inside = (x > 0) & (x < 1)
    at = rnp.where(inside, x, 0.5)
    slope = _power(a, b, at, 1.0 - at) / (at * (1.0 - at))
    return rnp.where(inside, slope, _beyond(a, b, x))


@elementwise
def betainc(a: Array, b: Array, x: Array) -> Array:
    """I_x(a, b), the integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, over B(a, b).

    Shapes: broadcast together.
    Types: for b < 1/2 and 1 - x < 1e-3 it is 1 minus its complement, to the digits of 1.
    Errors: NaN for negative a or b, and x outside [0, 1].
    Source: Didonato & Morris 1992, ACM Transactions on Mathematical Software 18(3).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import betainc
    >>> rnp.round(betainc(1.0, 2.0, 0.5), 4)
    Array(0.75, f32[], cpu:0)
    """
    return lower(a, b, x)


@elementwise
def betaincc(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b), accurate where that is small.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: as betainc.
    Source: Didonato & Morris 1992, ACM Transactions on Mathematical Software 18(3).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import betaincc
    >>> rnp.round(betaincc(1.0, 2.0, 0.5), 4)
    Array(0.25, f32[], cpu:0)
    """
    return upper(a, b, x)


# --- inverses ---------------------------------------------------------------------------------


def _residual(a: Array, b: Array, p: Array, q: Array) -> Function:
    """The equation log I = log p, or that of the complements, in t = log(x / y)."""

    def function(t: Array) -> tuple[Array, Array]:
        x, y = ops.logistic(t), ops.logistic(-t)
        low, high = both(a, b, x, y)
        power = _power(a, b, x, y)
        # Where both are far from 0, the one for the nearer tail: its logarithm is nearly linear
        # there.
        is_low = p <= rnp.where(t < 0, 0.9, 0.1)
        residual = rnp.where(is_low, rnp.log(low / p), rnp.log(q / high))
        slope = power / rnp.where(is_low, low, high)
        # Halley's step is Newton's with the slope halfway, as for the inverse of P.
        change = a * y - b * x - rnp.where(is_low, slope, -slope)
        halfway = slope - 0.5 * residual * change
        return residual, rnp.minimum(rnp.maximum(halfway, 0.5 * slope), 2.0 * slope)

    return function


def _guess(a: Array, b: Array, p: Array, q: Array) -> Array:
    """An estimate of log(x / y).

    For a and b from 1 on by the normal distribution, else by the powers that I approaches at the
    ends.
    Source: Abramowitz & Stegun 26.5.22; Press et al. 2007, Numerical Recipes, section 6.4.
    """
    a1, b1 = rnp.maximum(a, 1.0), rnp.maximum(b, 1.0)
    distance, of_a, of_b = normal_guess(q, p), 1.0 / (2.0 * a1 - 1.0), 1.0 / (2.0 * b1 - 1.0)
    size, skew = 2.0 / (of_a + of_b), (distance * distance - 3.0) / 6.0
    width = distance * rnp.sqrt(size + skew) / size
    middle = rnp.log(a1 / b1) - 2.0 * (width - (of_b - of_a) * (skew + 5.0 / 6.0 - 2.0 / (3.0 * size)))
    log_a, log_b, log_sum = rnp.log(a), rnp.log(b), rnp.log(a + b)
    below, above = a * (log_a - log_sum) - log_a, b * (log_b - log_sum) - log_b
    both_ends = rnp.logaddexp(below, above)
    is_low = rnp.log(p) < below - both_ends
    log_end = rnp.where(is_low, log_a + rnp.log(p), log_b + rnp.log(q)) + both_ends
    log_end = rnp.minimum(log_end / rnp.where(is_low, a, b), -1e-3)
    end = log_end - rnp.log1p(-rnp.exp(log_end))
    return rnp.where((a >= 1.0) & (b >= 1.0), middle, rnp.where(is_low, end, -end))


@with_slopes(
    lambda t, odds, a, b, p, q: -t * _odds_slope(0, odds, a, b),
    lambda t, odds, a, b, p, q: -t * _odds_slope(1, odds, a, b),
    lambda t, odds, a, b, p, q: t / _odds_power(odds, a, b),
    None,
)
@in_one_program
def inverse_odds(a: Array, b: Array, p: Array, q: Array) -> Array:
    """log(x / (1 - x)) where I_x(a, b) = p and its complement q = 1 - p; both must be exact.

    Derivatives are those in a, b and p: q moves with p.
    """
    is_inside = (a > 0) & (b > 0) & (p > 0) & (q > 0)
    a1, b1, p1, q1 = (rnp.where(is_inside, v, c) for v, c in ((a, 1.0), (b, 1.0), (p, 0.5), (q, 0.5)))
    most = rnp.full_like(a, -math.log(float(rnp.finfo(a.dtype).tiny)))
    odds = sum(invert(_residual(a1, b1, p1, q1), _guess(a1, b1, p1, q1), -most, most))
    edge = rnp.where(p == 0, -rnp.inf, rnp.where(q == 0, rnp.inf, rnp.nan))
    return rnp.where(is_inside, odds, rnp.where((a > 0) & (b > 0), edge, rnp.nan))


def _odds_power(odds: Array, a: Array, b: Array) -> Array:
    """∂I/∂odds."""
    return _power(a, b, ops.logistic(odds), ops.logistic(-odds))


def _odds_slope(i: int, odds: Array, a: Array, b: Array) -> Array:
    return _slope(i, a, b, ops.logistic(odds), ops.logistic(-odds)) / _odds_power(odds, a, b)


def lower_inverse(a: Array, b: Array, p: Array) -> Array:
    """The inverse of I_x in x, of floating arrays."""
    return ops.logistic(inverse_odds(a, b, p, 1.0 - p))


def upper_inverse(a: Array, b: Array, q: Array) -> Array:
    """The inverse of 1 - I_x in x, of floating arrays."""
    return ops.logistic(inverse_odds(a, b, 1.0 - q, q))


@elementwise
def betaincinv(a: Array, b: Array, y: Array) -> Array:
    """The x with I_x(a, b) = y.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: NaN for y outside [0, 1], a <= 0 or b <= 0.
    Source: Didonato & Morris 1992, ACM Transactions on Mathematical Software 18(3).

    >>> from rune.scipy.special import betaincinv
    >>> betaincinv(1.0, 1.0, 0.25)
    Array(0.24999996, f32[], cpu:0)
    """
    return lower_inverse(a, b, y)


@elementwise
def betainccinv(a: Array, b: Array, y: Array) -> Array:
    """The x with 1 - I_x(a, b) = y.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: as betaincinv.
    Source: Didonato & Morris 1992, ACM Transactions on Mathematical Software 18(3).

    >>> from rune.scipy.special import betainccinv
    >>> betainccinv(1.0, 1.0, 0.25)
    Array(0.75000006, f32[], cpu:0)
    """
    return upper_inverse(a, b, y)
