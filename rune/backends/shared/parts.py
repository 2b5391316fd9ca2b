"""Launches in parts: a device that also draws a screen, or is watched, must get others in between.

A watchdog resets a device that works on one submission for seconds, and what is in its memory is
gone. `Target.submission_work` bounds what is submitted at once; a launch of more work is made of
several, each over some of its groups. They are independent, as grid points are, and so the results
are the same. What one group does is never divided.
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
        """The groups along two dimensions of a launch; `row`: the most along one of them."""
        wide = min(self.count, row)
        return wide, -(-self.count // wide)


def parts(groups: int, work: int, limit: int | None, row: int) -> Iterator[Part]:
    """The launches for so many groups, of so much work together.

    All but the last have at most `row` groups, or whole rows: folded, they end where the next
    begins.

    >>> [(p.first, p.count) for p in parts(10, 1000, 300, 65535)]
    [(0, 3), (3, 3), (6, 3), (9, 1)]
    """
    if limit is None or work <= limit:
        if groups:
            yield Part(0, groups, work)
        return
    most = max(1, groups * limit // work)
    if most > row:
        most -= most % row
    for first in range(0, groups, most):
        count = min(most, groups - first)
        yield Part(first, count, -(-work * count // groups))


@dataclass(frozen=True, slots=True)
class Box:
    """Some threads of a launch along its dimensions."""

    start: Extents
    extents: Extents
    work: int


def boxes(box: Box, local: Sequence[int], limit: int | None) -> Iterator[Box]:
    """The box, halved along its longest side until each has no more work; whole workgroups each.

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
