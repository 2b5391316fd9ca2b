"""What programs have to do before they use memory that is written beside them.

A copy on a queue of its own writes memory that the programs' queue knows nothing about. Its
`Join` holds that memory until programs have been told to wait: by a call, or by the end of the join
itself, where an error or an interrupt has kept everybody from calling it. So a pool never gives
memory away while such a copy is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rune.backends.shared.pool import Block
from rune.errors import DeviceError


class Join:
    """Lets programs that are enqueued from now on wait for a copy.

    wait: does it; it may run in a finalizer, and twice after an interrupt
    """

    __slots__ = ("_memory", "_wait")

    def __init__(self, wait: Callable[[], None] | None = None, memory: Block | None = None):
        self._wait, self._memory = wait, memory

    def __call__(self) -> None:
        """Once is enough. Errors: DeviceError."""
        if self._wait is not None:
            self._wait()
        self._wait = self._memory = None

    def __del__(self) -> None:
        with suppress(DeviceError):  # the device is lost, or its driver is in another process
            self()
