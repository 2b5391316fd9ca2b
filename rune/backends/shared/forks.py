"""Forks: a driver's threads and locks stay behind in the parent, so a child must not use it.

A driver that was loaded before a fork would hang in the child, or answer wrongly. Every entry of a
backend therefore asks its `Loaded` record first, and a child is refused in words. A driver that
the parent never loaded is free to the child. The CPU executor needs none of this: in a child its
pool has no workers, and the caller computes alone (cpu/threads.py). Locks are in rune/locks.py.
"""

from __future__ import annotations

import os

from rune.errors import DeviceError


class _Lineage:
    """How many forks lie between the first process and this one."""

    __slots__ = ("forks",)

    def __init__(self) -> None:
        self.forks = 0

    def count(self) -> None:
        self.forks += 1


_lineage = _Lineage()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lineage.count)


class Loaded:
    """In which process a driver was loaded: where `check` is first called."""

    __slots__ = ("_forks", "name")

    def __init__(self, name: str):
        self.name = name
        self._forks: int | None = None

    def check(self) -> None:
        """Load the driver here, or make sure that it was. Errors: DeviceError in a child."""
        # The usual case, on the path of every call: one comparison.
        if self._forks == _lineage.forks:
            return
        if self._forks is None:
            self._forks = _lineage.forks
            return
        raise DeviceError(
            f"{self.name}: cannot be used in a forked process (its parent has loaded the driver)",
            hint="start processes with multiprocessing's 'spawn' or 'forkserver', "
            "or let each of them be the first to ask for the device",
        )
