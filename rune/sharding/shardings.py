"""Shardings: the block of an array that each device holds.

A block is a slice of every axis, `slice(None)` for a whole axis. Devices that hold the same block
are replicas of each other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rune.backends import Device, device_of
from rune.core.abstract_mesh import AbstractMesh
from rune.core.axes import Name
from rune.core.partition_spec import PartitionSpec
from rune.core.types import Shape
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.records import dataclass
from rune.sharding.meshes import Mesh

Block = tuple[slice, ...]


class Sharding(ABC):
    """The layout of an array over devices: the methods of all shardings.

    Errors: those of each method.

    >>> from rune.sharding import Sharding, SingleDeviceSharding
    >>> isinstance(SingleDeviceSharding("cpu"), Sharding)
    True
    """

    __slots__ = ()

    @abstractmethod
    def shard_shape(self, global_shape: Sequence[Size]) -> Shape:
        """The shape of the block that each device holds.

        Errors: ShapeError for an array that it cannot split into equal blocks.
        """

    @abstractmethod
    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Block]:
        """The block of each device. Errors: as for shard_shape."""

    @property
    @abstractmethod
    def device_set(self) -> frozenset[Device]:
        """The devices that hold a block."""

    @property
    @abstractmethod
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""

    @property
    @abstractmethod
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices that hold a block, in the order of the blocks (JAX's name, for Orbax)."""

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """Those of them that belong to this process."""
        return tuple(d for d in self._device_assignment if d.is_local)

    @property
    def addressable_devices(self) -> frozenset[Device]:
        """The devices of this process that hold a block."""
        return frozenset(d for d in self.device_set if d.is_local)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold a block belong to this process."""
        return all(d.is_local for d in self.device_set)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Block]:
        """The blocks of this process. Errors: as for shard_shape."""
        return {d: block for d, block in self.devices_indices_map(global_shape).items() if d.is_local}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some devices that hold a block belong to this process."""
        return any(d.is_local for d in self.device_set)

    @property
    def memory_kind(self) -> str:
        """The kind of memory of the blocks: that of their devices, the only kind."""
        return "device"

    def with_memory_kind(self, kind: str) -> Self:
        """The sharding in another memory. Errors: ArgumentError for any but "device"."""
        require_memory_kind(type(self).__name__, kind)
        return self

    def check_compatible_aval(self, aval_shape: Sequence[Size]) -> None:
        """Errors: ShapeError for a shape that it cannot split into equal blocks."""
        self.shard_shape(aval_shape)

    @property
    def num_devices(self) -> int:
        """The number of devices that hold a block."""
        return len(self.device_set)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both lay out arrays of this rank in the same way."""
        return self._layout(ndim) == other._layout(ndim)

    @abstractmethod
    def _layout(self, ndim: int) -> tuple[tuple[Device, Block], ...]:
        """The blocks of an array of this rank that can be split."""


def require_memory_kind(name: str, kind: str | None) -> None:
    """Errors: ArgumentError for a kind of memory that no device here has."""
    if kind not in (None, "device"):
        raise ArgumentError(f'{name}: cannot use memory_kind={kind!r} (devices have one memory, "device")')


@dataclass(frozen=True, slots=True, repr=False)
class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    memory_kind: "device", or None for the same
    Errors: DeviceError for an unknown device, ArgumentError for another kind of memory.

    >>> from rune.sharding import SingleDeviceSharding
    >>> SingleDeviceSharding("cpu").shard_shape((3, 4))
    (3, 4)
    """

    device: Device

    def __init__(self, device: str | Device, *, memory_kind: str | None = None):
        require_memory_kind("SingleDeviceSharding", memory_kind)
        object.__setattr__(self, "device", device_of(device))

    def shard_shape(self, global_shape: Sequence[Size]) -> Shape:
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Block]:
        return {self.device: (slice(None),) * len(global_shape)}

    @property
    def device_set(self) -> frozenset[Device]:
        return frozenset({self.device})

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return (self.device,)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def _layout(self, ndim: int) -> tuple[tuple[Device, Block], ...]:
        return tuple(self.devices_indices_map((1,) * ndim).items())

    def __repr__(self) -> str:
        return f"SingleDeviceSharding({self.device.name})"


@dataclass(frozen=True, slots=True, repr=False)
class NamedSharding(Sharding):
    """An array split along the axes of a mesh by a spec.

    mesh:        a Mesh, or its axes alone (AbstractMesh) for the mesh in force when an array is
                 laid out
    memory_kind: "device", or None for the same
    Errors: ArgumentError for a name that the mesh does not have, or that occurs twice, and for
            another kind of memory.

    >>> from rune.sharding import Mesh, NamedSharding, P
    >>> mesh = Mesh(["cpu:0", "reference:0"], "data")
    >>> halves = NamedSharding(mesh, P(None, "data"))
    >>> halves, halves.shard_shape((3, 4))
    (NamedSharding(Mesh('data': 2), P(None, 'data')), (3, 2))
    """

    mesh: Mesh
    spec: PartitionSpec

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None):
        require_memory_kind("NamedSharding", memory_kind)
        object.__setattr__(self, "mesh", mesh)
        object.__setattr__(self, "spec", spec)
        if not isinstance(self.mesh, Mesh | AbstractMesh) or not isinstance(self.spec, PartitionSpec):
            kinds = f"{type(self.mesh).__name__} and {type(self.spec).__name__}"
            raise ArgumentError(
                f"NamedSharding: cannot cut by {kinds} (a Mesh and a PartitionSpec required)",
                hint="NamedSharding(make_mesh((2,), ('data',)), P('data'))",
            )
        names = self.spec.all_names()
        for n, name in enumerate(names):
            if name not in self.mesh.axis_names:
                raise ArgumentError(f"NamedSharding: cannot cut along {name!r} ({self.mesh} has no such axis)")
            if name in names[:n]:
                raise ArgumentError(f"NamedSharding: cannot cut along {name!r} twice ({self.spec})")

    def shard_shape(self, global_shape: Sequence[Size]) -> Shape:
        self._require_even(global_shape)
        return tuple(size // self.parts(axis) for axis, size in enumerate(global_shape))

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Block]:
        shard = self.shard_shape(global_shape)
        return {
            device: tuple(self._slice(axis, size, place) for axis, size in enumerate(shard))
            for device, place in self.mesh.coordinates()
        }

    @property
    def device_set(self) -> frozenset[Device]:
        return frozenset(self._device_assignment)

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return tuple(device for device, _ in self.mesh.coordinates())

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.parts(axis) == 1 for axis in range(len(self.spec)))

    def _layout(self, ndim: int) -> tuple[tuple[Device, Block], ...]:
        return tuple(self.devices_indices_map([self.parts(axis) for axis in range(ndim)]).items())

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another `mesh` or `spec`. Errors: as for a new one."""
        return NamedSharding(**{"mesh": self.mesh, "spec": self.spec, **changes})

    def parts(self, axis: int) -> int:
        """The number of parts of an axis."""
        return math.prod(self.mesh.shape[name] for name in self.spec.names(axis))

    def _slice(self, axis: int, size: Size, place: Mapping[Name, int]) -> slice:
        """The part of an axis, in parts of this size, at a place of the mesh."""
        if self.parts(axis) == 1:
            return slice(None)
        number = 0
        for name in self.spec.names(axis):  # the first name is outermost
            number = number * self.mesh.shape[name] + place[name]
        return slice(number * size, (number + 1) * size)

    def _require_even(self, shape: Sequence[Size]) -> None:
        if len(self.spec) > len(shape):
            raise ShapeError(
                f"NamedSharding: cannot cut {list(shape)} as {self.spec} says ({len(self.spec)} axes required)"
            )
        for axis, size in enumerate(shape):
            parts = self.parts(axis)
            if size % parts != 0:
                raise ShapeError(
                    f"NamedSharding: cannot cut axis {axis} of {list(shape)} into {parts} equal parts "
                    f"({self.spec}; {_sizes(self.mesh, self.spec.names(axis))})",
                    hint=_how_to_divide(size, parts),
                )

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh!r}, {self.spec!r})"


def _how_to_divide(size: Size, parts: int) -> str:
    if isinstance(size, int):
        return f"pad the axis to {-(-size // parts) * parts}, or take a mesh whose size divides {size}"
    return f'declare a multiple of {parts}: in_dims="{parts}*n" for the axis, and the range of n in dims'


def _sizes(mesh: Mesh, names: Sequence[Name]) -> str:
    """`'data' has 4 devices`."""
    return ", ".join(f"{name!r} has {mesh.shape[name]} devices" for name in names)
