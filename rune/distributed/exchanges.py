"""Collective calls of all processes: waiting for each other, and exchanging arrays.

Each process first announces its call and the types of its arrays. If processes disagree, they get
an error that shows both calls, instead of wrong numbers or an endless wait.
"""

from __future__ import annotations

from typing import TypeGuard, TypeVar

import numpy as np

from rune import tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import DistributedError
from rune.processes import Message, agree, converse, current
from rune.sharding import NamedSharding, PartitionSpec
from rune.transforms.arguments import value_leaves
from rune.transforms.sharding.moves import relaid

T = TypeVar("T")  # an array, or a tree of arrays
BLOCKS = "blocks"  # the topic of messages with blocks of arrays


def sync_global_devices(name: str) -> None:
    """Wait until every process has reached this call.

    name:   identifies the call, and must be the same in all processes.
    Errors: DistributedError if a process makes another call, fails, leaves, or is too late.

    >>> import rune
    >>> rune.distributed.sync_global_devices("the data are there")
    """
    agree("sync_global_devices", repr(name))


def process_allgather(in_tree: T, tiled: bool = False) -> T:
    """The arrays of every process, returned to all of them as NumPy arrays.

    in_tree: a tree of arrays, with the same types in all processes. An array on devices of several
             processes is assembled from its blocks.
    tiled:   join the arrays along their first axis instead of a new one.
    Shapes:  [*S] in n processes -> [n, *S]; `tiled`, [k, *S] -> [n k, *S]; sharded, [*S] -> [*S].
    Types:   those of arrays: 64-bit NumPy data become 32-bit unless x64 is enabled.
    Errors:  DistributedError if types or calls differ between processes.

    >>> import rune, numpy as np
    >>> rune.distributed.process_allgather({"loss": np.float32(3.0)})
    {'loss': array([3.], dtype=float32)}
    """
    leaves, treedef = tree.flatten(in_tree)
    values = value_leaves("process_allgather", leaves, treedef)
    agree("process_allgather", _types([type_of(x) for x in values], treedef))
    join = np.concatenate if tiled and all(type_of(x).ndim for x in values) else np.stack
    return tree.unflatten(
        treedef, [_complete(x) if _is_spread(x) else join(_blocks_of_all(_on_host(x))) for x in values]
    )


def _is_spread(value: Value) -> TypeGuard[Array]:
    """Whether a value is an array on devices of several processes."""
    return type(value) is Array and not value.is_fully_addressable


def _complete(array: Array) -> np.ndarray:
    """The complete array from blocks on devices of several processes."""
    sharding = array.sharding
    assert isinstance(sharding, NamedSharding)
    return np.array(relaid(array, NamedSharding(sharding.mesh, PartitionSpec())).numpy())


def broadcast_one_to_all(in_tree: T, is_source: bool | None = None) -> T:
    """The arrays of one process, returned to all processes as NumPy arrays.

    in_tree:   a tree of arrays, with the same types in all processes.
    is_source: whether this process sends; exactly one must. By default process 0 does.
    Shapes:    any, unchanged. Types: those of arrays, as in process_allgather.
    Errors:    DistributedError if types or calls differ, or unless exactly one process sends.

    >>> import rune, numpy as np
    >>> rune.distributed.broadcast_one_to_all(np.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    leaves, treedef = _host_leaves("broadcast_one_to_all", in_tree)
    sends = current().index == 0 if is_source is None else bool(is_source)
    agree("broadcast_one_to_all", _types([ArrayType(x.shape, x.dtype) for x in leaves], treedef))
    flags = converse("broadcast_one_to_all", BLOCKS, bytes([sends]))
    senders = [n for n, flag in flags.items() if flag == b"\1"]
    if len(senders) != 1:
        raise DistributedError(
            f"broadcast_one_to_all: cannot send from {len(senders)} processes (exactly one must have is_source=True)"
        )
    return tree.unflatten(treedef, [_block_of(senders[0], x) for x in leaves])


def _blocks_of_all(block: np.ndarray) -> list[np.ndarray]:
    """The blocks of all processes, in their order; all have the same type."""
    messages = converse("process_allgather", BLOCKS, block.tobytes())
    return [_array(message, block) for message in messages.values()]


def _block_of(source: int, block: np.ndarray) -> np.ndarray:
    """The block of one process; all processes have the same type."""
    world = current()
    if world.index == source:
        world.tell(BLOCKS, block.tobytes(), [n for n in range(world.count) if n != source])
        return block
    return _array(world.hear("broadcast_one_to_all", BLOCKS, [source])[source], block)


def _array(data: Message, like: np.ndarray) -> np.ndarray:
    """The writable array in a message, of the type of `like`."""
    return np.frombuffer(bytearray(data), np.uint8).view(like.dtype).reshape(like.shape)


def _host_leaves(name: str, in_tree: object) -> tuple[list[np.ndarray], tree.TreeDef]:
    leaves, treedef = tree.flatten(in_tree)
    return [_on_host(x) for x in value_leaves(name, leaves, treedef)], treedef


def _on_host(value: Value) -> np.ndarray:
    return np.asarray(value, type_of(value).dtype)


def _types(array_types: list[ArrayType], treedef: tree.TreeDef) -> str:
    """The types and, unless the tree is one array, its structure: `of f32[3], i32[] in ...`."""
    types = ", ".join(str(t.strong()) for t in array_types)
    return f"of {types}" if treedef == tree.structure(0) else f"of {types} in {treedef}"
