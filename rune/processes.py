"""The processes that run one program together: how they talk, whoever carries their messages.

A message goes to some processes, and names its topic. Who waits says for whom and for which topic;
what one process says on one topic is heard in the order in which it was said.

    agree("sync_global_devices", "'the data are there'")      # or an error that shows both calls

Before `rune.distributed.initialize` a process is alone, and hears nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from rune.errors import DistributedError

CALLS = "calls"  # the topic of what all processes do together
Message = bytes | memoryview


class World(Protocol):
    """How a process talks to the others: `index` of `count`."""

    index: int
    count: int

    def tell(self, topic: str, message: Message, to: Iterable[int]) -> None:
        """Say something to these processes. It does not wait until they hear it."""
        ...

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> Mapping[int, Message]:
        """The next message of each of these processes on the topic.

        call:   what the caller is in, for errors
        alarm:  a topic on which one message ends the wait
        Errors: DistributedError if one fails, leaves, raises an alarm or is silent for too long.
        """
        ...

    def fail(self, error: str) -> None:
        """Tell the others that this process ends with an error."""
        ...

    def leave(self) -> None:
        """Tell the others that this process is done."""
        ...


class Alone:
    """A program of one process."""

    index, count = 0, 1

    def tell(self, topic: str, message: Message, to: Iterable[int]) -> None:
        """Nobody is to be told."""

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> Mapping[int, Message]:
        """Nobody says anything."""
        return {}

    def fail(self, error: str) -> None:
        """Nobody is to be told."""

    def leave(self) -> None:
        """Nobody is to be told."""


ALONE = Alone()
_joined: list[World] = []
_turns: Counter[str] = Counter()  # since this process has joined the others


def current() -> World:
    """The processes that this one has joined; itself alone before that."""
    return _joined[0] if _joined else ALONE


def is_joined() -> bool:
    """Whether this process has joined others, or has said that there are none."""
    return bool(_joined)


def join(world: World) -> None:
    """From now on the program runs in these processes."""
    _turns.clear()
    _joined.append(world)


def part() -> World:
    """From now on this process is alone; the processes that it was one of."""
    return _joined.pop() if _joined else ALONE


def turn(topic: str) -> str:
    """The topic with a number of its own: the n-th turn of a topic is one in all processes."""
    _turns[topic] += 1
    return f"{topic} {_turns[topic]}"


def converse(call: str, topic: str, message: Message, processes: Iterable[int] | None = None) -> dict[int, Message]:
    """What each of the processes says on a topic, in their order; this one says `message`.

    processes: this one and others; None for all
    Errors:    DistributedError as of World.hear.
    """
    world = current()
    everyone = sorted(range(world.count) if processes is None else processes)
    others = [n for n in everyone if n != world.index]
    world.tell(topic, message, others)
    messages = {**world.hear(call, topic, others), world.index: message}
    return {n: messages[n] for n in everyone}


def agree(call: str, what: str, processes: Iterable[int] | None = None, hint: str | None = None) -> None:
    """Come to a call together. Errors: DistributedError unless each process makes this very one."""
    mine = f"{call} {what}".rstrip()
    for number, message in converse(call, CALLS, mine.encode(), processes).items():
        theirs = bytes(message).decode()
        if theirs != mine:
            raise DistributedError(
                f"{call}: cannot meet the other processes (process {number} is in {theirs}, "
                f"process {current().index} in {mine})",
                hint=hint,
            )
