"""Forks: a child must not use a driver that its parent has loaded.

A fork copies a driver's locks but not its threads, so the driver would hang in the child or answer
wrongly. Every entry point of a backend therefore checks its `Loaded` record first, which raises
DeviceError in a child. A child may load a driver that its parent never loaded. The CPU executor
needs no check: in a child its pool has no workers, and the caller computes alone (cpu/threads.py).
For locks see rune/locks.py.
"""

from __future__ import annotations

import os
from array import array

from rune.errors import DeviceError

# The number of forks between the first process and this one; native code reads it, too. A count and
# not the process id, because `os.getpid` is a system call, and ids come back.
forks = array("q", [0])


def _count() -> None:
    forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


class Loaded:
    """The process in which a driver was loaded: the one that calls `check` first."""

    __slots__ = ("_forks", "name")

    def __init__(self, name: str):
        self.name = name
        self._forks: int | None = None

    def check(self) -> None:
        """Note that this process loads the driver, or check that it did. Errors: DeviceError."""
        # The usual case, on the path of every call: one comparison.
        if self._forks == forks[0]:
            return
        if self._forks is None:
            self._forks = forks[0]
            return
        raise DeviceError(
            f"{self.name}: cannot be used in a forked process (its parent has loaded the driver)",
            hint="start processes with multiprocessing's 'spawn' or 'forkserver', "
            "or let each of them be the first to ask for the device",
        )
