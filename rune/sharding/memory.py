"""The memory of sharded arrays: one buffer for each device of a mesh.

A `Spread` takes the place of the device of a sharded array. Its backend reads and writes arrays
block by block. Buffers in the host's memory are views of one array if possible, and replicas there
share one buffer. The buffer of a device of another process is None here.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

import numpy as np

from rune import locks, processes
from rune.backends import Device
from rune.backends.shared.protocol import Buffer
from rune.core.types import ArrayType
from rune.errors import DistributedError
from rune.records import dataclass
from rune.sharding.meshes import Mesh
from rune.sharding.shardings import Block, NamedSharding


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The buffer of each device, in the order of the mesh, and the shape of the array.

    buffers: None for devices of other processes
    """

    buffers: tuple[Buffer | None, ...]
    shape: tuple[int, ...]

    @property
    def local(self) -> tuple[Buffer, ...]:
        """The buffers of this process."""
        return tuple(b for b in self.buffers if b is not None)


def on_all_devices(local: Sequence[Buffer], mesh: Mesh) -> tuple[Buffer | None, ...]:
    """The buffers of this process at the positions of their devices, and None for others."""
    if not mesh.is_multi_process:
        return tuple(local)
    buffers = iter(local)
    return tuple(next(buffers) if d.is_local else None for d in mesh.in_order)


@dataclass(frozen=True, eq=False)
class Spread(Device):
    """The devices of a sharding, as the device of an array."""

    sharding: NamedSharding

    # Compared by identity, since there is one for each sharding: devices are equal by their target.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def name(self) -> str:
        """The devices and the spec."""
        return f"{_range(self.sharding.mesh.names)} {self.sharding.spec!r}"

    @property
    def backend(self) -> SpreadMemory:  # type: ignore[override]
        """The memory of all devices together."""
        return SpreadMemory(self.sharding)

    def __repr__(self) -> str:
        return self.name


def _range(names: Sequence[str]) -> str:
    """`cpu:0…cpu:7` for several names."""
    return names[0] if len(names) == 1 else f"{names[0]}…{names[-1]}"


_spreads: WeakValueDictionary[NamedSharding, Spread] = WeakValueDictionary()
_lock = locks.lock()


def spread(sharding: NamedSharding) -> Spread:
    """The one object for the devices of a sharding."""
    with _lock:
        devices = _spreads.get(sharding)
        if devices is None:
            first = _first_here(sharding.mesh)
            devices = _spreads[sharding] = Spread(first.target, first.file, sharding)
        return devices


def _first_here(mesh: Mesh) -> Device:
    """The first device of this process. Errors: DistributedError if the mesh has none."""
    if not mesh.local_devices:
        raise DistributedError(
            f"{mesh}: cannot lay out on {_range(mesh.names)} (all in other processes)",
            hint="each process that takes part has a device in the mesh",
        )
    return mesh.local_devices[0]


def in_host_memory(device: Device) -> bool:
    """Whether the buffers of a device are NumPy arrays."""
    return device.target.backend == "cpu"


@dataclass(frozen=True, slots=True)
class SpreadMemory:
    """Arrays on all devices of a sharding."""

    sharding: NamedSharding

    def copy_in(self, array: np.ndarray) -> Blocks:
        """The blocks of a host array, which may change afterwards."""
        return self.share(array.copy())

    def share(self, array: np.ndarray) -> Blocks:
        """The blocks of a host array that does not change: views of it in the host's memory.

        Errors: DistributedError if the array of another process has other elements.
        """
        if self.sharding.mesh.is_multi_process and array.ndim:
            _require_same_everywhere(array, self.sharding)
        return self.blocks_of(array)

    def blocks_of(self, array: np.ndarray) -> Blocks:
        """The same for an array that may differ in other processes."""
        # `first` is the number of the first device with the same block: replicas share its view.
        views: list[np.ndarray] = []
        buffers: list[Buffer] = []
        for device, block, first in _places(self.sharding, array.shape):
            views.append(np.asarray(array[block], order="C") if first == len(views) else views[first])
            buffers.append(views[-1] if in_host_memory(device) else device.backend.copy_in(views[-1]))
        return Blocks(on_all_devices(buffers, self.sharding.mesh), array.shape)

    def is_readable(self, shape: tuple[int, ...]) -> bool:
        """Whether the devices of this process together have all blocks of an array."""
        return not self.sharding.mesh.is_multi_process or _has_all_blocks(self.sharding, shape)

    def copy_out(self, buffer: Blocks, type: ArrayType) -> np.ndarray:
        """The array, with each block read from the first device of this process that has it.

        Errors: DistributedError if only other processes have some block.
        """
        if not self.is_readable(buffer.shape):
            raise DistributedError(
                f"array: cannot read {type} here (other processes have blocks of it: {self.sharding.spec!r})",
                hint="rune.distributed.process_allgather collects all of it; addressable_shards are the local blocks",
            )
        array = np.empty(buffer.shape, type.dtype)
        block_type = type.with_shape(self.sharding.shard_shape(buffer.shape))
        places = _places(self.sharding, buffer.shape)
        for number, ((device, block, first), local) in enumerate(zip(places, buffer.local, strict=True)):
            if number == first:
                array[block] = host_block(device, local, block_type)
        return array

    def synchronize(self) -> None:
        """Wait for the work of all devices of this process."""
        for device in self.sharding.mesh.local_devices:
            device.backend.synchronize()


def _require_same_everywhere(array: np.ndarray, sharding: NamedSharding) -> None:
    """Errors: DistributedError unless all processes of the mesh have this array."""
    processes.agree(
        "device_put",
        f"{ArrayType(array.shape, array.dtype)} with checksum {zlib.crc32(array.tobytes()):08x} by {sharding.spec!r}",
        {*sharding.mesh.homes},
        hint="rune.make_array_from_process_local_data is for arrays that each process has a part of",
    )


def is_readable(device: Device | None, buffer: Buffer) -> bool:
    """Whether this process has all of an array on a device or on a Spread."""
    return not isinstance(device, Spread) or device.backend.is_readable(buffer.shape)


def host_block(device: Device, buffer: Buffer, type: ArrayType) -> np.ndarray:
    """One block as a host array, which must not be written to."""
    return buffer if in_host_memory(device) else device.backend.copy_out(buffer, type)


@functools.lru_cache(maxsize=4096)
def _has_all_blocks(sharding: NamedSharding, shape: tuple[int, ...]) -> bool:
    local_blocks, all_blocks = sharding.addressable_devices_indices_map(shape), sharding.devices_indices_map(shape)
    return _distinct(local_blocks) == _distinct(all_blocks)


def _distinct(blocks: Mapping[Device, Block]) -> set[str]:
    """The different blocks, as text, since slices have no hash."""
    return set(map(repr, blocks.values()))


@functools.lru_cache(maxsize=4096)
def _places(sharding: NamedSharding, shape: tuple[int, ...]) -> tuple[tuple[Device, Block, int], ...]:
    """Each device of this process, its block, and the number of the first with the same block."""
    blocks = list(sharding.addressable_devices_indices_map(shape).items())
    return tuple((device, block, [b for _, b in blocks].index(block)) for device, block in blocks)


@functools.lru_cache(maxsize=4096)
def replicas(sharding: NamedSharding, shape: tuple[int, ...]) -> tuple[tuple[Device, Block, int], ...]:
    """Each device with its block, and the number of devices before it with the same block."""
    places = list(sharding.devices_indices_map(shape).items())
    blocks = [block for _, block in places]
    return tuple((d, block, blocks[:n].count(block)) for n, (d, block) in enumerate(places))
