"""Every lock of the package, and what becomes of it in a forked child.

A child has one thread, the one that forked. A lock that another thread held would stay locked for
ever, so there are two kinds:

    lock(), reentrant()     guard Python's own objects, which are whole between any two steps of
                            the interpreter, though other threads may be at work under them for
                            long. A child gets them free.
    held(lock)              guards what native code changes, or several values that must agree. The
                            forking thread takes it for the time of the fork, so that the child
                            finds everything whole. Under it no code of users may run for long.

Modules that are loaded on first use are loaded by `load`: the interpreter's own locks of modules
are not made free in a child, so a fork waits until they are.
"""

from __future__ import annotations

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

Lock = Any  # of threading: a plain or a reentrant one

_renewed: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Lock] = []
_taken: list[Lock] = []  # for the fork under way
_releases: list[map[object]] = []  # one iterator: the releases that are still to be done


def lock() -> Lock:
    """A lock that a thread may take once."""
    return _renewable(threading.Lock())


def reentrant() -> Lock:
    """A lock that its own thread may take again."""
    return _renewable(threading.RLock())


def _renewable(lock: Lock) -> Lock:
    _renewed.add(lock)
    return lock


def held(reentrant_lock: Lock) -> Lock:
    """The lock, which from now on the forking thread holds during a fork."""
    _held.append(reentrant_lock)
    return reentrant_lock


def if_free(lock: Lock, work: Callable[[], object]) -> None:
    """Run `work` under a lock that no other thread has; do nothing if one has it.

    For code that must not wait, finalizers for one. However often interrupts come, the lock is
    free afterwards: the interpreter hears of them after a call and not within one, and the call
    that takes the lock notes that it did.
    """
    answers: list[bool] = []
    try:
        answers.extend(map(lock.acquire, (False,)))
        if True in answers:
            work()
    finally:
        if True in answers:
            lock.release()


loading = held(threading.RLock())  # while a library is loaded and made ready
_loaded: set[str] = set()  # by `load`: looking them up again creates nothing


def load(name: str) -> ModuleType:
    """Import a module on first use, by its whole name. Errors: those of importing it."""
    with loading, nullcontext() if name in _loaded else _without_collections():
        module = import_module(name)
        _loaded.add(name)
        return module


@contextmanager
def _without_collections() -> Iterator[None]:
    """What modules create stays: looking through it for garbage takes a tenth of the loading."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            _grow_old()
            gc.enable()


def _grow_old() -> None:
    """Put all objects among the oldest, as if they had lived through two collections already.

    The next two would look through all that modules have created, a tenth of a first call. Objects
    that a program has frozen would thaw with them: then it does nothing.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def _acquire() -> None:
    """Take all that are held over forks, though interrupts come meanwhile.

    It waits for a lock only while it has no other, so that no thread waits for this one meanwhile.
    """
    first = interrupts = 0
    _taken.clear()
    while len(_taken) < len(_held):  # loading a library adds its lock
        try:
            first = _attempt(first)
        except KeyboardInterrupt:
            interrupts += 1
    if interrupts:  # an error here would be printed and forgotten: it is heard after the fork
        interrupt_main()


def _attempt(first: int) -> int:
    """Wait for one lock, and take the others that are free; the number of one that was busy."""
    _release()
    _taken.clear()
    _releases[:] = [map(methodcaller("release"), _taken)]
    order = [*_held[first:], *_held[:first]]
    # What takes a lock notes it in the same call, so that no interrupt comes in between.
    _taken.extend(filter(methodcaller("acquire"), order[:1]))
    _taken.extend(filter(methodcaller("acquire", False), order[1:]))
    return next((k for k, lock in enumerate(_held) if lock not in _taken), 0)


# Releases what is in `_taken`, each once: one call without any step of the interpreter, at which an
# interrupt could come.
_release = partial(reduce, deque.extend, _releases, deque[object](maxlen=0))  # type: ignore[call-overload]


def _renew() -> None:
    """In a child: free the locks of threads that do not exist in it.

    By the protocol that the interpreter's own library has for its locks (threading, logging).
    """
    for lock in list(_renewed):
        is_owned = getattr(lock, "_is_owned", None)
        if is_owned is None or not is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
    # Whatever an interrupt left undone, the second time does.
    os.register_at_fork(after_in_child=_renew)
    os.register_at_fork(after_in_child=_renew)
