"""Splits large launches, so that a device's watchdog never resets it and its screen stays alive.

A watchdog resets a device that works on one submission for seconds, and the contents of its memory
are lost. `Target.submission_work` bounds the work of one submission; a larger launch becomes
several, each over some of its groups. Groups are independent, so the results do not change. The
work of one group is never divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rune.records import dataclass

Extents = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Some consecutive groups of a launch."""

    first: int
    count: int
    work: int

    def folded(self, row: int) -> tuple[int, int]:
        """The groups along two dimensions of a launch. row: the most that one dimension may
        have."""
        wide = min(self.count, row)
        return wide, -(-self.count // wide)


def parts(groups: int, work: int, limit: int | None, row: int) -> Iterator[Part]:
    """The launches for `groups` groups whose work adds up to `work`.

    All but the last have at most `row` groups or complete rows, so that none is rounded up when it
    is folded, and each ends where the next begins.

    >>> [(p.first, p.count) for p in parts(10, 1000, 300, 65535)]
    [(0, 3), (3, 3), (6, 3), (9, 1)]
    """
    if limit is None or work <= limit:
        if groups:
            yield Part(0, groups, work)
        return
    # A single group may exceed the limit: it cannot be divided.
    most = max(1, groups * limit // work)
    if most > row:
        most -= most % row
    for first in range(0, groups, most):
        count = min(most, groups - first)
        yield Part(first, count, -(-work * count // groups))


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a launch's threads."""

    start: Extents
    extents: Extents
    work: int


def boxes(box: Box, local: Sequence[int], limit: int | None) -> Iterator[Box]:
    """The box, halved along its longest side until no part exceeds the limit; parts are workgroups.

    >>> [(b.start, b.extents) for b in boxes(Box((0, 0), (8, 64), 100), (8, 8), 50)]
    [((0, 0), (8, 32)), ((0, 32), (8, 32))]
    """
    groups = [extent // threads for extent, threads in zip(box.extents, local, strict=True)]
    axis = groups.index(max(groups))
    if limit is None or box.work <= limit or groups[axis] == 1:
        yield box
        return
    lower = groups[axis] // 2 * local[axis]
    for at, extent in ((0, lower), (lower, box.extents[axis] - lower)):
        work = -(-box.work * extent // box.extents[axis])
        start = _with(box.start, axis, box.start[axis] + at)
        yield from boxes(Box(start, _with(box.extents, axis, extent), work), local, limit)


def _with(extents: Extents, axis: int, extent: int) -> Extents:
    return (*extents[:axis], extent, *extents[axis + 1 :])
