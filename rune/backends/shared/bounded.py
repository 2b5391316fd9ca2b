"""Dictionaries of limited size, for data prepared for one choice of sizes or of memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from rune import locks

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SIZES_KEPT = 64  # choices of sizes for which a plan keeps its prepared data


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
        """Store a value unless the key has one, return the stored one, and evict the oldest
        entries."""
        # A dying value may free device memory under other locks: it dies after this one is
        # released.
        evicted_values: list[V] = []
        with self._lock:
            winner = self.setdefault(key, value)
            while len(self) > self.limit:
                evicted_values.append(self.pop(next(iter(self))))
        return winner
