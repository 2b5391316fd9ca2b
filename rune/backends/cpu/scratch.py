"""Work memory of a plan's routines, which they use in turn, after the values in the arena."""

from __future__ import annotations

from collections.abc import Iterable

from rune.dims import Size
from rune.lowering.plan import Plan
from rune.records import dataclass

LINE = 64  # [B] of a cache line, to which work memory is aligned


@dataclass(frozen=True, slots=True)
class Scratch:
    """Work memory: `bytes` from `first` on in a plan's arena."""

    first: Size
    bytes: int


def behind(plan: Plan, sizes: Iterable[int]) -> Scratch | None:
    """Work memory for the routine that needs most; None if no routine needs any."""
    most = max(sizes, default=0)
    return Scratch(in_lines(plan.arena_bytes), most) if most else None


def in_lines(nbytes: Size) -> Size:
    """The bytes rounded up to full cache lines."""
    return (nbytes + (LINE - 1)) // LINE * LINE
