"""Arrays and words in one file, in the layout of safetensors.

    8 bytes  length of the header, little-endian
    header   JSON: {name: {"dtype", "shape", "data_offsets"}, "__metadata__": {word: text}}
    data     the arrays one after the other, dense, little-endian

What is written has one spelling only, and a digest of all of it stands among the metadata: a file
in which any byte differs is refused. Dtypes that safetensors does not name are bytes there.
Source: the safetensors format, https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from rune import dtypes
from rune.errors import CheckError

HEADER_BYTES = 100_000_000  # of a header, at most: the limit of the format
_AXES = 32
_METADATA, _DIGEST = "__metadata__", "sha256"
NAMES: Mapping[np.dtype, str] = {
    dtypes.bool_: "BOOL",
    dtypes.u8: "U8",
    dtypes.i8: "I8",
    dtypes.i16: "I16",
    dtypes.u16: "U16",
    dtypes.i32: "I32",
    dtypes.u32: "U32",
    dtypes.i64: "I64",
    dtypes.u64: "U64",
    dtypes.f8_e4m3: "F8_E4M3",
    dtypes.f8_e5m2: "F8_E5M2",
    dtypes.f16: "F16",
    dtypes.bf16: "BF16",
    dtypes.f32: "F32",
    dtypes.f64: "F64",
    dtypes.c64: "C64",
}
_DTYPES = {name: dtype for dtype, name in NAMES.items()}


@dataclass(frozen=True, slots=True)
class Content:
    """Arrays by name, and texts by name."""

    arrays: Mapping[str, np.ndarray]
    texts: Mapping[str, str]


def as_named(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that the format names: itself, or its bytes along a last axis."""
    if array.dtype in NAMES:
        return array
    return np.ascontiguousarray(array).reshape(array.shape).view(np.uint8).reshape(*array.shape, array.dtype.itemsize)


def as_dtype(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array of that dtype that `as_named` gave. Errors: CheckError for another dtype."""
    if dtype in NAMES:
        if array.dtype != dtype:
            _refuse(f"{array.dtype} where {dtypes.short(dtype)} is needed")
        return array
    if array.dtype != dtypes.u8 or array.shape[-1:] != (dtype.itemsize,):
        _refuse(f"no bytes of {dtypes.short(dtype)}")
    return array.view(dtype).reshape(array.shape[:-1])


# --- writing ----------------------------------------------------------------------------------


def encode(content: Content) -> bytes:
    """The file. Arrays have dtypes that the format names."""
    table, at = {}, 0
    for name, array in sorted(content.arrays.items()):
        end = at + array.nbytes
        table[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    data = b"".join(array.tobytes() for _, array in sorted(content.arrays.items()))
    unsigned = {**table, _METADATA: dict(content.texts)}
    signed = {**table, _METADATA: {**content.texts, _DIGEST: _digest(unsigned, data)}}
    header = _header(signed)
    return len(header).to_bytes(8, "little") + header + data


def _header(table: Mapping[str, object]) -> bytes:
    """The one spelling of a header: sorted, without blanks, padded to whole words."""
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    return text + b" " * (-len(text) % 8)


def _digest(table: Mapping[str, object], data: bytes | memoryview) -> str:
    digest = hashlib.sha256(_header(table))
    digest.update(data)
    return digest.hexdigest()


# --- reading ----------------------------------------------------------------------------------


def decode(file: bytes) -> Content:
    """The arrays, as views of the file, and the texts without the digest. Errors: CheckError."""
    length = int.from_bytes(file[:8], "little")
    if len(file) < 8 or length > min(HEADER_BYTES, len(file) - 8):
        _refuse("its header is longer than the file, or than may be")
    header, data = file[8 : 8 + length], memoryview(file)[8 + length :]
    table = json.loads(header)
    if not isinstance(table, dict) or _header(table) != header:
        _refuse("its header is spelled otherwise")
    texts = table.pop(_METADATA, None)
    if not isinstance(texts, dict) or not all(isinstance(t, str) for t in texts.values()):
        _refuse("it has no metadata")
    digest = texts.pop(_DIGEST, None)
    if digest != _digest({**table, _METADATA: texts}, data):
        _refuse("its digest is of another content")
    return Content(_arrays(table, data), texts)


def _arrays(table: Mapping[str, object], data: memoryview) -> dict[str, np.ndarray]:
    arrays, at = {}, 0
    for name, entry in sorted(table.items()):
        arrays[name] = _array(entry, data, at)
        at += arrays[name].nbytes
    if at != len(data):
        _refuse(f"{len(data) - at} bytes behind the last array")
    return arrays


def _array(entry: object, data: memoryview, at: int) -> np.ndarray:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        _refuse("an entry without dtype, shape and offsets")
    dtype, shape, offsets = _DTYPES.get(entry["dtype"]), entry["shape"], entry["data_offsets"]
    if dtype is None or not isinstance(shape, list) or len(shape) > _AXES:
        _refuse(f"an array of dtype {entry['dtype']!r} and shape {str(shape)[:40]}")
    if not all(type(n) is int and 0 <= n <= len(data) for n in shape):
        _refuse(f"an array of shape {str(shape)[:40]}")
    end = at + math.prod(shape) * dtype.itemsize
    if offsets != [at, end] or end > len(data):
        _refuse("arrays that do not follow each other")
    array = np.frombuffer(data[at:end], np.uint8)
    if dtype == dtypes.bool_ and array.size and array.max() > 1:
        _refuse("a bool that is neither true nor false")
    return array.view(dtype).reshape(shape)


def _refuse(why: str) -> NoReturn:
    raise CheckError(f"load: cannot read an exported file ({why})")
