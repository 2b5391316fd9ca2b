"""Memory that the routines of a plan work in, one after the other, behind the arena's values."""

from __future__ import annotations

from collections.abc import Iterable

from rune.dims import Size
from rune.lowering.plan import Plan
from rune.records import dataclass

LINE = 64  # bytes to which it is aligned


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where it lies: from `first` on in a plan's arena, `bytes` in all."""

    first: Size
    bytes: int


def behind(plan: Plan, sizes: Iterable[int]) -> Scratch | None:
    """Memory for the routine that wants most; None where none wants any."""
    most = max(sizes, default=0)
    return Scratch(in_lines(plan.arena_bytes), most) if most else None


def in_lines(nbytes: Size) -> Size:
    """The bytes of the lines that so many bytes take."""
    return (nbytes + (LINE - 1)) // LINE * LINE
