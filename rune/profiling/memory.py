"""Memory over time: which buffers were made while a profile gathered, where, and which live on.

A buffer is noted when it is made and refers to it weakly; its end is a line in a list, since it may
come at any step of the interpreter. A buffer that is a view of another has no bytes of its own.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class Allocation(NamedTuple):
    """A buffer that was made.

    text:   its type, "f32[3]"
    line:   the user's line that made it
    start:  when, of perf_counter [s]
    """

    text: str
    nbytes: int
    device: str
    line: str
    start: float


class Level(NamedTuple):
    """How many bytes of a device are in use from a moment on."""

    time: float
    device: str
    nbytes: int


class Life(NamedTuple):
    """An allocation, and when it ended; None while it lives."""

    allocation: Allocation
    end: float | None


class Memory:
    """The buffers that were noted."""

    def __init__(self) -> None:
        self._made: dict[int, Allocation] = {}
        self._live: dict[int, weakref.ref[object]] = {}  # by number: the references keep no buffer alive
        self._numbers: dict[int, int] = {}  # of living buffers, by their identity
        self._ends: deque[tuple[int, int, float]] = deque()  # number, identity, time
        self._past: list[tuple[int, int, float]] = []
        self._count = itertools.count()  # whose `next` is atomic

    def note(self, buffer: object, allocation: Allocation) -> None:
        """A buffer has been made. The same buffer is noted once."""
        self._bury()
        if id(buffer) in self._numbers:
            return
        number, identity, ends = next(self._count), id(buffer), self._ends

        def ended(_: object) -> None:
            ends.append((number, identity, time.perf_counter()))

        try:
            self._live[number] = weakref.ref(buffer, ended)
        except TypeError:  # a backend's buffer that cannot be referred to weakly: it is not followed
            return
        self._made[number] = allocation
        self._numbers[identity] = number

    def of(self, buffer: object) -> Allocation | None:
        """What is known of a living buffer."""
        self._bury()
        number = self._numbers.get(id(buffer))
        return None if number is None else self._made[number]

    def lives(self) -> list[Life]:
        """Every allocation, in the order of their making."""
        ends = {number: end for number, _, end in self._bury()}
        return [Life(a, ends.get(number)) for number, a in [*self._made.items()]]

    def live(self) -> list[Allocation]:
        """Those that are alive."""
        return [life.allocation for life in self.lives() if life.end is None]

    def levels(self, until: float) -> Iterator[Level]:
        """The bytes in use on each device after each change, until a moment."""
        lives = self.lives()
        changes = [(a.start, a.nbytes, a.device) for a, _ in lives]
        changes += [(end, -a.nbytes, a.device) for a, end in lives if end is not None]
        in_use: dict[str, int] = {}
        for moment, change, device in sorted(changes):
            if change and moment <= until:
                in_use[device] = in_use.get(device, 0) + change
                yield Level(moment, device, in_use[device])

    def _bury(self) -> list[tuple[int, int, float]]:
        """Take note of the buffers that have ended; all the ends so far."""
        while self._ends:
            end = self._ends.popleft()
            number, identity, _ = end
            self._live.pop(number, None)
            if self._numbers.get(identity) == number:
                del self._numbers[identity]
            self._past.append(end)
        return self._past
