"""Checksums in files: a byte that differs is an error that names its leaf."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.checkpoints import Manager
from rune.errors import FileError, FileWarning
from rune.files import notes
from tests.files.damage import sound_tree

FORMATS = ["safetensors", "npz"]


def altered(path: Path, name: str, byte: int = 0) -> None:
    """Invert the lowest bit of one byte of an array."""
    entry = rune.files.open(path)._entries[name]
    content = bytearray(path.read_bytes())
    content[entry.start + byte] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("format", FORMATS)
def test_any_byte_of_any_leaf_that_differs_is_an_error_with_its_name(tmp_path: Path, format: str):
    path = tmp_path / f"tree.{format}"
    rune.tree.save(path, sound_tree())
    content, entries = path.read_bytes(), rune.files.open(path)._entries
    rune.files.open(path).check()

    for name, entry in entries.items():
        for byte in range(entry.nbytes):
            altered(path, name, byte)
            with pytest.raises(FileError, match=f"cannot read {name} of|'{name}.npy': Bad CRC-32"):
                rune.files.open(path).check()
            path.write_bytes(content)


def test_an_array_that_is_copied_to_a_device_has_its_checksum_compared(tmp_path: Path):
    path = tmp_path / "tree.safetensors"
    rune.tree.save(path, {"a": rnp.ones(3), "b": rnp.ones(5)})
    altered(path, "b", 7)

    assert rune.tree.load(path, part="a", device="reference:0").shape == (3,)
    with pytest.raises(FileError, match="cannot read b of"):
        rune.tree.load(path, device="reference:0")


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_other_programs_are_compared_with_their_checksums_if_any(tmp_path: Path, format: str):
    safetensors = pytest.importorskip("safetensors.numpy")
    path, x = tmp_path / f"other.{format}", np.arange(10_000.0)
    np.savez(path, x=x) if format == "npz" else safetensors.save_file({"x": x}, path)
    rune.files.open(path).check()
    altered(path, "x", 70_000)

    if format == "npz":
        with pytest.raises(FileError, match="cannot read x"):
            rune.files.open(path).check()
    else:
        rune.files.open(path).check()


@pytest.mark.parametrize("note", ["3", "0123456g", "00000000\n", 7, 12345678, None, ["00000000"], {}])
def test_a_note_that_is_not_a_checksum_is_an_error(note: Any):
    with pytest.raises(notes.Unreadable, match="a checksum of 'x' that is not eight hexadecimal digits"):
        notes.read(json.dumps({"version": 1, "leaves": {}, "tree": ["x"], "crc32": {"x": note}}))


@pytest.mark.parametrize("sums", [None, ["00000000"], 3])
def test_checksums_without_names_are_an_error(sums: Any):
    with pytest.raises(notes.Unreadable, match="checksums without names"):
        notes.read(json.dumps({"version": 1, "leaves": {}, "tree": ["x"], "crc32": sums}))


def test_a_checkpoint_with_a_byte_that_differs_is_passed_over(tmp_path: Path):
    with Manager(tmp_path) as manager:
        for step in (1, 2):
            manager.save(step, {"w": rnp.full(100, step)})
    altered(manager.path(2), "w", 399)

    with pytest.warns(FileWarning, match="cannot read w of .*step_000000002"):
        assert manager.resume({"w": rnp.zeros(100, "int32")}).step == 1
    with pytest.raises(FileError, match="cannot read w of"):
        manager.restore(2)
