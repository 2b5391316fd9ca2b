"""The inverse of an increasing function, lane by lane: Newton's method inside a bracket.

The bracket shrinks with every step; where Newton's step would leave it, its middle is taken. So
the loop ends for any continuous increasing function, and quadratically near the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.control import while_loop

STEPS = 120


class _Search(NamedTuple):
    t: Any
    low: Any
    high: Any
    is_done: Any
    n: Any


def invert(function: Callable[[Any], tuple[Any, Any]], start: Any, low: Any, high: Any) -> Any:
    """The t in [low, high] where function(t) = (residual, slope) has residual 0.

    start, low, high: floating arrays of one shape. Lanes that have converged keep their value.
    """
    eps = 2 * float(rnp.finfo(start.dtype).eps)

    def goes_on(s: _Search) -> Any:
        return rnp.any(~s.is_done) & (s.n < STEPS)

    def again(s: _Search) -> _Search:
        residual, slope = function(s.t)
        below, above = rnp.where(residual < 0, s.t, s.low), rnp.where(residual > 0, s.t, s.high)
        newton = s.t - residual / slope
        is_inside = (newton >= below) & (newton <= above)
        t = rnp.where(is_inside, newton, below + 0.5 * (above - below))
        t = rnp.where(s.is_done | (residual == 0) | rnp.isnan(residual), s.t, t)
        is_done = s.is_done | (rnp.abs(t - s.t) <= eps * (1.0 + rnp.abs(t)))
        return _Search(t, below, above, is_done, s.n + 1)

    inside = rnp.where((start > low) & (start < high), start, 0.5 * low + 0.5 * high)
    first = _Search(inside, low, high, rnp.isnan(inside), rnp.asarray(0))
    return while_loop(goes_on, again, first).t
