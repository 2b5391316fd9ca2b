"""Messages between processes through MPI, by mpi4py.

A message is one transfer: the length of its topic, the topic, and the contents. Any thread that
waits receives all messages that arrive, and files each under its topic, where the thread that
expects it looks. No wait is unlimited: a waiting process also checks whether another one has failed
or left.
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
BUSY = 2e-4  # [s] of polling without a pause: an exchange of small messages takes less
LONGEST_PAUSE = 1e-3  # [s] between two polls
TOPIC_SIZE = np.dtype("<u4")


class Request(Protocol):
    """A transfer that is under way."""

    def Test(self) -> bool:
        """Whether it is complete. MPI makes progress only inside such calls."""
        ...


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer with the memory that it reads or writes, which must live as long."""

    request: Request
    tag: int
    memory: np.ndarray


class MpiWorld:
    """All processes that mpirun started with this one. Any thread may send and receive."""

    def __init__(self, deadline: float) -> None:
        """deadline: how long to wait for other processes. Units: s."""
        self.mpi = _mpi()
        # A communicator of our own, so that messages of the user's program never reach us.
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
        """Send a message to these processes. Does not wait until they receive it."""
        name = topic.encode()
        self._send(MESSAGE, b"".join((np.array(len(name), TOPIC_SIZE).tobytes(), name, message)), to)

    def hear(self, call: str, topic: str, of: Iterable[int], alarm: str | None = None) -> dict[int, memoryview]:
        """The next message of each of these processes on the topic.

        alarm:  a topic on which a message means that its sender has failed
        Errors: DistributedError names the processes that fail, leave, send the alarm, or send
                nothing before the deadline.
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
            seconds = time.monotonic() - start
            if absent and seconds > self.deadline:
                raise DistributedError(
                    f"{call}: cannot go on (no word from {_named(absent)} in {self.deadline:g} s)",
                    hint="rune.distributed.initialize(deadline=) says how long to wait",
                )
            if absent and seconds > BUSY:
                time.sleep(pause)
                pause = min(2 * pause or 1e-5, LONGEST_PAUSE)
        self._forget(topic, messages)
        return messages

    def fail(self, error: str) -> None:
        """Tell the other processes that this one ends with an error."""
        self._send(FAILURE, error.encode(), self._others())

    def leave(self) -> None:
        """Tell the other processes that this one ends normally."""
        self._send(DEPARTURE, b"", self._others())

    def _others(self) -> list[int]:
        return [n for n in range(self.count) if n != self.index]

    # --- transfers --------------------------------------------------------------------------

    def _send(self, tag: int, data: bytes, receivers: Iterable[int]) -> None:
        memory = np.frombuffer(data, np.uint8)
        with self._lock:
            # A transfer holds its memory, so those that are complete are dropped.
            self._outgoing = [t for t in self._outgoing if not t.request.Test()]
            for n in receivers:
                self._outgoing.append(Transfer(self.channel.Isend(memory, dest=n, tag=tag), tag, memory))

    def _look(self) -> None:
        """Receive what has arrived, from each process in the order in which it was sent."""
        while self._begin_to_receive():
            pass
        for source, transfers in self._incoming.items():
            # Transfers of one process may complete in any order: only the oldest is filed.
            while transfers and transfers[0].request.Test():
                transfer = transfers.popleft()
                self._file(source, transfer.tag, transfer.memory.data)

    def _begin_to_receive(self) -> bool:
        """Begin to receive a message, if one has arrived; returns whether one has."""
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

    def _forget(self, topic: str, senders: Iterable[int]) -> None:
        """Drop the empty queues of a topic, since every run of a program has its own topic."""
        with self._lock:
            for n in senders:
                if not self.inbox[topic, n]:
                    del self.inbox[topic, n]

    def _require_hope(self, call: str, absent: Sequence[int], alarm: str | None) -> None:
        """Errors: DistributedError if these processes will not send what is waited for."""
        for number, error in self.failures.items():
            raise DistributedError(f"{call}: cannot go on (process {number} has failed: {error})")
        for number in range(self.count):
            if alarm is not None and self.inbox.get((alarm, number)):
                error = bytes(self.inbox[alarm, number][0]).decode()
                raise DistributedError(f"{call}: cannot go on (process {number} raised {error})")
        # Messages of one process arrive in order, so those sent before its departure are filed.
        if self.departures.intersection(absent):
            departed_peers = [n for n in absent if n in self.departures]
            raise DistributedError(f"{call}: cannot go on ({_named(departed_peers)} left without it)")


def _mpi() -> ModuleType:
    """MPI, initialised by the import. Errors: DistributedError without mpi4py or an MPI library."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            f"distributed: cannot load MPI ({error})", hint="pip install 'rune-ml[distributed]'"
        ) from error


def _named(numbers: Sequence[int]) -> str:
    """`process 2`, `processes 1 and 3`."""
    return f"process{'es' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
