"""Forks: a driver's threads and locks stay behind in the parent, so a child must not use it.

A driver that was loaded before a fork would hang in the child, or answer wrongly. Every entry of a
backend therefore asks its `Loaded` record first, and a child is refused in words. A driver that
the parent never loaded is free to the child. The CPU executor needs none of this: in a child its
pool has no workers, and the caller computes alone (cpu_pool.py). Only its locks must not be in the
hands of a thread that the child does not have: `held` takes them for the time of a fork.
"""

from __future__ import annotations

import os
from typing import Any

from rune.errors import DeviceError

Lock = Any  # a lock that its own thread may take again, of threading
_forks = 0  # between the first process and this one
_held: list[tuple[int, Lock]] = []  # outer ones first


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def held(lock: Lock, depth: int) -> Lock:
    """The lock, which from now on the forking thread holds during a fork.

    depth: 0 for a lock that is taken outside of all others here, more for those taken within.
    """
    _held.append((depth, lock))
    _held.sort(key=lambda pair: pair[0])
    return lock


def _acquire() -> None:
    for _, lock in _held:
        lock.acquire()


def _release() -> None:
    for _, lock in reversed(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


class Loaded:
    """In which process a driver was loaded: where `check` is first called."""

    __slots__ = ("_forks", "name")

    def __init__(self, name: str):
        self.name = name
        self._forks: int | None = None

    def check(self) -> None:
        """Load the driver here, or make sure that it was. Errors: DeviceError in a child."""
        if self._forks == _forks:
            return
        if self._forks is None:
            self._forks = _forks
            return
        raise DeviceError(
            f"{self.name}: cannot be used in a forked process (its parent has loaded the driver)",
            hint="start processes with multiprocessing's 'spawn' or 'forkserver', "
            "or let each of them be the first to ask for the device",
        )
