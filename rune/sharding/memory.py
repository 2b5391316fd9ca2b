"""The memory of sharded arrays: one buffer for each device of a mesh.

A sharded array is on a `Spread`, which stands in the place of its device. Its backend reads and
writes whole arrays, block by block. Buffers in the host's memory are views of one array where they
can be, and replicas there are one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from rune import locks
from rune.backends import Device
from rune.backends.shared.protocol import Buffer
from rune.core.types import ArrayType
from rune.sharding.shardings import Block, NamedSharding


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The buffer of each device, in the order of the mesh, and the shape of the array."""

    buffers: tuple[Buffer, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Spread(Device):
    """The devices of a sharding, where an array is on several."""

    sharding: NamedSharding

    # There is one for each sharding; two devices of one target would be equal.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def name(self) -> str:
        """The devices and the spec."""
        return f"{_range([d.name for d in self.sharding.mesh.in_order])} {self.sharding.spec!r}"

    @property
    def backend(self) -> SpreadMemory:  # type: ignore[override]
        """What reads and writes arrays on all devices."""
        return SpreadMemory(self.sharding)

    def __repr__(self) -> str:
        return self.name


def _range(names: Sequence[str]) -> str:
    """`cpu:0…cpu:7` for several names."""
    return names[0] if len(names) == 1 else f"{names[0]}…{names[-1]}"


_spreads: WeakValueDictionary[NamedSharding, Spread] = WeakValueDictionary()
_lock = locks.lock()


def spread(sharding: NamedSharding) -> Spread:
    """The one object that stands for the devices of a sharding."""
    with _lock:
        known = _spreads.get(sharding)
        if known is None:
            first = sharding.mesh.in_order[0]
            known = _spreads[sharding] = Spread(first.target, first.file, sharding)
        return known


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
        """The blocks of a host array that does not change: views of it in the host's memory."""
        views: list[np.ndarray] = []
        buffers: list[Buffer] = []
        for device, block, first in _places(self.sharding, array.shape):
            views.append(np.asarray(array[block], order="C") if first == len(views) else views[first])
            buffers.append(views[-1] if in_host_memory(device) else device.backend.copy_in(views[-1]))
        return Blocks(tuple(buffers), array.shape)

    def copy_out(self, buffer: Blocks, type: ArrayType) -> np.ndarray:
        """The whole array, each block read from the first device that has it."""
        array = np.empty(buffer.shape, type.dtype)
        block_type = type.with_shape(self.sharding.shard_shape(buffer.shape))
        for number, (device, block, first) in enumerate(_places(self.sharding, buffer.shape)):
            if number == first:
                array[block] = host_block(device, buffer.buffers[number], block_type)
        return array

    def synchronize(self) -> None:
        """Wait for the work of all devices."""
        for device in self.sharding.mesh.in_order:
            device.backend.synchronize()


def host_block(device: Device, buffer: Buffer, type: ArrayType) -> np.ndarray:
    """One block as a host array, which is not to be written to."""
    return buffer if in_host_memory(device) else device.backend.copy_out(buffer, type)


@functools.lru_cache(maxsize=4096)
def _places(sharding: NamedSharding, shape: tuple[int, ...]) -> tuple[tuple[Device, Block, int], ...]:
    """Each device with its block, and the number of the first device that has the same."""
    blocks = list(sharding.devices_indices_map(shape).items())
    return tuple((device, block, [b for _, b in blocks].index(block)) for device, block in blocks)


def replicas(sharding: NamedSharding, shape: tuple[int, ...]) -> list[tuple[Device, Block, int]]:
    """Each device with its block, and how many devices before it have the same."""
    places = _places(sharding, shape)
    firsts = [first for _, _, first in places]
    return [(d, block, firsts[:n].count(first)) for n, (d, block, first) in enumerate(places)]
