"""What all processes do together: wait for each other, and exchange arrays.

Each first says what it means to do, with the types of its arrays: processes that disagree get an
error that shows both, rather than wrong numbers or a wait without end.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from rune import tree
from rune.core.types import ArrayType
from rune.distributed.world import World, current
from rune.errors import DistributedError
from rune.transforms.arguments import value_leaves

T = TypeVar("T")  # an array, or a tree of arrays


def sync_global_devices(name: str) -> None:
    """Wait until every process has come to this call.

    name:   says which call it is, and has to be the same in all.
    Errors: DistributedError if a process comes to another call, fails, leaves, or does not come.

    >>> import rune
    >>> rune.distributed.sync_global_devices("the data are there")
    """
    _agree(current(), "sync_global_devices", f"{name!r}")


def process_allgather(in_tree: T, tiled: bool = False) -> T:
    """What every process has, in each of them, as NumPy arrays.

    in_tree: a tree of arrays, of the same types in all processes.
    tiled:   join the arrays along their first axis, instead of a new one.
    Shapes:  [*S] in n processes -> [n, *S]; `tiled`, [k, *S] -> [n k, *S].
    Types:   those of arrays: of NumPy's 64 bits 32 are kept, unless they are enabled.
    Errors:  DistributedError if types or calls differ between processes.

    >>> import rune, numpy as np
    >>> rune.distributed.process_allgather({"loss": np.float32(3.0)})
    {'loss': array([3.], dtype=float32)}
    """
    world, (leaves, treedef) = current(), _host_leaves("process_allgather", in_tree)
    _agree(world, "process_allgather", _types(leaves, treedef))
    join = np.concatenate if tiled and all(x.ndim for x in leaves) else np.stack
    gathered = [join(world.gather("process_allgather", x)) for x in leaves]
    return tree.unflatten(treedef, gathered)


def broadcast_one_to_all(in_tree: T, is_source: bool | None = None) -> T:
    """What one process has, in all of them, as NumPy arrays.

    in_tree:   a tree of arrays, of the same types in all processes.
    is_source: whether it is this process that sends: one of them. By default process 0 does.
    Shapes:    any, kept. Types: those of arrays, as in process_allgather.
    Errors:    DistributedError if types or calls differ, and unless one process sends.

    >>> import rune, numpy as np
    >>> rune.distributed.broadcast_one_to_all(np.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    world, (leaves, treedef) = current(), _host_leaves("broadcast_one_to_all", in_tree)
    sends = world.index == 0 if is_source is None else bool(is_source)
    _agree(world, "broadcast_one_to_all", _types(leaves, treedef))
    senders = [n for n, flag in enumerate(world.exchange("broadcast_one_to_all", bytes([sends]))) if flag == b"\1"]
    if len(senders) != 1:
        raise DistributedError(
            f"broadcast_one_to_all: cannot send from {len(senders)} processes (one is to have is_source=True)"
        )
    return tree.unflatten(treedef, [world.broadcast("broadcast_one_to_all", x, senders[0]) for x in leaves])


def _host_leaves(name: str, in_tree: object) -> tuple[list[np.ndarray], tree.TreeDef]:
    leaves, treedef = tree.flatten(in_tree)
    return [np.asarray(x) for x in value_leaves(name, leaves, treedef)], treedef


def _types(arrays: list[np.ndarray], treedef: tree.TreeDef) -> str:
    """`f32[3], i32[]`, and how they are held unless it is one array."""
    types = ", ".join(str(ArrayType(x.shape, x.dtype)) for x in arrays)
    return f"of {types}" if treedef == tree.structure(0) else f"of {types} in {treedef}"


def _agree(world: World, call: str, what: str) -> None:
    """Errors: DistributedError unless every process makes this call."""
    mine = f"{call} {what}"
    for number, message in enumerate(world.exchange(call, mine.encode())):
        if message.decode() != mine:
            raise DistributedError(
                f"{call}: cannot meet the other processes (process {number} is in {message.decode()}, "
                f"process {world.index} in {mine})"
            )
