"""Crossings: how the devices of one process meet those of others, in the middle of a program.

The devices of a group first meet in their own process (lowering/meetings.py); the last of them to
arrive crosses for all, and trades with the other processes (lowering/trades.py).

    crossing = Crossing(itinerary)                        # one for each run of a program
    table = Table({"data": 4}, names, crossing)

Before the first meeting of a run the processes compare what they run. Those that run different
programs get an error that shows where they differ, rather than waiting forever.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from rune import locks, processes
from rune.errors import DistributedError
from rune.lowering.meetings import Arrays, CollectiveCall
from rune.lowering.trades import Group, traded
from rune.records import dataclass

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a function, which differs between processes


@dataclass(frozen=True, slots=True)
class Itinerary:
    """A program on a mesh of several processes.

    homes: the process of each device, in the order of the mesh
    mesh:  its name in messages
    text:  the program, which has to be the same in all processes
    """

    homes: tuple[int, ...]
    mesh: str
    text: str
    digest: bytes

    @classmethod
    def of(cls, homes: Sequence[int], mesh: str, program: str) -> Itinerary:
        """The itinerary of a program, given as text, on the devices of a mesh."""
        text = ADDRESS.sub("", program)
        return cls(tuple(homes), _digest(mesh).hex()[:16], text, _digest(text))

    @property
    def others(self) -> list[int]:
        """The other processes."""
        return sorted({*self.homes} - {processes.current().index})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class Crossing:
    """One run of such a program: the messages between the devices of this process and of others.

    numbers: those on which the program is run, which have to be the same in all processes
    """

    def __init__(self, itinerary: Itinerary, numbers: Sequence[object] = ()):
        index = processes.current().index
        self.local = frozenset(n for n, home in enumerate(itinerary.homes) if home == index)
        self._itinerary = itinerary
        self._numbers = repr(list(numbers))
        self._topic = processes.turn(itinerary.mesh)
        self._is_agreed, self._lock = False, locks.lock()
        processes.current().tell(self._topic, itinerary.digest + self._numbers.encode(), itinerary.others)

    def meet(self, call: CollectiveCall, members: Sequence[int], operands: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """The results of the local members of a group, from the operands of all members.

        Errors: DistributedError if a process fails, is silent, or runs another program.
        """
        self.agree()
        groups = dict(call.params).get("groups") or (range(len(members)),)
        assert isinstance(groups, tuple)
        results: dict[int, Arrays] = {}
        with np.errstate(all="ignore"):
            for number, places in enumerate(groups):
                topic = f"{self._topic} {call.axis_name!r} {members[0]} {number}"
                results.update(self._within(call, [members[place] for place in places], operands, topic))
        return results

    def _within(
        self, call: CollectiveCall, members: Sequence[int], operands: Mapping[int, Arrays], topic: str
    ) -> dict[int, Arrays]:
        """The same for a subgroup that exchanges only within itself; it may be all elsewhere."""
        local = {place: operands[n] for place, n in enumerate(members) if n in operands}
        if not local:
            return {}
        homes = tuple(self._itinerary.homes[n] for n in members)
        group = Group(str(call), homes, tuple(range(len(homes))), topic, self._alarm)
        results = traded(call, group, local)
        return {members[place]: arrays for place, arrays in results.items()}

    # --- faults -------------------------------------------------------------------------------

    @property
    def _alarm(self) -> str:
        return f"{self._topic} alarm"

    def alarm(self, error: BaseException) -> None:
        """Tell the other processes that this one cannot continue the run."""
        # The process that caused a DistributedError has told everyone already.
        if not isinstance(error, DistributedError):
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
            processes.current().tell(self._alarm, text.encode(), self._itinerary.others)

    def agree(self) -> None:
        """Raise DistributedError unless all processes run this program, on the same numbers."""
        with self._lock:
            if not self._is_agreed:
                messages = processes.current().hear("program", self._topic, self._itinerary.others, self._alarm)
                self._compare({n: bytes(message) for n, message in messages.items()})
                self._is_agreed = True

    def _compare(self, messages: Mapping[int, bytes]) -> None:
        digest = self._itinerary.digest
        strangers = [n for n, message in messages.items() if not message.startswith(digest)]
        if strangers:
            raise self._difference(strangers)
        for process, message in messages.items():
            numbers = message.removeprefix(digest).decode()
            if numbers != self._numbers:
                raise DistributedError(
                    f"program: cannot run with process {process}, which has other numbers "
                    f"({self._numbers} here, {numbers} there)",
                    hint="rune.distributed.broadcast_one_to_all gives all processes those of one",
                )

    def _difference(self, strangers: Sequence[int]) -> DistributedError:
        """The error for processes that run other programs; it shows where the first one differs."""
        world, topic = processes.current(), f"{self._topic} text"
        world.tell(topic, self._itinerary.text.encode(), strangers)
        number, text = next(iter(world.hear("program", topic, strangers, self._alarm).items()))
        lines = _first_difference(self._itinerary.text, bytes(text).decode())
        difference = "{!r} here, {!r} there".format(*lines)
        return DistributedError(
            f"program: cannot run with process {number}, which runs another one ({difference})",
            hint="all processes run the same programs in one order, with the same numbers in them",
        )


def _first_difference(our_text: str, other_text: str) -> tuple[str, str]:
    """The first pair of lines that differ; a line is empty beyond the end of its text."""
    pairs = itertools.zip_longest(our_text.splitlines(), other_text.splitlines(), fillvalue="")
    return next(((a.strip(), b.strip()) for a, b in pairs if a != b), ("", ""))
