"""Work of a device: how many calls of compiled programs it was given, and how many have ended.

Both totals only grow, and are equal when nothing is pending, also after an error. A call that ends
before it returns is counted by `begin` and `end`. One that is only enqueued is counted by `follow`
alone, so that an interrupt never leaves half a count: it takes the question that tells whether the
call has ended; questions are asked when somebody
wants to know, and now and then, so that few are kept: a few of many, as a question costs a driver's
call. Calls of a device end in the order in which
they were enqueued.
Native code that makes whole calls adds to the words at `addresses`, holding the interpreter's lock.
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

KEPT = 16  # questions that wait until somebody asks


@dataclass(frozen=True, slots=True)
class WorkStats:
    """Calls of compiled programs on one device in this process, from its opening on.

    submitted:  the device was given them
    finished:   of these, those that have ended, be it by an error
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
        self._over = 0  # of the calls that were followed, those that have ended
        self._asking = locks.lock()
        self._most = KEPT  # that are pending before somebody asks

    def follow(self, has_ended: Callable[[], bool]) -> None:
        """The call last enqueued ends when the question is answered with yes.

        A question that raises DeviceError is answered: what a lost device had to do is over.
        """
        self._pending.append(has_ended)
        if len(self._pending) > self._most:
            locks.if_free(self._asking, self._ask)
            # Not again for every call that finds the device behind.
            self._most = len(self._pending) + KEPT

    def addresses(self) -> tuple[int, int]:
        """Where native code counts calls that it gives to the device, and those that ended."""
        first, _ = self._native.buffer_info()
        return first, first + self._native.itemsize

    def stats(self) -> WorkStats:
        """The counts as they stand."""
        with self._asking:
            self._ask()
            pending = len(self._pending)
            # First, since a call may begin meanwhile.
            finished = value(self._finished) + self._native[1]
            begun = value(self._submitted) + self._native[0]
            return WorkStats(begun + self._over + pending, finished + self._over)

    def _ask(self) -> None:
        if not self._pending or not _is_over(self._pending[0]):
            return
        # They end in order, so the first that has not is found by halving.
        ended, others = 1, len(self._pending)
        while ended < others:
            middle = (ended + others) // 2
            if _is_over(self._pending[middle]):
                ended = middle + 1
            else:
                others = middle
        for _ in range(ended):
            self._pending.popleft()
            self._over += 1


def _is_over(has_ended: Callable[[], bool]) -> bool:
    try:
        return has_ended()
    except DeviceError:
        return True
