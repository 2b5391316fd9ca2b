"""Asynchronous copies to an OpenCL device, through memory that the driver has pinned.

A copy is cut into parts. Each is first copied into a pinned piece of host memory, and goes to the
device from there, in an in-order queue: the programs' queue, where all earlier uses of the target
have ended by then, or the one beside it (aside.py). So the caller may change its array at once.
Pieces are used in turn; if all have a copy under way, the host waits for the oldest.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np

from rune import locks
from rune.backends.opencl.run import OpenCLQueue
from rune.backends.opencl.waiting import Event, wait_for
from rune.backends.shared.pool import Block, PoolStats
from rune.records import dataclass

SIZES = (1 << 16, 1 << 22)  # of pieces: small arrays, large arrays [B]
MOST = 16  # pieces of each size


class CommandQueue(Protocol):
    """A queue of pyopencl."""

    def flush(self) -> None:
        """Submit all enqueued commands."""
        ...


@dataclass(slots=True)
class _Piece:
    memory: np.ndarray  # u8
    copy: Event | None = None  # the last copy from it

    @property
    def is_free(self) -> bool:
        return self.copy is None or self.copy.command_execution_status <= 0


class Staging:
    """The pinned memory of one queue, for any thread."""

    def __init__(self, backend: OpenCLQueue, queue: CommandQueue):
        self.backend, self._queue = backend, queue
        self._lock = locks.lock()
        self._pieces: dict[int, deque[_Piece]] = {size: deque() for size in SIZES}
        self._copies = 0
        # Mapping waits for all commands of its queue, so it gets a queue that is always empty.
        self._mapping = backend.cl.CommandQueue(backend.context)

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Enqueue a copy of host bytes (u8) into a block."""
        for at in range(0, data.size, SIZES[-1]):
            with self._lock:
                self._send(block, offset + at, data[at : at + SIZES[-1]])
        self._queue.flush()

    def stats(self) -> PoolStats:
        """The pinned pieces: live ones have a copy under way, and none is ever freed."""
        with self._lock:
            pieces = [p for pieces in self._pieces.values() for p in pieces]
            pinned_bytes = sum(p.memory.size for p in pieces)
            live = sum(p.memory.size for p in pieces if not p.is_free)
            return PoolStats(live, pinned_bytes - live, pinned_bytes, MOST * sum(SIZES), self._copies, len(pieces))

    def _send(self, block: Block, offset: int, data: np.ndarray) -> None:
        piece, backend = self._next(next(size for size in SIZES if data.size <= size)), self.backend
        pinned_memory = piece.memory[: data.size]
        pinned_memory[...] = data
        piece.copy = backend.cl.enqueue_copy(
            self._queue, block.handle, pinned_memory, dst_offset=offset, is_blocking=False
        )
        self._copies += 1

    def _next(self, size: int) -> _Piece:
        """The least recently used piece, if its copy has ended or no more may be made; else a new
        one."""
        pieces = self._pieces[size]
        if pieces and (len(pieces) == MOST or pieces[0].is_free):
            if pieces[0].copy is not None:
                wait_for(pieces[0].copy)
            piece = pieces.popleft()
        else:
            piece = _Piece(self._pinned(size))
        pieces.append(piece)
        return piece

    def _pinned(self, size: int) -> np.ndarray:
        cl, backend = self.backend.cl, self.backend
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.ALLOC_HOST_PTR
        memory = cl.Buffer(backend.context, flags, size)
        # The array keeps the buffer alive, which stays mapped as long.
        return cl.enqueue_map_buffer(self._mapping, memory, cl.map_flags.WRITE, 0, (size,), np.uint8)[0]
