"""Arena: offsets for blocks of memory, each of which is needed only during some steps.

Before   a: 4096 B at steps 0..1,  b: 4096 B at 1..2,  c: 4096 B at 2..3
After    a @ 0,  b @ 4096,  c @ 0                                   8192 B

Invariant: two blocks needed at the same step never share a byte.
Cost:      O(n^2) in the number of blocks n up to MOST_COMPARED, O(n log n) beyond that.
Source:    greedy by size, best fit: Pisarchyk & Lee 2020, arXiv:2001.03288; for more blocks, in the
           order of the steps, best fit among the gaps that earlier blocks have left.
Not done:  blocks of symbolic size share memory only with blocks that are never larger.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from rune import dims
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Value
from rune.records import dataclass

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
MOST_COMPARED = 2048  # most blocks that are compared in all pairs, which packs them best


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that some values use in turn, from step `first` to step `last` inclusive."""

    values: tuple[Value, ...]
    first: int
    last: int
    bytes: Size


@dataclass(frozen=True, slots=True)
class Placement:
    """A block with its offset."""

    block: Block
    offset: Size


def type_bytes(type: ArrayType) -> Size:
    """Bytes of an array."""
    return product(type.shape) * type.dtype.itemsize


def aligned(size: Size) -> Size:
    """The size rounded up to whole cache lines.

    >>> aligned(1), aligned(64), aligned(65)
    (64, 64, 128)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(blocks: Iterable[Block]) -> tuple[list[Placement], Size]:
    """Offsets for all blocks, and total bytes: known sizes by best fit, then symbolic ones."""
    blocks = list(blocks)
    static = [b for b in blocks if isinstance(b.bytes, int)]
    placements = _by_size(static) if len(static) <= MOST_COMPARED else _by_step(static)
    end = max((_known(p.offset) + _known(p.block.bytes) for p in placements), default=0)
    symbolic = [b for b in blocks if not isinstance(b.bytes, int)]
    more, total = _place_symbolic(symbolic, end)
    return placements + more, total


def _known(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _by_size(blocks: Iterable[Block]) -> list[Placement]:
    """Offsets by best fit, the largest blocks first: small ones fit between them."""
    placements: list[Placement] = []
    known: list[_Span] = []
    for block in sorted(blocks, key=lambda b: (-_known(b.bytes), b.first)):
        size = _known(block.bytes)
        offset = _best_fit(block.first, block.last, size, known)
        insort(known, (offset, size, block.first, block.last))
        placements.append(Placement(block, offset))
    return placements


def _by_step(blocks: Iterable[Block]) -> list[Placement]:
    """Offsets in the order of first steps, each in memory that earlier blocks no longer need."""
    placements: list[Placement] = []
    alive: list[tuple[int, int, int]] = []  # last step, offset, bytes
    gaps = _Gaps()
    for block in sorted(blocks, key=lambda b: (b.first, -_known(b.bytes))):
        while alive and alive[0][0] < block.first:
            _, offset, size = heapq.heappop(alive)
            gaps.give(offset, size)
        size = _known(block.bytes)
        placements.append(Placement(block, gaps.take(size)))
        heapq.heappush(alive, (block.last, _known(placements[-1].offset), size))
    return placements


class _Gaps:
    """Unused ranges of bytes below `end`; no two of them touch."""

    def __init__(self) -> None:
        self.end = 0
        self.by_size: list[tuple[int, int]] = []  # (bytes, offset), in order
        self.bytes_at: dict[int, int] = {}  # by the first byte of a gap
        self.start_of: dict[int, int] = {}  # by the first byte behind it

    def take(self, size: int) -> int:
        """The start of the smallest gap that is large enough, or of the last gap, extended."""
        number = bisect_left(self.by_size, (size, 0))
        if number < len(self.by_size):
            room, start = self.by_size[number]
            self._remove(start)
            self._add(start + size, room - size)
            return start
        start = self.start_of.get(self.end, self.end)
        if start < self.end:
            self._remove(start)
        self.end = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """Add a range that is no longer used, joined to the gaps next to it."""
        end = start + size
        before = self.start_of.get(start)
        if before is not None:
            self._remove(before)
            start = before
        if end in self.bytes_at:
            end += self._remove(end)
        self._add(start, end - start)

    def _add(self, start: int, size: int) -> None:
        if size:
            insort(self.by_size, (size, start))
            self.bytes_at[start], self.start_of[start + size] = size, start

    def _remove(self, start: int) -> int:
        """Remove a gap, and return its bytes."""
        size = self.bytes_at.pop(start)
        del self.start_of[start + size]
        del self.by_size[bisect_left(self.by_size, (size, start))]
        return size


_Span = tuple[int, int, int, int]  # offset, bytes, first and last step


def _best_fit(begin: int, until: int, needed_bytes: int, spans: Sequence[_Span]) -> int:
    """The start of the smallest gap between blocks alive at the same time that is large enough."""
    best: tuple[int, int] | None = None
    end = 0
    for offset, size, first, last in spans:
        if first <= until and begin <= last:
            gap = offset - end
            if gap >= needed_bytes and (best is None or gap < best[0]):
                best = (gap, end)
            if offset + size > end:
                end = offset + size
    return best[1] if best is not None else end


def _meet(a: Block, b: Block) -> bool:
    return a.first <= b.last and b.first <= a.last


def _place_symbolic(blocks: Iterable[Block], start: Size) -> tuple[list[Placement], Size]:
    """Slots one after another; a block takes a free slot that is certain to be large enough."""
    slots: list[list[Placement]] = []
    for block in sorted(blocks, key=lambda b: (-cost.estimate(b.bytes), b.first)):
        for slot in slots:
            fits = dims.at_most(block.bytes, slot[0].block.bytes)
            if fits and not any(_meet(p.block, block) for p in slot):
                slot.append(Placement(block, slot[0].offset))
                break
        else:
            slots.append([Placement(block, start)])
            start = start + block.bytes
    return [p for slot in slots for p in slot], start


def live_peak(placements: Iterable[Placement]) -> Size:
    """The largest sum of bytes alive at one step: no arena can be smaller."""
    changes: dict[int, list[Size]] = {}
    for block in (p.block for p in placements):
        changes.setdefault(block.first, []).append(block.bytes)
        changes.setdefault(block.last + 1, []).append(-block.bytes)
    peak: Size = 0
    alive: Size = 0
    for step in sorted(changes):
        for change in changes[step]:
            alive = alive + change
        if cost.estimate(alive) > cost.estimate(peak):
            peak = alive
    return peak
