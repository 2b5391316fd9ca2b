"""Round numbers along an axis."""

from __future__ import annotations

import math


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most `most` of them.

    >>> ticks(0, 0.9), ticks(3, 71)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [20.0, 40.0, 60.0])
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * m for m in (1, 2, 5, 10, 20) if span / (power * m) <= most - 1)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def decades(low: float, high: float, most: int = 7) -> list[float]:
    """Powers of ten from `low` to `high`, both positive; if there are fewer than two, both ends.

    >>> decades(0.02, 30)
    [0.1, 1.0, 10.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    powers = [10.0**n for n in range(first, last + 1, step)]
    return powers if len(powers) > 1 else [low, high]
