"""Makes native code interruptible: about four times a second, it lets Python's signal handlers run.

    pulse(ptr state)    a loop calls it after an agreed number of steps. Returns the number of steps
                        until the next call, or 0: the loop must end, because a signal handler has
                        raised an error, which is set in the interpreter
    is_over(ptr watch)  routines call it between pieces of work that take milliseconds, from all
                        threads that share the work. Returns whether they must end, for the same
                        reason

Python runs signal handlers in the main thread between bytecodes, so never while native code runs. A
loop counts its steps, and most calls of `pulse` only read the clock: the number of steps is adapted
until they take about 50 ms, and the interpreter's lock is taken only if it was not taken for a
quarter of a second. The state has three words: the steps, the time of the last call, and the time
of the last check of signals.

A watch has two words: the address of @is_over, for routines that know no other address, and whether
all is over. Only the main thread checks signals, because handlers run in no other. The time of the
last check is kept for the process, so that many short steps are interruptible too.
"""

from __future__ import annotations

import ctypes
import threading
import time

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.host_abi import address_of

WATCH_WORDS = 2
OVER = 1  # the number of the word of a watch that is not 0 once all is over
FUNCTIONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals")


def is_available() -> bool:
    """Whether this system has the clock that native code reads."""
    return hasattr(time, "CLOCK_MONOTONIC")


# The functions as text, imported if no earlier process has left the code.
_text = locks.late_module("rune.backends.cpu.pulse_code")


@compiler.lasting
def _code() -> compiler.Code:
    api = ctypes.pythonapi
    outside = {name: address_of(getattr(api, name)) for name in FUNCTIONS}
    outside["main thread"] = threading.main_thread().ident or 0

    def write() -> str:
        return _text().text(outside, OVER)

    return compiler.compile_routine("pulse", (), outside, write, conventions.HURRY)


def address() -> int:
    """The address of `pulse`."""
    return _code().address("pulse")


def watch_address() -> int:
    """The address of `is_over`."""
    return _code().address("is_over")
