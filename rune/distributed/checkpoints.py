"""Checkpoints of trees of arrays, block by block: written as arrays are cut, read onto any mesh.

    path/published          the name of the version that counts
    path/<version>/index    what each array is, and which files its blocks are in
    path/<version>/3.0.1    block 1 that process 0 wrote of array 3, its bytes

A version is written beside the old one, and counts from the one rename that names it: a process
that ends at any moment leaves the old version, whole.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np

from rune import dtypes, tree
from rune.array import Array, default_place, put
from rune.backends import Device
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError, DistributedError
from rune.processes import agree, converse, current, turn
from rune.records import dataclass
from rune.sharding import Sharding
from rune.sharding.shards import Shard
from rune.transforms.arguments import array_leaves
from rune.transforms.compile.placement import device_put
from rune.transforms.eval_shape import leaf_types
from rune.transforms.sharding.assemble import make_array_from_callback
from rune.transforms.tree_difference import paths

T = TypeVar("T")  # a tree of arrays
PUBLISHED, INDEX = "published", "index"
CHECKPOINT = "checkpoint"  # the topic of what processes say of it
Place = str | Device | Sharding


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block of an array: where it starts, its shape, its file, and the checksum of its bytes."""

    file: str
    start: tuple[int, ...]
    shape: tuple[int, ...]
    crc32: int


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array: its path in the tree, its dtype as types print it, its shape and blocks."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    blocks: tuple[StoredBlock, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a process is to write of an array: blocks on the host, with where each starts."""

    path: str
    type: ArrayType
    blocks: tuple[tuple[tuple[int, ...], np.ndarray], ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree that is to be written: what this process has of it, and where it goes.

    topic: under which the processes exchange messages about it, and about nothing else
    """

    version: Path
    parts: tuple[Part, ...]
    topic: str
    processes: int


def save_checkpoint(path: str | os.PathLike[str], arrays: object) -> None:
    """Write a tree of arrays into a folder, each block of a sharded array in a file of its own.

    path:   of the folder, which is made. A checkpoint that is there stays until the new one is
            whole, and is removed then.
    arrays: a tree; each process writes the blocks that are its own; what all processes
            have whole, the first one.
    Errors: OSError if a file cannot be written; ArgumentError if a leaf is not an array;
            DistributedError if another process fails.

    >>> import rune, rune.numpy as rnp, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rune.distributed.save_checkpoint(folder, {"w": rnp.arange(3.0)})
    ...     rune.distributed.load_checkpoint(folder, {"w": rnp.zeros(3)})
    {'w': Array([0., 1., 2.], f32[3], cpu:0)}
    """
    publish(snapshot(path, arrays))


def snapshot(path: str | os.PathLike[str], arrays: object) -> Snapshot:
    """A tree of arrays as it is now, and a folder for it. All processes call it together.

    Cost: a copy of what is on devices. Errors: those of `save_checkpoint`.
    """
    leaves, treedef = tree.flatten(arrays)
    values = array_leaves("save_checkpoint", leaves, treedef)
    agree("save_checkpoint", f"{[str(type_of(x)) for x in values]} in {treedef}")
    parts = tuple(_part(p, x) for p, x in zip(paths(treedef), values, strict=True))
    return Snapshot(_new_version(Path(path)), parts, turn(CHECKPOINT), current().count)


def publish(saved: Snapshot, prune: Callable[[], object] = lambda: None) -> None:
    """Write the blocks of this process, and let them count when all processes have theirs.

    Any thread may do it: it talks to the others on a topic of its own.
    prune:  what the first process does when they count. No process returns before it is done, so
            that all see the same files.
    Errors: OSError if a file cannot be written; DistributedError if another process fails.
    """
    index = _united(saved, _attempt(lambda: _stored(saved)))
    _together(saved, _attempt(lambda: _commit(saved.version, index, prune)))


def _new_version(root: Path) -> Path:
    """A new folder for what all processes write; the first one makes it."""
    version = root / f"{time.time_ns()}-{os.getpid()}"
    if current().index == 0:
        version.mkdir(parents=True)
    return root / bytes(converse("save_checkpoint", CHECKPOINT, version.name.encode())[0]).decode()


def _attempt(action: Callable[[], str]) -> str | BaseException:
    """The result, or the error or interrupt that the other processes must be told about."""
    try:
        return action()
    except BaseException as error:
        return error


def _together(saved: Snapshot, result: str | BaseException) -> list[str]:
    """The results of all processes. Errors: this one's own; DistributedError for another's."""
    failure = result if isinstance(result, BaseException) else None
    report = {"result": result} if failure is None else {"error": f"{type(failure).__name__}: {failure}"}
    messages = converse("save_checkpoint", saved.topic, json.dumps(report).encode())
    reports = {number: json.loads(bytes(message)) for number, message in messages.items()}
    if failure is not None:
        raise failure
    for number, report in reports.items():
        if "error" in report:
            raise DistributedError(
                f"save_checkpoint: cannot write {saved.version} (process {number}: {report['error']})"
            )
    if len(reports) != saved.processes:
        raise DistributedError(
            f"save_checkpoint: cannot write {saved.version} (the processes have left each other)",
            hint="wait for what is saved before rune.distributed.shutdown()",
        )
    return [report["result"] for report in reports.values()]


def _united(saved: Snapshot, stored: str | BaseException) -> list[Mapping[str, object]]:
    """What all processes have written, as the index says it: each array with the blocks of all."""
    return [
        {**arrays[0], "blocks": [block for array in arrays for block in array["blocks"]]}
        for arrays in zip(*map(json.loads, _together(saved, stored)), strict=True)
    ]


def _commit(version: Path, index: Sequence[Mapping[str, object]], prune: Callable[[], object]) -> str:
    """Let a version count whose blocks are all written; the first process does it."""
    if current().index == 0:
        _write(version / INDEX, json.dumps(index).encode())
        _publish(version.parent, version.name)
        prune()
    return ""


def load_checkpoint(path: str | os.PathLike[str], like: T, shardings: object = None) -> T:
    """The tree of arrays of a checkpoint, each block read by the device that is to hold it.

    like:      a tree of arrays or ShapeDtypeStructs, of the paths, shapes and dtypes that are read
    shardings: where the arrays go: a device or a sharding, or a tree prefix of them. None leaves
               an array where that of `like` is.
    Errors:    DistributedError if there is no checkpoint, if it has other arrays than `like`, and
               if a file is damaged.

    >>> import rune
    >>> rune.distributed.load_checkpoint("/nowhere", {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DistributedError: load_checkpoint: cannot find a checkpoint in /nowhere...
    """
    version = _published(Path(path))
    stored = {a.path: a for a in _index(version)}
    leaves, treedef = tree.flatten(like)
    types = leaf_types("load_checkpoint", leaves, treedef)
    _require_same(stored, dict(zip(paths(treedef), types, strict=True)))
    places = tree.broadcast_prefix(shardings, like, is_leaf=lambda x: x is None or isinstance(x, Place))
    arrays = [
        _load(version, stored[p], _place(x, where)) for p, x, where in zip(paths(treedef), leaves, places, strict=True)
    ]
    return tree.unflatten(treedef, arrays)


def _place(like: object, where: Place | None) -> Place | None:
    """Where an array goes; None for the default device."""
    if where is None and type(like) is Array and like.committed:
        return like.sharding
    return where


def damage(path: str | os.PathLike[str], part: tuple[int, int] | None = None) -> str | None:
    """What is wrong with a checkpoint; None if nothing is.

    part: (number, count), the files whose checksums are compared; None: sizes alone
    """
    try:
        version = _published(Path(path))
        stored = [(array, block) for array in _index(version) for block in array.blocks]
        for number, (array, block) in enumerate(stored):
            if part is not None and number % part[1] == part[0]:
                _bytes_of(version, array, block)
            elif (version / block.file).stat().st_size != _nbytes(array, block):
                return f"{version / block.file} is damaged"
    except DistributedError as error:
        return error.message
    except OSError as error:
        return str(error)
    return None


# --- writing ------------------------------------------------------------------------------------


def _part(path: str, value: Value) -> Part:
    """What this process is to write of an array. Errors: ArgumentError for a traced value."""
    if type(value) is not Array:  # a tracer counts as an instance
        raise ArgumentError(f"save_checkpoint: cannot write {path or 'the array'} ({value} has no value yet)")
    blocks = [(tuple(s.start or 0 for s in block.index), block.data.numpy()) for block in _blocks_to_write(value)]
    return Part(path, value.type, tuple(blocks))


def _stored(saved: Snapshot) -> str:
    """Write what this process has; what is written, as the index says it."""
    return json.dumps([asdict(_store(saved.version, n, part)) for n, part in enumerate(saved.parts)])


def _store(version: Path, number: int, part: Part) -> StoredArray:
    """Write the blocks of an array, each once."""
    blocks = []
    for count, (start, data) in enumerate(part.blocks):
        file, octets = f"{number}.{current().index}.{count}", data.tobytes()
        _write(version / file, octets)
        blocks.append(StoredBlock(file, start, data.shape, zlib.crc32(octets)))
    return StoredArray(part.path, dtypes.short(part.type.dtype), tuple(map(int, part.type.shape)), tuple(blocks))


def _blocks_to_write(value: Array) -> list[Shard]:
    """The blocks that this process writes: each once, and what all have alike by the first."""
    if value.is_fully_addressable and current().index != 0:
        return []
    return [s for s in value.addressable_shards if s.replica_id == 0]


def _write(file: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with open(file, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _publish(root: Path, version: str) -> None:
    """Let this version count, and remove the others."""
    named = root / f"{PUBLISHED}-{version}"
    _write(named, version.encode())
    os.replace(named, root / PUBLISHED)
    for other in root.iterdir():
        if other.is_dir() and other.name != version:
            shutil.rmtree(other, ignore_errors=True)


# --- reading ------------------------------------------------------------------------------------


def _published(root: Path) -> Path:
    """The folder of the version that counts. Errors: DistributedError if there is none."""
    try:
        return root / (root / PUBLISHED).read_text()
    except OSError as error:
        raise DistributedError(f"load_checkpoint: cannot find a checkpoint in {root} ({error.strerror})") from error


def _index(version: Path) -> Iterator[StoredArray]:
    try:
        for entry in json.loads((version / INDEX).read_bytes()):
            blocks = tuple(
                StoredBlock(b["file"], tuple(b["start"]), tuple(b["shape"]), b["crc32"]) for b in entry["blocks"]
            )
            yield StoredArray(entry["path"], entry["dtype"], tuple(entry["shape"]), blocks)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DistributedError(f"load_checkpoint: cannot read {version / INDEX} ({error})") from error


def _require_same(stored: Mapping[str, StoredArray], types: Mapping[str, ArrayType]) -> None:
    """Errors: DistributedError names the first array that differs."""
    for path in (*types, *stored):
        wanted = str(types[path].strong()) if path in types else "nothing"
        present = f"{stored[path].dtype}[{','.join(map(str, stored[path].shape))}]" if path in stored else "nothing"
        if wanted != present:
            raise DistributedError(
                f"load_checkpoint: cannot read {path or 'the array'} as {wanted} (the checkpoint has {present})"
            )


def _load(version: Path, stored: StoredArray, place: Place | None) -> Array:
    if isinstance(place, Sharding):
        return make_array_from_callback(stored.shape, place, lambda index: _read(version, stored, index))
    return device_put(_read(version, stored, (slice(None),) * len(stored.shape)), place)


def _read(version: Path, stored: StoredArray, index: Sequence[slice]) -> Array:
    """A part of an array, put together from the blocks that have some of it."""
    spans = [s.indices(size)[:2] for s, size in zip(index, stored.shape, strict=True)]
    part = np.empty([stop - start for start, stop in spans], dtypes.FROM_SHORT[stored.dtype])
    for block in stored.blocks:
        low = [max(a, b) for (a, _), b in zip(spans, block.start, strict=True)]
        high = [min(a, b + n) for (_, a), b, n in zip(spans, block.start, block.shape, strict=True)]
        if all(a < b for a, b in zip(low, high, strict=True)):
            target = tuple(slice(a - o, b - o) for a, b, (o, _) in zip(low, high, spans, strict=True))
            source = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, block.start, strict=True))
            part[target] = _bytes_of(version, stored, block)[source]
    return put(part, ArrayType(part.shape, part.dtype), default_place())


def _bytes_of(version: Path, stored: StoredArray, block: StoredBlock) -> np.ndarray:
    """Errors: DistributedError if the file is not what was written."""
    file, dtype = version / block.file, dtypes.FROM_SHORT[stored.dtype]
    data = file.read_bytes() if file.exists() else b""
    if len(data) != _nbytes(stored, block) or zlib.crc32(data) != block.crc32:
        raise DistributedError(f"load_checkpoint: cannot read {stored.path} ({file} is damaged)")
    return np.frombuffer(data, np.uint8).view(dtype).reshape(block.shape)


def _nbytes(stored: StoredArray, block: StoredBlock) -> int:
    return math.prod(block.shape) * dtypes.FROM_SHORT[stored.dtype].itemsize
