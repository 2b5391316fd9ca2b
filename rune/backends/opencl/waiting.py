"""Interruptible waits for OpenCL's events, by polling.

While the driver waits, Python runs no signal handlers, however long the kernel takes. A poll costs
less than a microsecond; between two of them the thread sleeps an eighth of the time that it has
waited, at most PAUSE_S. Handlers run only in the main thread, so other threads wait in the driver.

pyopencl's event of a copy to the host keeps the host's memory, and when it is dropped it waits for
the copy, with the interpreter's lock. An interrupted wait therefore leaves the event in `Abandoned`
until the copy has ended.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Protocol

PAUSE_S = 0.02  # the longest sleep between two polls: not felt after Ctrl-C
_EAGER_S = 50e-6  # so long the thread only yields, since the shortest sleep takes about as long


class Event(Protocol):
    """The end of a command."""

    @property
    def command_execution_status(self) -> int:
        """0: it has ended; negative: with an error."""
        ...

    def wait(self) -> None:
        """Wait for its end. Errors: the driver's, if the command failed."""
        ...


def wait_for(event: Event) -> None:
    """Wait for an event; a signal handler may raise meanwhile.

    Errors: the driver's, if the command failed.
    """
    if threading.current_thread() is threading.main_thread():
        start = time.perf_counter()
        while event.command_execution_status > 0:
            _pause(time.perf_counter() - start)
    # At once after the polls, and the call that raises the command's error.
    event.wait()


def _pause(seconds: float) -> None:
    """Let other threads run, or sleep for a part of the seconds waited so far."""
    if seconds < _EAGER_S and hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(min(PAUSE_S, seconds / 8))


class Abandoned:
    """Events of interrupted waits; each stays until its command has ended."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def wait_for(self, event: Event) -> None:
        """Wait for an event, which stays here if the wait is interrupted."""
        self.drop_ended()
        try:
            wait_for(event)
        except BaseException:
            self._events.append(event)
            raise

    def drop_ended(self) -> None:
        """Drop events that have ended, the oldest first."""
        with suppress(IndexError):  # another thread was faster
            while self._events[0].command_execution_status <= 0:
                self._events.popleft()
