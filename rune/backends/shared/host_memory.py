"""Memory of the CPU executor: aligned NumPy arrays, with large blocks used again.

A fresh large block costs a page fault for every page, often more than the kernel that fills it.
So blocks of at least 1 MiB go back to a free list when the last array on them dies: the array's
base is an `_Owner`, whose deletion returns the block. All other memory is NumPy's own: that of
small results, and of what eager operations compute. It is counted when somebody asks.

Invariant: a block is on the free list only when no array refers to it.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from rune import locks
from rune.backends.shared.pool import About, MemoryStats, PoolStats, Use, largest
from rune.core.types import ArrayType
from rune.errors import OutOfMemory, user_frame

LARGE_BYTES = 1 << 20  # blocks from this size on are kept
KEPT_BYTES = 1 << 28  # bytes that the free list may hold
ALIGNMENT = 64


class _Owner(np.ndarray):
    """The bytes of one large block; an array on it keeps it alive, and it returns the block."""

    def __del__(self) -> None:
        if _free is not None and isinstance(self.base, ctypes.Array):  # None: Python is ending
            _free.give(self.base)


class FreeList:
    """Large blocks by size, shared by all threads. Full, it drops what it has: sizes change."""

    def __init__(self) -> None:
        self.lock = locks.held(threading.RLock())
        self.returned: deque[ctypes.Array] = deque()
        self.blocks: dict[int, list[ctypes.Array]] = defaultdict(list)
        self.uses: dict[int, Use] = {}  # of live blocks, by the block's identity
        self.cached = self.live = self.peak = self.requests = self.fresh = 0

    def take(self, nbytes: int, about: About = ()) -> ctypes.Array:
        """A block of that size, a kept one if there is one. Errors: OutOfMemory."""
        use = Use(nbytes, about, user_frame())
        with self.lock:
            self.collect()
            blocks = self.blocks.get(nbytes)
            if blocks:
                self.cached -= nbytes
                block = blocks.pop()
            else:
                data = aligned(nbytes).data
                # A ctypes array and not a view: its length is the block's size when it comes back.
                block = (ctypes.c_char * nbytes).from_buffer(data)
                self.fresh += 1
            self.uses[id(block)] = use
            self.requests += 1
            self.live += nbytes
            self.peak = max(self.peak, self.live)
            return block

    def give(self, block: ctypes.Array) -> None:
        """Keep a block. Finalizers come here, under any lock, and so must not wait for one."""
        self.returned.append(block)
        locks.if_free(self.lock, self.collect)

    def collect(self) -> None:
        """Under the lock: keep what was returned."""
        while self.returned:
            block = self.returned.popleft()
            self.live -= len(block)
            del self.uses[id(block)]
            if self.cached + len(block) > KEPT_BYTES:
                self.clear()
            if len(block) <= KEPT_BYTES:
                self.cached += len(block)
                self.blocks[len(block)].append(block)

    def clear(self) -> None:
        """Give all kept blocks back to the system."""
        with self.lock:
            self.blocks.clear()
            self.cached = 0


_free = FreeList()


def kept_bytes() -> int:
    """Bytes that wait to be used again."""
    return _free.cached


def clear() -> None:
    """Give all kept blocks back to the system."""
    _free.clear()


_arrays: list[Callable[[], Iterable[np.ndarray]]] = []


def count_arrays(buffers: Callable[[], Iterable[np.ndarray]]) -> None:
    """Have `stats` count these as well; once, from the module that knows all arrays."""
    _arrays[:] = [buffers]


def blocks() -> PoolStats:
    """Counts of large blocks until now."""
    with _free.lock:
        _free.collect()
        counts = _free.live, _free.cached, _free.peak, machine_bytes() or None
        return PoolStats(*counts, _free.requests, _free.fresh)


def stats() -> MemoryStats:
    """Counts of large blocks so far, and what other arrays hold; the peak is an observed one."""
    host, unpooled = blocks(), sum(memory.nbytes for memory in _numpys_own())
    live = host.live_bytes + unpooled
    pooled = replace(host, live_bytes=live, peak_bytes=max(host.peak_bytes, live))
    numpy = PoolStats(unpooled, 0, unpooled, host.limit_bytes, 0, 0)  # it was not asked of the pool
    return MemoryStats.of(host=pooled, numpy=numpy)


def _numpys_own() -> list[np.ndarray]:
    """The memory of arrays that is in no block, each piece once."""
    pieces: dict[int, np.ndarray] = {}
    for buffers in _arrays:
        for buffer in buffers():
            while type(buffer) is not _Owner and isinstance(buffer.base, np.ndarray):
                buffer = buffer.base
            if not isinstance(buffer, _Owner):
                pieces[id(buffer)] = buffer
    return list(pieces.values())


def arena(nbytes: int, plan: str) -> np.ndarray:
    """Memory for the intermediates of a plan. Errors: OutOfMemory."""
    if nbytes < LARGE_BYTES:
        return aligned(nbytes)
    return np.ndarray((nbytes,), np.uint8, _owner(nbytes, ("arena", plan)))


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised array; large ones are aligned and recycled.

    Errors: OutOfMemory "alloc: cannot allocate 8000000000000 B (used 51200 B, free ...)".
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < LARGE_BYTES:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, _owner(nbytes, (ArrayType(shape, dtype),)))


def aligned(nbytes: int) -> np.ndarray:
    """Uninitialised bytes on a 64-byte border. Errors: OutOfMemory."""
    try:
        raw = np.empty(nbytes + ALIGNMENT - 1, np.uint8)
    except (MemoryError, OverflowError, ValueError) as error:  # beyond what an address can hold
        if not _free.cached:
            raise out_of_memory(nbytes) from error
        _free.clear()
        return aligned(nbytes)
    # NumPy aligns to 16 bytes or so; whole vectors want 64.
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


def _owner(nbytes: int, about: About) -> np.ndarray:
    # A block is not an array: NumPy lets an array's base skip to the base of a base that is one.
    return _Owner((nbytes,), np.uint8, memoryview(_free.take(nbytes, about)))


def out_of_memory(nbytes: int) -> OutOfMemory:
    """The error that says what was asked, what the process holds, and what is live here."""
    used, limit = resident_bytes(), machine_bytes()
    known = f"used {used} B, free {max(0, limit - used)} B, limit {limit} B"
    with _free.lock:
        live = largest(_free.uses.values())
    return OutOfMemory(
        f"alloc: cannot allocate {nbytes} B on the CPU ({known if limit else 'the limit is unknown'}{live})",
        hint="use smaller batches, donate arguments, or drop arrays that are not needed",
    )


def resident_bytes() -> int:
    """Bytes of memory that this process occupies; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def machine_bytes() -> int:
    """Bytes of memory of this machine; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
