"""The stored form of arrays: dtypes that a format supports, and substitutes for all others.

    bf16, f8      as unsigned integers of their size, where the format has no name for them
    c64, c128     two floats along a last axis
    keys          their two words along a last axis
    i4, u4        two to a byte in row order, the even element in the low half: u8[(n + 1) // 2]
    float0        bool[..., 0], no bytes

A substitute is a view of the same bytes, except for i4 and u4, which are packed and unpacked.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType
from rune.records import dataclass

_PACKED = frozenset({dtypes.i4, dtypes.u4})
_STANDS_FOR: dict[np.dtype, tuple[np.dtype, tuple[int, ...]]] = {
    dtypes.bf16: (dtypes.u16, ()),
    dtypes.f8_e4m3: (dtypes.u8, ()),
    dtypes.f8_e5m2: (dtypes.u8, ()),
    dtypes.c64: (dtypes.f32, (2,)),
    dtypes.c128: (dtypes.f64, (2,)),
    dtypes.float0: (dtypes.bool_, (0,)),
    **{key: (dtypes.u32, (2,)) for key in dtypes.KEYS},
}
_MOST_ELEMENTS = 1 << 62  # NumPy counts in 63 bits
_MOST_AXES = 64


class Unreadable(Exception):
    """The reason why a file cannot be read; the caller adds the path."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An array as it is stored in a file.

    start, nbytes:  the position and number of its bytes
    order:          "F" for column-major order
    inflated_bytes: its bytes u8[nbytes], for an array that is compressed in the file
    crc32:          the checksum of the bytes and of the `before` bytes in front of them, if known
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    nbytes: int
    order: Literal["C", "F"] = "C"
    inflated_bytes: np.ndarray | None = None
    crc32: int | None = None
    before: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """The arrays of a file by name, and its metadata."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str] = field(default_factory=dict)


def checked_shape(sizes: object) -> tuple[int, ...]:
    """A shape from a file. Errors: Unreadable if no array can have it."""
    if not isinstance(sizes, list | tuple) or len(sizes) > _MOST_AXES or not all(map(_is_size, sizes)):
        raise Unreadable(f"an invalid shape: {str(sizes)[:60]}")
    if math.prod(n for n in sizes if n) >= _MOST_ELEMENTS:
        raise Unreadable(f"too many elements: {str(sizes)[:60]}")
    return tuple(sizes)


def _is_size(size: object) -> bool:
    return type(size) is int and 0 <= size < _MOST_ELEMENTS


def size_bytes(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """The number of bytes in an array."""
    return math.prod(shape) * dtype.itemsize


Form = tuple[np.dtype, tuple[int, ...]]  # dtype and shape of a stored array


def stored_form(type: ArrayType, native: frozenset[np.dtype]) -> Form:
    """The stored dtype and shape of an array in a format that supports the dtypes `native`."""
    shape = tuple(map(int, type.shape))
    if type.dtype in native:
        return type.dtype, shape
    if type.dtype in _PACKED:
        return dtypes.u8, ((math.prod(shape) + 1) // 2,)
    dtype, axes = _STANDS_FOR[type.dtype]
    return dtype, (*shape, *axes)


def array_in(buffer: np.ndarray, entry: Entry) -> np.ndarray:
    """The array in its stored form, if possible as a view of the bytes u8[n] of the file."""
    octets = buffer[entry.start :][: entry.nbytes] if entry.inflated_bytes is None else entry.inflated_bytes
    return dtypes.native(octets.view(entry.dtype).reshape(entry.shape, order=entry.order))


def is_damaged(buffer: np.ndarray, entry: Entry) -> bool:
    """Whether an array's bytes in a file u8[n] differ from those whose checksum was noted.

    For inflated arrays, zipfile has already compared the checksum while reading.
    """
    if entry.crc32 is None or entry.inflated_bytes is not None:
        return False
    return zlib.crc32(buffer[entry.start - entry.before : entry.start + entry.nbytes].data) != entry.crc32


def is_stored_by_elements(dtype: np.dtype) -> bool:
    """Whether a block of the array is also a block of its stored form."""
    return dtype not in _PACKED


def encoded(array: np.ndarray, native: frozenset[np.dtype]) -> np.ndarray:
    """The array in its stored form, in row-major order."""
    dense = np.asarray(array, order="C")
    if array.dtype in native:
        return dense
    if array.dtype in _PACKED:
        return _packed(dense)
    dtype, axes = _STANDS_FOR[array.dtype]
    if array.dtype == dtypes.float0:
        return np.empty((*array.shape, 0), dtype)
    return dense[..., None].view(dtype) if axes else dense.view(dtype)


def decoded(storage: np.ndarray, type: ArrayType) -> np.ndarray:
    """The array of a type from its stored form. Errors: Unreadable for bools other than 0 and 1."""
    if type.dtype == dtypes.float0:
        return np.zeros(type.shape, dtypes.float0)
    if storage.dtype == dtypes.bool_ and (storage.view(np.uint8) > 1).any():
        raise Unreadable("truth values other than 0 and 1")
    if storage.dtype == type.dtype:
        return storage
    if type.dtype in _PACKED:
        return _unpacked(storage, type)
    _, axes = _STANDS_FOR[type.dtype]
    return storage.view(type.dtype)[..., 0] if axes else storage.view(type.dtype)


def _packed(values: np.ndarray) -> np.ndarray:
    halves = values.reshape(-1).view(np.uint8) & 15
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    return halves[::2] | (halves[1::2] << 4)


def _unpacked(storage: np.ndarray, type: ArrayType) -> np.ndarray:
    halves = np.stack([storage & 15, storage >> 4], axis=-1).reshape(-1)[: math.prod(type.shape)]
    numbers = (halves << 4).view(np.int8) >> 4 if type.dtype == dtypes.i4 else halves
    return numbers.astype(type.dtype).reshape(type.shape)
