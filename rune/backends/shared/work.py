"""Counts the calls of compiled programs that a device was given, and those that have ended.

Both totals only grow, and are equal when nothing is pending, even after an error. A call that ends
before it returns is counted by `begin` and `end`. A call that is only enqueued is counted by
`follow` alone, so that an interrupt never leaves half a count: `follow` takes a function that says
whether the call has ended. Such a function calls the driver, so pending ones are asked only by
`stats` and whenever many are pending. Calls end in the order in which they were enqueued, so a
binary search finds the first one pending. Native code that makes entire calls adds to the words at
`addresses`, under the interpreter's lock.
Not counted: copies to and from the host, and NumPy's operations on the CPU.
"""

from __future__ import annotations

import itertools
from array import array
from collections import deque
from collections.abc import Callable

from rune import locks
from rune.counts import value
from rune.errors import DeviceError
from rune.records import dataclass

KEPT = 16  # calls that may be pending before any of them is asked


@dataclass(frozen=True, slots=True)
class WorkStats:
    """Calls of compiled programs on one device in this process, from its opening on.

    submitted:  calls given to the device
    finished:   those of them that have ended, with or without an error
    """

    submitted: int
    finished: int

    @property
    def in_flight(self) -> int:
        """Calls that have not ended."""
        return self.submitted - self.finished


class Work:
    """The counts of one device, for any number of threads."""

    def __init__(self) -> None:
        # `next` on itertools.count is atomic, so calls count without a lock.
        self._submitted, self._finished = itertools.count(), itertools.count()
        self.begin: Callable[[], object] = self._submitted.__next__  # a call is given to the device
        self.end: Callable[[], object] = self._finished.__next__  # a call has ended
        self._native = array("q", [0, 0])
        self._pending: deque[Callable[[], bool]] = deque()
        self._over = 0  # of the calls passed to `follow`, those that have ended
        self._asking = locks.lock()
        self._most = KEPT  # the number of pending calls above which `follow` asks
        # Native code counts a call by `note`, and every KEPT of them one by `follow`.
        self.note: Callable[[Callable[[], bool]], None] = self._pending.append
        self.noted = array("q", [0])  # the calls of `note` since the last `follow`

    def follow(self, has_ended: Callable[[], bool]) -> None:
        """Count the call last enqueued; it has ended when the function returns True.

        It has also ended when the function raises DeviceError: a lost device runs nothing any more.
        """
        self._pending.append(has_ended)
        if len(self._pending) > self._most:
            locks.if_free(self._asking, self._ask)
            # If the device is far behind, not every further call should ask again.
            self._most = len(self._pending) + KEPT

    def addresses(self) -> tuple[int, int]:
        """The addresses at which native code counts the calls that it makes, and those that
        ended."""
        first, _ = self._native.buffer_info()
        return first, first + self._native.itemsize

    def stats(self) -> WorkStats:
        """The counts now."""
        with self._asking:
            self._ask()
            pending = len(self._pending)
            # Ended calls first: a call may begin and end between the two reads, and more calls must
            # not have ended than were submitted.
            ended_calls = value(self._finished) + self._native[1]
            calls = value(self._submitted) + self._native[0]
            return WorkStats(calls + self._over + pending, ended_calls + self._over)

    def _ask(self) -> None:
        if not self._pending or not _is_over(self._pending[0]):
            return
        # They end in order, so the first pending one is found by halving; usually all have ended.
        end, others = 1, len(self._pending)
        if _is_over(self._pending[-1]):
            end = others
        while end < others:
            middle = (end + others) // 2
            if _is_over(self._pending[middle]):
                end = middle + 1
            else:
                others = middle
        for _ in range(end):
            self._pending.popleft()
            self._over += 1


def _is_over(has_ended: Callable[[], bool]) -> bool:
    try:
        return has_ended()
    except DeviceError:
        return True
