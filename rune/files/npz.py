"""The npz format: a zip archive with a member `NAME.npy` for each array, and one for metadata.

Uncompressed members are mapped in place; when writing, each array is aligned to 64 bytes. Members
that are compressed, as by `numpy.savez_compressed`, are inflated when the file is opened. Arrays of
objects are refused: unpickling them would run code from the file.

Source: numpy.lib.format; PKWARE, APPNOTE.TXT 6.3.10, sections 4.3.7 and 4.5.
"""

from __future__ import annotations

import ast
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import IO, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy

from rune import dtypes
from rune.files.notes import loads
from rune.files.stored import Contents, Entry, Unreadable, checked_shape, size_bytes

NATIVE = frozenset(d for d in dtypes.SHORT if d.kind in "biufc" and d.isbuiltin == 1)
METADATA = "__metadata__.json"
_SUFFIX = ".npy"
_LOCAL = struct.Struct("<4s22xHH")  # signature, ..., bytes of the name, of extra fields
_FIELD = struct.Struct("<HH")  # the kind of an extra field, and its number of bytes
_PADDING = 0x4E52  # a kind of field that the zip format does not use
_ZIP64_BYTES = 20  # the size of the extra field of a large member
_ALIGNMENT = 64
_MOST_HEADER_BYTES = 1 << 16
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I")}  # length of a header, by npy version
_MOST_RATIO = 1100  # deflate compresses by a factor of at most 1,032
_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError)
_ERRORS += (struct.error, zlib.error, OSError)


# --- reading ------------------------------------------------------------------------------------


def read(file: BinaryIO, buffer: np.ndarray) -> Contents:
    """The contents of an archive, which is open and mapped as u8[n]. Errors: Unreadable."""
    try:
        with zipfile.ZipFile(file) as archive:
            return _contents(archive, buffer)
    except _ERRORS as error:
        raise Unreadable(str(error)[:80] or type(error).__name__) from None


def _contents(archive: zipfile.ZipFile, buffer: np.ndarray) -> Contents:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise Unreadable("a member comes twice")
    metadata = _metadata(archive, members.pop(METADATA, None))
    entries = {_leaf_name(name): _named_entry(archive, info, buffer) for name, info in members.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].start):
        if entry.start < end:
            raise Unreadable(f"{name[:60]!r} overlaps the array before it")
        end = entry.start if entry.inflated_bytes is not None else entry.start + entry.nbytes
    return Contents(entries, metadata)


def _metadata(archive: zipfile.ZipFile, info: zipfile.ZipInfo | None) -> dict[str, str]:
    if info is None:
        return {}
    _require_possible(info)
    metadata = loads(archive.read(info))
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise Unreadable("metadata that are not texts")
    return metadata


def _leaf_name(member: str) -> str:
    if not member.endswith(_SUFFIX):
        raise Unreadable(f"the member {member[:60]!r} is not an array")
    return member.removesuffix(_SUFFIX)


def _require_possible(info: zipfile.ZipInfo) -> None:
    """Errors: Unreadable for a member that claims more bytes than deflate could produce."""
    if info.file_size > _MOST_RATIO * (info.compress_size + 1):
        raise Unreadable(f"a claim of {info.file_size} bytes, compressed to {info.compress_size}")


def _named_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, buffer: np.ndarray) -> Entry:
    try:
        return _entry(archive, info, buffer)
    except (*_ERRORS, Unreadable) as error:
        raise Unreadable(f"{info.filename[:60]!r}: {str(error)[:80] or type(error).__name__}") from None


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, buffer: np.ndarray) -> Entry:
    """The array of a member: its place in the file, or its inflated bytes."""
    _require_possible(info)
    with archive.open(info) as member:
        (dtype, shape, order), before = _header(member), member.tell()
        nbytes = size_bytes(dtype, shape)
        if before + nbytes != info.file_size:
            raise Unreadable(f"{info.file_size} bytes, {before + nbytes} expected")
        if info.compress_type != zipfile.ZIP_STORED:
            return Entry(dtype, shape, info.header_offset, nbytes, order, np.frombuffer(member.read(), np.uint8))
    start = _data_start(info, buffer) + before
    if start + nbytes > buffer.size:
        raise Unreadable("its end is beyond the file's")
    return Entry(dtype, shape, start, nbytes, order, crc32=info.CRC, before=before)


def _header(member: IO[bytes]) -> tuple[np.dtype, tuple[int, ...], Literal["C", "F"]]:
    """Dtype, shape and order from an npy header. Errors: Unreadable; ValueError if not npy."""
    version = npy.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise Unreadable(f"npy of version {version}")
    size = _LENGTHS[version[0]].size
    (length,) = _LENGTHS[version[0]].unpack(member.read(size).ljust(size))
    match _literal(member.read(min(length, _MOST_HEADER_BYTES))):
        case {"descr": str(descr), "fortran_order": bool(is_fortran), "shape": tuple(shape)}:
            return _dtype(descr), checked_shape(shape), "F" if is_fortran else "C"
        case {"descr": descr}:
            raise Unreadable(f"an array of dtype {str(descr)[:60]}")
    raise Unreadable("a header that is not npy's")


def _literal(text: bytes) -> object:
    """The value of a header; NumPy's own reader fails badly on text that is not Python."""
    try:
        return ast.literal_eval(text.decode("latin1").strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Unreadable(f"a header that is not a literal ({type(error).__name__})") from None


def _dtype(descr: str) -> np.dtype:
    try:
        dtype = np.dtype(descr)
    except TypeError:
        dtype = None
    if dtype is None or dtype.newbyteorder("=") not in NATIVE:
        raise Unreadable(f"an array of dtype {descr[:60]}")
    return dtype


def _data_start(info: zipfile.ZipInfo, buffer: np.ndarray) -> int:
    """The start of a member's bytes, after its local header in the archive."""
    # The local header may have other extra fields than the directory, which zipfile has read.
    header = buffer[info.header_offset : info.header_offset + _LOCAL.size].tobytes()
    _, name_bytes, extra_bytes = _LOCAL.unpack(header)
    return info.header_offset + _LOCAL.size + name_bytes + extra_bytes


# --- writing ------------------------------------------------------------------------------------


def write(file: BinaryIO, arrays: Iterable[tuple[str, np.ndarray]], metadata: Mapping[str, str]) -> None:
    """Write dense arrays of native dtypes one after another, and then the metadata."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays:
            _write_member(archive, file, name + _SUFFIX, array)
        archive.writestr(zipfile.ZipInfo(METADATA), json.dumps(dict(metadata)))


def _write_member(archive: zipfile.ZipFile, file: BinaryIO, name: str, array: np.ndarray) -> None:
    info = zipfile.ZipInfo(name)
    info.file_size = array.nbytes + _MOST_HEADER_BYTES
    # Two extra fields precede the data: that of 64-bit sizes, and the padding.
    begin = file.tell() + _LOCAL.size + len(name.encode()) + _ZIP64_BYTES + _FIELD.size
    padding = -begin % _ALIGNMENT
    info.extra = _FIELD.pack(_PADDING, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as member:
        npy.write_array(member, array, allow_pickle=False)
