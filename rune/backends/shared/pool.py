"""A caching memory pool over two raw functions of a driver.

    pool = Pool("opencl:0", raw_alloc, raw_free, limit_bytes=total)
    block = pool.take(4096, about=(type_, "step"))      block.handle, block.offset
    del block                                           cached; the next take of its class gets it

Sizes are rounded up to classes, eight to an octave, so that little is wasted and blocks fit many
requests. With `slab_bytes`, small blocks are cut from larger raw ones, for drivers that limit the
number of allocations. Free blocks are cached until the device is full: then all of them go back to
the driver and the request is repeated; the error names the largest live blocks and their makers.

Invariants: live and cached bytes add up to what raw_alloc has granted. Nothing is allocated ahead.
A dying block calls no driver and takes no lock, because the collector may run anywhere: it is only
appended to a list, which the next `take` reads. Not handled: a block is free when its last holder
dies, although commands that use it may be pending. So all commands on the blocks of one pool go
through one in-order queue (host writes included), or the backend holds the block until they have
run, or `share`s it with those who use another queue.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from typing import Any, Protocol

from rune import locks
from rune.counts import value
from rune.errors import Frame, OutOfMemory, user_frame
from rune.records import dataclass

SMALLEST_BYTES = 256  # of a block: every driver's alignment divides it
STEPS = 8  # size classes from one power of two to the next: at most 1/8 is wasted
TRACED_BYTES = 1 << 16  # blocks of at least this size remember the user's line, which takes 1 µs
SLAB_PARTS = 8  # a block is cut from a slab if at least this many fit
SHOWN = 5  # the most blocks that an error lists


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Memory of one kind on one device in this process. Units: bytes.

    live_bytes:       in arrays and arenas, rounded up to size classes
    cached_bytes:     free blocks in the pool
    peak_bytes:       the most that was live at once, with small blocks (below 64 KiB) that cached
                      calls of a function keep for its next results
    limit_bytes:      the device's memory; None where it is unknown
    allocations:      requests so far
    raw_allocations:  requests that the driver served; the others got a cached block
    """

    live_bytes: int
    cached_bytes: int
    peak_bytes: int
    limit_bytes: int | None
    allocations: int
    raw_allocations: int


@dataclass(frozen=True, slots=True)
class MemoryStats(PoolStats):
    """Memory of one device in this process: that of its arrays, and each pool by its kind.

    device:   arrays and intermediates of programs, in the device's own memory
    host:     the same, where the host's memory is the device's
    numpy:    the part of it that NumPy allocated: small results, and those of eager operations
    staging:  host memory through which copies from and to the device go
    tables:   device memory that the host writes, for arguments of launches
    pinned:   the same, where the driver has locked its pages
    aside:    pinned memory of copies to the device that go beside its programs
    """

    pools: Mapping[str, PoolStats] = field(default_factory=dict)

    @classmethod
    def of(cls, **pools: PoolStats) -> MemoryStats:
        """The counts of several pools by kind, starting with the one for arrays."""
        first = next(iter(pools.values()))
        counts = {f.name: getattr(first, f.name) for f in fields(PoolStats)}
        return cls(**counts, pools=pools)


@dataclass(slots=True, eq=False)
class Chunk:
    """One raw allocation: as many blocks of one class as fit."""

    handle: Any
    room: int  # of each block [B]
    count: int
    free: int  # blocks not in use
    # By offset, where a backend numbers its calls: the last one that uses the block.
    uses: dict[int, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return self.room * self.count


_Span = tuple[Chunk, int]  # a chunk, and an offset in it [B]
About = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """What a live block is for."""

    bytes: int
    about: About
    frame: Frame | None

    def __str__(self) -> str:
        line = f", {self.frame.short}" if self.frame else ""
        return f"{' of '.join(map(str, self.about)) or 'unnamed'} ({self.bytes} B{line})"


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is served many times: its size class, and what the memory is for."""

    room: int
    use: Use


def largest(uses: Iterable[Use]) -> str:
    """The end of an error: the largest live blocks."""
    largest_uses = heapq.nlargest(SHOWN, uses, key=lambda use: use.bytes)
    return f"; largest live buffers: {', '.join(map(str, largest_uses))}" if largest_uses else ""


class Block:
    """Memory of a pool: `bytes` from `offset` on in the driver's `handle`. Free when it dies.

    number: the memory as an argument of the driver's C functions (`Pool`'s `number`)
    writer: the number of the last call that writes it, where a backend numbers its calls
    """

    __slots__ = ("__weakref__", "bytes", "handle", "number", "offset", "pool", "span", "writer")

    def __init__(self, pool: Pool, span: _Span, nbytes: int, number: int):
        self.pool, self.span = pool, span
        self.handle: Any = span[0].handle
        self.offset = span[1]
        self.bytes = nbytes
        self.number = number
        self.writer = 0

    @property
    def last_use(self) -> int:
        """The number of the last call that uses this memory; 0: none."""
        return self.span[0].uses.get(self.offset, 0)

    def use(self, call: int) -> None:
        """Remember that the call with this number uses the memory, also after the block's death."""
        self.span[0].uses[self.offset] = max(self.last_use, call)


class Recallable(Protocol):
    """Something that refers to unused blocks (stock.py)."""

    def unused_bytes(self) -> int:
        """The bytes of blocks to which nobody else refers."""
        ...

    def recall(self) -> None:
        """Drop all references to blocks."""
        ...


class _Life(weakref.ref[Block]):
    """A reference whose callback, `deque.append`, notes a block's death without running Python
    code.

    A finaliser written in Python could be interrupted before it noted anything, and leak the block.
    """

    __slots__ = ("span",)
    span: _Span


def size_class(nbytes: int) -> int:
    """The bytes reserved for a request: a multiple of an eighth of the power of two below it."""
    if nbytes <= SMALLEST_BYTES:
        return SMALLEST_BYTES
    step = max(SMALLEST_BYTES, (1 << (nbytes - 1).bit_length() - 1) // STEPS)
    return -(-nbytes // step) * step


class Pool:
    """The memory of one device.

    raw_alloc:      bytes -> handle; raises MemoryError where the device is full
    raw_free:       frees a handle
    limit_bytes:    the most to allocate in all; None: until raw_alloc refuses
    largest_bytes:  the most that one raw allocation may have
    slab_bytes:     size of the raw allocations that small blocks are cut from; 0: each has its own
    kept_bytes:     the most to cache: beyond it all cached memory is freed, since sizes change
    settle:         called before raw_free, to wait for commands that may still use the memory
    settle_others:  waits for the commands of others with whom memory was shared
    free_bytes:     the device's free memory now, for errors, where its driver reports it
    number:         a block's number, by its handle and offset
    """

    def __init__(
        self,
        device: str,
        raw_alloc: Callable[[int], Any],
        raw_free: Callable[[Any], None],
        *,
        limit_bytes: int | None = None,
        largest_bytes: int | None = None,
        slab_bytes: int = 0,
        kept_bytes: int | None = None,
        settle: Callable[[], None] = lambda: None,
        settle_others: Callable[[], None] = lambda: None,
        free_bytes: Callable[[], int] | None = None,
        number: Callable[..., int] = lambda handle, offset: 0,
    ):
        self.device, self.limit_bytes, self.largest_bytes = device, limit_bytes, largest_bytes
        self._raw_alloc, self._raw_free, self._settle = raw_alloc, raw_free, settle
        self._slab_bytes, self._kept_bytes, self._free_bytes = slab_bytes, kept_bytes, free_bytes
        self.lock = locks.reentrant()  # the collector may run a finalizer that allocates
        self._dead: deque[_Life] = deque()
        self._readable_by_others: set[_Span] = set()  # live ones that others may read
        self._dead_shared: list[_Span] = []  # of these, the dead ones
        self._settle_others = settle_others
        self._number = number
        self._stocks: weakref.WeakSet[Recallable] = weakref.WeakSet()
        self.again = itertools.count()  # blocks that stocks gave: `next` on it is atomic
        self._free: dict[int, list[_Span]] = {}
        self._live: dict[_Span, tuple[Use, _Life]] = {}
        self._live_bytes = self._held_bytes = self._peak_bytes = 0
        self._allocations = self._raw_allocations = 0
        self._reason = ""  # why the driver refused the last request, where it says so

    def take(self, nbytes: int, about: About = ()) -> Block:
        """A block of at least `nbytes`, uninitialised; `about` names it in errors.

        Errors: OutOfMemory, with bytes requested, used, cached, free, the limit, and the largest
        live blocks.
        """
        return self.serve(self.request(nbytes, about))

    def request(self, nbytes: int, about: About = ()) -> Request:
        """The request for `serve`. Errors: OutOfMemory for more than one buffer can have."""
        room = size_class(nbytes)
        if self.largest_bytes is not None and room > self.largest_bytes:
            if nbytes > self.largest_bytes:
                raise self.out_of_memory(nbytes)
            # The class of a size near the limit lies beyond it, though the size itself fits.
            room = self.largest_bytes
        return Request(room, Use(nbytes, about, None))

    def serve(self, request: Request) -> Block:
        """A block, as `take` gives it. Calls of small programs spend their time here."""
        room, use = request.room, request.use
        if use.bytes >= TRACED_BYTES:
            use = Use(use.bytes, use.about, user_frame())
        with self.lock:
            if self._dead:
                self._collect()
            if self._kept_bytes is not None and self._held_bytes - self._live_bytes > self._kept_bytes:
                self.trim()
            # Shared memory is reclaimed only when nothing else fits, because it waits for others.
            if self._dead_shared and not self._free.get(room):
                self._reclaim()
            spans = self._free.get(room)
            span = spans.pop() if spans else self._fresh(use.bytes, room)
            span[0].free -= 1
            block = Block(self, span, use.bytes, self._number(span[0].handle, span[1]))
            life = _Life(block, self._dead.append)
            life.span = span
            self._live[span] = use, life
            self._allocations += 1
            self._live_bytes += room
            if self._live_bytes > self._peak_bytes:
                self._peak_bytes = self._live_bytes
            return block

    def register(self, stock: Recallable) -> None:
        """Recall the stock's blocks when memory is short; those not in use count as cached."""
        with self.lock:
            self._stocks.add(stock)

    def share(self, block: Block) -> None:
        """Allow others to read the block in queues of their own from now on.

        After its death it is used again only once `settle_others` has waited for them.
        """
        with self.lock:
            self._recall()  # a stock would give it again without waiting
            self._readable_by_others.add(block.span)

    def trim(self) -> int:
        """Free everything cached in the driver; return the bytes."""
        with self.lock:
            self._recall()
            self._reclaim()
            before = self._held_bytes
            idle_chunks = {c for spans in self._free.values() for c, _ in spans if c.free == c.count}
            if idle_chunks:
                self._settle()
            for room, spans in self._free.items():
                self._free[room] = [s for s in spans if s[0] not in idle_chunks]
            for chunk in idle_chunks:
                self._held_bytes -= chunk.bytes
                self._raw_free(chunk.handle)
            return before - self._held_bytes

    def stats(self) -> PoolStats:
        """The counts so far."""
        with self.lock:
            self._collect()
            used_bytes = self._used_bytes()
            return PoolStats(
                used_bytes,
                self._held_bytes - used_bytes,
                self._peak_bytes,
                self.limit_bytes,
                self._allocations + value(self.again),
                self._raw_allocations,
            )

    def reset_peak(self) -> None:
        """Count the peak from here on."""
        with self.lock:
            self._collect()
            self._peak_bytes = self._live_bytes

    def out_of_memory(self, nbytes: int) -> OutOfMemory:
        """The error for a request that the device refuses, at once or when the memory is first
        used."""
        with self.lock:
            self._recall()
        free = self._free_bytes() if self._free_bytes else self._grantable()
        most = self.largest_bytes
        is_too_large = most is not None and nbytes > most
        facts = {"used": self._live_bytes, "cached": self._cached(), "free": free, "limit": self.limit_bytes}
        known = [f"one buffer has at most {most} B"] if is_too_large else [self._reason] if self._reason else []
        known += [f"{name} {x} B" for name, x in facts.items() if x is not None]
        hint = "use smaller batches, donate arguments, or drop arrays that are not needed"
        if is_too_large:
            hint = "work on smaller pieces: an array is one buffer, and so are a program's intermediates"
        most_used = largest(use for use, _ in self._live.values())
        return OutOfMemory(
            f"alloc: cannot allocate {nbytes} B on {self.device} ({', '.join(known)}{most_used})", hint=hint
        )

    # --- under the lock ---------------------------------------------------------------------

    def _used_bytes(self) -> int:
        """The bytes of live blocks without those that only a stock refers to."""
        return self._live_bytes - sum(stock.unused_bytes() for stock in self._stocks)

    def _recall(self) -> None:
        """Recall the blocks of all stocks, and release those that are not in use."""
        for stock in self._stocks:
            stock.recall()
        self._collect()

    def _collect(self) -> None:
        """Release the blocks that died since the last call."""
        while self._dead:
            span = self._dead.popleft().span
            if span in self._readable_by_others:
                self._readable_by_others.discard(span)
                self._dead_shared.append(span)
            else:
                self._release(span)

    def _release(self, span: _Span) -> None:
        """Put the span of a dead block on the free list."""
        chunk = span[0]
        chunk.free += 1
        spans = self._free.get(chunk.room)
        if spans is None:
            spans = self._free[chunk.room] = []
        spans.append(span)
        del self._live[span]
        self._live_bytes -= chunk.room

    def _reclaim(self) -> None:
        """Release dead blocks, the shared ones too. Waits for others."""
        self._collect()
        if self._dead_shared:
            spans, self._dead_shared = self._dead_shared, []
            self._settle_others()
            for span in spans:
                self._release(span)

    def _fresh(self, nbytes: int, room: int) -> _Span:
        """A span of a new chunk. Where the device is full, cached memory is freed first."""
        count = max(1, self._slab_bytes // room)
        chunk = self._chunk(room, count if count >= SLAB_PARTS else 1)
        if chunk is None:
            gc.collect()  # arrays in reference cycles
            self.trim()
            # A single block this time: a slab might not fit where a block does.
            chunk = self._chunk(room, 1)
        if chunk is None:
            raise self.out_of_memory(nbytes)
        spans = [(chunk, number * room) for number in range(chunk.count)]
        self._free.setdefault(room, []).extend(spans[1:])
        return spans[0]

    def _chunk(self, room: int, count: int) -> Chunk | None:
        """A raw allocation; None where it is refused."""
        size = room * count
        self._reason = ""
        if size > _least(self.largest_bytes, self._grantable()):
            return None
        try:
            handle = self._raw_alloc(size)
        except MemoryError as error:
            self._reason = str(error)
            return None
        self._held_bytes += size
        self._raw_allocations += 1
        return Chunk(handle, room, count, count)

    def _cached(self) -> int:
        return self._held_bytes - self._live_bytes

    def _grantable(self) -> int | None:
        return None if self.limit_bytes is None else self.limit_bytes - self._held_bytes


def _least(*limits: int | None) -> float:
    return min((x for x in limits if x is not None), default=float("inf"))
