"""The signature of a compiled plan: what a call needs to know of it."""

from __future__ import annotations

from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.dims import Size
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """What a call needs to know of a plan. It can be stored, which a plan cannot.

    cost:      estimated instructions; None if they depend on symbolic sizes or on data
    has_entry: whether its code has an entry of its own
    gives_up:  whether a draft of it may end early
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
