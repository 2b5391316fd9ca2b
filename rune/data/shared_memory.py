"""Memory that processes share: a file in memory, mapped by all, whose name is soon removed.

`multiprocessing.shared_memory` is not used, as it counts what is shared in a process of its own and
complains of what a worker opened last; and where the system's share is full, writing there kills.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from rune.records import dataclass

LONG = 1 << 15  # bytes of an array that are worth it
_MOUNT = "/dev/shm"  # of Linux; elsewhere the folder of temporary files
_ALIGNED = 64  # bytes

Spans = tuple[tuple[int, int], ...]  # where each buffer begins, and its bytes


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Shared bytes, and the path by which other processes open them."""

    path: str
    memory: mmap.mmap

    @property
    def size(self) -> int:
        return len(self.memory)


def new_slot(nbytes: int) -> Slot | None:
    """Shared memory of at least so many bytes; None if the system has no room for it."""
    file, path = tempfile.mkstemp(prefix="rune-data-", dir=_MOUNT if os.path.isdir(_MOUNT) else None)
    try:
        _reserve(file, nbytes)
        return Slot(path, mmap.mmap(file, nbytes))
    except OSError:
        remove(path)
        return None
    finally:
        os.close(file)


def _reserve(file: int, nbytes: int) -> None:
    """Errors: OSError if there is no room: setting the size of a file does not reserve it."""
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is None:
        os.ftruncate(file, nbytes)
    else:
        reserve(file, 0, nbytes)


def opened(path: str) -> Slot:
    """The memory that another process made. Errors: OSError if it has been given back."""
    with open(path, "r+b") as file:
        return Slot(path, mmap.mmap(file.fileno(), 0))


def remove(path: str) -> None:
    """From now on it cannot be opened; processes that have it open keep it."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def pickled(value: object) -> tuple[bytes, list[memoryview]]:
    """The value, and the bytes of its long arrays apart. Errors: those of pickle."""
    buffers: list[memoryview] = []

    def is_short(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LONG:
            buffers.append(raw)
        return raw.nbytes < LONG

    return pickle.dumps(value, protocol=5, buffer_callback=is_short), buffers


def spans_of(buffers: Iterable[memoryview]) -> Spans:
    """Places for the buffers, one after another."""
    spans, at = [], 0
    for buffer in buffers:
        spans.append((at, buffer.nbytes))
        at += -(-buffer.nbytes // _ALIGNED) * _ALIGNED
    return tuple(spans)


def extent(spans: Spans) -> int:
    """The bytes that these places take."""
    return sum(spans[-1]) if spans else 0


def write(slot: Slot, buffers: Sequence[memoryview], spans: Spans) -> None:
    """Copy the buffers there; NumPy frees the interpreter meanwhile."""
    for buffer, (at, size) in zip(buffers, spans, strict=True):
        np.frombuffer(slot.memory, np.uint8, size, at)[...] = np.frombuffer(buffer, np.uint8)


def views(slot: Slot, spans: Spans) -> list[np.ndarray]:
    """The buffers (u8) as they are there."""
    return [np.frombuffer(slot.memory, np.uint8, size, at) for at, size in spans]
