"""Reading back from a WebGPU device: a copy into staging memory, which is then mapped.

A read is begun by submitting its copy and asking for the mapping; several are under way at once,
and each is waited for when its bytes are wanted. Staging memory comes from a pool of its own. A
read that nobody waits for any more is ended by the next one: its memory is mapped until then.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from rune.backends.shared.interrupts import deferred
from rune.backends.shared.pool import Block, Pool, PoolStats
from rune.backends.wgpu.queue import WgpuQueue

# The most staging memory that is kept for reuse.
_KEPT_BYTES = 1 << 26


class Promise(Protocol):
    """WebGPU's promise of work that has not ended yet."""

    def sync_wait(self) -> object:
        """Wait for it. Errors: RuntimeError if it is broken."""
        ...


class Read:
    """Bytes on their way to the host."""

    __slots__ = ("_block", "_nbytes", "_promise", "_reads")

    def __init__(self, reads: Reads, block: Block, promise: Promise, nbytes: int):
        self._reads, self._block, self._nbytes = reads, block, nbytes
        self._promise: Promise | None = promise

    def __call__(self) -> np.ndarray:
        """Wait for the bytes, u8."""
        promise = self._promise
        assert promise is not None  # it is called once
        wait_for(promise)  # interrupted, it is a read that nobody waits for
        self._promise = None
        return self._reads.end(self._block, promise, self._nbytes)

    # A finalizer may run anywhere, so it only notes what the next read is to end.
    def __del__(self) -> None:
        if self._promise is not None:
            self._reads.abandoned.append((self._block, self._promise))


def wait_for(promise: Promise) -> None:
    """Return when a promise is kept or broken; a handler of signals may raise before."""
    with suppress(RuntimeError):  # raised again where the result is read
        promise.sync_wait()


class Reads:
    """The reads of one device."""

    def __init__(self, backend: WgpuQueue, largest_bytes: int):
        self.backend = backend
        self.abandoned: deque[tuple[Block, Promise]] = deque()
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
        return Read(self, block, promise, nbytes)

    def _end_abandoned(self) -> None:
        """Give back the memory of reads that nobody waits for, which is mapped first."""
        while self.abandoned:
            _, promise = self.abandoned[0]
            wait_for(promise)
            with deferred(), suppress(IndexError):  # another thread was faster
                self.end(*self.abandoned.popleft(), 0)

    def end(self, block: Block, promise: Promise, nbytes: int) -> np.ndarray:
        """Wait until the memory is mapped; a copy of its bytes."""
        staging = block.handle
        with self.backend.failing("copy_out"), deferred():  # what is mapped half-way ends the process
            try:
                promise.sync_wait()
            except RuntimeError as error:
                raise self.backend.refusal("copy_out", error) from error
            # WebGPU maps whole words, and at least one.
            mapped = staging.read_mapped(0, -(-max(1, nbytes) // 4) * 4, copy=False)
            # Copied before `unmap` takes the memory away.
            host = np.frombuffer(mapped, np.uint8)[:nbytes].copy()
            staging.unmap()
        return host
