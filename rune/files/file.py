"""File: the arrays of a file by name, read from disk when they are used."""

from __future__ import annotations

import builtins
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np

from rune.array import Array, default_place, put
from rune.backends import Device
from rune.core.types import ArrayType
from rune.errors import ArgumentError, FileError, RuneError
from rune.files import notes, npz, safetensors
from rune.files.notes import Leaf
from rune.files.stored import Entry, Unreadable, array_in, decoded, is_damaged, stored_form
from rune.sharding import NamedSharding, Sharding
from rune.sharding.memory import Spread
from rune.transforms.compile.placement import device_put
from rune.transforms.sharding.assemble import make_array_from_callback

NATIVE = {".safetensors": safetensors.NATIVE, ".npz": npz.NATIVE}
Where = str | Device | Sharding


# Formats of other programs, and how to convert files to or from one of the two.
_OTHERS = {
    **dict.fromkeys((".pt", ".pth", ".bin"), "for PyTorch, safetensors.torch has save_file and load_file"),
    **dict.fromkeys((".h5", ".hdf5"), "h5py converts it from and to NumPy arrays"),
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib"),
        "loading a pickle runs code from the file, so rune neither reads nor writes them",
    ),
    ".npy": "numpy.save and numpy.load handle one array, rune.data.file reads its rows",
}


def suffix(operation: str, path: Path) -> str:
    """The format of a path, by its suffix. Errors: ArgumentError for an unknown suffix."""
    if path.suffix not in NATIVE:
        raise ArgumentError(
            f"{operation}: cannot use the suffix of {path} (one of {', '.join(NATIVE)})", hint=_OTHERS.get(path.suffix)
        )
    return path.suffix


def open(path: str | os.PathLike[str]) -> File:
    """The arrays of a file by name. Reads only names, shapes and dtypes.

    path:   a .safetensors or .npz file, written by any program
    Types:  those of the saved arrays, including 64-bit ones.
    Errors: FileNotFoundError and other OSErrors; FileError for a file that is damaged or has a
            dtype unknown to rune; ArgumentError for another suffix.

    >>> import rune, rune.numpy as rnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "weights.safetensors")
    ...     rune.tree.save(path, {"w": rnp.ones(3), "b": rnp.arange(2)})
    ...     rune.files.open(path).types
    mappingproxy({'b': i32[2], 'w': f32[3]})
    """
    return File(path)


def mapped(file: BinaryIO) -> np.ndarray:
    """The bytes of a file as a memory map u8[n]; the system reads them on first use."""
    if not os.fstat(file.fileno()).st_size:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


class File(Mapping[str, Array]):
    """The arrays of a file by name: `file[name]` maps one, `file.read(name, device)` moves it.

    A computation reads only the parts of a mapped array that it uses, so a file may be larger than
    memory. The array stays readable if the file is removed or replaced, but not if another program
    truncates it. int4 arrays are unpacked into memory, and compressed arrays inflated into it.

    Types:  those of the saved arrays.
    Errors: those of `open`; KeyError for a name that is not in the file; FileError for truth values
            that are neither 0 nor 1.

    >>> import rune, rune.numpy as rnp, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "weights.npz")
    ...     rune.tree.save(path, [rnp.ones(3), 2.5], metadata={"by": "me"})
    ...     file = rune.files.open(path)
    >>> sorted(file), file["0"], file.metadata["by"]
    (['0', '1'], Array([1., 1., 1.], f32[3], cpu:0), 'me')
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        format = suffix("open", self.path)
        try:
            with builtins.open(self.path, "rb") as file:
                self._buffer = mapped(file)
                is_npz = format == ".npz"
                contents = npz.read(file, self._buffer) if is_npz else safetensors.read(self._buffer)
            metadata = dict(contents.metadata)
            self.notes = notes.read(metadata.pop(notes.KEY, None))
            self.metadata: Mapping[str, str] = MappingProxyType(metadata)
            self._entries = {name: self._summed(name, entry) for name, entry in contents.entries.items()}
            self.leaves: Mapping[str, Leaf] = MappingProxyType(
                {name: self._leaf(name, entry) for name, entry in self._entries.items()}
            )
        except Unreadable as error:
            raise FileError(f"load: cannot read {self.path} ({error})") from None

    def _summed(self, name: str, entry: Entry) -> Entry:
        """The array, with the checksum in the notes if the format itself has none."""
        return entry if name not in self.notes.sums else replace(entry, crc32=self.notes.sums[name])

    def _leaf(self, name: str, entry: Entry) -> Leaf:
        """The leaf saved under a name. Errors: Unreadable if notes and stored form disagree."""
        native = entry.dtype.newbyteorder("=")
        leaf = self.notes.leaves.get(name, notes.stored_as(native, entry.shape))
        if stored_form(leaf.type, NATIVE[self.path.suffix]) != (native, entry.shape):
            raise Unreadable(f"{name[:60]!r} is noted as {leaf}, but stored in another form")
        return leaf

    @property
    def types(self) -> Mapping[str, ArrayType]:
        """The type of each array.

        >>> import rune  # doctest: +SKIP
        >>> rune.files.open("weights.safetensors").types  # doctest: +SKIP
        """
        return MappingProxyType({name: leaf.type for name, leaf in self.leaves.items()})

    def __getitem__(self, name: str) -> Array:
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}: {leaf}" for name, leaf in [*self.leaves.items()][:8])
        return f"File({str(self.path)!r}, {len(self)} arrays: {arrays}{', ...' if len(self) > 8 else ''})"

    def read(self, name: str, device: Where | None = None) -> Array:
        """An array on a device, or split by a sharding; then each device reads only its own block.

        device: a device, its name or a sharding; None: the default device, without committing to it
        Errors: KeyError; FileError if it is damaged, which is checked only when the whole array is
                copied to a device other than cpu:0; those of `device_put`, naming the array.
        """
        host, type = self.host(name), self.leaves[name].type
        try:
            array = _placed(host, type, device)
        except RuneError as error:
            error.restate(f"load: cannot place {name} ({error.message})")
            raise
        if array.place.device is not None and not isinstance(array.place.device, Spread):
            self._check(name)  # cheap now: all of its bytes have just been read
        return array

    def check(self) -> None:
        """Compare the bytes of all arrays with the checksums noted when they were written.

        This reads the whole file. safetensors files of other programs have no checksums.
        Errors: FileError names an array whose bytes do not match.

        >>> import rune, rune.numpy as rnp, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "weights.safetensors")
        ...     rune.tree.save(path, {"w": rnp.ones(3)})
        ...     rune.files.open(path).check()
        """
        for name in self:
            self._check(name)

    def _check(self, name: str) -> None:
        if is_damaged(self._buffer, self._entries[name]):
            raise FileError(f"load: cannot read {name} of {self.path} (its bytes are not those that were saved)")

    def host(self, name: str) -> np.ndarray:
        """An array as a read-only NumPy array. Errors: KeyError, FileError."""
        leaf, storage = self.leaves[name], array_in(self._buffer, self._entries[name])
        try:
            return decoded(storage, leaf.type)
        except Unreadable as error:
            raise FileError(f"load: cannot read {name} of {self.path} ({error})") from None


def _placed(host: np.ndarray, type: ArrayType, device: Where | None) -> Array:
    if device is None:
        return put(host, type, default_place())
    if not isinstance(device, NamedSharding):
        return device_put(Array(host, type), device)
    return make_array_from_callback(
        host.shape, device, lambda block: Array(np.asarray(host[block], order="C"), type.with_shape(host[block].shape))
    )
