"""The processes that run this program together, and how this one joins and leaves them."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from types import TracebackType
from typing import Protocol

import numpy as np

from rune.backends.mpi import MpiWorld
from rune.errors import ArgumentError, DistributedError

# What mpirun tells the processes that it starts: Open MPI, MPICH and Intel MPI, Slurm.
COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


class World(Protocol):
    """How a process talks to the others: `index` of `count`."""

    index: int
    count: int

    def exchange(self, what: str, message: bytes) -> list[bytes]:
        """What every process says, by their numbers."""
        ...

    def gather(self, what: str, block: np.ndarray) -> list[np.ndarray]:
        """The blocks of all processes, by their numbers."""
        ...

    def broadcast(self, what: str, array: np.ndarray, source: int) -> np.ndarray:
        """What one process has."""
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

    def exchange(self, what: str, message: bytes) -> list[bytes]:
        """Its own message."""
        return [message]

    def gather(self, what: str, block: np.ndarray) -> list[np.ndarray]:
        """Its own block."""
        return [block]

    def broadcast(self, what: str, array: np.ndarray, source: int) -> np.ndarray:
        """Its own array."""
        return array

    def fail(self, error: str) -> None:
        """Nobody is to be told."""

    def leave(self) -> None:
        """Nobody is to be told."""


_world: list[World] = []


def current() -> World:
    """The processes that this one has joined; itself alone before `initialize`."""
    return _world[0] if _world else Alone()


def initialize(*, deadline: float = 60.0) -> None:
    """Join the other processes that mpirun started; without mpirun a program of one process.

    deadline: how long to wait for the others in any call, in seconds.
    Errors:   DistributedError if the processes have been joined, or if mpi4py is not installed;
              ArgumentError unless the deadline is positive.
    Source:   https://docs.jax.dev/en/latest/jax.distributed.html

    >>> import rune
    >>> rune.distributed.initialize()
    >>> rune.distributed.process_index(), rune.distributed.process_count()
    (0, 1)
    >>> rune.distributed.shutdown()
    """
    if _world:
        raise DistributedError("distributed: cannot initialize twice", hint="rune.distributed.is_initialized() tells")
    if not isinstance(deadline, int | float) or not deadline > 0:
        raise ArgumentError(f"distributed: cannot wait {deadline!r} s for others (a positive number expected)")
    _world.append(MpiWorld(float(deadline)) if _is_started_by_mpirun() else Alone())
    _report_failures()
    atexit.unregister(shutdown)
    atexit.register(shutdown)


def _is_started_by_mpirun() -> bool:
    return any(os.environ.get(name, "1") != "1" for name in COUNTS)


@functools.cache  # once in a process
def _report_failures() -> None:
    """Let an error that ends this process be told to the others."""
    previous = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if _world:
            _world.pop().fail(f"{kind.__name__}: {error}".partition("\n")[0])
        previous(kind, error, trace)

    sys.excepthook = report


def is_initialized() -> bool:
    """Whether this process has joined the others.

    >>> import rune
    >>> rune.distributed.is_initialized()
    False
    """
    return bool(_world)


def shutdown() -> None:
    """Leave the other processes; nothing happens before `initialize`.

    >>> import rune
    >>> rune.distributed.shutdown()
    """
    while _world:
        _world.pop().leave()


def process_index() -> int:
    """The number of this process, from 0; 0 before `initialize`.

    Errors: none.

    >>> import rune
    >>> rune.distributed.process_index()
    0
    """
    return current().index


def process_count() -> int:
    """How many processes run the program; 1 before `initialize`.

    Errors: none.

    >>> import rune
    >>> rune.distributed.process_count()
    1
    """
    return current().count
