"""`rune.tree.save` and `rune.tree.load`, which are attached to `rune.tree`.

`rune.tree` is in a layer below arrays and files. The package for files loads on the first call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from rune import locks, tree

T = TypeVar("T")


def save(path: str | os.PathLike[str], tree: object, metadata: Mapping[str, str] | None = None) -> None:
    """Write a tree of arrays and numbers to a file, atomically replacing an existing file.

    path:     its suffix selects the format: `.safetensors`, or `.npz`, which NumPy reads
    tree:     arrays of any dtype, including keys, and Python numbers; each is named by the keys
              that lead to it, `layers.0.w`. If an array is on several devices, a .safetensors file
              holds each of its blocks separately.
    metadata: texts by name, which `rune.files.open(path).metadata` returns
    If the process is killed while it writes, the old file remains complete.

    Errors:   ArgumentError for another suffix; for a leaf that is not an array or a number, or is
              traced, deleted, or partly in other processes, and for two leaves with the same name,
              with their paths;
              OSError if the disk is full or the folder does not exist.

    >>> import rune, rune.numpy as rnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     rune.tree.save(path, {"w": rnp.ones(2, "bfloat16"), "step": 3})
    ...     rune.tree.load(path)
    {'step': 3, 'w': Array([1, 1], bf16[2], cpu:0)}
    """
    locks.load("rune.files.trees").save(path, tree, metadata)


@overload
def load(path: str | os.PathLike[str], like: None = None, *, device: object = None, part: str | None = None) -> Any: ...
@overload
def load(path: str | os.PathLike[str], like: T, *, device: object = None, part: str | None = None) -> T: ...
def load(path: str | os.PathLike[str], like: object = None, *, device: object = None, part: str | None = None) -> Any:
    """Load the tree in a file, whose contents are read when they are used.

    path:   a .safetensors or .npz file, written by any program
    like:   a tree of arrays, ShapeDtypeStructs or numbers, with the structure, shapes and dtypes
            that the file must have; arrays go to the devices of its committed ones. None: dicts,
            lists and tuples load as they were saved, and a file that was not saved from a tree
            loads as a dict by name.
    device: where to put the arrays, as in `device_put`: a device or a sharding, or a tree prefix of
            them. Each device reads only its own block of the file. None leaves arrays uncommitted.
    part:   the name of a part of the tree, "params.layers.0": only that part is loaded, and `like`
            is a tree like it

    On the CPU an array is a view of the file, so that loading takes no time, and a file may be
    larger than memory. While it is in use, a file may be replaced or removed, but not shortened.
    Data for other devices are compared with the checksum in the file;
    `rune.files.open(path).check()` compares all data.

    Errors: FileNotFoundError; FileError for a damaged file; ArgumentError for another suffix, for a
            part or leaf that the file lacks or has in another shape or dtype, with its name, and
            for nodes of other classes without `like`; those of `device_put`, with the leaf's name.

    >>> import rune, rune.numpy as rnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     rune.tree.save(path, (rune.random.key(7), [rnp.zeros((2, 2))]))
    ...     rune.tree.load(path, like=(rune.random.key(0), [rnp.ones((2, 2))]))[0]
    Array([0, 7], key<fry>[], cpu:0)
    """
    return locks.load("rune.files.trees").load(path, like, device, part)


def attach() -> None:
    """Attach both functions to `rune.tree`, which declares them for type checkers."""
    for function in (save, load):
        function.__module__ = tree.__name__
        setattr(tree, function.__name__, function)
