"""Choices of a generator of programs, all by one source of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Chance:
    """The random choices of a program generator."""

    __slots__ = ()
    rng: np.random.Generator

    def below(self, high: int) -> int:
        """An integer in 0..high-1."""
        return int(self.rng.integers(high))

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return bool(self.rng.random() < share)

    def choose(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return options[self.below(len(options))]
