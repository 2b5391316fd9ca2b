"""Copies to an OpenCL device in a queue of their own, while programs run in theirs.

Commands that were enqueued before a block returned to the pool may still use it, so a copy waits
for all commands of the programs' queue at that time; and commands that are enqueued there after the
join wait for the copy. The device does the waiting: the host waits only for pinned memory, if all
of it is in use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rune import locks
from rune.backends.opencl.run import OpenCLQueue
from rune.backends.opencl.staging import CommandQueue, Staging
from rune.backends.opencl.waiting import Event
from rune.backends.shared.pool import Block, PoolStats
from rune.errors import DeviceError


class Aside:
    """The second queue of a device, for any thread."""

    def __init__(self, backend: OpenCLQueue):
        self._backend = backend
        self._queue: CommandQueue = backend.cl.CommandQueue(backend.context)
        self._staging = Staging(backend, self._queue)
        self._lock = locks.lock()
        self._last_join: Event | None = None  # the last copy that programs wait for

    @property
    def is_awaited(self) -> bool:
        """Whether a joined copy is still pending, for which later commands wait."""
        return self._last_join is not None and self._last_join.command_execution_status > 0

    def send(self, block: Block, data: np.ndarray) -> Callable[[], None]:
        """Enqueue a copy of host bytes (u8); the function returned makes programs wait for it."""
        backend = self._backend
        with self._lock:
            self._wait(self._queue, self._behind(backend.queue))
            try:
                self._staging.send(block, 0, data)
            except BaseException:
                # The memory returns to the pool, but pieces of the copy may be under way: programs
                # that get it must wait for them.
                self._let_wait(self._behind(self._queue))
                raise
            return partial(self._join, self._behind(self._queue))

    def stats(self) -> PoolStats:
        """Counts of its pinned memory."""
        return self._staging.stats()

    def _join(self, copy: Event) -> None:
        """Make programs wait for the copy. Errors: DeviceError if the copy has failed."""
        self._backend.check()
        if copy.command_execution_status < 0:
            status = self._backend.cl.status_code.to_string(copy.command_execution_status)
            raise DeviceError(f"{self._backend.target.name}: cannot copy an array to it (OpenCL says {status})")
        self._let_wait(copy)

    def _let_wait(self, copy: Event) -> None:
        self._wait(self._backend.queue, copy)
        self._last_join = copy

    def _behind(self, queue: CommandQueue) -> Event:
        """An event behind all commands in the queue."""
        # Flushed, because another queue that waits for an event need not flush this one.
        event = self._backend.cl.enqueue_marker(queue)
        queue.flush()
        return event

    def _wait(self, queue: CommandQueue, event: Event) -> None:
        """Make all later commands of the queue wait for the event."""
        self._backend.cl.enqueue_barrier(queue, wait_for=[event])
