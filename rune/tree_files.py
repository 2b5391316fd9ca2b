"""`rune.tree.save` and `rune.tree.load`: given to `rune.tree`, which is below arrays and files.

The room of files is loaded when one of them is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from rune import locks, tree

T = TypeVar("T")


def save(path: str | os.PathLike[str], tree: object, metadata: Mapping[str, str] | None = None) -> None:
    """Write a tree of arrays and numbers to a file, in whose place the new one comes as a whole.

    path:     its suffix is the format: `.safetensors`, or `.npz`, which NumPy reads
    tree:     arrays of any dtype, keys among them, and Python's numbers; each is named by the keys
              that lead to it, `layers.0.w`. Of an array on several devices each block is written
              by itself to a .safetensors file.
    metadata: texts by name, which `rune.files.open(path).metadata` gives back
    A process that is killed at any moment leaves the old file, whole.

    Errors:   ArgumentError for another suffix; for a leaf that is not an array or a number, is
              traced, deleted, or in other processes too, and for two leaves of one name, by their
              paths;
              OSError where the disk is full or the folder is not there.

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
    """The tree that was saved in a file, which is read when somebody computes with it.

    path:   of a .safetensors or .npz file, of whichever program
    like:   a tree of arrays, ShapeDtypeStructs or numbers, with the structure, shapes and dtypes
            that the file has to have; arrays go where its committed ones are. None: a tree of
            dicts, lists and tuples comes as it was saved, and a file that no tree was saved to as
            a dict by name.
    device: where the arrays go, as `device_put` takes it: a device or a sharding, or a tree prefix
            of them. Each device reads its own block of the file alone. None leaves them free.
    part:   the name of a part of the tree, "params.layers.0": what stands there is loaded, and
            `like` is a tree like it

    On the CPU an array is a view of the file, so that loading takes no time, and a file may be
    larger than the memory. It may be replaced or removed meanwhile, but not be shortened. What goes
    to another device is compared with the checksum in the file; `rune.files.open(path).check()`
    compares all.

    Errors: FileNotFoundError; FileError for a damaged file; ArgumentError for another suffix, for a
            part or leaf that the file lacks or has in another shape or dtype, by its name, and for
            nodes of other classes without `like`; those of `device_put`, with the name of the leaf.

    >>> import rune, rune.numpy as rnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     rune.tree.save(path, (rune.random.key(7), [rnp.zeros((2, 2))]))
    ...     rune.tree.load(path, like=(rune.random.key(0), [rnp.ones((2, 2))]))[0]
    Array([0, 7], key<fry>[], cpu:0)
    """
    return locks.load("rune.files.trees").load(path, like, device, part)


def attach() -> None:
    """Give them to `rune.tree`, which declares them for type checkers."""
    for function in (save, load):
        function.__module__ = tree.__name__
        setattr(tree, function.__name__, function)
