"""Interval arithmetic with infinite ends: a product takes its extremes at the corners."""

from __future__ import annotations

import math

Ends = tuple[float, float]


def times(a: Ends, b: Ends) -> Ends:
    """The ends of x*y for x within a and y within b."""
    corners = [x * y if x and y else 0 for x in a for y in b]
    return min(corners), max(corners)


def floor_over(top: Ends, bottom: Ends) -> Ends:
    """The ends of x//y for x within top and y within bottom, which has to be positive."""
    corners = [_over(x, y) for x in top for y in (max(bottom[0], 1), bottom[1])]
    return min(corners), max(corners)


def _over(x: float, y: float) -> float:
    if math.isinf(x):
        return x
    return x // y if y < math.inf else -1 if x < 0 else 0
