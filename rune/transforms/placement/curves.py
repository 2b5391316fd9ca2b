"""Curves: the seconds that an amount of work takes, measured at a few amounts.

Between two measurements a curve is linear; beyond the last one it continues at its rate. It never
falls, so that more work is never predicted to take less time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """Measurements in ascending order, as pairs of an amount and its seconds."""

    points: tuple[tuple[float, float], ...]

    def seconds(self, amount: float) -> float:
        """The time of an amount. Units: s."""
        amounts = [amount for amount, _ in self.points]
        right = bisect_left(amounts, amount)
        if right == 0:
            return self.latency
        if right == len(amounts):
            # Beyond the measurements latency does not matter, so time is proportional to the
            # amount.
            return self.points[-1][1] * amount / self.points[-1][0]
        (a, before), (b, after) = self.points[right - 1 : right + 1]
        return before + (after - before) * (amount - a) / (b - a)

    @property
    def latency(self) -> float:
        """The time of the least amount, also used for smaller amounts. Units: s."""
        return self.points[0][1]

    @property
    def rate(self) -> float:
        """The amount per second, for large amounts."""
        amount, seconds = self.points[-1]
        return amount / seconds

    def scaled(self, factor: Callable[[float], float]) -> Curve:
        """The curve with each amount taking longer by a factor that depends on the amount."""
        return curve((amount, factor(amount) * seconds) for amount, seconds in self.points)

    def clamped(self, amount: float) -> float:
        """The amount, or the measured one next to it if it is below or beyond all of them."""
        return min(max(amount, self.points[0][0]), self.points[-1][0])

    def delayed(self, seconds: float) -> Curve:
        """The curve with a constant time added to every amount."""
        return Curve(tuple((amount, before + seconds) for amount, before in self.points))


def curve(record: Iterable[tuple[float, float]]) -> Curve:
    """The curve through measurements; noise may have made some larger ones faster.

    >>> curve([(1, 2e-6), (100, 1e-6), (1000, 8e-6)]).points
    ((1, 2e-06), (100, 2e-06), (1000, 8e-06))
    """
    points: list[tuple[float, float]] = []
    # Not 0, since rates divide by it.
    longest = 1e-9
    for amount, seconds in sorted(record):
        longest = max(longest, seconds)
        points.append((amount, longest))
    return Curve(tuple(points))
