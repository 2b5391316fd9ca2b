"""What calls need to know of a plan."""

from __future__ import annotations

from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.dims import Size
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """What calls need to know of a plan.

    cost:      estimated instructions; None where sizes or data decide
    has_entry: whether its code has an entry of its own
    gives_up:  whether a draft of it may end before all is done
    """

    name: str
    arguments: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    arena_bytes: Size
    size_sources: tuple[SizeSource, ...]
    donations: tuple[tuple[int, int], ...]
    cost: float | None
    calls_python: bool
    has_entry: bool
    gives_up: bool
