"""Times of a plan's steps on the CPU: native code reads a clock before and after each.

start = now();  step;  add now() - start and 1 to the step's words of a table

For Python functions two more words are the times of the last call, by that clock and by the
thread's own: from these the function knows how long it waited for the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.host_abi import address_of
from rune.backends.cpu.routines import Code, clock_ns, define
from rune.backends.shared.callbacks import is_callback
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.plan import Branch, Loop, Plan, Step, all_steps
from rune.profiling import Moment, moment

WORDS = 4  # of each step: nanoseconds, calls, last start, and the thread's clock then


class Clock:
    """Times of the steps of one plan: `table` has the words of each, as i64."""

    def __init__(self, plan: Plan):
        self.steps: list[Step] = [s for s in all_steps(plan) if not isinstance(s, Loop | Branch)]
        self.table = np.zeros((max(1, len(self.steps)), WORDS), np.int64)
        self._numbers = {id(step): number for number, step in enumerate(self.steps)}
        self._functions: list[object] = []
        library = ctypes.CDLL(None) if hasattr(ctypes, "CDLL") else None
        self._get = getattr(library, "clock_gettime", None) if hasattr(time, "CLOCK_THREAD_CPUTIME_ID") else None

    def text(self) -> str:
        """Functions `i64 @now()`, of a monotonic clock, and `i64 @thread_clock()`. Units: ns."""
        # Without clock_gettime, as on Windows, native code calls Python's clock.
        if self._get is None:
            clocks = [("now", time.perf_counter_ns), ("thread_clock", lambda: 0)]
            return "\n\n".join(self._clock_function(*clock) for clock in clocks)
        return "\n\n".join(_read(name, self._get, clock) for name, clock in _clocks())

    def _clock_function(self, name: str, ask: Callable[[], int]) -> str:
        function = ctypes.CFUNCTYPE(ctypes.c_int64)(ask)
        self._functions.append(function)
        return define(("i64", name, ""), lambda code: code.ask("i64", code.at(address_of(function))))

    def around(self, step: Step, writer: Writer, write: Callable[[Step], None]) -> None:
        """Write the step with reads of the clock around it."""
        total_ns, calls, began, thread = (self._word(writer, step, number) for number in range(WORDS))
        if is_callback(step):
            writer.store(writer.effect("i64", "call i64 @thread_clock()"), thread)
        start = writer.effect("i64", "call i64 @now()")
        writer.store(start, began)
        write(step)
        end = writer.effect("i64", "call i64 @now()")
        writer.store(writer.load("i64", total_ns) + (end - start), total_ns)
        writer.store(writer.load("i64", calls) + 1, calls)

    def _word(self, writer: Writer, step: Step, number: int) -> Value:
        # The table never moves, so the code can contain addresses in it.
        address = self.table.ctypes.data + 8 * (WORDS * self._numbers[id(step)] + number)
        return writer.at(address)

    def begin(self, step: Step) -> Moment:
        """When native code called the Python function that is running."""
        # Converted by the time since then: Python's clock may count from another moment.
        *_, began, thread = self.table[self._numbers[id(step)]].tolist()
        if self._get is None:
            return Moment(1e-9 * began, math.nan)
        ago = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - began
        return Moment(moment().time - 1e-9 * ago, 1e-9 * thread)


def _clocks() -> list[tuple[str, int]]:
    return [("now", time.CLOCK_MONOTONIC), ("thread_clock", time.CLOCK_THREAD_CPUTIME_ID)]


def _read(name: str, get: Callable[..., int], clock: int) -> str:
    def write(code: Code) -> Value:
        return clock_ns(code, code.at(address_of(get)), clock)

    return define(("i64", name, ""), write)
