"""Both formats: others read rune's files, rune reads theirs, and broken files are refused."""

from __future__ import annotations

import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import numpy as reference
from safetensors import safe_open

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, FileError
from rune.files import safetensors
from tests.files.damage import WAYS, files, joined, sound_tree, split
from tests.support.close import same

# The dtypes that the package supports with NumPy: no 8-bit floats.
IN_THE_PACKAGE = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 bfloat16"


def drawn(dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.random.default_rng(0).integers(-9, 9, (3, 5)).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


# --- others -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", IN_THE_PACKAGE.split())
def test_the_safetensors_package_reads_runes_files(tmp_path: Path, dtype: str):
    x = drawn(dtype)
    rune.tree.save(tmp_path / "x.safetensors", {"a": [x, rnp.zeros((0, 3))]}, metadata={"by": "me"})

    arrays = reference.load_file(tmp_path / "x.safetensors")

    same(x, arrays["a.0"])
    assert arrays["a.1"].shape == (0, 3)


@pytest.mark.parametrize("dtype", IN_THE_PACKAGE.split())
def test_a_file_that_the_safetensors_package_writes_is_read(tmp_path: Path, dtype: str):
    arrays = {"layer.weight": drawn(dtype), "layer.bias": np.ones((), np.float32), "none": np.ones((2, 0), np.int8)}
    reference.save_file(arrays, tmp_path / "x.safetensors", {"format": "np"})

    copies = rune.tree.load(tmp_path / "x.safetensors")

    assert sorted(copies) == sorted(arrays)
    same(arrays["layer.weight"], copies["layer.weight"])
    assert dict(rune.files.open(tmp_path / "x.safetensors").metadata) == {"format": "np"}


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int4", "complex128"])
def test_a_file_with_dtypes_that_the_package_lacks_is_sound_to_it(tmp_path: Path, dtype: str):
    rune.tree.save(tmp_path / "x.safetensors", [drawn(dtype)])

    with safe_open(tmp_path / "x.safetensors", "np") as file:
        assert [*file.keys()] == ["0"]


def test_a_tree_like_the_names_of_others_reads_their_file(tmp_path: Path):
    reference.save_file({"layers.0.w": drawn("float32"), "head": drawn("float16")}, tmp_path / "x.safetensors")
    like = {"layers": [{"w": rune.ShapeDtypeStruct((3, 5), "f32")}], "head": rune.ShapeDtypeStruct((3, 5), "f16")}

    same(drawn("float32"), rune.tree.load(tmp_path / "x.safetensors", like)["layers"][0]["w"])


def test_numpy_reads_runes_files(tmp_path: Path):
    tree = {"w": np.arange(6.0).reshape(2, 3).T, "c": rnp.ones(3, "complex64"), "n": 3, "half": rnp.ones(2, "bfloat16")}
    rune.tree.save(tmp_path / "x.npz", tree)

    arrays = np.load(tmp_path / "x.npz")

    same(tree["w"], arrays["w"])
    assert (arrays["c"].dtype, int(arrays["n"]), arrays["half"].dtype) == (np.complex64, 3, np.uint16)
    assert json.loads(arrays["__metadata__.json"])["rune"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_that_numpy_writes_is_read(tmp_path: Path, save: Callable[..., None]):
    arrays = {
        "rows": np.arange(12.0).reshape(3, 4),
        "columns": np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4)),
        "swapped": np.arange(5, dtype=">f4"),
        "none": np.ones((0, 3)),
        "one": np.float16(2),
    }
    save(tmp_path / "x.npz", **arrays)

    copies = rune.tree.load(tmp_path / "x.npz")

    assert sorted(copies) == sorted(arrays)
    for name, array in arrays.items():
        same(array.astype(array.dtype.newbyteorder("=")), copies[name])


def test_unaligned_arrays_can_be_computed_with(tmp_path: Path):
    arrays = {"a": np.arange(3, dtype=np.uint8), "x": np.arange(1000.0)}
    header: dict[str, Any] = {"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}
    header["x"] = {"dtype": "F64", "shape": [1000], "data_offsets": [3, 8003]}
    (tmp_path / "x.safetensors").write_bytes(joined(header, arrays["a"].tobytes() + arrays["x"].tobytes()))

    x = rune.tree.load(tmp_path / "x.safetensors")["x"]

    assert not x.numpy().flags.aligned
    assert float(rune.jit(rnp.sum)(x)) == float(rnp.sum(x)) == 499_500


# --- what is broken -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "x.safetensors"
    rune.tree.save(path, sound_tree())
    return path.read_bytes()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_a_file_that_is_broken_in_any_way_is_refused(tmp_path: Path, sound: bytes, way: Callable[..., bytes]):
    random, path = Random(0), tmp_path / "x.safetensors"
    for _ in range(25):
        path.write_bytes(way(random, *split(sound)))

        with pytest.raises(FileError, match=r"cannot read .*x\.safetensors"):
            rune.tree.load(path)


def test_no_damaged_file_is_read_wrongly():
    assert not +files(300, seed=0)  # ./scripts/stress files: 10,000


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([object()]), "dtype .O"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), r"dtype \[\('a'"),
        (np.array(["text"]), "dtype <U4"),
        (np.ones(2, ml_dtypes.bfloat16), "dtype .V2"),
    ],
)
def test_arrays_that_rune_has_no_dtype_for_are_refused(tmp_path: Path, array: np.ndarray, words: str):
    np.savez(tmp_path / "x.npz", x=array)

    with pytest.raises(FileError, match=words):
        rune.tree.load(tmp_path / "x.npz")


def npz(path: Path, members: list[tuple[str, bytes]], **options: Any) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, octets in members:
            archive.writestr(name, octets, **options)
    return path


def npy(header: str, octets: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n" + octets


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,)}"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("x.npy", npy(HEADER % "1", b"1234")), ("x.npy", npy(HEADER % "1", b"1234"))], "a member comes twice"),
        ([("x.npy", npy(HEADER % "2", b"1234"))], "70 bytes, 74 expected"),
        ([("x.npy", npy(HEADER % "1 << 62"))], "'x.npy'"),
        ([("x.npy", npy(HEADER % "-1", b""))], "an invalid shape"),
        ([("x.npy", npy(HEADER % "4611686018427387903"))], "'x.npy'"),
        ([("x.npy", npy("[" * 9000))], "'x.npy'"),
        ([("x.npy", npy("__import__('os').abort()"))], "'x.npy'"),
        ([("x.npy", b"text")], "'x.npy'"),
        ([("x.npy", npy("[1]"))], "a header that is not npy's"),
        ([("x.npy", b"\x93NUMPY\x03\x00")], r"npy of version \(3, 0\)"),
        ([("x.txt", b"text")], "is not an array"),
        ([("__metadata__.json", b"[]")], "metadata that are not texts"),
        ([("__metadata__.json", b'{"rune": "{}"}')], "notes of version"),
    ],
)
def test_an_archive_that_is_broken_is_refused(tmp_path: Path, members: list[tuple[str, bytes]], words: str):
    path = npz(tmp_path / "x.npz", members)

    with pytest.raises(FileError, match=words):
        rune.tree.load(path)


def test_an_archive_that_claims_more_than_it_can_hold_is_refused(tmp_path: Path):
    octets = npz(tmp_path / "x.npz", [("x.npy", npy(HEADER % "1000000000"))], compress_type=zipfile.ZIP_DEFLATED)
    content = bytearray(octets.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 4_000_000_074)
    octets.write_bytes(content)

    with pytest.raises(FileError, match="a claim of 4000000074 bytes"):
        rune.tree.load(octets)


def entries_of_the_directory(content: bytearray) -> list[int]:
    """The offsets of the entries in an archive's central directory."""
    return [match.start() for match in re.finditer(rb"PK\x01\x02", content)]


def test_an_array_whose_end_is_beyond_the_file_is_refused(tmp_path: Path):
    path = npz(tmp_path / "x.npz", [("x.npy", npy(HEADER % "1000", b"1234"))])
    content = bytearray(path.read_bytes())
    (place,) = entries_of_the_directory(content)
    size = len(npy(HEADER % "1000")) + 4000
    content[place + 20 : place + 28] = struct.pack("<II", size, size)
    path.write_bytes(content)

    with pytest.raises(FileError, match="its end is beyond the file's"):
        rune.tree.load(path)


def test_arrays_that_share_bytes_are_refused(tmp_path: Path):
    inner = npz(tmp_path / "inner.npz", [("b.npy", npy(HEADER % "1", b"1234"))]).read_bytes()
    outer = npy(HEADER.replace("<f4", "|u1") % len(inner), inner)
    path = npz(tmp_path / "x.npz", [("a.npy", outer), ("b.npy", npy(HEADER % "1", b"1234"))])
    content = bytearray(path.read_bytes())
    place = entries_of_the_directory(content)[-1]
    content[place + 42 : place + 46] = struct.pack("<I", content.index(b"PK\x03\x04", 4))  # b inside a
    path.write_bytes(content)

    with pytest.raises(FileError, match="'b' overlaps the array before it"):
        rune.tree.load(path)


def test_a_header_of_more_bytes_than_a_file_may_have_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(safetensors, "_MOST_HEADER_BYTES", 500)

    with pytest.raises(ArgumentError, match="save: cannot write a header of"):
        rune.tree.save(tmp_path / "x.safetensors", [1.0], {"text": "x" * 500})

    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "note", "words"),
    [
        ("leaves", {"0": {"dtype": "f64", "shape": [3], "number": True}}, "a note on '0' of a number with axes"),
        ("leaves", {"0": {"dtype": "i32", "shape": [2]}}, r"'0' is noted as i32\[2\], but stored in another form"),
        ("tree", [["set", 1], "0"], "a note of a tree with the node"),
    ],
)
def test_notes_that_do_not_fit_their_file_are_refused(tmp_path: Path, name: str, note: object, words: str):
    path = tmp_path / "x.safetensors"
    rune.tree.save(path, [rnp.ones(3)])
    header, buffer = split(path.read_bytes())
    notes = {**json.loads(header["__metadata__"]["rune"]), name: note}
    header["__metadata__"]["rune"] = json.dumps(notes)
    path.write_bytes(joined(header, buffer))

    with pytest.raises(FileError, match=words):
        rune.tree.load(path)


def test_truth_values_other_than_0_and_1_are_refused(tmp_path: Path):
    header = {"x": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}
    (tmp_path / "x.safetensors").write_bytes(joined(header, b"\x01\x02"))

    with pytest.raises(FileError, match=r"cannot read x of .*truth values other than 0 and 1"):
        rune.tree.load(tmp_path / "x.safetensors")
