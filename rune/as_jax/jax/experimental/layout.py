"""`jax.experimental.layout`: how a device stores an array (Flax asks for the class)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rune import absent
from rune.errors import ArgumentError


@dataclass(frozen=True)
class Format:
    """A sharding, and an order of axes in memory, which can only be left open."""

    layout: None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None:
            raise ArgumentError(f"Format: cannot use layout={self.layout!r} (rune chooses how arrays are stored)")


__getattr__ = absent.of(__name__)
