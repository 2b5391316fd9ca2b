"""Sources of elements: arrays, files of arrays, sequences, iterables, folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from rune import files, tree
from rune.data.pipeline import Pipeline
from rune.data.stages import FileRows, Indexed, Items, Rows, Stream
from rune.errors import ArgumentError, ShapeError
from rune.ops.promote import refuse_mask
from rune.transforms.arguments import key_path


def arrays(values: object) -> Pipeline:
    """The rows of arrays: element n is the tree with row n of each of them.

    values: a tree of arrays whose leading axes are equal; nothing is copied
    Errors: ArgumentError without an array, and for a masked one that hides elements; ShapeError if
            leading axes differ or one has no axis.

    >>> import numpy as np
    >>> from rune import data
    >>> pipeline = data.arrays({"x": np.eye(3), "label": np.arange(3)})
    >>> pipeline[1]["x"].tolist(), int(pipeline[1]["label"])
    ([0.0, 1.0, 0.0], 1)
    """
    rows = tree.map(_read_only, values)
    return Pipeline(Rows(rows, _size_of("arrays", rows)))


def file(path: str | os.PathLike[str]) -> Pipeline:
    """The rows of the arrays of a file, which is mapped into memory: only rows in use are read.

    path:   a .npy file with one array, or a .npz or .safetensors file with arrays by name, whose
            elements are dicts. Compressed arrays of a .npz file are read whole.
    Errors: OSError if it cannot be read; FileError if it is damaged, or of another format;
            ShapeError if leading axes differ or an array has no axis.

    >>> import numpy as np, os, tempfile
    >>> from rune import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     np.save(path, np.arange(6.0).reshape(3, 2))
    ...     print(data.file(path)[2])
    [4. 5.]
    """
    return Pipeline(_opened(os.fspath(path)))


def sequence(items: Indexed) -> Pipeline:
    """The items of an object that has a length and can be indexed by number.

    Examples are lists, ranges, other pipelines and data sets of other libraries (map-style ones of
    torch, those of Hugging Face).

    Errors: ArgumentError if `items` has no length or cannot be indexed by number.

    >>> from rune import data
    >>> list(data.sequence("abc"))
    ['a', 'b', 'c']
    """
    if not hasattr(items, "__len__") or not hasattr(items, "__getitem__") or isinstance(items, Mapping):
        raise ArgumentError(
            f"sequence: cannot read {type(items).__name__} (a length and items by number required)",
            hint="rune.data.iterable accepts any iterable",
        )
    return Pipeline(Items(items))


def iterable(items: Iterable[object]) -> Pipeline:
    """The items of any iterable, as a stream: its length is not known.

    This includes loaders of other libraries: `data.iterable(loader).prefetch("cuda:0")`. If `items`
    is an iterator, the pipeline can be iterated only once.

    Errors: ArgumentError if `items` cannot be iterated.

    >>> from rune import data
    >>> list(data.iterable(x * x for x in range(4)).batch(2))
    [array([0, 1]), array([4, 9])]
    """
    # Python also iterates over objects with only __getitem__, until an IndexError.
    if not isinstance(items, Iterable) and not hasattr(items, "__getitem__"):
        raise ArgumentError(f"iterable: cannot read {type(items).__name__} (it cannot be iterated)")
    return Pipeline(Stream(items))


def folder(path: str | os.PathLike[str], pattern: str = "**/*") -> Pipeline:
    """The sorted paths of the files in a folder; read them with `map` and workers.

    pattern: as for `pathlib.Path.glob`
    Errors:  ArgumentError if the folder does not exist.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rune import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b", "a"):
    ...         written = Path(folder, name + ".txt").write_text(name)
    ...     print(list(data.folder(folder, "*.txt").map(Path.read_text, workers=2)))
    ['a', 'b']
    """
    root = Path(path)
    if not root.is_dir():
        raise ArgumentError(f"folder: cannot read {root} (it is not a folder)")
    return Pipeline(Items(sorted(p for p in root.glob(pattern) if p.is_file())))


# --- arrays -----------------------------------------------------------------------------------


def _read_only(leaf: object) -> np.ndarray:
    """The array as a read-only NumPy array; its rows are views."""
    refuse_mask("arrays", leaf)
    view = np.asarray(leaf).view()
    view.flags.writeable = False
    return view


def _size_of(operation: str, rows: object) -> int:
    """The size of all leading axes. Errors: ArgumentError, ShapeError."""
    leaves, treedef = tree.flatten(rows)
    if not leaves:
        raise ArgumentError(f"{operation}: cannot read rows (no arrays)")
    for number, leaf in enumerate(leaves):
        if not leaf.ndim or len(leaf) != len(leaves[0] if leaves[0].ndim else ()):
            shapes = f"{key_path(number, treedef)} {_shape(leaf)}, first {_shape(leaves[0])}"
            raise ShapeError(f"{operation}: cannot read rows of arrays whose leading axes differ ({shapes.strip()})")
    return len(leaves[0])


def _shape(a: np.ndarray) -> str:
    return f"[{','.join(map(str, a.shape))}]"


# --- files ------------------------------------------------------------------------------------


def _opened(path: str) -> FileRows:
    rows = tree.map(_read_only, _mapped(path))
    return FileRows(rows, _size_of("file", rows), path, _opened)


def _mapped(path: str) -> object:
    if path.endswith(".npy"):
        return np.load(path, mmap_mode="r")
    contents = files.open(path)
    return {name: contents.host(name) for name in contents}
