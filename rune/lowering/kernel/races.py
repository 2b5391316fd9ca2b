"""Races in the kernel interpreter: which members of parallel loops touch which elements of memory.

A race: two members of one Level touch the same element, at least one of them writes it, and they do
not both change it atomically. At a barrier the interpreter removes the Interval from
`Storage.intervals`, so that earlier accesses no longer count.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Any

import numpy as np

from rune.records import dataclass

# Markers in place of a member's number: no member, or several.
_NONE, _SEVERAL = -1, -2
MOST_DEFERRED = 1 << 20  # lanes whose reads are not recorded yet; a visit counts as 64 more


class Touch(Enum):
    """What a member does to an element. Atomic changes do not race with each other."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


@dataclass(slots=True)
class Level:
    """One kind of parallel loop: `ids` numbers its members, `depth` lane axes are around it."""

    name: str
    depth: int
    ids: np.ndarray
    of_lanes: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict)  # members, by shape

    def members(self, shape: tuple[int, ...]) -> np.ndarray:
        """The number of each lane's member, in one row."""
        if shape not in self.of_lanes:
            self.of_lanes[shape] = spread(lifted(self.ids, len(shape)), shape)
        return self.of_lanes[shape]


def lifted(value: Any, ndim: int) -> Any:
    """The value with one axis per lane axis; lanes of inner loops are the last axes."""
    axes = getattr(value, "ndim", 0)
    return value if axes in (0, ndim) else value.reshape(value.shape + (1,) * (ndim - axes))


def spread(value: np.ndarray | np.generic | int | bool, shape: tuple[int, ...]) -> np.ndarray:
    """The values of all lanes, in one row."""
    array = np.asarray(value)
    if array.shape == shape:
        return array.reshape(-1)
    row = np.empty(shape, array.dtype)
    row[...] = array
    return row.reshape(-1)


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane: its position in lanes of this shape."""

    at: tuple[int, ...]
    shape: tuple[int, ...]


class Fault(Exception):
    """An access that breaks a rule: the message, and the lane where it happened."""

    def __init__(self, message: str, lane: Lane | None = None):
        super().__init__(message)
        self.message, self.lane = message, lane


@dataclass(slots=True)
class Interval:
    """Which members of a level touched each element of a storage since the last barrier.

    For each element, the last writer, the only reader and the only one that changed it atomically;
    None until there is one. Reads alone cannot race, so they stay pending until there is a write.
    """

    writer: np.ndarray | None = None
    reader: np.ndarray | None = None
    changer: np.ndarray | None = None
    pending_reads: list[Visit] = field(default_factory=list)
    pending_lanes: int = 0


@dataclass(slots=True)
class Storage:
    """Memory of a kernel.

    write_flags: which elements have been written; None if all are initialised.  depth: as in Level
    """

    data: np.ndarray
    write_flags: np.ndarray | None
    depth: int = 0
    is_tracked: bool = True
    intervals: dict[str, Interval] = field(default_factory=dict)


@dataclass(slots=True)
class Visit:
    """What the members of a loop did to elements of memory, or may still do.

    `at` and `active` have as many axes as `shape`, the lanes, or broadcast to it.
    """

    storage: Storage
    level: Level
    at: np.ndarray
    active: np.ndarray | bool
    shape: tuple[int, ...]
    kind: Touch

    def record(self) -> None:
        """Record which members touched these elements; raises Fault if that is a race."""
        storage, level = self.storage, self.level
        # Scratch allocated inside the level is private to each member.
        if not storage.is_tracked or storage.depth > level.depth:
            return
        interval = storage.intervals.setdefault(level.name, Interval())
        if self.kind is Touch.READ and interval.writer is None and interval.changer is None:
            _defer(interval, self)
            return
        _settle(interval)
        at, ids = self.elements()
        conflict = _is_another(interval.writer, at, ids)
        if self.kind is not Touch.READ:
            conflict |= _is_another(interval.reader, at, ids)
        if self.kind is not Touch.ATOMIC:
            conflict |= _is_another(interval.changer, at, ids)
        if self.kind is Touch.WRITE:
            if interval.writer is None:
                interval.writer = _nobody(storage)
            # If two lanes store to one element, only one id remains, and the other lane sees it.
            interval.writer[at] = ids
            conflict |= bool((interval.writer[at] != ids).any())
        elif self.kind is Touch.READ:
            interval.reader = _joined(interval.reader, self)
        else:
            interval.changer = _joined(interval.changer, self)
        if conflict:
            raise Fault(f"a race within the {level.name}", None)

    def elements(self) -> tuple[np.ndarray, np.ndarray]:
        """The element that each active lane touches, and the lane's member."""
        at, ids = spread(self.at, self.shape), self.level.members(self.shape)
        if self.active is True:
            return at, ids
        keep = spread(self.active, self.shape)
        return at[keep], ids[keep]


def _defer(interval: Interval, visit: Visit) -> None:
    interval.pending_reads.append(visit)
    interval.pending_lanes += visit.at.size + 64
    if interval.pending_lanes > MOST_DEFERRED:
        _settle(interval)


def _settle(interval: Interval) -> None:
    """Record the readers of the pending visits."""
    for visit in interval.pending_reads:
        interval.reader = _joined(interval.reader, visit)
    interval.pending_reads, interval.pending_lanes = [], 0


def _nobody(storage: Storage) -> np.ndarray:
    return np.full(storage.data.size, _NONE)


def _is_another(members: np.ndarray | None, at: np.ndarray, ids: np.ndarray) -> bool:
    """Whether a member other than the one that touches an element now touched it before."""
    if members is None:
        return False
    visitors = members[at]
    return bool(((visitors != _NONE) & (visitors != ids)).any())


def _joined(members: np.ndarray | None, visit: Visit) -> np.ndarray:
    """The members of each element, with those of a visit: one member's number, or `_SEVERAL`."""
    members = _nobody(visit.storage) if members is None else members
    at, ids = visit.elements()
    before = members[at]
    members[at] = np.where((before == _NONE) | (before == ids), ids, _SEVERAL)
    # A lane that reads back another id shares the element with that member.
    members[at[members[at] != ids]] = _SEVERAL
    return members
