"""Copies to the device on a stream of their own, while programs run on theirs.

Work that was enqueued before a block returned to the pool may still use it, so a copy waits for all
work in the programs' stream at that time; and work that is enqueued there after the join waits for
the copy. The host waits for neither, only for pinned memory if all of it is in use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rune import locks
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.driver import Driver, Stream
from rune.backends.cuda.staging import Staging
from rune.backends.shared.pool import PoolStats


class Aside:
    """The second stream of a device, used in its context by any thread.

    main: the stream of the programs
    """

    def __init__(self, driver: Driver, main: Stream, settle: Callable[[], None]):
        self._driver, self._main = driver, main
        self._stream = driver.Stream()
        self._staging = Staging(driver, self._stream, settle)
        self._lock = locks.lock()

    def send(self, address: int, data: np.ndarray) -> Callable[[], None]:
        """Enqueue a copy of host bytes (u8); the function returned makes programs wait for it."""
        with self._lock:
            self._wait(self._stream, [self._behind(self._main)])
            try:
                self._staging.send(address, data)
            except BaseException:
                # The memory returns to the pool, but pieces of the copy may be under way: programs
                # that get it must wait for them.
                self._wait(self._main, [self._behind(self._stream)])
                raise
            return partial(self._wait, self._main, [self._behind(self._stream)])

    def stats(self) -> PoolStats:
        """Counts of its pinned memory."""
        return self._staging.stats()

    def _behind(self, stream: Stream) -> object:
        """An event behind all work in the stream."""
        event = call("cuEventCreate", self._driver.event_flags.DISABLE_TIMING)
        call("cuEventRecord", event, stream.handle)
        return event

    def _wait(self, stream: Stream, events: list[object]) -> None:
        """Make the stream wait for the event in the list, and destroy the event."""
        # A join may be called again, after an interrupt or by its finaliser: the list is then
        # empty.
        if events:
            call("cuStreamWaitEvent", stream.handle, events[0], 0)
            call("cuEventDestroy", events.pop())  # the driver frees it when it has occurred
