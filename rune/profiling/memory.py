"""Memory over time: the buffers that were allocated while a profile recorded, and when they ended.

A weak reference follows each buffer. Its callback only appends the end of the buffer to a queue,
because it may run at any step of the interpreter. A view of another buffer counts zero bytes.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class Allocation(NamedTuple):
    """The allocation of a buffer.

    text:   its type, "f32[3]"
    line:   the user's line that allocated it
    start:  the time by perf_counter [s]
    """

    text: str
    nbytes: int
    device: str
    line: str
    start: float


class Level(NamedTuple):
    """The number of bytes in use on a device from a moment on."""

    time: float
    device: str
    nbytes: int


class Life(NamedTuple):
    """An allocation, and the time of its end; None while it is alive."""

    allocation: Allocation
    end: float | None


class Memory:
    """The allocations of buffers, and their ends."""

    def __init__(self) -> None:
        self._allocations: dict[int, Allocation] = {}
        self._live: dict[int, weakref.ref[object]] = {}  # by number; weak, so that buffers can end
        self._numbers: dict[int, int] = {}  # of live buffers, by id()
        self._ends: deque[tuple[int, int, float]] = deque()  # number, identity, time
        self._past: list[tuple[int, int, float]] = []
        self._count = itertools.count()  # `next` is atomic, so no lock is needed

    def note(self, buffer: object, allocation: Allocation) -> None:
        """Record that a buffer was allocated, unless it is already recorded."""
        self._bury()
        if id(buffer) in self._numbers:
            return
        number, identity, ends = next(self._count), id(buffer), self._ends

        def ended(_: object) -> None:
            ends.append((number, identity, time.perf_counter()))

        try:
            self._live[number] = weakref.ref(buffer, ended)
        except TypeError:  # a backend's buffer without weak references is not recorded
            return
        self._allocations[number] = allocation
        self._numbers[identity] = number

    def of(self, buffer: object) -> Allocation | None:
        """The allocation of a live buffer; None if it was not recorded."""
        self._bury()
        number = self._numbers.get(id(buffer))
        return None if number is None else self._allocations[number]

    def lives(self) -> list[Life]:
        """All allocations, in order."""
        ends = {number: end for number, _, end in self._bury()}
        return [Life(a, ends.get(number)) for number, a in [*self._allocations.items()]]

    def live(self) -> list[Allocation]:
        """The allocations whose buffers are alive."""
        return [life.allocation for life in self.lives() if life.end is None]

    def levels(self, until: float) -> Iterator[Level]:
        """The bytes in use on a device after each change up to the time `until` [s]."""
        lives = self.lives()
        changes = [(a.start, a.nbytes, a.device) for a, _ in lives]
        changes += [(end, -a.nbytes, a.device) for a, end in lives if end is not None]
        in_use: dict[str, int] = {}
        for moment, change, device in sorted(changes):
            if change and moment <= until:
                in_use[device] = in_use.get(device, 0) + change
                yield Level(moment, device, in_use[device])

    def _bury(self) -> list[tuple[int, int, float]]:
        """Process the queue of ended buffers; returns all ends so far."""
        while self._ends:
            end = self._ends.popleft()
            number, identity, _ = end
            self._live.pop(number, None)
            if self._numbers.get(identity) == number:
                del self._numbers[identity]
            self._past.append(end)
        return self._past
