"""The processes that run this program together, and how this one joins and leaves them."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Sequence
from types import TracebackType

from rune import backends, processes
from rune.backends import Device
from rune.backends.mpi import MpiWorld
from rune.backends.remote import introduced
from rune.errors import ArgumentError, DistributedError
from rune.sharding.meshes import default_devices

# Variables that mpirun sets in each process: Open MPI, MPICH and Intel MPI, Slurm.
COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def initialize(*, deadline: float = 60.0) -> None:
    """Join the other processes that mpirun started; without mpirun there is only this one.

    deadline: the longest time in seconds that any call waits for other processes.
    Errors:   DistributedError if already initialized, or if mpi4py is not installed;
              ArgumentError unless the deadline is positive.
    Source:   https://docs.jax.dev/en/latest/jax.distributed.html

    >>> import rune
    >>> rune.distributed.initialize()
    >>> rune.distributed.process_index(), rune.distributed.process_count()
    (0, 1)
    >>> rune.distributed.shutdown()
    """
    if processes.is_joined():
        raise DistributedError("distributed: cannot initialize twice", hint="rune.distributed.is_initialized() tells")
    if not isinstance(deadline, int | float) or not deadline > 0:
        raise ArgumentError(f"distributed: cannot wait {deadline!r} s for others (a positive number expected)")
    processes.join(MpiWorld(float(deadline)) if _is_started_by_mpirun() else processes.ALONE)
    _report_failures()
    if processes.current().count > 1:
        backends.introduce(introduced(default_devices()))
    atexit.unregister(shutdown)
    atexit.register(shutdown)


def _is_started_by_mpirun() -> bool:
    return any(os.environ.get(name, "1") != "1" for name in COUNTS)


@functools.cache  # installs the hook once per process
def _report_failures() -> None:
    """Tell the other processes of an error that ends this one."""
    previous = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        processes.part().fail(f"{kind.__name__}: {error}".partition("\n")[0])
        previous(kind, error, trace)

    sys.excepthook = report


def is_initialized() -> bool:
    """Whether this process has joined the others.

    >>> import rune
    >>> rune.distributed.is_initialized()
    False
    """
    return processes.is_joined()


def shutdown() -> None:
    """Leave the other processes; does nothing before `initialize`.

    >>> import rune
    >>> rune.distributed.shutdown()
    """
    backends.introduce(())
    processes.part().leave()


def devices() -> Sequence[Device]:
    """The devices of all processes, those of process 0 first, of the default device's kind.

    A process refers to its own devices by plain names, and to those of process 1 as "1/cpu:0".
    Errors: none.

    >>> import rune
    >>> [d.name for d in rune.distributed.devices()]
    ['cpu:0']
    """
    return backends.everywhere() or default_devices()


def process_index() -> int:
    """The number of this process, from 0; 0 before `initialize`.

    Errors: none.

    >>> import rune
    >>> rune.distributed.process_index()
    0
    """
    return processes.current().index


def process_count() -> int:
    """The number of processes that run the program; 1 before `initialize`.

    Errors: none.

    >>> import rune
    >>> rune.distributed.process_count()
    1
    """
    return processes.current().count
