"""Chooses the types of memory for arrays, copies and tables from the driver's list.

    shared by host and device   arrays in mapped memory that the host's caches hold; all else too
    separate                    arrays where only the device has access, copies through staging;
                                tables in the device's memory, if the host can address some of it,
    ... else                    in the host's memory, copied to the device at the start of a call

In coherent memory each side sees the other's writes; other mapped memory is flushed after the host
has written it, and invalidated before the host reads it. On many phones cached memory is not
coherent. Tables are written in each call, so their memory is always coherent: every device has such
a type. Types for other purposes are not used: protected, lazily allocated, or uncached by the
device.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.records import dataclass

NEAR, VISIBLE, COHERENT, CACHED = 1, 2, 4, 8  # VK_MEMORY_PROPERTY_*; near: DEVICE_LOCAL
_PLAIN = NEAR | VISIBLE | COHERENT | CACHED


@dataclass(frozen=True, slots=True, eq=False)
class MemoryType:
    """A type of memory."""

    number: int
    flags: int
    heap: int

    def has(self, flags: int) -> bool:
        """Whether the type has all of these properties."""
        return self.flags & flags == flags


Types = tuple[MemoryType, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The types to try for each purpose, the best first.

    is_shared: whether the host itself can read and write the memory of arrays
    """

    arrays: Types
    staging: Types
    tables: Types
    is_shared: bool

    @property
    def has_near_tables(self) -> bool:
        """Whether tables are in the device's memory."""
        return self.tables[0].has(NEAR)


def choose(memory_types: Sequence[MemoryType]) -> Choice:
    """The types to use, from those that a driver lists."""
    kinds = [kind for kind in memory_types if not kind.flags & ~_PLAIN]
    shareable = _ranked(kinds, NEAR | VISIBLE | CACHED | COHERENT, NEAR | VISIBLE | CACHED)
    device_only = [kind for kind in kinds if not kind.has(VISIBLE)]
    # Cached first: results are read back through staging, and uncached reads are very slow.
    staging = _ranked(kinds, VISIBLE | CACHED | COHERENT, VISIBLE | CACHED, VISIBLE | COHERENT)
    visible = VISIBLE | COHERENT
    tables = _ranked(kinds, NEAR | visible | CACHED, NEAR | visible, visible | CACHED, visible)
    if shareable:
        return Choice(shareable, shareable, tables, is_shared=True)
    return Choice(_ranked([*device_only, *kinds], NEAR), staging, tables, is_shared=False)


def _ranked(kinds: Sequence[MemoryType], *wishes: int) -> Types:
    """The types with the properties of some wish, ordered by the wishes."""
    return tuple(dict.fromkeys(kind for wish in wishes for kind in kinds if kind.has(wish)))
