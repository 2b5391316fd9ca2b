"""Arrays and texts in one safetensors file, whose digest covers every byte.

Equal contents give equal bytes: names in order, arrays without gaps, and in the metadata a digest
of everything else. So reading refuses a file in which a single byte has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from rune.core.types import ArrayType
from rune.errors import ArgumentError, CheckError
from rune.files import safetensors
from rune.files.stored import Entry, Form, decoded, encoded, stored_form
from rune.records import dataclass

_DIGEST = "sha256"


@dataclass(frozen=True, slots=True)
class Content:
    """Arrays in their stored form, by name, and texts by name."""

    arrays: Mapping[str, np.ndarray]
    texts: Mapping[str, str]


def stored(array: np.ndarray) -> np.ndarray:
    """The array in the form that the format stores."""
    return encoded(array, safetensors.NATIVE)


def as_type(array: np.ndarray, type: ArrayType) -> np.ndarray:
    """The stored array as one of this type. Errors: CheckError for another type, Unreadable."""
    if stored_form(type, safetensors.NATIVE) != (array.dtype, array.shape):
        refuse(f"{array.dtype}{list(array.shape)} where {type} is required")
    return decoded(array, type)


def encode(content: Content) -> bytes:
    """The bytes of the file."""
    forms = {name: (array.dtype, array.shape) for name, array in sorted(content.arrays.items())}
    plain_header, entries = _layout(forms, content.texts)
    data = b"".join(content.arrays[name].tobytes() for name in entries)
    header, _ = _layout(forms, {**content.texts, _DIGEST: _digest(plain_header, data)})
    return header + data


def decode(file: np.ndarray) -> Content:
    """The arrays, as views of the bytes u8[n] of the file, and the texts.

    Errors: CheckError, Unreadable.
    """
    contents = safetensors.read(file)
    texts, entries = dict(contents.metadata), contents.entries
    digest = texts.pop(_DIGEST, "")
    forms = {name: (entries[name].dtype, entries[name].shape) for name in sorted(entries)}
    try:
        header, canonical_entries = _layout(forms, {**texts, _DIGEST: digest})
    except ArgumentError:  # as rune writes it, the header exceeds the format's limit
        refuse("its header is not written as rune writes it")
    entries_in_order = {name: entries[name] for name in canonical_entries}
    if file[: len(header)].tobytes() != header or canonical_entries != entries_in_order:
        refuse("its header is not written as rune writes it")
    plain_header, _ = _layout(forms, texts)
    if digest != _digest(plain_header, file[len(header) :].data):
        refuse("its digest does not match its content")
    return Content({name: _view(file, entry) for name, entry in entries.items()}, texts)


def _layout(forms: Mapping[str, Form], texts: Mapping[str, str]) -> tuple[bytes, dict[str, Entry]]:
    return safetensors.layout(forms, dict(sorted(texts.items())))


def _digest(header: bytes, data: bytes | memoryview) -> str:
    digest = hashlib.sha256(header)
    digest.update(data)
    return digest.hexdigest()


def _view(file: np.ndarray, entry: Entry) -> np.ndarray:
    return file[entry.start : entry.start + entry.nbytes].view(entry.dtype).reshape(entry.shape)


def refuse(why: str) -> NoReturn:
    """Raise CheckError."""
    raise CheckError(f"load: cannot read an exported file ({why})")
