"""Defers signal handlers while a library is called that an exception must not interrupt.

Python runs a signal handler between any two bytecodes, and the handler may raise there. Bindings
written in Python do not expect that: interrupted after it freed memory and before it noted so, one
frees the memory twice; interrupted after it took a lock, it never releases it.

    with deferred():        handlers wait until the block has ended
        ...

Invariant: a signal that arrives within the block is handled when the block ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

# The functions of `signal` convert each result to an enumeration, and take fifty times as long.
CORE = import_module("_signal")
# Signals whose handlers usually raise; handlers of all others run within the block.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class SignalQueue:
    """Signals that came while their handlers were replaced."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def note(self, number: int, _: object) -> None:
        """A handler: the signal has come."""
        if number not in self.numbers:
            self.numbers.append(number)

    def handle(self) -> None:
        """Run the handlers of these signals, which may raise."""
        try:
            while self.numbers:
                signal.raise_signal(self.numbers.pop(0))
        except BaseException:  # raised by a handler; those of the others must run too
            self.handle()
            raise


class deferred:
    """Defers the signals that arrive inside the block to its end.

    Handlers run only in the main thread, so in others there is nothing to do. Blocks may nest.
    """

    __slots__ = ("_handlers", "_queue")

    def __enter__(self) -> None:
        self._queue = SignalQueue()
        self._handlers: list[tuple[int, Callable[..., Any]]] = []
        if threading.get_ident() != threading.main_thread().ident:
            return
        try:
            for number, handler in zip(SIGNALS, [*map(CORE.getsignal, SIGNALS)], strict=True):
                if callable(handler):
                    self._handlers.append((number, handler))
                    CORE.signal(number, self._queue.note)
        except BaseException:  # raised by a handler that was not yet replaced
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            # A handler that raises in here leaves the entries before it, which the call below
            # restores.
            while self._handlers:
                number, handler = self._handlers[-1]
                CORE.signal(number, handler)
                self._handlers.pop()
        except BaseException:  # raised by a restored handler; all others must be restored too
            self.__exit__()
            raise
        self._queue.handle()
