"""Native code hears Ctrl-C: every quarter of a second or so, it asks the interpreter.

    pulse(ptr state)    called by a loop when it has run as many steps as were agreed on; the
                        result is how many it may run until it calls again, or 0: it must end, since
                        a handler of signals has raised an error, which waits in the interpreter
    is_over(ptr watch)  called by routines between pieces of work that take milliseconds, by all
                        threads that share it; whether they must end, for the same reason

Python's handlers run in the main thread between steps of the interpreter, which native code keeps
from them. A loop counts its steps, and for most calls the clock is all that is read: the number of
steps is adapted until they take some 50 ms, and the interpreter's lock is taken only when it was
not asked for a quarter of a second. The state has three words: the steps, when it was called last,
and when the interpreter was asked last.

A watch has two: the address of @is_over, for routines that know no other address, and whether all
is over. The interpreter is asked by the main thread alone, as no other would run a handler; the
time of its last question is kept for the process, so that many short steps hear a signal, too.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from types import ModuleType

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.host_abi import address_of

STATE_WORDS = 3
WATCH_WORDS = 2
OVER = 1  # the word of a watch that says so
FUNCTIONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals")


def is_available() -> bool:
    """Whether this system has the clock that is read."""
    return hasattr(time, "CLOCK_MONOTONIC")


@functools.cache
def _text() -> ModuleType:
    """The functions as text: where no earlier process has left them."""
    return locks.load("rune.backends.cpu.pulse_code")


@compiler.lasting
def _code() -> compiler.Code:
    api = ctypes.pythonapi
    outside = {name: address_of(getattr(api, name)) for name in FUNCTIONS}
    outside["main thread"] = threading.main_thread().ident or 0

    def write() -> str:
        return _text().text(outside, OVER)

    return compiler.compile_routine("pulse", (), outside, write, conventions.HURRY)


def address() -> int:
    """Where `pulse` begins."""
    return _code().address("pulse")


def watch_address() -> int:
    """Where `is_over` begins."""
    return _code().address("is_over")
