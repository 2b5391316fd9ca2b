"""All locks of the package, and their state in a forked child.

A child has only the thread that forked, so a lock that another thread held would stay locked for
ever. Therefore there are two kinds of locks:

    lock(), reentrant()     guard Python's own objects, which are consistent between any two steps
                            of the interpreter. Other threads may hold them for long. In a child
                            they are free.
    fork_guard(lock)        guards data of native code, or several values that must agree. The
                            forking thread holds it during the fork, so that the child finds the
                            data consistent. No user's code may run under it for long.

Use `load` or `late_module` for modules that are imported on first use: the interpreter does not
free its import locks in a child, so a fork has to wait until no such import is under way.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
import weakref
from _thread import interrupt_main
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from importlib import import_module
from operator import methodcaller
from types import ModuleType
from typing import Any

Lock = Any  # threading.Lock or threading.RLock

_renewable_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_fork_guards: list[Lock] = []
_fork_locks: list[Lock] = []  # by the current fork
_releases: list[map[object]] = []  # one iterator, over the releases that remain to be done


def lock() -> Lock:
    """A lock that its own thread cannot take again."""
    return _renewable(threading.Lock())


def reentrant() -> Lock:
    """A lock that its own thread may take again."""
    return _renewable(threading.RLock())


def _renewable(lock: Lock) -> Lock:
    _renewable_locks.add(lock)
    return lock


def ends(lock: Lock) -> tuple[Callable[[], object], Callable[[], object]]:
    """The functions that take and free a lock, for native code: no signal is handled between two of
    its calls, and it frees the lock on every way out."""
    return lock.acquire, lock.release


def fork_guard(reentrant_lock: Lock) -> Lock:
    """Make the forking thread hold the lock during each fork from now on; returns the lock."""
    _fork_guards.append(reentrant_lock)
    return reentrant_lock


def if_free(lock: Lock, work: Callable[[], object]) -> None:
    """Run `work` under the lock; do nothing if another thread holds the lock.

    For code that must not wait, such as finalizers. The lock is free afterwards despite any
    interrupts, which the interpreter handles between calls and never within one: the same call
    takes the lock and records that it did.
    """
    answers: list[bool] = []
    try:
        answers.extend(map(lock.acquire, (False,)))
        if True in answers:
            work()
    finally:
        if True in answers:
            lock.release()


loading = fork_guard(threading.RLock())  # held while a library is loaded and initialised
_imports: set[str] = set()  # modules that `load` has imported: another import creates no objects
_freeze_counts: list[int] = []  # the first number of frozen objects above 0, once there was one


def load(name: str) -> ModuleType:
    """Import a module on first use, by its full name. Errors: those of importing it."""
    with loading, nullcontext() if name in _imports else without_collections():
        module = import_module(name)
        if name not in _imports:
            _grow_old()
            _imports.add(name)
        return module


def late_module(name: str) -> functools._lru_cache_wrapper[ModuleType]:
    """A function that imports a module when it is first called, and returns it."""
    return functools.cache(partial(load, name))


@contextmanager
def without_collections() -> Iterator[None]:
    """A block without garbage collection, which would take a tenth of the time to load or compile.

    The objects that a module or a compilation creates stay alive until the end of the block, so
    that a collection would find nothing.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _grow_old() -> None:
    """Move all objects to the oldest generation, as if they had survived two collections.

    The next two collections would otherwise scan all that modules have created, a tenth of a first
    call. It does nothing once a program has frozen objects, as unfreezing would affect them, too.
    """
    # Counting walks all frozen objects, 50 ms for millions, so it stops once some have been seen.
    if not _freeze_counts and (count := gc.get_freeze_count()):
        _freeze_counts.append(count)
    if not _freeze_counts:
        gc.freeze()
        gc.unfreeze()


def _acquire() -> None:
    """Take all locks that are held during forks, even if interrupts arrive.

    It waits for a lock only while it holds no other, so that it cannot take part in a deadlock.
    """
    first = interrupts = 0
    _fork_locks.clear()
    while len(_fork_locks) < len(_fork_guards):  # a library that is loaded meanwhile adds its lock
        try:
            first = _attempt(first)
        except KeyboardInterrupt:
            interrupts += 1
    if interrupts:  # Python would only print an error raised here, so raise it after the fork
        interrupt_main()


def _attempt(first: int) -> int:
    """Wait for one lock, and take the others if they are free; returns the number of a busy one."""
    _release()
    _fork_locks.clear()
    _releases[:] = [map(methodcaller("release"), _fork_locks)]
    order = [*_fork_guards[first:], *_fork_guards[:first]]
    # One call takes a lock and records it, so that no interrupt can arrive in between.
    _fork_locks.extend(filter(methodcaller("acquire"), order[:1]))
    _fork_locks.extend(filter(methodcaller("acquire", False), order[1:]))
    return next((k for k, lock in enumerate(_fork_guards) if lock not in _fork_locks), 0)


# Releases each lock in `_fork_locks` once, in one call, without an interpreter step at which an
# interrupt could arrive.
_release = partial(reduce, deque.extend, _releases, deque[object](maxlen=0))  # type: ignore[call-overload]


def _renew() -> None:
    """In a child, free the locks of threads that do not exist there.

    This uses the protocol of the standard library for its own locks (threading, logging).
    """
    for lock in list(_renewable_locks):
        is_owned = getattr(lock, "_is_owned", None)
        if is_owned is None or not is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
    # The second registration completes what an interrupt may have left undone in the first.
    os.register_at_fork(after_in_child=_renew)
    os.register_at_fork(after_in_child=_renew)
