"""A band of a plan (lowering/bands.py) as a step of its code."""

from __future__ import annotations

from rune.lowering.plan import Slot, Step
from rune.records import dataclass

UNEVEN = 1.25  # how many times the average share of a core the largest one may be


@dataclass(frozen=True, slots=True)
class Band:
    """Steps that run entry by entry. passing: memory that is needed for one entry at a time."""

    steps: tuple[Step, ...]
    entries: int
    passing: frozenset[Slot]


def is_even(entries: int, cores: int) -> bool:
    """Whether all cores get about as many entries."""
    return -(-entries // cores) * cores <= UNEVEN * entries
