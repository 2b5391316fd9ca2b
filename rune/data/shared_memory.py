"""Memory that processes share: a file in memory that all of them map; its name is soon removed.

`multiprocessing.shared_memory` is not used: its tracker process warns about memory that a worker
still had open, and when /dev/shm is full, a write to it kills the process.
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

LONG = 1 << 15  # from this many bytes on, an array goes through shared memory
_MOUNT = "/dev/shm"  # on Linux; other systems use the folder of temporary files
_ALIGNED = 64  # bytes

Spans = tuple[tuple[int, int], ...]  # start and number of bytes of each buffer


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Shared bytes, and the path by which other processes open them."""

    path: str
    memory: mmap.mmap

    @property
    def size(self) -> int:
        return len(self.memory)


def new_slot(nbytes: int) -> Slot | None:
    """Shared memory of this many bytes; None if the system has no room for it."""
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
    """Reserve the memory; setting a size alone would not. Errors: OSError if there is no room."""
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is None:
        os.ftruncate(file, nbytes)
    else:
        reserve(file, 0, nbytes)


def opened(path: str) -> Slot:
    """The memory that another process made. Errors: OSError if it has been removed."""
    with open(path, "r+b") as file:
        return Slot(path, mmap.mmap(file.fileno(), 0))


def remove(path: str) -> None:
    """Remove the name, so that no process can open it; those that have it open keep it."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def pickled(value: object) -> tuple[bytes, list[memoryview]]:
    """The pickled value without its long arrays, and their bytes. Errors: those of pickle."""
    buffers: list[memoryview] = []

    def is_short(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LONG:
            buffers.append(raw)
        return raw.nbytes < LONG

    return pickle.dumps(value, protocol=5, buffer_callback=is_short), buffers


def spans_of(buffers: Iterable[memoryview]) -> Spans:
    """Aligned places for the buffers, one after another."""
    spans, at = [], 0
    for buffer in buffers:
        spans.append((at, buffer.nbytes))
        at += -(-buffer.nbytes // _ALIGNED) * _ALIGNED
    return tuple(spans)


def extent(spans: Spans) -> int:
    """The number of bytes from the start to the end of the last place."""
    return sum(spans[-1]) if spans else 0


def write(slot: Slot, buffers: Sequence[memoryview], spans: Spans) -> None:
    """Copy the buffers to their places; NumPy releases the interpreter lock meanwhile."""
    for buffer, (at, size) in zip(buffers, spans, strict=True):
        np.frombuffer(slot.memory, np.uint8, size, at)[...] = np.frombuffer(buffer, np.uint8)


def views(slot: Slot, spans: Spans) -> list[np.ndarray]:
    """The buffers (u8), as views of the shared memory."""
    return [np.frombuffer(slot.memory, np.uint8, size, at) for at, size in spans]
