"""Which kinds of memory arrays, copies and tables are in: decided from what the driver lists.

    memory that both share      arrays where the host's caches hold copies, mapped; so is the rest
    memory of the device        arrays where only the device reaches, copies by way of staging;
                                tables in the device's memory too, if the host reaches some of it
    ... out of the host's reach tables in the host's memory, copied at the head of a call

A type is coherent if what one side writes the other one sees; else mapped memory is flushed after
the host has written it, and invalidated before it reads. Cached memory of many phones is not.
Tables are written in each call, and always coherent: every device has such a type. Left out are
types for other ends: protected, lazily allocated, or uncached by the device.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.records import dataclass

NEAR, VISIBLE, COHERENT, CACHED = 1, 2, 4, 8  # VK_MEMORY_PROPERTY_*; near: DEVICE_LOCAL
_PLAIN = NEAR | VISIBLE | COHERENT | CACHED


@dataclass(frozen=True, slots=True, eq=False)
class MemoryType:
    """One kind of memory."""

    number: int
    flags: int
    heap: int

    def has(self, flags: int) -> bool:
        """Whether it has all of these properties."""
        return self.flags & flags == flags


Types = tuple[MemoryType, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The types to try for each purpose, the best first.

    is_shared: whether arrays are in memory that the host reads and writes itself
    """

    arrays: Types
    staging: Types
    tables: Types
    is_shared: bool

    @property
    def has_near_tables(self) -> bool:
        """Whether tables are in the device's memory."""
        return self.tables[0].has(NEAR)


def choose(listed: Sequence[MemoryType]) -> Choice:
    """The types to use of those that a driver lists."""
    kinds = [kind for kind in listed if not kind.flags & ~_PLAIN]
    shared = _ranked(kinds, NEAR | VISIBLE | CACHED | COHERENT, NEAR | VISIBLE | CACHED)
    hidden = [kind for kind in kinds if not kind.has(VISIBLE)]
    # Cached first, since results are read back through it.
    staging = _ranked(kinds, VISIBLE | CACHED | COHERENT, VISIBLE | CACHED, VISIBLE | COHERENT)
    mapped = VISIBLE | COHERENT
    tables = _ranked(kinds, NEAR | mapped | CACHED, NEAR | mapped, mapped | CACHED, mapped)
    if shared:
        return Choice(shared, shared, tables, is_shared=True)
    return Choice(_ranked([*hidden, *kinds], NEAR), staging, tables, is_shared=False)


def _ranked(kinds: Sequence[MemoryType], *wishes: int) -> Types:
    """The types that fulfil a wish, the earlier the better."""
    return tuple(dict.fromkeys(kind for wish in wishes for kind in kinds if kind.has(wish)))
