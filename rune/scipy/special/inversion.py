"""The inverse of an increasing function, lane by lane: Newton's method inside a bracket.

The bracket shrinks with every step; where Newton's step would leave it, its middle is taken. So the
loop ends for any continuous increasing function, and converges quadratically near the root. The
code of the function, which may be large, occurs only in the loop, once. All lanes wait for the
last, so a lane ends as soon as further steps cannot improve it: when the next step would be below
rounding, or when steps no longer shrink because the function itself is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop

STEPS = 120  # twice what halving takes from the widest bracket, 1,400, to rounding in f64
ROUGH = 1000.0  # roundings of a residual, at most

# t -> (residual, slope). The residual is the logarithm of a ratio: where it is r, its slope is
# known to a relative error of about r, so that Newton's step leaves about r².
Function = Callable[[Array], tuple[Array, Array]]


class _Search(NamedTuple):
    t: Array
    correction: Array
    length: Array  # the last step, if it was Newton's; infinite before, and where the middle was taken
    low: Array
    high: Array
    is_done: Array
    n: Array


def invert(function: Function, start: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The t in [low, high] where function(t) = (residual, slope) has residual 0, and a correction.

    t + correction is nearer to the root than any rounded t. If the root is beyond an end of the
    interval, t is that end and the correction Newton's step from there: exact where the function is
    linear, as logarithms of tails are in logarithms.

    start, low, high: floating arrays of one shape. Lanes that have converged keep their value.
    """
    eps = 2 * float(rnp.finfo(start.dtype).eps)

    def goes_on(s: _Search) -> Array:
        return rnp.any(~s.is_done) & (s.n < STEPS)

    def again(s: _Search) -> _Search:
        residual, slope = function(s.t)
        below, above = rnp.where(residual < 0, s.t, s.low), rnp.where(residual > 0, s.t, s.high)
        step = -residual / slope
        newton, least, length = s.t + step, eps * (1.0 + rnp.abs(s.t)), rnp.abs(step)
        is_inside = (newton >= below) & (newton <= above)
        t = rnp.where(is_inside, newton, below + 0.5 * (above - below))
        # The first steps try the ends themselves, which bisection would take long to reach.
        t = rnp.where((s.n < 3) & ((newton < low) | (newton > high)), _nearer(newton, low, high), t)
        is_stuck = (residual == 0) | rnp.isnan(residual)
        is_beyond = (newton < low) & (s.t - low <= 2 * least)
        is_beyond = is_beyond | ((newton > high) & (high - s.t <= 2 * least))
        is_foreseen = 4.0 * residual * residual <= least * slope
        is_rounding = (rnp.abs(residual) <= ROUGH * eps) & (length >= 0.5 * s.length)
        is_last = (length <= least) | is_foreseen | is_rounding
        is_done = s.is_done | is_stuck | is_beyond | (is_last & is_inside) | (rnp.abs(t - s.t) <= least)
        last_t = rnp.where(is_last & is_inside & ~is_stuck, newton, s.t)
        last_step = rnp.where(is_beyond | is_last, step, 0.0) - (last_t - s.t)
        last_step = rnp.where(is_stuck, 0.0, last_step)
        return _Search(
            rnp.where(s.is_done, s.t, rnp.where(is_done, last_t, t)),
            rnp.where(s.is_done, s.correction, rnp.where(is_done, last_step, 0.0)),
            rnp.where(is_inside, length, rnp.inf),
            below,
            above,
            is_done,
            s.n + 1,
        )

    inside = rnp.minimum(rnp.maximum(start, low), high)
    nothing = rnp.zeros_like(inside)
    endless = rnp.full_like(inside, rnp.inf)
    first = _Search(inside, nothing, endless, low, high, rnp.isnan(inside), rnp.asarray(0))
    last = while_loop(goes_on, again, first)
    return last.t, last.correction


def _nearer(x: Array, low: Array, high: Array) -> Array:
    """The end of the interval beyond which x lies."""
    return rnp.where(x < low, low, high)


def normal_guess(p: Array, q: Array) -> Array:
    """The quantile of the normal distribution within 5e-4.

    Source: Abramowitz & Stegun 26.2.23.
    """
    size = rnp.sqrt(-2.0 * rnp.log(rnp.minimum(p, q)))
    above = 2.515517 + size * (0.802853 + size * 0.010328)
    below = 1.0 + size * (1.432788 + size * (0.189269 + size * 0.001308))
    distance = size - above / below
    return rnp.where(p < q, -distance, distance)
