"""The inverse of an increasing function, lane by lane: Newton's method inside a bracket.

The bracket shrinks with every step; where Newton's step would leave it, its middle is taken. So
the loop ends for any continuous increasing function, and quadratically near the root. The function
stands in the loop once and nowhere else: it may be a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop

STEPS = 120

Function = Callable[[Array], tuple[Array, Array]]  # t -> (residual, slope)


class _Search(NamedTuple):
    t: Array
    correction: Array
    low: Array
    high: Array
    is_done: Array
    n: Array


def invert(function: Function, start: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The t in [low, high] where function(t) = (residual, slope) has residual 0, and a correction.

    t + correction is nearer to the root than any rounded t: it is 0 or Newton's last step, of the
    size of t's rounding error.
    Where the root lies beyond an end of the interval, t is that end and the correction Newton's
    step from there: exact where the function is a line, as logarithms of tails are in logarithms.
    start, low, high: floating arrays of one shape. Lanes that have converged keep their value.
    """
    eps = 2 * float(rnp.finfo(start.dtype).eps)

    def goes_on(s: _Search) -> Array:
        return rnp.any(~s.is_done) & (s.n < STEPS)

    def again(s: _Search) -> _Search:
        residual, slope = function(s.t)
        below, above = rnp.where(residual < 0, s.t, s.low), rnp.where(residual > 0, s.t, s.high)
        step = -residual / slope
        newton, least = s.t + step, eps * (1.0 + rnp.abs(s.t))
        is_inside = (newton >= below) & (newton <= above)
        t = rnp.where(is_inside, newton, below + 0.5 * (above - below))
        # The first steps try the ends themselves, which bisection would take long to reach.
        t = rnp.where((s.n < 3) & ((newton < low) | (newton > high)), _nearer(newton, low, high), t)
        is_stuck = (residual == 0) | rnp.isnan(residual)
        is_beyond = (newton < low) & (s.t - low <= 2 * least)
        is_beyond = is_beyond | ((newton > high) & (high - s.t <= 2 * least))
        is_done = s.is_done | is_stuck | is_beyond | (rnp.abs(t - s.t) <= least)
        last_step = rnp.where(~is_stuck & (is_beyond | (rnp.abs(step) <= least)), step, 0.0)
        correction = rnp.where(s.is_done, s.correction, rnp.where(is_done, last_step, 0.0))
        return _Search(rnp.where(is_done, s.t, t), correction, below, above, is_done, s.n + 1)

    inside = rnp.where((start > low) & (start < high), start, 0.5 * low + 0.5 * high)
    nothing = rnp.zeros_like(inside)
    first = _Search(inside, nothing, low, high, rnp.isnan(inside), rnp.asarray(0))
    last = while_loop(goes_on, again, first)
    return last.t, last.correction


def _nearer(x: Array, low: Array, high: Array) -> Array:
    """The end of the interval that x lies beyond."""
    return rnp.where(x < low, low, high)
