"""PartitionSpec: the axes of a mesh along which each axis of an array is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import ClassVar

from rune.core.abstract_mesh import Name

Part = Name | tuple[Name, ...] | None


class Unconstrained(Enum):
    """The part of a constraint for an axis that it does not constrain."""

    UNCONSTRAINED = "unconstrained"

    def __repr__(self) -> str:
        return self.name


class PartitionSpec:
    """For each axis of an array, the mesh axes along which it is split; None leaves it whole.

    Several names, as a tuple, split an axis into the product of their sizes, the first name
    outermost. Axes beyond the spec are whole. Errors: none; a sharding checks the names.

    >>> from rune.sharding import P
    >>> P("data", None, ("model", "pipe"))
    P('data', None, ('model', 'pipe'))
    >>> P(("data",)) == P("data")
    True

    `P.UNCONSTRAINED` in a constraint leaves an axis as it is split already.
    """

    __slots__ = ("_parts",)
    UNCONSTRAINED: ClassVar = Unconstrained.UNCONSTRAINED

    def __init__(self, *parts: Part):
        self._parts = tuple(map(_plain, parts))

    def names(self, axis: int) -> tuple[Name, ...]:
        """The mesh axes that split an axis of the array; none beyond the spec."""
        part = self._parts[axis] if axis < len(self._parts) else None
        if part is None or part is Unconstrained.UNCONSTRAINED:
            return ()
        return part if isinstance(part, tuple) else (part,)

    def all_names(self) -> tuple[Name, ...]:
        """The mesh axes of all parts, in order."""
        return tuple(name for axis in range(len(self)) for name in self.names(axis))

    @property
    def partitions(self) -> tuple[Part, ...]:
        """The parts, as a tuple."""
        return self._parts

    def index(self, value: Part) -> int:
        """The first axis with this part. Errors: ValueError if there is none."""
        return self._parts.index(_plain(value))

    def count(self, value: Part) -> int:
        """The number of axes with this part."""
        return self._parts.count(_plain(value))

    def is_open(self, axis: int) -> bool:
        """Whether it does not constrain an axis of the array."""
        return axis < len(self._parts) and self._parts[axis] is Unconstrained.UNCONSTRAINED

    def settled(self) -> PartitionSpec:
        """The spec with every unconstrained axis whole."""
        if Unconstrained.UNCONSTRAINED not in self._parts:
            return self
        return PartitionSpec(*[None if part is Unconstrained.UNCONSTRAINED else part for part in self._parts])

    def update(self, partitions: Iterable[Part]) -> PartitionSpec:
        """A spec of other parts."""
        return PartitionSpec(*partitions)

    def __add__(self, other: Iterable[Part]) -> PartitionSpec:
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Iterable[Part]) -> PartitionSpec:
        return PartitionSpec(*other, *self)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    def __getitem__(self, axis: int) -> Part:
        return self._parts[axis]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self._parts))})"


def _plain(part: Part) -> Part:
    """A tuple of one name as that name, and an empty one as None."""
    if isinstance(part, tuple) and len(part) < 2:
        return part[0] if part else None
    return part
