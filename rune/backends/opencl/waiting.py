"""Waiting for events of OpenCL such that signals are heard: the event is asked, again and again.

A wait of the driver's keeps Python's handlers from running until it ends, however long the kernel
takes. A question costs less than a microsecond; between two of them the thread sleeps an eighth of
the time that it has waited, and never longer than PAUSE_S. No handler runs in other threads than
the main one: they wait as the driver does.

An event of a copy to the host keeps the host's memory, and waits, with the interpreter's lock, when
it is dropped. An interrupted wait therefore leaves it in `Abandoned` until the copy is done.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Protocol

PAUSE_S = 0.02  # at most, between two questions
_EAGER_S = 50e-6  # at first only other threads are let run between them


class Event(Protocol):
    """The end of a command."""

    @property
    def command_execution_status(self) -> int:
        """0: it is done; less: by an error."""
        ...

    def wait(self) -> None:
        """Return when it is done. Errors: the driver's, if it has failed."""
        ...


def wait_for(event: Event) -> None:
    """Return when it is done; a handler of signals may raise meanwhile.

    Errors: the driver's, if the command has failed.
    """
    if threading.current_thread() is threading.main_thread():
        start = time.perf_counter()
        while event.command_execution_status > 0:
            _pause(time.perf_counter() - start)
    event.wait()


def _pause(waited: float) -> None:
    """Let others run, and sleep the longer, the longer it has taken."""
    if waited < _EAGER_S and hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(min(PAUSE_S, waited / 8))


class Abandoned:
    """Events that nobody waits for any more; each stays until it is done."""

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
        """Drop events that are done, the oldest first."""
        with suppress(IndexError):  # another thread was faster
            while self._events[0].command_execution_status <= 0:
                self._events.popleft()
