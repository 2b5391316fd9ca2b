"""Processes that talk through MPI, by mpi4py: messages between all of them, and blocks of arrays.

Small messages go from each process to each, so that one that waits knows by number for whom. What
is large goes by MPI's own collectives, once all have said that they mean the same. Nothing waits
without a limit: while it waits, a process looks whether another has failed or has left.
Source: MPI: A Message-Passing Interface Standard 4.1, https://www.mpi-forum.org/docs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np

from rune.errors import DistributedError

MESSAGE, FAILURE, DEPARTURE = 1, 2, 3  # tags
LONGEST_PAUSE = 1e-3  # s between two looks


class Request(Protocol):
    """A transfer on its way."""

    def Test(self) -> bool:
        """Whether it is complete; each call takes it further."""
        ...


class MpiWorld:
    """All processes that mpirun started with this one."""

    def __init__(self, deadline: float) -> None:
        """deadline: how long to wait for the others, in seconds."""
        self.mpi = _mpi()
        world = self.mpi.COMM_WORLD
        self.messages, self.blocks = world.Dup(), world.Dup()
        for group in (self.messages, self.blocks):
            group.Set_errhandler(self.mpi.ERRORS_RETURN)
        self.index, self.count = world.Get_rank(), world.Get_size()
        self.deadline = deadline
        self.departed: set[int] = set()
        self.sent: list[tuple[Request, np.ndarray]] = []  # with the memory that a request reads

    @property
    def others(self) -> list[int]:
        """The numbers of the other processes."""
        return [n for n in range(self.count) if n != self.index]

    def exchange(self, what: str, message: bytes) -> list[bytes]:
        """What every process says, by their numbers.

        Errors: DistributedError names those who fail, leave, or say nothing before the deadline.
        """
        self._send(MESSAGE, message, self.others)
        messages: dict[int, bytes] = {self.index: message}

        def is_complete() -> bool:
            for number in range(self.count):
                if number not in messages:
                    messages.update(self._received(MESSAGE, number))
            return len(messages) == self.count

        def missing() -> list[int]:
            return [n for n in range(self.count) if n not in messages]

        self._wait(what, is_complete, missing)
        return [messages[n] for n in range(self.count)]

    def gather(self, what: str, block: np.ndarray) -> list[np.ndarray]:
        """The blocks of all processes, which have one dtype and shape, by their numbers."""
        data = np.ascontiguousarray(block)
        everyone = np.empty((self.count, *data.shape), data.dtype)
        self._finish(what, self.blocks.Iallgather(_octets(data), _octets(everyone)))
        return list(everyone)

    def broadcast(self, what: str, array: np.ndarray, source: int) -> np.ndarray:
        """What the process `source` has, in all; theirs have its dtype and shape."""
        data = np.array(array, order="C")
        self._finish(what, self.blocks.Ibcast(_octets(data), root=source))
        return data

    def fail(self, error: str) -> None:
        """Tell the others that this process ends with an error."""
        self._send(FAILURE, error.encode(), self.others)

    def leave(self) -> None:
        """Tell the others that this process is done."""
        self._send(DEPARTURE, b"", self.others)

    # --- waiting ----------------------------------------------------------------------------

    def _send(self, tag: int, data: bytes, receivers: Sequence[int]) -> None:
        self.sent = [(request, memory) for request, memory in self.sent if not request.Test()]
        memory = np.frombuffer(data, np.uint8)
        self.sent += [(self.messages.Isend(memory, dest=n, tag=tag), memory) for n in receivers]

    def _received(self, tag: int, source: int) -> dict[int, bytes]:
        """What a process has said with this tag, if it has come."""
        status = self.mpi.Status()
        message = self.messages.Improbe(source=source, tag=tag, status=status)
        if message is None:
            return {}
        data = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
        message.Recv(data)
        return {status.Get_source(): data.tobytes()}

    def _finish(self, what: str, request: Request) -> None:
        self._wait(what, request.Test, lambda: [])

    def _wait(self, what: str, is_complete: Callable[[], bool], missing: Callable[[], list[int]]) -> None:
        """Errors: DistributedError if another process fails, or one that is missing has left."""
        start, pause = time.monotonic(), 0.0
        while not is_complete():
            for number, error in self._received(FAILURE, self.mpi.ANY_SOURCE).items():
                raise DistributedError(f"{what}: cannot go on (process {number} has failed: {error.decode()})")
            self.departed |= self._received(DEPARTURE, self.mpi.ANY_SOURCE).keys()
            # What a process said before it left has come by now.
            if self.departed.intersection(missing()) and not is_complete():
                raise DistributedError(f"{what}: cannot go on ({_named(self.departed, missing())} left without it)")
            if time.monotonic() - start > self.deadline:
                raise DistributedError(
                    f"{what}: cannot go on (no word from {_named(range(self.count), missing() or self.others)} "
                    f"in {self.deadline:g} s)",
                    hint="rune.distributed.initialize(deadline=) says how long to wait",
                )
            time.sleep(pause)
            pause = min(2 * pause or 1e-5, LONGEST_PAUSE)


def _mpi() -> ModuleType:
    """MPI, started. Errors: DistributedError without mpi4py or without a library of MPI."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            f"distributed: cannot load MPI ({error})", hint="pip install 'rune-ml[distributed]'"
        ) from error


def _octets(array: np.ndarray) -> np.ndarray:
    """The memory of an array, of a dtype that MPI may not know."""
    return array.reshape(-1).view(np.uint8)


def _named(of: Container[int], numbers: Sequence[int]) -> str:
    """`process 2`, `processes 1 and 3`."""
    chosen = [str(n) for n in numbers if n in of]
    return f"process{'es' * (len(chosen) > 1)} {' and '.join(chosen)}"
