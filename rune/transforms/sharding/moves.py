"""Moves of sharded arrays from one layout to another, if no process has all of the array."""

from __future__ import annotations

import functools
from collections.abc import Hashable

from rune.array import Array, Place, committed_to
from rune.core.interpreter import Axis, current
from rune.core.manual import Manual
from rune.core.program import Program
from rune.core.staging import trace_program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.sharding import NamedSharding, PartitionSpec
from rune.sharding.memory import Spread, is_readable, spread
from rune.transforms.sharding.reshard import layout_of, resharded
from rune.transforms.sharding.run import mesh_program


def put_at(array: Array, place: Place) -> Array:
    """The array at another place; the same memory if it is already there."""
    source, target = array.place.device, place.device
    if source is target:
        return array if array.committed else Array(array.buffer, array.type, place)
    if isinstance(source, Spread) and not is_readable(source, array.buffer):
        return _sent(array, source.sharding, place)
    return Array(array.copied_to(target), array.type, place)


def _sent(array: Array, source: NamedSharding, place: Place) -> Array:
    """The array at another place, if no process has all of it."""
    target = place.device
    # Between meshes: first every device gets all of it, then it is laid out as a readable array.
    if isinstance(target, Spread) and target.sharding.mesh == source.mesh:
        return relaid(array, target.sharding)
    return put_at(relaid(array, NamedSharding(source.mesh, PartitionSpec())), place)


def relaid(array: Array, target: NamedSharding) -> Array:
    """A sharded array in another sharding of its mesh."""
    source = array.sharding
    assert isinstance(source, NamedSharding)
    program = _program(array.type, source, target)
    (result,) = mesh_program(program, target.mesh, (source.spec,), (target.spec,))([array])
    return Array(result.buffer, result.type, committed_to(spread(target)))


# Memoised, since compiled code is stored on the program.
@functools.lru_cache(maxsize=1024)
def _program(type: ArrayType, source: NamedSharding, target: NamedSharding) -> Program:
    """The program of each device: from its block in one layout to its block in the other."""
    axes: dict[Hashable, Axis] = {name: Axis(size) for name, size in source.mesh.shape.items()}
    layouts = layout_of(source.spec, type.ndim), layout_of(target.spec, type.ndim)

    def run(block: Value) -> list[Value]:
        return [resharded(block, source.mesh, *layouts)]

    block_type = type.with_shape(source.shard_shape(type.shape))
    return trace_program(Manual(current(), axes), run, [block_type], "device_put").closed()
