"""Shard: one block of an array, and the device that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rune.backends import Device
from rune.records import dataclass
from rune.sharding.shardings import Block

if TYPE_CHECKING:
    from rune.array import Array


@dataclass(frozen=True, slots=True, repr=False)
class Shard:
    """A block of an array.

    index:       its slice of each axis
    replica_id:  the number of devices before this one, in mesh order, that hold the same block
    data:        the block, an array on the device
    Errors:      none.

    >>> import rune.numpy as rnp
    >>> rnp.ones(2).addressable_shards[0].replica_id
    0
    """

    device: Device
    index: Block
    replica_id: int
    data: Array

    def __repr__(self) -> str:
        place = f"device={self.device.name}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({place}, data={self.data.type})"


@dataclass(frozen=True, slots=True)
class RemoteShard:
    """A block on a device of another process, whose data is not here."""

    device: Device
    index: Block
    replica_id: int
    data: None = None


def shard(device: Device, index: Block, replica_id: int, data: Array | None) -> Shard | RemoteShard:
    """The shard with this data; without data, the shard of another process."""
    return RemoteShard(device, index, replica_id) if data is None else Shard(device, index, replica_id, data)
