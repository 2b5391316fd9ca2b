"""Reading back from a WebGPU device: a copy into staging memory, which is then mapped.

A read is begun by submitting its copy and asking for the mapping; several are under way at once,
and each is waited for when its bytes are wanted. Staging memory comes from a pool of its own.

Memory that is used again while it is mapped ends the process, so each read is listed until it has
ended. A read that nobody waits for any more is ended by the next one. The list tells, and no
finalizer: what a handler of signals raises in a finalizer is lost, and so is the finalizer's work.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from rune.backends.shared.interrupts import deferred
from rune.backends.shared.pool import Block, Pool, PoolStats
from rune.backends.wgpu.queue import WgpuQueue
from rune.records import dataclass

# The most staging memory that is kept for reuse.
_KEPT_BYTES = 1 << 26
HEARING_S = 0.05  # of a wait, after which handlers of signals have their turn


class Promise(Protocol):
    """WebGPU's promise of work that has not ended yet."""

    _thread_event: threading.Event  # set when it is kept or broken

    def sync_wait(self) -> object:
        """Wait for it, and drop what it needed. Errors: RuntimeError if it is broken."""
        ...


class Read:
    """Bytes on their way to the host."""

    __slots__ = ("__weakref__", "_nbytes", "_reads", "number")

    def __init__(self, reads: Reads, number: int, nbytes: int):
        self._reads, self.number, self._nbytes = reads, number, nbytes

    def __call__(self) -> np.ndarray:
        """Wait for the bytes, u8; it is called once."""
        return self._reads.end(self.number, self._nbytes)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """Staging memory that is mapped, or will be, for a read that somebody may have dropped."""

    read: weakref.ref[Read]
    block: Block
    promise: Promise


def wait_for(promise: Promise) -> None:
    """Return when a promise is kept or broken; a handler of signals may raise before.

    It may between waits only: in one it would leave the event's lock taken, for which the thread
    that keeps promises waits, and in finalizers of what `sync_wait` drops its error would be lost.
    """
    is_settled = False
    while not is_settled:
        with deferred():
            is_settled = promise._thread_event.wait(HEARING_S)


class Reads:
    """The reads of one device."""

    def __init__(self, backend: WgpuQueue, largest_bytes: int):
        self.backend = backend
        self.under_way: dict[int, _Mapping] = {}
        self._numbers = itertools.count()
        self._pool = Pool(
            backend.target.name,
            self._raw_alloc,
            lambda handle: handle.destroy(),
            largest_bytes=largest_bytes,
            kept_bytes=_KEPT_BYTES,
        )

    def _raw_alloc(self, nbytes: int) -> Any:
        usage = self.backend.wgpu.BufferUsage
        with self.backend.failing("copy_out"):
            return self.backend.device.create_buffer(size=nbytes, usage=usage.MAP_READ | usage.COPY_DST)

    def stats(self) -> PoolStats:
        """Counts of the staging memory."""
        return self._pool.stats()

    def begin(self, handle: Any, offset: int, nbytes: int, padded_bytes: int) -> Read:
        """Submit the copy of `nbytes`, rounded up to whole words, behind all that was submitted."""
        self._end_abandoned()
        with deferred():
            return self._begin(handle, offset, nbytes, padded_bytes)

    def _begin(self, handle: object, offset: int, nbytes: int, padded_bytes: int) -> Read:
        backend = self.backend
        block = self._pool.take(padded_bytes, ("copy_out",))
        with backend.failing("copy_out"):
            encoder = backend.device.create_command_encoder()
            encoder.copy_buffer_to_buffer(handle, offset, block.handle, 0, padded_bytes)
            backend.queue.submit([encoder.finish()])
            promise = block.handle.map_async("READ", 0, padded_bytes)
        read = Read(self, next(self._numbers), nbytes)
        self.under_way[read.number] = _Mapping(weakref.ref(read), block, promise)
        return read

    def _end_abandoned(self) -> None:
        """Give back the memory of reads that nobody waits for."""
        for number, mapping in [*self.under_way.items()]:
            if mapping.read() is None:
                with suppress(KeyError):  # another thread was faster
                    self.end(number, 0)

    def end(self, number: int, nbytes: int) -> np.ndarray:
        """Wait until the memory is mapped; a copy of its bytes.

        Interrupted, it is a read that nobody waits for.
        """
        wait_for(self.under_way[number].promise)
        with self.backend.failing("copy_out"), deferred():
            mapping = self.under_way.pop(number)
            try:
                mapping.promise.sync_wait()
            except RuntimeError as error:
                raise self.backend.refusal("copy_out", error) from error
            staging = mapping.block.handle
            # WebGPU maps whole words, and at least one.
            mapped = staging.read_mapped(0, -(-max(1, nbytes) // 4) * 4, copy=False)
            # Copied before `unmap` takes the memory away.
            host = np.frombuffer(mapped, np.uint8)[:nbytes].copy()
            staging.unmap()
        return host
