"""Trees in files: a leaf is named by its key path, `layers.0.w`."""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import Tracer
from rune.core.no_sharding import is_unsaid
from rune.core.types import ArrayType
from rune.errors import ArgumentError, FileError
from rune.files import notes, npz, safetensors
from rune.files.atomic import replacing
from rune.files.file import NATIVE, File, Where, suffix
from rune.files.file import open as open_file
from rune.files.notes import Foreign, Leaf
from rune.files.stored import Entry, Form, Unreadable, encoded, is_stored_by_elements, stored_form
from rune.ops.promote import opened
from rune.records import dataclass
from rune.sharding.shardings import Block
from rune.transforms.compile.placement import destinations
from rune.transforms.eval_shape import described
from rune.transforms.tree_difference import structure_text
from rune.tree import KeyPath, TreeDef

Blocks = Iterator[tuple[Block, np.ndarray]]
NUMBERS = {bool: dtypes.bool_, int: dtypes.i64, float: dtypes.f64, complex: dtypes.c128}


@dataclass(frozen=True, slots=True)
class Source:
    """A leaf to write: its type, and its blocks, which are read one after another.

    is_mutable: whether the caller may write into the blocks later
    """

    leaf: Leaf
    blocks: Callable[[], Blocks]
    is_mutable: bool = False

    def snapshot(self) -> Source:
        """A copy of the leaf as it is now, in host memory."""
        blocks = [(index, block.copy() if self.is_mutable else block) for index, block in self.blocks()]
        return Source(self.leaf, lambda: iter(blocks))

    @property
    def array(self) -> np.ndarray:
        """The whole array, assembled from its blocks."""
        blocks = [*self.blocks()]
        if len(blocks) == 1:
            return blocks[0][1]
        array = np.empty(self.leaf.type.shape, self.leaf.type.dtype)
        for index, block in blocks:
            array[index] = block
        return array


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A tree to write: its leaves by name, and its structure."""

    sources: Mapping[str, Source]
    treedef: TreeDef

    def snapshot(self) -> SourceTree:
        """The tree as it is now: later donations and writes do not affect it.

        Cost: a copy of NumPy arrays and of arrays on devices; none of rune's arrays on the CPU.
        """
        return SourceTree({name: source.snapshot() for name, source in self.sources.items()}, self.treedef)


# --- names --------------------------------------------------------------------------------------


def name_of(path: KeyPath) -> str:
    """The name of a leaf: its keys joined by dots; `array` if the leaf is the whole tree."""
    return ".".join(map(_key_text, path)) or "array"


def _key_text(key: object) -> str:
    return tree.keystr((key,), simple=True) if dataclasses.is_dataclass(key) else str(key)


def _by_name(operation: str, pairs: Sequence[tuple[KeyPath, object]]) -> dict[str, tuple[KeyPath, object]]:
    """Leaves and their paths by name. Errors: ArgumentError for ambiguous or invalid names."""
    leaves: dict[str, tuple[KeyPath, object]] = {}
    for path, leaf in pairs:
        name = name_of(path)
        if name in leaves:
            both = f"{tree.keystr(leaves[name][0])} and {tree.keystr(path)}"
            raise ArgumentError(f"{operation}: cannot tell {both} apart (both are named {name})")
        if name == safetensors.METADATA or "\0" in name or not _is_text(name):
            raise ArgumentError(f"{operation}: cannot name the leaf {tree.keystr(path)} ({name[:60]!r})")
        leaves[name] = path, leaf
    return leaves


def _is_text(name: str) -> bool:
    """Whether UTF-8 can encode the name; it cannot encode half of a surrogate pair."""
    return name.encode(errors="replace").decode() == name


# --- writing ------------------------------------------------------------------------------------


def save(path: str | os.PathLike[str], values: object, metadata: Mapping[str, str] | None = None) -> None:
    """Write a tree; documented in rune.tree.save."""
    write(Path(path), source_tree(values), checked_metadata(metadata))


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """A dict of texts. Errors: ArgumentError for anything else."""
    texts = dict(metadata or {})
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str) or name == notes.KEY:
            raise ArgumentError(f"save: cannot note {name!r}: {text!r:.40} (texts by names other than {notes.KEY!r})")
    return texts


def source_tree(values: object) -> SourceTree:
    """The tree, ready to write. Errors: ArgumentError names a leaf that is not an array."""
    pairs, treedef = tree.flatten_with_path(values)
    leaves = _by_name("save", pairs)
    return SourceTree(
        {name: _source(tree.keystr(path), opened(leaf)) for name, (path, leaf) in leaves.items()}, treedef
    )


def _source(path: str, leaf: object) -> Source:
    if isinstance(leaf, bool | int | float | complex) and type(leaf) in NUMBERS:
        return _number(path, leaf, NUMBERS[type(leaf)])
    if type(leaf) is Array:
        return Source(Leaf(leaf.type), _readable(path, leaf))
    if isinstance(leaf, Tracer):
        raise ArgumentError(f"save: cannot write the leaf {path or 'array'} ({leaf} has no value yet)")
    host = dtypes.native(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else None
    if host is None or host.dtype not in dtypes.SHORT or isinstance(leaf, np.ma.MaskedArray):
        kind = type(leaf).__name__ if host is None else f"{type(leaf).__name__} of {host.dtype}"
        raise ArgumentError(
            f"save: cannot write the leaf {path or 'array'} ({kind})", hint="leaves are arrays and numbers"
        )
    return Source(Leaf(ArrayType(host.shape, host.dtype)), lambda: iter([((), host)]), is_mutable=True)


def _number(path: str, value: complex, dtype: np.dtype) -> Source:
    try:
        host = np.asarray(value, dtype)
    except OverflowError:
        raise ArgumentError(f"save: cannot write the leaf {path or 'array'} ({value}, of more than 64 bits)") from None
    return Source(Leaf(ArrayType((), dtype), is_number=True), lambda: iter([((), host)]))


def _readable(path: str, array: Array) -> Callable[[], Blocks]:
    """The blocks of an array, copied to the host one after another.

    Errors: ArgumentError if other processes have blocks of the array; DeletedArrayError.
    """
    if array.is_deleted():
        raise ArgumentError(f"save: cannot write the leaf {path or 'array'} ({array.type} was donated or deleted)")
    if not array.is_fully_addressable:
        raise ArgumentError(
            f"save: cannot write the leaf {path or 'array'} (other processes have blocks of {array.type})",
            hint="rune.distributed.save_checkpoint writes the blocks of all processes",
        )
    return lambda: ((s.index, s.data.numpy()) for s in array.addressable_shards if s.replica_id == 0)


def write(path: Path, content: SourceTree, metadata: Mapping[str, str]) -> None:
    """Write a tree to a file that replaces `path` atomically. Errors: OSError."""
    format = suffix("save", path)
    forms = {name: stored_form(s.leaf.type, NATIVE[format]) for name, s in content.sources.items()}
    leaves = {name: s.leaf for name, s in content.sources.items()}

    def texts(sums: Mapping[str, int] | None) -> dict[str, str]:
        return {**metadata, notes.KEY: notes.written(leaves, forms, content.treedef, sums)}

    with replacing(path) as file:
        if format == ".npz":  # zip archives have their own checksums
            npz.write(file, ((n, encoded(s.array, npz.NATIVE)) for n, s in content.sources.items()), texts(None))
        else:
            _write_safetensors(file, content.sources, forms, texts)


def _write_safetensors(
    file: BinaryIO,
    sources: Mapping[str, Source],
    forms: Mapping[str, Form],
    texts: Callable[[Mapping[str, int]], Mapping[str, str]],
) -> None:
    """Write a header with zeros for checksums, the arrays, and then the final header over it."""
    before, entries = safetensors.layout(forms, texts(dict.fromkeys(sources, 0)))
    file.write(before)
    sums = {name: _write_array(file, sources[name], entry) for name, entry in entries.items()}
    file.seek(0)
    file.write(safetensors.layout(forms, texts({name: sums[name] for name in sources}))[0])


def _write_array(file: BinaryIO, source: Source, entry: Entry) -> int:
    """Write an array to its place, and seek to its end; returns its checksum."""
    is_divisible = is_stored_by_elements(source.leaf.type.dtype)
    for index, block in source.blocks() if is_divisible else [((), source.array)]:
        storage = encoded(block, safetensors.NATIVE)
        if storage.shape == entry.shape:
            file.write(storage.reshape(-1).view(np.uint8).data)
        else:
            _write_block(file, entry, index, storage)
    file.seek(entry.start + entry.nbytes)
    return _checksum(file, entry)


def _checksum(file: BinaryIO, entry: Entry) -> int:
    """The CRC-32 of a written array, read back from the file."""
    # Blocks of a sharded array are rows here and there, so no sum can follow the writing.
    if not entry.nbytes:
        return 0
    file.flush()
    return zlib.crc32(np.memmap(file, np.uint8, "r", entry.start, (entry.nbytes,)).data)


def _write_block(file: BinaryIO, entry: Entry, index: Block, storage: np.ndarray) -> None:
    """Write a block to its rows of the array in the file."""
    # A memory map cannot extend a file, so the file gets its size first.
    file.truncate(max(file.seek(0, os.SEEK_END), entry.start + entry.nbytes))
    place = np.memmap(file, entry.dtype, "r+", entry.start, entry.shape)
    place[index] = storage
    place.flush()


# --- reading ------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], like: object = None, device: object = None, part: str | None = None) -> Any:
    """Read a tree; documented in rune.tree.load."""
    file = open_file(path)
    treedef, names = _noted_part(file, part) if like is None else _as_like(file, like, part)
    places = destinations("load", "device", device, tree.unflatten(treedef, names))
    if like is not None:
        places = [_place_of(leaf) if where is None else where for leaf, where in zip(tree.leaves(like), places)]
    return tree.unflatten(treedef, [_read(file, name, where) for name, where in zip(names, places, strict=True)])


def _read(file: File, name: str, where: Where | None) -> object:
    return file.host(name).item() if file.leaves[name].is_number else file.read(name, where)


def _noted(file: File) -> tuple[TreeDef, list[str]]:
    """The structure in a file's notes; without notes, a dict of the arrays by name.

    Errors: ArgumentError for classes that a file cannot describe, FileError.
    """
    if file.notes.nodes is None:
        return tree.structure(dict.fromkeys(file, 0)), sorted(file)
    try:
        treedef, names = notes.structure(file.notes.nodes)
    except Foreign as error:
        raise ArgumentError(
            f"load: cannot make a node {error} ({file.path} has a tree with one)",
            hint="give like=, a tree of the same structure, or read arrays by rune.files.open(path)[name]",
        ) from None
    except Unreadable as error:
        raise FileError(f"load: cannot read {file.path} ({error})") from None
    if sorted(names) != sorted(file):
        raise FileError(
            f"load: cannot read {file.path} (the names in its note of a tree differ from those of its arrays)"
        )
    return treedef, names


def _noted_part(file: File, part: str | None) -> tuple[TreeDef, list[str]]:
    """The structure of the subtree at a name, and its leaves' names. Errors: as `_noted`."""
    if part is None:
        return _noted(file)
    if file.notes.nodes is None:
        inside = {name[len(part) + 1 :]: name for name in file if name.startswith(f"{part}.")}
        subtree: object = inside or (part if part in file else None)
    else:
        subtree = _under(tree.unflatten(*_noted(file)), part)
    if subtree is None:
        raise ArgumentError(f"load: cannot find the part {part} in {file.path} ({_some(file)})")
    names, treedef = tree.flatten(subtree)
    return treedef, names


def _under(node: object, part: str) -> object:
    """The subtree at a name; None if there is none."""
    if tree.all_leaves([node]):
        return None
    for key, child in tree.flatten_one_level_with_keys(node)[0]:
        name = name_of((key,))
        if name == part:
            return child
        if part.startswith(f"{name}."):
            subtree = _under(child, part[len(name) + 1 :])
            if subtree is not None:
                return subtree
    return None


def _as_like(file: File, like: object, part: str | None) -> tuple[TreeDef, list[str]]:
    """The structure of `like`, and the names of its leaves in the file. Errors: ArgumentError."""
    pairs, treedef = tree.flatten_with_path(like)
    leaves = _by_name("load", pairs)
    count = len(file)
    if part is not None:
        leaves = {f"{part}.{name}" if pair[0] else part: pair for name, pair in leaves.items()}
        count = sum(_is_in(name, part) for name in file)
    for name, (path, leaf) in leaves.items():
        like_leaf, file_leaf = _required_leaf(tree.keystr(path), opened(leaf)), file.leaves.get(name)
        if file_leaf is None:
            raise ArgumentError(f"load: cannot find the leaf {name} in {file.path} ({_some(file, leaves)})")
        if (file_leaf.type.strong(), file_leaf.is_number) != (like_leaf.type.strong(), like_leaf.is_number):
            raise ArgumentError(f"load: cannot read the leaf {name} as {like_leaf} ({file.path} has {file_leaf})")
    if len(leaves) != count:
        more = [name for name in file if name not in leaves and (part is None or _is_in(name, part))]
        raise ArgumentError(
            f"load: cannot read {file.path} as {structure_text(treedef)} (it has more: {_some(more)})",
            hint="rune.files.open(path)[name] reads a single array",
        )
    return treedef, [*leaves]


def _is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def _some(names: Iterable[str], tree_names: Collection[str] = ()) -> str:
    """A few names in a file, starting with those that the tree lacks."""
    names = sorted(names, key=lambda name: name in tree_names)
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "") or "it has no leaf"


def _required_leaf(path: str, leaf: object) -> Leaf:
    """The leaf that `like` requires. Errors: ArgumentError if it has no shape and dtype."""
    number = NUMBERS.get(type(leaf))
    if number is not None:
        return Leaf(ArrayType((), number), is_number=True)
    if isinstance(leaf, Array | np.ndarray | np.generic):
        dtype = leaf.type.dtype if isinstance(leaf, Array) else leaf.dtype
        return Leaf(ArrayType(tuple(leaf.shape), dtype))
    type_ = described(leaf)
    if type_ is None:
        raise ArgumentError(
            f"load: cannot read the leaf {path or 'array'} as {type(leaf).__name__} (an array required)"
        )
    return Leaf(type_)


def _place_of(like: object) -> Where | None:
    """The place of a leaf of `like`: of a committed array, or from a ShapeDtypeStruct."""
    sharding = getattr(like, "sharding", None) if getattr(like, "committed", True) else None
    return None if is_unsaid(sharding) else sharding
