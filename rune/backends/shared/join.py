"""A join: makes programs wait for a copy that another queue makes.

A copy on its own queue writes memory, unknown to the programs' queue. The copy's `Join`
holds that memory until programs wait for the copy: because someone called the join, or because it
died uncalled after an error or an interrupt. So the pool never hands out memory to which a copy is
under way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rune.backends.shared.pool import Block
from rune.errors import DeviceError


class Join:
    """Makes programs that are enqueued later wait for a copy.

    wait: enqueues the wait; it may run in a finaliser, and twice after an interrupt
    """

    __slots__ = ("_memory", "_wait")

    def __init__(self, wait: Callable[[], None] | None = None, memory: Block | None = None):
        self._wait, self._memory = wait, memory

    def __call__(self) -> None:
        """Enqueue the wait; later calls do nothing. Errors: DeviceError."""
        if self._wait is not None:
            self._wait()
        # Only now: an interrupt before it makes this wait twice, never not at all.
        self._wait = self._memory = None

    def __del__(self) -> None:
        with suppress(DeviceError):  # the device is lost, or its driver is in another process
            self()
