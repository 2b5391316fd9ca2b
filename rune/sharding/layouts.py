"""Orders of axes in memory, and shardings with one. Arrays of rune are stored row by row.

JAX's programs name an order to ask a device for another; here a `Format` is its sharding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rune.errors import ArgumentError
from rune.records import dataclass
from rune.sharding.shardings import Sharding


@dataclass(frozen=True)
class Layout:
    """An order of axes in memory, the slowest first; `Layout.AUTO` leaves it to the compiler."""

    major_to_minor: Sequence[int]
    tiling: Sequence[Sequence[int]] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[_Auto]

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        object.__setattr__(self, "tiling", self.tiling and tuple(map(tuple, self.tiling)))

    @property
    def is_row_major(self) -> bool:
        """Whether it is row-major, the only layout of rune's arrays."""
        in_order = tuple(self.major_to_minor) == tuple(range(len(self.major_to_minor)))
        return in_order and not self.tiling and not self.sub_byte_element_size_in_bits

    def update(self, **changes: object) -> Layout:
        """The layout with some fields changed."""
        return replace(self, **changes)


class _Auto:
    """The layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AUTO"


Layout.AUTO = _Auto()


@dataclass(frozen=True)
class Format:
    """A sharding, and an order of axes in memory, which is row-major or left open.

    Errors: ArgumentError for a layout that is not row-major.
    """

    layout: Layout | _Auto | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if isinstance(self.layout, Layout) and not self.layout.is_row_major:
            raise ArgumentError(f"Format: cannot use layout={self.layout!r} (arrays are stored row by row)")
