"""Copies to the device through pinned host memory, so that they run while the host goes on.

A copy is cut into pieces. Each is first copied into a pinned piece of host memory, which stays
untouched until the event behind its own copy to the device has come; so the caller may change or
drop the array at once. Pieces are used in turn: at most a few are ever made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rune import locks
from rune.backends.cuda.driver import Driver, Event, Stream
from rune.backends.shared.pool import PoolStats

SIZES = (1 << 16, 1 << 22)  # of pieces: tables and small arrays, large arrays [B]
MOST = 4  # pieces of each size


@dataclass(frozen=True, slots=True)
class _Piece:
    memory: np.ndarray
    event: Event  # behind the last copy from it


class Staging:
    """The pinned memory of one stream, used in its context by any thread.

    settle: waits for what may never end on the stream, and raises if it does not
    """

    def __init__(self, driver: Driver, stream: Stream, settle: Callable[[], None]):
        self._lock = locks.lock()
        self._driver, self._stream, self._settle = driver, stream, settle
        self._pieces: dict[int, deque[_Piece]] = {size: deque() for size in SIZES}
        self._sent = 0

    def send(self, address: int, data: np.ndarray) -> None:
        """Enqueue a copy of host bytes (u8) to this address of the device."""
        for at in range(0, data.size, SIZES[-1]):
            with self._lock:
                self._send(address + at, data[at : at + SIZES[-1]])

    def stats(self) -> PoolStats:
        """The pinned pieces: live ones have a copy under way, and none is ever freed."""
        with self._lock:
            pieces = [p for free in self._pieces.values() for p in free]
            held = sum(p.memory.size for p in pieces)
            live = sum(p.memory.size for p in pieces if not p.event.query())
            return PoolStats(live, held - live, held, MOST * sum(SIZES), self._sent, len(pieces))

    def _send(self, address: int, part: np.ndarray) -> None:
        piece = self._free(next(size for size in SIZES if part.size <= size))
        pinned = piece.memory[: part.size]
        pinned[...] = part
        self._driver.memcpy_htod_async(address, pinned, self._stream)
        piece.event.record(self._stream)
        self._sent += 1

    def _free(self, size: int) -> _Piece:
        """The piece that was used longest ago, if its copy is done or no more may be made."""
        pieces = self._pieces[size]
        if pieces and (len(pieces) == MOST or pieces[0].event.query()):
            piece = pieces.popleft()
            if not piece.event.query():
                self._settle()
            piece.event.synchronize()
        else:
            flags = self._driver.event_flags.DISABLE_TIMING
            piece = _Piece(self._driver.pagelocked_empty(size, np.uint8), self._driver.Event(flags))
        pieces.append(piece)
        return piece
