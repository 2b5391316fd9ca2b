"""Span: the elements of an axis that each device has, or needs (spans.py)."""

from __future__ import annotations

from rune.core.axes import Name
from rune.records import dataclass
from rune.transforms.sharding.blocks import Region


@dataclass(frozen=True, slots=True)
class Span:
    """The elements that each device has, or needs, of an axis of an array.

    names: the mesh axes that split it, the first outermost
    """

    names: tuple[Name, ...]
    share: int
    first: int
    width: int

    def shifted(self, by: int) -> Span:
        """The same elements by an index that is larger by so much."""
        return Span(self.names, self.share, self.first + by, self.width)

    def is_even(self, length: int, region: Region) -> bool:
        """Whether they are equal parts of the axis."""
        return self == Span(self.names, self.share, 0, self.share) and self.share * devices_of(self, region) == length


def devices_of(span: Span, region: Region) -> int:
    """The number of devices along the mesh axes of a span."""
    return region.size(span.names)
