"""Memory of the CPU executor: aligned NumPy arrays, and a free list of large blocks.

A fresh large block costs a page fault for every page, often more than the kernel that fills it.
So a block of at least 1 MiB returns to the free list when the last array on it dies: the array's
base is an `_Owner`, whose deletion returns the block. NumPy allocates all other memory: of small
results, and of the results of eager operations. `stats` counts that when it is called.

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

LARGE_BYTES = 1 << 20  # blocks of at least this size go to the free list
KEPT_BYTES = 1 << 28  # the most that the free list holds
ALIGNMENT = 64  # a cache line, and the widest vector register
HUGE_PAGE = 1 << 21  # of x86-64, and of AArch64 with pages of 4 KiB


class _Owner(np.ndarray):
    """The bytes of one large block. Arrays on it keep it alive; its deletion returns the block."""

    def __del__(self) -> None:
        # At exit the interpreter may have set this module's globals to None. Views of an owner have
        # its type as well, but not a block for their base.
        if _free is not None and isinstance(self.base, ctypes.Array):
            _free.give(self.base)


class FreeList:
    """Free large blocks by size, shared by all threads.

    When it is full, it drops all of them: programs that follow need other sizes.
    """

    def __init__(self) -> None:
        # Reentrant: the collector may run an `_Owner`'s finaliser in a thread that holds the lock.
        self.lock = locks.fork_guard(threading.RLock())
        self.dead_blocks: deque[ctypes.Array] = deque()
        self.blocks: dict[int, list[ctypes.Array]] = defaultdict(list)
        self.uses: dict[int, Use] = {}  # of live blocks, by the block's identity
        self.cached_bytes = self.live = self.peak = self.requests = self.fresh = 0

    def take(self, nbytes: int, about: About = ()) -> ctypes.Array:
        """A block of that size, a free one if there is one. Errors: OutOfMemory."""
        use = Use(nbytes, about, user_frame())
        with self.lock:
            self.collect()
            blocks = self.blocks.get(nbytes)
            if blocks:
                self.cached_bytes -= nbytes
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
        """Return a block. Finalisers call this under any lock, so it must never wait for one."""
        self.dead_blocks.append(block)
        locks.if_free(self.lock, self.collect)

    def collect(self) -> None:
        """Move returned blocks to the free list. Under the lock."""
        while self.dead_blocks:
            block = self.dead_blocks.popleft()
            self.live -= len(block)
            del self.uses[id(block)]
            if self.cached_bytes + len(block) > KEPT_BYTES:
                self.clear()
            if len(block) <= KEPT_BYTES:
                self.cached_bytes += len(block)
                self.blocks[len(block)].append(block)

    def clear(self) -> None:
        """Release all free blocks to the system."""
        with self.lock:
            self.blocks.clear()
            self.cached_bytes = 0


_free = FreeList()


def kept_bytes() -> int:
    """Bytes of the blocks in the free list."""
    return _free.cached_bytes


def clear() -> None:
    """Release all free blocks to the system."""
    _free.clear()


_arrays: list[Callable[[], Iterable[np.ndarray]]] = []


def count_arrays(buffers: Callable[[], Iterable[np.ndarray]]) -> None:
    """Have `stats` count these arrays too. Called once, by the module that knows all arrays."""
    _arrays[:] = [buffers]


def blocks() -> PoolStats:
    """Counts of large blocks until now."""
    with _free.lock:
        _free.collect()
        counts = _free.live, _free.cached_bytes, _free.peak, machine_bytes() or None
        return PoolStats(*counts, _free.requests, _free.fresh)


def stats() -> MemoryStats:
    """Counts of large blocks, and bytes of NumPy's arrays now. The peak is the largest observed."""
    host, numpy_bytes = blocks(), sum(memory.nbytes for memory in _numpys_own())
    live = host.live_bytes + numpy_bytes
    combined = replace(host, live_bytes=live, peak_bytes=max(host.peak_bytes, live))
    numpy = PoolStats(numpy_bytes, 0, numpy_bytes, host.limit_bytes, 0, 0)  # no request to the pool
    return MemoryStats.of(host=combined, numpy=numpy)


def _numpys_own() -> list[np.ndarray]:
    """The arrays that hold memory outside all blocks, each once, however many views it has."""
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
    """Uninitialised bytes, aligned to 64 bytes, and from 2 MiB on to huge pages.

    Two arrays of 4 MB have more small pages than a processor's table of pages. NumPy asks Linux for
    huge pages where it allocates 4 MiB or more, which a block with its alignment is.

    Errors: OutOfMemory.
    """
    huge = nbytes >= HUGE_PAGE
    alignment = HUGE_PAGE if huge else ALIGNMENT
    try:
        raw = np.empty((-(-nbytes // alignment) + 1) * alignment if huge else nbytes + alignment - 1, np.uint8)
    # NumPy raises the last two for sizes beyond the address space.
    except (MemoryError, OverflowError, ValueError) as error:
        if not _free.cached_bytes:
            raise out_of_memory(nbytes) from error
        _free.clear()
        return aligned(nbytes)
    # NumPy guarantees 16 bytes only; aligned loads of the widest vectors need 64.
    start = -address_of(raw) % alignment
    return raw[start : start + nbytes]


def address_of(x: np.ndarray) -> int:
    """The address of an array's first element, in a third of the time of `x.ctypes.data`."""
    address: int = x.__array_interface__["data"][0]
    return address


def _owner(nbytes: int, about: About) -> np.ndarray:
    # The block must not be an array: NumPy replaces a base that is a view by that view's own base,
    # and the owner would drop out of the chain.
    return _Owner((nbytes,), np.uint8, memoryview(_free.take(nbytes, about)))


def out_of_memory(nbytes: int) -> OutOfMemory:
    """The error: bytes requested, memory of the process, and the largest live blocks."""
    resident, limit = resident_bytes(), machine_bytes()
    known = f"used {resident} B, free {max(0, limit - resident)} B, limit {limit} B"
    with _free.lock:
        live = largest(_free.uses.values())
    return OutOfMemory(
        f"alloc: cannot allocate {nbytes} B on the CPU ({known if limit else 'the limit is unknown'}{live})",
        hint="use smaller batches, donate arguments, or drop arrays that are not needed",
    )


def resident_bytes() -> int:
    """Resident bytes of this process; 0 where the system does not report them."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def machine_bytes() -> int:
    """Bytes of memory of this machine; 0 where the system does not report them."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
