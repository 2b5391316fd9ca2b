"""Copies through pinned host memory, which run asynchronously.

A copy is cut into parts. To the device, each part is first copied into a pinned piece of host
memory, which is not touched again until the event after its copy has occurred; so the caller may
change or drop the array at once. From the device, each part arrives in a pinned piece, and is
copied from there when its caller waits for it, or when the piece is needed again: so many copies
can be under way before any caller waits, and only those beyond the capacity of the pieces make the
host wait. Pieces are used in turn: there are at most a few of each size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import field

import numpy as np

from rune import locks
from rune.backends.cuda.driver import Driver, Event, Stream
from rune.backends.shared.pool import PoolStats
from rune.records import dataclass

SIZES = (1 << 16, 1 << 22)  # of pieces [B]: for tables and small arrays, for large arrays
MOST = 4  # pieces of each size for copies to the device
_ALIGNED = 64  # [B]: tables in one piece do not share cache lines
MOST_ARRIVING = {SIZES[0]: 32, SIZES[1]: 8}  # from the device: a tree of small arrays, 32 MiB


@dataclass(slots=True, eq=False)
class _Piece:
    memory: np.ndarray
    event: Event  # after the last copy from or to it
    host: np.ndarray | None = None  # the target of bytes that arrive from the device


@dataclass(slots=True, eq=False)
class _Ring:
    """Pieces of one size and direction, the least recently used first."""

    size: int
    most: int
    pieces: deque[_Piece] = field(default_factory=deque)


class Staging:
    """The pinned memory of one stream, used in its context by any thread.

    settle: waits for collectives on the stream, and raises if one never ends
    """

    def __init__(self, driver: Driver, stream: Stream, settle: Callable[[], None]):
        self._driver, self._stream, self._settle = driver, stream, settle
        # Two locks, so that a thread that waits for the device does not keep others from sending.
        self._sending, self._fetching = locks.lock(), locks.lock()
        self._leaving = [_Ring(size, MOST) for size in SIZES]
        self._arriving = [_Ring(size, MOST_ARRIVING[size]) for size in SIZES]
        self._copies = 0
        self._tables: _Piece | None = None  # the piece that tables are cut from, used up to `_at`
        self._at = self._base = 0
        self._lasting: list[np.ndarray] = []  # memory of callers who know when copies from it have ended

    def has_table(self, nbytes: int) -> bool:
        """Whether there is room for a table without a call of the driver."""
        return self._tables is not None and self._at + nbytes <= SIZES[0]

    def table(self, nbytes: int) -> int:
        """Pinned memory for a table, whose copy must be enqueued before the next table is taken."""
        with self._sending:
            if self._tables is None or self._at + nbytes > SIZES[0]:
                self._turn_over()
            at, self._at = self._at, self._at + -(-nbytes // _ALIGNED) * _ALIGNED
            return self._base + at

    def tables(self, count: int, nbytes: int) -> int:
        """Pinned memory for `count` tables, whose copies the caller orders."""
        memory = self._driver.pagelocked_empty(count * nbytes, np.uint8)
        self._lasting.append(memory)
        return memory.ctypes.data

    def send(self, address: int, data: np.ndarray) -> None:
        """Enqueue a copy of host bytes (u8) to this address of the device."""
        for at in range(0, data.size, SIZES[-1]):
            with self._sending:
                self._send(address + at, data[at : at + SIZES[-1]])

    def fetch(self, host: np.ndarray, address: int) -> Callable[[], None]:
        """Enqueue a copy of bytes (u8) from this address; the function returned waits for them."""
        parts = [host[at : at + SIZES[-1]] for at in range(0, host.size, SIZES[-1])]
        pieces = []
        for number, part in enumerate(parts):
            with self._fetching:
                pieces.append(self._fetch(part, address + number * SIZES[-1]))

        def finish() -> None:
            for piece, part in zip(pieces, parts, strict=True):
                # Otherwise the part was already copied, because its piece was needed again.
                if piece.host is part:
                    self._wait(piece)  # without the lock, so that others can send meanwhile
                with self._fetching:
                    if piece.host is part:
                        _land(piece)

        return finish

    def stats(self) -> PoolStats:
        """The pinned pieces: live ones have a copy under way, and none is ever freed."""
        rings = self._leaving + self._arriving
        with self._sending, self._fetching:
            pieces = [p for ring in rings for p in ring.pieces]
            pieces += [] if self._tables is None else [self._tables]
            pinned_bytes = sum(p.memory.size for p in pieces)
            pinned_bytes += sum(memory.size for memory in self._lasting)
            live = sum(p.memory.size for p in pieces if p.host is not None or not p.event.query())
            limit = sum(ring.size * ring.most for ring in rings)
            count = len(pieces) + len(self._lasting)
            return PoolStats(live, pinned_bytes - live, pinned_bytes, limit, self._copies, count)

    # --- under a lock -------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """Cut tables from another piece. An event marks the end of copies from the current one."""
        pieces = self._leaving[0].pieces
        if self._tables is not None:
            self._tables.event.record(self._stream)
            pieces.append(self._tables)
            self._tables = None
        self._tables, self._at = self._next(self._leaving, SIZES[0]), 0
        self._base = self._tables.memory.ctypes.data
        pieces.pop()  # out of the ring, so that nothing else uses it meanwhile

    def _send(self, address: int, part: np.ndarray) -> None:
        piece = self._next(self._leaving, part.size)
        pinned_memory = piece.memory[: part.size]
        pinned_memory[...] = part
        self._driver.memcpy_htod_async(address, pinned_memory, self._stream)
        piece.event.record(self._stream)
        self._copies += 1

    def _fetch(self, part: np.ndarray, address: int) -> _Piece:
        piece = self._next(self._arriving, part.size)
        self._driver.memcpy_dtoh_async(piece.memory[: part.size], address, self._stream)
        piece.event.record(self._stream)
        piece.host = part
        self._copies += 1
        return piece

    def _next(self, rings: list[_Ring], nbytes: int) -> _Piece:
        """The least recently used piece, if its copy has ended or no more may be made; else a new
        one."""
        ring = next(ring for ring in rings if nbytes <= ring.size)
        pieces = ring.pieces
        if pieces and (len(pieces) == ring.most or (pieces[0].host is None and pieces[0].event.query())):
            piece = pieces.popleft()
            self._wait(piece)
            _land(piece)
        else:
            flags = self._driver.event_flags.DISABLE_TIMING
            piece = _Piece(self._driver.pagelocked_empty(ring.size, np.uint8), self._driver.Event(flags))
        pieces.append(piece)
        return piece

    def _wait(self, piece: _Piece) -> None:
        """Wait for the end of its copy."""
        # `synchronize` cannot be ended from outside: collectives are waited for first, with polls.
        if not piece.event.query():
            self._settle()
        piece.event.synchronize()


def _land(piece: _Piece) -> None:
    """Copy the bytes that arrived from the device to their target."""
    if piece.host is not None:
        piece.host[...] = piece.memory[: piece.host.size]
        piece.host = None
