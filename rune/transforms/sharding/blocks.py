"""Blocks: the parts that the devices of a mesh hold of an array split by a spec."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rune.core.axes import Name
from rune.core.types import NONE, ArrayType, Axes
from rune.dims import Size
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding, PartitionSpec

Specs = tuple[PartitionSpec, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """The devices that run a body, each on its own: a mesh, and its axes that are split manually.

    is_typed:   whether types tell along which of these axes the values of the body vary
    is_watched: whether indices are checked, so that each device has all of what they address
    has_spans:  whether devices may compute elements outside of an axis (spans.py): not where
                results are checked
    """

    mesh: Mesh
    manual: tuple[Name, ...]
    is_typed: bool = False
    is_watched: bool = False
    has_spans: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all axes of the mesh are split manually."""
        return set(self.manual) == set(self.mesh.axis_names)

    def size(self, names: Sequence[Name]) -> int:
        """The number of devices along these axes."""
        return self.mesh.shape[names[0]] if len(names) == 1 else math.prod(self.mesh.shape[name] for name in names)

    def dividing(self, names: tuple[Name, ...], length: Size) -> tuple[Name, ...]:
        """As many of the leading mesh axes as divide a length; all of them if it is symbolic."""
        if not isinstance(length, int):
            return names
        counts = range(len(names), 0, -1)
        return next((names[:n] for n in counts if length % self.size(names[:n]) == 0), ())

    def copied(self, spec: PartitionSpec) -> tuple[Name, ...]:
        """The axes along which all devices have the same block."""
        return tuple(name for name in self.manual if name not in spec.all_names())

    def copies(self, spec: PartitionSpec) -> int:
        """The number of devices that have the same block."""
        return self.size(self.copied(spec))

    def block(self, type: ArrayType, spec: PartitionSpec) -> ArrayType:
        """The type of a block. Errors: ShapeError if the mesh does not divide an axis."""
        # NamedSharding has the rule of equal parts, and the error.
        block = type.with_shape(NamedSharding(self.mesh, spec).shard_shape(type.shape))
        return block.along(block.varying | self.cut(spec))

    def cut(self, spec: PartitionSpec) -> Axes:
        """The axes along which, by their types, the blocks of a spec vary."""
        return NONE.union(spec.all_names()).intersection(self.manual) if self.is_typed else NONE

    def array_type(self, type: ArrayType, spec: PartitionSpec) -> ArrayType:
        """The type of the array whose blocks have this type."""
        parts = [self.size(spec.names(axis)) for axis in range(type.ndim)]
        blocks = type.with_shape(tuple(d * n for d, n in zip(type.shape, parts, strict=True)))
        # Outside of the region there is one array, which does not vary along its axes.
        return blocks.along(blocks.varying.difference(self.manual))
