"""Interrupts: calls of libraries that must not be left half-way, and loops that hear Ctrl-C.

A handler of signals runs between any two steps of the interpreter, and may raise there. A binding
written in Python is not made for that: interrupted between freeing memory and noting that it is
free, it frees it twice; interrupted behind a lock's taking, it never gives it back.

    with deferred():        handlers wait until the block has ended
        ...

Invariant: a signal that comes within the block is handled when the block ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

# signal's own functions look each answer up in an enumeration, which takes fifty times as long.
_CORE = import_module("_signal")
# Those whose handlers raise, as a rule; a handler of others runs where it always does.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class deferred:
    """Inside the block no handler of signals runs; what came meanwhile is handled at its end.

    Handlers run in the main thread alone, so elsewhere there is nothing to do. Blocks may nest.
    """

    __slots__ = ("_came", "_handlers")

    def __enter__(self) -> None:
        self._came: list[int] = []
        self._handlers: list[tuple[int, Callable[..., Any]]] = []
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in _SIGNALS:
                handler = _CORE.getsignal(number)
                if callable(handler):
                    self._handlers.append((number, handler))
                    _CORE.signal(number, self._note)
        except BaseException:  # a handler that had its turn before all were put off
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            # The last first: it comes back when the others wait no more.
            while self._handlers:
                number, handler = self._handlers[-1]
                _CORE.signal(number, handler)
                self._handlers.pop()
            while self._came:
                signal.raise_signal(self._came.pop(0))
        except BaseException:  # of a handler that is back; the others come back all the same
            self.__exit__()
            raise

    def _note(self, number: int, _: object) -> None:
        if number not in self._came:
            self._came.append(number)
