"""The safetensors format: eight bytes with the length of the header, the header, the arrays.

    {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}

Offsets count from the end of the header. The arrays fill the buffer to its end without gaps, so the
size of a truncated file gives it away. Spaces after the header align the buffer to a multiple of 64
bytes, and arrays with larger elements come first, so every array is aligned to its element size.

Source: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.errors import ArgumentError
from rune.files.notes import loads
from rune.files.stored import Contents, Entry, Form, Unreadable, checked_shape, size_bytes

_NAMES = {
    "BOOL": dtypes.bool_,
    "I8": dtypes.i8,
    "I16": dtypes.i16,
    "I32": dtypes.i32,
    "I64": dtypes.i64,
    "U8": dtypes.u8,
    "U16": dtypes.u16,
    "U32": dtypes.u32,
    "U64": dtypes.u64,
    "F8_E4M3": dtypes.f8_e4m3,
    "F8_E5M2": dtypes.f8_e5m2,
    "BF16": dtypes.bf16,
    "F16": dtypes.f16,
    "F32": dtypes.f32,
    "F64": dtypes.f64,
    "C64": dtypes.c64,
}
_NAME_OF = {dtype: name for name, dtype in _NAMES.items()}
NATIVE = frozenset(_NAME_OF)
METADATA = "__metadata__"
_LENGTH = struct.Struct("<Q")
_MOST_HEADER_BYTES = 100_000_000  # as in the reference implementation
_ALIGNMENT = 64


# --- reading ------------------------------------------------------------------------------------


def read(buffer: np.ndarray) -> Contents:
    """The contents of a file, from its bytes u8[n]. Errors: Unreadable."""
    header, start = _header(buffer)
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise Unreadable("metadata that are not texts")
    entries = {name: _entry(name, fields, start) for name, fields in header.items()}
    _require_full(entries, start, buffer.size)
    return Contents(entries, metadata)


def _header(buffer: np.ndarray) -> tuple[dict[str, Any], int]:
    """The header, and the position of its end."""
    if buffer.size < _LENGTH.size:
        raise Unreadable(f"{buffer.size} bytes, too few for the {_LENGTH.size} of the header's length")
    (length,) = _LENGTH.unpack(buffer[: _LENGTH.size].tobytes())
    end = _LENGTH.size + length
    if length > _MOST_HEADER_BYTES or end > buffer.size:
        raise Unreadable(f"a header of {length} bytes in a file of {buffer.size}")
    text = buffer[_LENGTH.size : end].tobytes()
    if not text.startswith(b"{"):
        raise Unreadable("a header that does not begin with {")
    return loads(_as_text(text)), end


def _as_text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"a header that is not UTF-8: {error.reason} at {error.start}") from None


def _entry(name: str, fields: object, start: int) -> Entry:
    if not isinstance(fields, dict):
        raise Unreadable(f"{name[:60]!r} is {str(fields)[:40]}")
    dtype = _NAMES.get(str(fields.get("dtype")))
    if dtype is None:
        raise Unreadable(f"{name[:60]!r} has the dtype {str(fields.get('dtype'))[:20]}")
    shape, offsets = checked_shape(fields.get("shape")), fields.get("data_offsets")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(n) is int and n >= 0 for n in offsets):
        raise Unreadable(f"{name[:60]!r} has the offsets {str(offsets)[:40]}")
    nbytes = size_bytes(dtype, shape)
    if offsets[1] - offsets[0] != nbytes:
        raise Unreadable(f"{name[:60]!r} has {nbytes} bytes, but the offsets {offsets}")
    return Entry(dtype, shape, start + offsets[0], nbytes)


def _require_full(entries: Mapping[str, Entry], start: int, end: int) -> None:
    """Errors: Unreadable unless the arrays lie side by side from start to end."""
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].nbytes)):
        if entry.start != start:
            relation = "overlaps the array before it" if entry.start < start else "leaves a gap before it"
            raise Unreadable(f"{name[:60]!r} {relation}")
        start += entry.nbytes
    if start != end:
        raise Unreadable(f"{end} bytes, but its header describes {start}")


# --- writing ------------------------------------------------------------------------------------


def layout(forms: Mapping[str, Form], metadata: Mapping[str, str]) -> tuple[bytes, dict[str, Entry]]:
    """The bytes before arrays of these forms, and the place of each, in the order of the file.

    Errors: ArgumentError for names and metadata that are too long for the format.
    """
    within: dict[str, Entry] = {}
    end = 0
    for name in sorted(forms, key=lambda name: -forms[name][0].itemsize):
        within[name] = Entry(*forms[name], end, size_bytes(*forms[name]))
        end += within[name].nbytes
    descriptions = {name: _description(entry) for name, entry in within.items()}
    header = json.dumps({**({METADATA: dict(metadata)} if metadata else {}), **descriptions}).encode()
    header += b" " * (-(_LENGTH.size + len(header)) % _ALIGNMENT)
    if len(header) > _MOST_HEADER_BYTES:
        raise ArgumentError(
            f"save: cannot write a header of {len(header)} bytes (at most {_MOST_HEADER_BYTES})",
            hint="metadata is for short texts; store a long one as a leaf, an array of its bytes",
        )
    before = _LENGTH.pack(len(header)) + header
    return before, {name: replace(entry, start=len(before) + entry.start) for name, entry in within.items()}


def _description(entry: Entry) -> dict[str, object]:
    offsets = [entry.start, entry.start + entry.nbytes]
    return {"dtype": _NAME_OF[entry.dtype], "shape": entry.shape, "data_offsets": offsets}
