"""The processes that run a program together, and how they communicate over any transport.

A message has a topic and goes to some of the processes. A receiver waits for given senders and a
topic; messages of one sender on one topic arrive in the order in which they were sent.

    agree("sync_global_devices", "'the data are there'")      # or an error that shows both calls

Before `rune.distributed.initialize` a process is alone, and communicates with nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from rune.errors import DistributedError

CALLS = "calls"  # the topic of calls that all processes make together
Message = bytes | memoryview


class World(Protocol):
    """How a process communicates with the others; it is process `index` of `count`."""

    index: int
    count: int

    def tell(self, topic: str, message: Message, to: Iterable[int]) -> None:
        """Send a message to these processes, without waiting until they receive it."""
        ...

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> Mapping[int, Message]:
        """Wait for the next message of each of these processes on the topic.

        call:   the call in progress, for error messages
        alarm:  a topic on which any message ends the wait
        Errors: DistributedError if one fails, leaves, raises an alarm or is silent for too long.
        """
        ...

    def fail(self, error: str) -> None:
        """Tell the other processes that this one ends with an error."""
        ...

    def leave(self) -> None:
        """Tell the other processes that this one is done."""
        ...


class Alone:
    """A program of one process."""

    index, count = 0, 1

    def tell(self, topic: str, message: Message, to: Iterable[int]) -> None:
        """Do nothing: there are no other processes."""

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> Mapping[int, Message]:
        """Returns no messages."""
        return {}

    def fail(self, error: str) -> None:
        """Do nothing: there are no other processes."""

    def leave(self) -> None:
        """Do nothing: there are no other processes."""


ALONE = Alone()
_worlds: list[World] = []
_turns: Counter[str] = Counter()  # since this process joined the others


def current() -> World:
    """The processes that this one has joined; before that, itself alone."""
    return _worlds[0] if _worlds else ALONE


def is_joined() -> bool:
    """Whether this process has joined others, or has declared that there are none."""
    return bool(_worlds)


def join(world: World) -> None:
    """Make the program run in these processes from now on."""
    _turns.clear()
    _worlds.append(world)


def part() -> World:
    """Make this process run alone from now on; returns the processes that it leaves."""
    return _worlds.pop() if _worlds else ALONE


def turn(topic: str) -> str:
    """The topic with a new number: all processes give the n-th turn of a topic the same one."""
    _turns[topic] += 1
    return f"{topic} {_turns[topic]}"


def converse(call: str, topic: str, message: Message, processes: Iterable[int] | None = None) -> dict[int, Message]:
    """Exchange messages on a topic: sends `message`, returns one from each process, in order.

    processes: this one and others; None for all
    Errors:    DistributedError, as for World.hear.
    """
    world = current()
    everyone = sorted(range(world.count) if processes is None else processes)
    others = [n for n in everyone if n != world.index]
    world.tell(topic, message, others)
    messages = {**world.hear(call, topic, others), world.index: message}
    return {n: messages[n] for n in everyone}


def agree(call: str, details: str, processes: Iterable[int] | None = None, hint: str | None = None) -> None:
    """Wait until all are in this call. Errors: DistributedError if a process makes another one."""
    own_call = f"{call} {details}".rstrip()
    for number, message in converse(call, CALLS, own_call.encode(), processes).items():
        other_call = bytes(message).decode()
        if other_call != own_call:
            raise DistributedError(
                f"{call}: cannot meet the other processes (process {number} is in {other_call}, "
                f"process {current().index} in {own_call})",
                hint=hint,
            )
