"""Reads from a WebGPU device: a copy into staging memory, which is then mapped.

A read begins by submitting its copy and requesting the mapping; several can be under way at once,
and the host waits when it needs the bytes. Staging memory has its own pool.

wgpu-native ends the process if memory is used while it is mapped, so each read is listed until it
has ended, and the next read ends those whose `Read` has died. A list does this and not a finaliser:
an exception that a signal handler raises inside a finaliser is dropped, and the rest of the
finaliser with it.
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

_KEPT_BYTES = 1 << 26  # the most staging memory to cache
HEARING_S = 0.05  # the longest wait without signal handlers: not felt after Ctrl-C


class Promise(Protocol):
    """WebGPU's promise of work that has not ended yet."""

    _thread_event: threading.Event  # set when the promise is resolved or rejected

    def sync_wait(self) -> object:
        """Wait for it, and drop its callbacks. Errors: RuntimeError if it is rejected."""
        ...


class Read:
    """A read that is under way."""

    __slots__ = ("__weakref__", "_nbytes", "_reads", "number")

    def __init__(self, reads: Reads, number: int, nbytes: int):
        self._reads, self.number, self._nbytes = reads, number, nbytes

    def __call__(self) -> np.ndarray:
        """Wait for the bytes, u8. Called once."""
        return self._reads.end(self.number, self._nbytes)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """Staging memory that is mapped, or will be, for a read that may have died."""

    read: weakref.ref[Read]
    block: Block
    promise: Promise


def wait_for(promise: Promise) -> None:
    """Wait until a promise is resolved or rejected; a signal handler may raise before.

    Handlers run between waits only: an exception inside one would leave the event's lock held,
    which the thread that resolves promises needs, and one in a finaliser of `sync_wait` would be
    dropped.
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
        """Submit a copy of `nbytes`, rounded up to whole words, after all submitted work."""
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
        """End the reads whose `Read` has died, and return their memory."""
        for number, mapping in [*self.under_way.items()]:
            if mapping.read() is None:
                with suppress(KeyError):  # another thread was faster
                    self.end(number, 0)

    def end(self, number: int, nbytes: int) -> np.ndarray:
        """Wait until the memory is mapped, and return a copy of its bytes.

        After an interrupt the read stays listed, and the next one ends it.
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
            host_view = staging.read_mapped(0, -(-max(1, nbytes) // 4) * 4, copy=False)
            # A copy, because `unmap` removes the memory from the address space.
            host = np.frombuffer(host_view, np.uint8)[:nbytes].copy()
            staging.unmap()
        return host
