"""Checkpoints of sharded arrays: each process writes its own blocks; any mesh can read them.

    path/published          the name of the current version
    path/<version>/index    the type of each array, and the files of its blocks
    path/<version>/3.0.1    the bytes of block 1 of array 3, as process 0 wrote it

A new version is written next to the old one and becomes current by a single rename. A process that
dies at any moment before that leaves the old version intact.
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
CHECKPOINT = "checkpoint"  # the topic of messages about checkpoints
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

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Part:
    """The part of an array that a process writes: blocks on the host, each with its start."""

    path: str
    type: ArrayType
    blocks: tuple[tuple[tuple[int, ...], np.ndarray], ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree to write: the parts that this process has, and the folder of the version.

    topic: the topic of messages about this tree alone
    """

    version: Path
    parts: tuple[Part, ...]
    topic: str
    processes: int


def save_checkpoint(path: str | os.PathLike[str], arrays: object) -> None:
    """Write a tree of arrays into a folder, each block of a sharded array in a file of its own.

    path:   the folder, created if necessary. An older checkpoint in it is removed only after the
            new one is complete.
    arrays: a tree; each process writes its own blocks, and process 0 writes the arrays that every
            process has in full.
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
    """Take a snapshot of a tree, and create a folder for it. All processes must call it together.

    Cost: a copy of all blocks on devices. Errors: those of `save_checkpoint`.
    """
    leaves, treedef = tree.flatten(arrays)
    values = array_leaves("save_checkpoint", leaves, treedef)
    agree("save_checkpoint", f"{[str(type_of(x)) for x in values]} in {treedef}")
    parts = tuple(_part(p, x) for p, x in zip(paths(treedef), values, strict=True))
    return Snapshot(_new_version(Path(path)), parts, turn(CHECKPOINT), current().count)


def publish(snapshot: Snapshot, prune: Callable[[], object] = lambda: None) -> None:
    """Write the blocks of this process, and publish the version once all processes have done so.

    Any thread may call it, because its messages have a separate topic.
    prune:  called by process 0 after publishing. No process returns before `prune` has, so that
            all of them see the same files.
    Errors: OSError if a file cannot be written; DistributedError if another process fails.
    """
    index = _united(snapshot, _attempt(lambda: _write_blocks(snapshot)))
    _together(snapshot, _attempt(lambda: _commit(snapshot.version, index, prune)))


def _new_version(root: Path) -> Path:
    """A new folder for the blocks of all processes; process 0 creates it."""
    version = root / f"{time.time_ns()}-{os.getpid()}"
    if current().index == 0:
        version.mkdir(parents=True)
    return root / bytes(converse("save_checkpoint", CHECKPOINT, version.name.encode())[0]).decode()


def _attempt(action: Callable[[], str]) -> str | BaseException:
    """The result of `action`, or its error or interrupt, which other processes must learn of."""
    try:
        return action()
    except BaseException as error:
        return error


def _together(snapshot: Snapshot, result: str | BaseException) -> list[str]:
    """The results of all processes. Errors: this one's own; DistributedError for another's."""
    failure = result if isinstance(result, BaseException) else None
    report = {"result": result} if failure is None else {"error": f"{type(failure).__name__}: {failure}"}
    messages = converse("save_checkpoint", snapshot.topic, json.dumps(report).encode())
    reports = {number: json.loads(bytes(message)) for number, message in messages.items()}
    if failure is not None:
        raise failure
    for number, report in reports.items():
        if "error" in report:
            raise DistributedError(
                f"save_checkpoint: cannot write {snapshot.version} (process {number}: {report['error']})"
            )
    if len(reports) != snapshot.processes:
        raise DistributedError(
            f"save_checkpoint: cannot write {snapshot.version} (the processes have left each other)",
            hint="wait until the checkpoint is saved before rune.distributed.shutdown()",
        )
    return [report["result"] for report in reports.values()]


def _united(snapshot: Snapshot, entries: str | BaseException) -> list[Mapping[str, object]]:
    """The entries of the index: each array with the blocks that all processes have written."""
    return [
        {**arrays[0], "blocks": [block for array in arrays for block in array["blocks"]]}
        for arrays in zip(*map(json.loads, _together(snapshot, entries)), strict=True)
    ]


def _commit(version: Path, index: Sequence[Mapping[str, object]], prune: Callable[[], object]) -> str:
    """Publish a version whose blocks are all written; only process 0 does it."""
    if current().index == 0:
        _write(version / INDEX, json.dumps(index).encode())
        _publish(version.parent, version.name)
        prune()
    return ""


def load_checkpoint(path: str | os.PathLike[str], like: T, shardings: object = None) -> T:
    """The tree of arrays in a checkpoint; each process reads only the blocks of its devices.

    like:      a tree of arrays or ShapeDtypeStructs with the paths, shapes and dtypes to read
    shardings: where the arrays go: a device or a sharding, or a tree prefix of them. None leaves
               an array where that of `like` is.
    Errors:    DistributedError if there is no checkpoint, if its arrays differ from those of
               `like`, or if a file is damaged.

    >>> import rune
    >>> rune.distributed.load_checkpoint("/nowhere", {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DistributedError: load_checkpoint: cannot find a checkpoint in /nowhere...
    """
    version = _published(Path(path))
    entries = {a.path: a for a in _index(version)}
    leaves, treedef = tree.flatten(like)
    types = leaf_types("load_checkpoint", leaves, treedef)
    _require_same(entries, dict(zip(paths(treedef), types, strict=True)))
    places = tree.broadcast_prefix(shardings, like, is_leaf=lambda x: x is None or isinstance(x, Place))
    arrays = [
        _load(version, entries[p], _place(x, where)) for p, x, where in zip(paths(treedef), leaves, places, strict=True)
    ]
    return tree.unflatten(treedef, arrays)


def _place(like: object, where: Place | None) -> Place | None:
    """Where an array goes; None for the default device."""
    if where is None and type(like) is Array and like.committed:
        return like.sharding
    return where


def damage(path: str | os.PathLike[str], part: tuple[int, int] | None = None) -> str | None:
    """What is wrong with a checkpoint; None if it is sound.

    part: (number, count): also compares the checksums of every count-th file; None: only sizes
    """
    try:
        version = _published(Path(path))
        blocks = [(array, block) for array in _index(version) for block in array.blocks]
        for number, (array, block) in enumerate(blocks):
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
    """The part of an array that this process writes. Errors: ArgumentError for a traced value."""
    if type(value) is not Array:  # tracers pass isinstance
        raise ArgumentError(f"save_checkpoint: cannot write {path or 'the array'} ({value} has no value yet)")
    blocks = [(tuple(s.start or 0 for s in block.index), block.data.numpy()) for block in _blocks_to_write(value)]
    return Part(path, value.type, tuple(blocks))


def _write_blocks(snapshot: Snapshot) -> str:
    """Write the blocks of this process; returns their entries for the index, as JSON."""
    return json.dumps([asdict(_store(snapshot.version, n, part)) for n, part in enumerate(snapshot.parts)])


def _store(version: Path, number: int, part: Part) -> StoredArray:
    """Write the blocks of an array that this process has; returns their entry for the index."""
    blocks = []
    for count, (start, data) in enumerate(part.blocks):
        file, octets = f"{number}.{current().index}.{count}", data.tobytes()
        _write(version / file, octets)
        blocks.append(StoredBlock(file, start, data.shape, zlib.crc32(octets)))
    return StoredArray(part.path, dtypes.short(part.type.dtype), tuple(map(int, part.type.shape)), tuple(blocks))


def _blocks_to_write(value: Array) -> list[Shard]:
    """The blocks that this process writes. Process 0 writes arrays that all have in full."""
    if value.is_fully_addressable and current().index != 0:
        return []
    return [s for s in value.addressable_shards if s.replica_id == 0]


def _write(file: Path, data: bytes) -> None:
    """Write a file, and wait until its bytes are on disk."""
    with open(file, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _publish(root: Path, version: str) -> None:
    """Make this version the current one, and remove the others."""
    temporary = root / f"{PUBLISHED}-{version}"
    _write(temporary, version.encode())
    os.replace(temporary, root / PUBLISHED)
    for other in root.iterdir():
        if other.is_dir() and other.name != version:
            shutil.rmtree(other, ignore_errors=True)


# --- reading ------------------------------------------------------------------------------------


def _published(root: Path) -> Path:
    """The folder of the current version. Errors: DistributedError if there is none."""
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


def _require_same(entries: Mapping[str, StoredArray], types: Mapping[str, ArrayType]) -> None:
    """Errors: DistributedError names the first array that differs."""
    for path in (*types, *entries):
        like_type = str(types[path].strong()) if path in types else "nothing"
        stored_type = str(entries[path]) if path in entries else "nothing"
        if like_type != stored_type:
            raise DistributedError(
                f"load_checkpoint: cannot read {path or 'the array'} as {like_type} (the checkpoint has {stored_type})"
            )


def _load(version: Path, entry: StoredArray, place: Place | None) -> Array:
    if isinstance(place, Sharding):
        return make_array_from_callback(entry.shape, place, lambda index: _read(version, entry, index))
    return device_put(_read(version, entry, (slice(None),) * len(entry.shape)), place)


def _read(version: Path, entry: StoredArray, index: Sequence[slice]) -> Array:
    """A part of an array, assembled from the blocks that overlap it."""
    spans = [s.indices(size)[:2] for s, size in zip(index, entry.shape, strict=True)]
    part = np.empty([stop - start for start, stop in spans], dtypes.FROM_SHORT[entry.dtype])
    for block in entry.blocks:
        low = [max(a, b) for (a, _), b in zip(spans, block.start, strict=True)]
        high = [min(a, b + n) for (_, a), b, n in zip(spans, block.start, block.shape, strict=True)]
        if all(a < b for a, b in zip(low, high, strict=True)):
            target = tuple(slice(a - o, b - o) for a, b, (o, _) in zip(low, high, spans, strict=True))
            source = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, block.start, strict=True))
            part[target] = _bytes_of(version, entry, block)[source]
    return put(part, ArrayType(part.shape, part.dtype), default_place())


def _bytes_of(version: Path, entry: StoredArray, block: StoredBlock) -> np.ndarray:
    """The block in a file. Errors: DistributedError if its size or checksum differs."""
    file, dtype = version / block.file, dtypes.FROM_SHORT[entry.dtype]
    data = file.read_bytes() if file.exists() else b""
    if len(data) != _nbytes(entry, block) or zlib.crc32(data) != block.crc32:
        raise DistributedError(f"load_checkpoint: cannot read {entry.path} ({file} is damaged)")
    return np.frombuffer(data, np.uint8).view(dtype).reshape(block.shape)


def _nbytes(entry: StoredArray, block: StoredBlock) -> int:
    return math.prod(block.shape) * dtypes.FROM_SHORT[entry.dtype].itemsize
