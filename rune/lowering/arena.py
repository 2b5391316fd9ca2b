"""Arena: offsets for blocks of memory that are needed at some steps and not at others.

Before   a: 4096 B at steps 0..1,  b: 4096 B at 1..2,  c: 4096 B at 2..3
After    a @ 0,  b @ 4096,  c @ 0                                   8192 B

Invariant: two blocks needed at the same step never share a byte.
Cost:      O(n^2) in the number of blocks n.
Source:    greedy by size, best fit: Pisarchyk & Lee 2020, arXiv:2001.03288.
Not done:  blocks of symbolic size share memory only with blocks that are never larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rune import dims
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Value

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that some values use in turn, from step `first` to step `last` inclusive."""

    values: tuple[Value, ...]
    first: int
    last: int
    bytes: Size


@dataclass(frozen=True, slots=True)
class Placed:
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


def place(blocks: Iterable[Block]) -> tuple[list[Placed], Size]:
    """Offsets for all blocks, and the bytes of all: known sizes by best fit, then symbolic ones."""
    blocks = list(blocks)
    static = [b for b in blocks if isinstance(b.bytes, int)]
    placed: list[Placed] = []
    for block in sorted(static, key=lambda b: (-_known(b.bytes), b.first)):
        placed.append(Placed(block, _best_fit(block, placed)))
    end = max((_known(p.offset) + _known(p.block.bytes) for p in placed), default=0)
    symbolic = [b for b in blocks if not isinstance(b.bytes, int)]
    more, total = _place_symbolic(symbolic, end)
    return placed + more, total


def _known(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _best_fit(block: Block, placed: Sequence[Placed]) -> int:
    """The start of the smallest gap, between blocks alive at the same time, that is enough."""
    alive = sorted(
        (_known(p.offset), _known(p.block.bytes)) for p in placed if _meet(p.block, block)
    )
    best: tuple[int, int] | None = None
    end = 0
    for offset, size in alive:
        gap = offset - end
        if gap >= _known(block.bytes) and (best is None or gap < best[0]):
            best = (gap, end)
        end = max(end, offset + size)
    return best[1] if best is not None else end


def _meet(a: Block, b: Block) -> bool:
    return a.first <= b.last and b.first <= a.last


def _place_symbolic(blocks: Iterable[Block], start: Size) -> tuple[list[Placed], Size]:
    """Slots one after the other; a block takes a free slot that is surely large enough."""
    slots: list[list[Placed]] = []
    for block in sorted(blocks, key=lambda b: (-cost.estimate(b.bytes), b.first)):
        for slot in slots:
            fits = dims.at_most(block.bytes, slot[0].block.bytes)
            if fits and not any(_meet(p.block, block) for p in slot):
                slot.append(Placed(block, slot[0].offset))
                break
        else:
            slots.append([Placed(block, start)])
            start = start + block.bytes
    return [p for slot in slots for p in slot], start


def live_peak(placed: Iterable[Placed]) -> Size:
    """The largest sum of bytes alive at one step: no arena can be smaller."""
    changes: dict[int, list[Size]] = {}
    for block in (p.block for p in placed):
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
