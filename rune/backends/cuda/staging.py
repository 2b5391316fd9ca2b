"""Copies through pinned host memory, so that they run while the host goes on.

A copy is cut into pieces. To the device, each is first copied into a pinned piece of host memory,
which stays untouched until the event behind its own copy has come; so the caller may change or drop
the array at once. From the device, each lands in a pinned piece, and is copied from there when
somebody waits for it, or when the piece has to serve again: so copies that nobody waits for yet are
under way, in order, and only those beyond what the pieces hold make the host wait.
Pieces are used in turn: at most a few are ever made.
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

SIZES = (1 << 16, 1 << 22)  # of pieces: tables and small arrays, large arrays [B]
MOST = 4  # pieces of each size to the device
_ALIGNED = 64  # bytes
MOST_ARRIVING = {SIZES[0]: 32, SIZES[1]: 8}  # from the device: a tree of small arrays, 32 MiB


@dataclass(slots=True, eq=False)
class _Piece:
    memory: np.ndarray
    event: Event  # behind the last copy from or to it
    host: np.ndarray | None = None  # where the bytes that come from the device are to go


@dataclass(slots=True, eq=False)
class _Ring:
    """Pieces of one size and direction, the one that was used longest ago first."""

    size: int
    most: int
    pieces: deque[_Piece] = field(default_factory=deque)


class Staging:
    """The pinned memory of one stream, used in its context by any thread.

    settle: waits for what may never end on the stream, and raises if it does not
    """

    def __init__(self, driver: Driver, stream: Stream, settle: Callable[[], None]):
        self._driver, self._stream, self._settle = driver, stream, settle
        # A thread that waits for the device does not keep others from sending.
        self._sending, self._fetching = locks.lock(), locks.lock()
        self._leaving = [_Ring(size, MOST) for size in SIZES]
        self._arriving = [_Ring(size, MOST_ARRIVING[size]) for size in SIZES]
        self._copies = 0
        self._tables: _Piece | None = None  # that tables are taken from now, up to `_at`
        self._at = self._base = 0

    def has_table(self, nbytes: int) -> bool:
        """Whether there is room for a table without a call of the driver."""
        return self._tables is not None and self._at + nbytes <= SIZES[0]

    def table(self, nbytes: int) -> int:
        """Pinned memory, to be copied from before the next is asked for."""
        with self._sending:
            if self._tables is None or self._at + nbytes > SIZES[0]:
                self._turn_over()
            at, self._at = self._at, self._at + -(-nbytes // _ALIGNED) * _ALIGNED
            return self._base + at

    def send(self, address: int, data: np.ndarray) -> None:
        """Enqueue a copy of host bytes (u8) to this address of the device."""
        for at in range(0, data.size, SIZES[-1]):
            with self._sending:
                self._send(address + at, data[at : at + SIZES[-1]])

    def fetch(self, host: np.ndarray, address: int) -> Callable[[], None]:
        """Enqueue a copy of bytes (u8) from this address; what it gives waits for them."""
        parts = [host[at : at + SIZES[-1]] for at in range(0, host.size, SIZES[-1])]
        pieces = []
        for number, part in enumerate(parts):
            with self._fetching:
                pieces.append(self._fetch(part, address + number * SIZES[-1]))

        def finish() -> None:
            for piece, part in zip(pieces, parts, strict=True):
                if piece.host is part:  # else it has landed, as the piece had to serve again
                    self._wait(piece)
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
            held = sum(p.memory.size for p in pieces)
            live = sum(p.memory.size for p in pieces if p.host is not None or not p.event.query())
            limit = sum(ring.size * ring.most for ring in rings)
            return PoolStats(live, held - live, held, limit, self._copies, len(pieces))

    # --- under a lock -------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """Take tables from another piece. What was copied from this one ends with its event."""
        pieces = self._leaving[0].pieces
        if self._tables is not None:
            self._tables.event.record(self._stream)
            pieces.append(self._tables)
            self._tables = None
        self._tables, self._at = self._next(self._leaving, SIZES[0]), 0
        self._base = self._tables.memory.ctypes.data
        pieces.pop()  # it serves nothing else meanwhile

    def _send(self, address: int, part: np.ndarray) -> None:
        piece = self._next(self._leaving, part.size)
        pinned = piece.memory[: part.size]
        pinned[...] = part
        self._driver.memcpy_htod_async(address, pinned, self._stream)
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
        """The piece that was used longest ago, if its copy is done or no more may be made."""
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
        """Until its copy is done."""
        if not piece.event.query():
            self._settle()
        piece.event.synchronize()


def _land(piece: _Piece) -> None:
    """Bytes that came from the device go where they are to be."""
    if piece.host is not None:
        piece.host[...] = piece.memory[: piece.host.size]
        piece.host = None
