"""Dictionaries of limited size, for what is prepared per choice of sizes or memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from rune import locks

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SIZES_KEPT = 64  # choices of sizes for which a plan keeps what it has prepared


class Bounded(dict[K, V]):
    """A dictionary of at most `limit` entries, for any number of threads.

    >>> recent = Bounded(2)
    >>> for k in "abc":
    ...     _ = recent.keep(k, k.upper())
    >>> list(recent)
    ['b', 'c']
    """

    __slots__ = ("_lock", "limit")

    def __init__(self, limit: int = SIZES_KEPT):
        super().__init__()
        self.limit, self._lock = limit, locks.lock()

    def keep(self, key: K, value: V) -> V:
        """Keep a value, unless the key has one: the value kept. What is beyond the limit goes."""
        gone: list[V] = []  # dies outside of the lock
        with self._lock:
            winner = self.setdefault(key, value)
            while len(self) > self.limit:
                gone.append(self.pop(next(iter(self))))
        return winner
