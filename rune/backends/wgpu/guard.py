"""Guards calls of the native library by machine code, as wgpu-py's wrappers guard each of its own.

    with guard:         signal handlers wait, and errors are collected
        calls.play()
                        raises the error that the library has reported

The library reports errors to a function of Python's, in the middle of a call: an exception from a
signal handler there would be lost, with the error. The guard is entered and left in each cached
call, so machine code does both (guard_code.py), as `deferred` and wgpu-py's wrappers would.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from rune.backends.shared import guard_code
from rune.backends.shared.guard_code import HEAD
from rune.backends.shared.interrupts import CORE, SIGNALS, SignalQueue, deferred

_NAME = "rune"  # of the calls, in reports of wgpu-py


class _Slot(Protocol):
    """Where wgpu-py puts the error that is reported while it is on top of the stack."""

    type: str
    message: str | None


class _Errors(Protocol):
    """wgpu-py's errors, with a stack for each thread."""

    def _get_proxy_stack(self) -> deque[_Slot]: ...


class Guard:
    """The guard of one device. One thread at a time uses it, under the device's lock.

    enter: begins the guarded calls
    leave: ends them; None, or True if there is an error to be raised by `raise_error`. Runs the
           handlers of the signals that have come, which may raise
    """

    __slots__ = ("_deferred", "_errors", "_kinds", "_slot", "enter", "leave")

    def __init__(self) -> None:
        native = "wgpu.backends.wgpu_native"
        helpers = import_module(f"{native}._helpers")
        self._errors: _Errors = import_module(f"{native}._api").error_handler
        self._kinds: Mapping[str, type[Exception]] = helpers.ERROR_TYPES
        self._slot: _Slot = helpers.ErrorSlot(_NAME)
        self._deferred = deferred()
        functions = self._native()
        self.enter: Callable[[], object]
        self.leave: Callable[[], object]
        self.enter, self.leave = (self._enter, self._leave) if functions is None else functions

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *_: object) -> None:
        if self.leave() is not None:
            self.raise_error()

    def raise_error(self) -> None:
        """Raise the error that the library has reported, if there is one. Errors: wgpu-py's."""
        message, self._slot.message = self._slot.message, None
        if message is not None:
            raise self._kinds.get(self._slot.type, self._kinds[""])(message)

    def _enter(self) -> None:
        self._deferred.__enter__()
        self._slot.message = None  # there may be one if a handler has raised at the last end
        try:
            self._errors._get_proxy_stack().append(self._slot)
        except BaseException:
            self._deferred.__exit__()
            raise

    def _leave(self) -> object:
        try:
            self._errors._get_proxy_stack().pop()
        finally:
            self._deferred.__exit__()
        return None if self._slot.message is None else True

    def _native(self) -> tuple[Callable[[], object], Callable[[], object]] | None:
        """`_enter` and `_leave` as machine code; None if this interpreter is not a known one."""
        code = guard_code.compiled()
        if code is None:
            return None
        queue = SignalQueue()
        objects = {
            **{"GET": CORE.getsignal, "SET": CORE.signal, "NOTE": queue.note, "TELL": queue.handle},
            "CAME": queue.numbers,
            **{"STACKS": self._errors._get_proxy_stack, "SLOT": self._slot},
            **{"MESSAGE": "message", "APPEND": "append", "POP": "pop"},
        }
        numbers = {"MAIN": threading.main_thread().ident or 0, "SIGNALS": len(SIGNALS)}
        head = numbers | {name: id(x) for name, x in objects.items()}
        signals = [int(number) for number in SIGNALS]
        words = array("Q", [*(head.get(name, 0) for name in HEAD), *map(id, signals), *[0] * len(signals)])
        return guard_code.functions(code, words, (objects, signals))
