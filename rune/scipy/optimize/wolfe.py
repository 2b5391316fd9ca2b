"""A step length that meets the strong Wolfe conditions, by bracketing and zooming in.

First the step grows until an interval is certain to contain such a length; then the interval
shrinks by minima of cubics through its ends, or by its middle where those would shrink it too
little. Both parts are one loop with a state, so that it is one equation under jit and works lane by
lane under vmap.

Source: Nocedal & Wright 2006, Numerical Optimization, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.control import while_loop

STEPS = 30  # by then a step is 2**29 times as long as the first, or as short


class Line(NamedTuple):
    """A length a, value and slope there, and the gradient, an array or a tree of them."""

    a: Array
    value: Array
    slope: Array
    gradient: Array


class _Search(NamedTuple):
    low: Line  # the best end of the bracket; the last point while there is no bracket
    high: Line
    is_zooming: Array
    is_done: Array
    next: Array
    n: Array


def strong_wolfe(
    at: Callable[[Array], Line], start: Line, first: Array, c1: float = 1e-4, c2: float = 0.9, steps: int = STEPS
) -> tuple[Line, Array, Array]:
    """(the point, whether the conditions hold there, the number of calls of `at`).

    at(a) evaluates the function at the length a; `start` is a = 0, with a negative slope. If no
    such length is found, it returns the best point so far.
    """

    def goes_on(s: _Search) -> Array:
        return ~s.is_done & (s.n < steps)

    def again(s: _Search) -> _Search:
        trial = at(s.next)
        is_high = (trial.value > start.value + c1 * trial.a * start.slope) | rnp.isnan(trial.value)
        is_high = is_high | ((trial.value >= s.low.value) & (s.is_zooming | (s.n > 0)))
        is_flat = ~is_high & (rnp.abs(trial.slope) <= -c2 * start.slope)
        # Uphill at a good point: the minimum lies between it and the point before.
        span = rnp.where(s.is_zooming, s.high.a - s.low.a, 1.0)
        is_uphill = ~is_high & (trial.slope * span >= 0)
        high = _chosen(is_high, trial, _chosen(is_uphill, s.low, s.high))
        low = _chosen(is_high, s.low, trial)
        is_zooming = s.is_zooming | is_high | is_uphill
        following = rnp.where(is_zooming, _between(low, high), 2.0 * trial.a)
        return _Search(low, high, is_zooming, is_flat, following, s.n + 1)

    no = rnp.zeros((), bool)
    begin = _Search(start, start, no, no, first, rnp.zeros((), rnp.int32))
    end = while_loop(goes_on, again, begin)
    return end.low, end.is_done, end.n


def _chosen(condition: Array, x: Line, y: Line) -> Line:
    return tree.map(lambda a, b: rnp.where(condition, a, b), x, y)


def _between(low: Line, high: Line) -> Array:
    """The minimum of the cubic through both ends, kept away from them."""
    gap = low.a - high.a
    d1 = low.slope + high.slope - 3.0 * (low.value - high.value) / rnp.where(gap == 0, 1.0, gap)
    square = d1 * d1 - low.slope * high.slope
    d2 = rnp.sign(high.a - low.a) * rnp.sqrt(rnp.maximum(square, 0.0))
    below = high.slope - low.slope + 2.0 * d2
    cubic = high.a - (high.a - low.a) * (high.slope + d2 - d1) / rnp.where(below == 0, 1.0, below)
    low_end, high_end = rnp.minimum(low.a, high.a), rnp.maximum(low.a, high.a)
    margin = 0.1 * (high_end - low_end)
    is_good = (square >= 0) & (cubic > low_end + margin) & (cubic < high_end - margin)
    return rnp.where(is_good, cubic, 0.5 * (low_end + high_end))
