"""Processes that talk through MPI, by mpi4py: messages from each to each.

A message is one transfer: the length of its topic, the topic, and what is said. Whoever waits takes
in what comes from anyone, and puts it where the one that it is for will look. Nothing waits without
a limit: while it waits, a process looks whether another has failed or has left.
Source: MPI: A Message-Passing Interface Standard 4.1, https://www.mpi-forum.org/docs.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np

from rune import locks
from rune.errors import DistributedError
from rune.processes import Message
from rune.records import dataclass

MESSAGE, FAILURE, DEPARTURE = 1, 2, 3  # tags
BUSY = 2e-4  # s in which a process looks without a pause: an exchange of small messages takes less
LONGEST_PAUSE = 1e-3  # s between two looks
TOPIC_SIZE = np.dtype("<u4")


class Request(Protocol):
    """A transfer on its way."""

    def Test(self) -> bool:
        """Whether it is complete; each call takes it further."""
        ...


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer with the memory that it reads or writes."""

    request: Request
    tag: int
    memory: np.ndarray


class MpiWorld:
    """All processes that mpirun started with this one. Its threads may talk at the same time."""

    def __init__(self, deadline: float) -> None:
        """deadline: how long to wait for the others, in seconds."""
        self.mpi = _mpi()
        self.channel = self.mpi.COMM_WORLD.Dup()
        self.channel.Set_errhandler(self.mpi.ERRORS_RETURN)
        self.index, self.count = self.channel.Get_rank(), self.channel.Get_size()
        self.deadline = deadline
        self.failures: dict[int, str] = {}
        self.departures: set[int] = set()
        self.inbox: dict[tuple[str, int], deque[memoryview]] = defaultdict(deque)
        self._outgoing: list[Transfer] = []
        self._incoming: dict[int, deque[Transfer]] = {n: deque() for n in range(self.count)}
        self._lock = locks.lock()  # MPI serves one thread at a time

    def tell(self, topic: str, message: Message, to: Iterable[int]) -> None:
        """Say something to these processes. It does not wait until they hear it."""
        name = topic.encode()
        self._send(MESSAGE, b"".join((np.array(len(name), TOPIC_SIZE).tobytes(), name, message)), to)

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> dict[int, memoryview]:
        """The next message of each of these processes on the topic.

        Errors: DistributedError names those who fail, leave, raise the alarm, or say nothing before
                the deadline.
        """
        messages: dict[int, memoryview] = {}
        absent = list(of)
        start, pause = time.monotonic(), 0.0
        while absent:
            with self._lock:
                self._look()
                messages.update((n, self.inbox[topic, n].popleft()) for n in absent if self.inbox.get((topic, n)))
                absent = [n for n in absent if n not in messages]
                if absent:
                    self._require_hope(call, absent, alarm)
            waited = time.monotonic() - start
            if absent and waited > self.deadline:
                raise DistributedError(
                    f"{call}: cannot go on (no word from {_named(absent)} in {self.deadline:g} s)",
                    hint="rune.distributed.initialize(deadline=) says how long to wait",
                )
            if absent and waited > BUSY:
                time.sleep(pause)
                pause = min(2 * pause or 1e-5, LONGEST_PAUSE)
        self._forget(topic, messages)
        return messages

    def fail(self, error: str) -> None:
        """Tell the others that this process ends with an error."""
        self._send(FAILURE, error.encode(), self._others())

    def leave(self) -> None:
        """Tell the others that this process is done."""
        self._send(DEPARTURE, b"", self._others())

    def _others(self) -> list[int]:
        return [n for n in range(self.count) if n != self.index]

    # --- transfers --------------------------------------------------------------------------

    def _send(self, tag: int, data: bytes, receivers: Iterable[int]) -> None:
        memory = np.frombuffer(data, np.uint8)
        with self._lock:
            self._outgoing = [t for t in self._outgoing if not t.request.Test()]
            for n in receivers:
                self._outgoing.append(Transfer(self.channel.Isend(memory, dest=n, tag=tag), tag, memory))

    def _look(self) -> None:
        """Take in what has come, of each process in the order in which it was sent."""
        while self._begin_to_receive():
            pass
        for source, transfers in self._incoming.items():
            while transfers and transfers[0].request.Test():
                transfer = transfers.popleft()
                self._file(source, transfer.tag, transfer.memory.data)

    def _begin_to_receive(self) -> bool:
        """Whether a message was on its way."""
        status = self.mpi.Status()
        message = self.channel.Improbe(source=self.mpi.ANY_SOURCE, tag=self.mpi.ANY_TAG, status=status)
        if message is None:
            return False
        memory = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
        transfer = Transfer(message.Irecv(memory), status.Get_tag(), memory)
        self._incoming[status.Get_source()].append(transfer)
        return True

    def _file(self, source: int, tag: int, data: memoryview) -> None:
        if tag == FAILURE:
            self.failures[source] = bytes(data).decode()
        elif tag == DEPARTURE:
            self.departures.add(source)
        else:
            start = TOPIC_SIZE.itemsize
            end = start + int(np.frombuffer(data[:start], TOPIC_SIZE)[0])
            self.inbox[bytes(data[start:end]).decode(), source].append(data[end:])

    def _forget(self, topic: str, heard: Iterable[int]) -> None:
        """Drop the empty queues of a topic: there is one for each run of a program."""
        with self._lock:
            for n in heard:
                if not self.inbox[topic, n]:
                    del self.inbox[topic, n]

    def _require_hope(self, call: str, absent: Sequence[int], alarm: str | None) -> None:
        """Errors: DistributedError if a wait for these processes is in vain."""
        for number, error in self.failures.items():
            raise DistributedError(f"{call}: cannot go on (process {number} has failed: {error})")
        for number in range(self.count):
            if alarm is not None and self.inbox.get((alarm, number)):
                error = bytes(self.inbox[alarm, number][0]).decode()
                raise DistributedError(f"{call}: cannot go on (process {number} raised {error})")
        # What a process said before it left has come by now.
        if self.departures.intersection(absent):
            gone = [n for n in absent if n in self.departures]
            raise DistributedError(f"{call}: cannot go on ({_named(gone)} left without it)")


def _mpi() -> ModuleType:
    """MPI, started. Errors: DistributedError without mpi4py or without a library of MPI."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            f"distributed: cannot load MPI ({error})", hint="pip install 'rune-ml[distributed]'"
        ) from error


def _named(numbers: Sequence[int]) -> str:
    """`process 2`, `processes 1 and 3`."""
    return f"process{'es' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
