"""Times of a plan's steps on the CPU: native code reads the clock around each.

start = now();  step;  add now() - start and 1 to the step's two words of a table
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.host_abi import address_of
from rune.backends.cpu.routines import Code, define, monotonic_ns
from rune.lowering.codegen.llvm_text import Value, Writer
from rune.lowering.plan import Branch, Loop, Plan, Step, all_steps


class Clock:
    """Times of the steps of one plan: for each nanoseconds and how often it ran, as i64."""

    def __init__(self, plan: Plan):
        self.steps: list[Step] = [s for s in all_steps(plan) if not isinstance(s, Loop | Branch)]
        self.table = np.zeros((max(1, len(self.steps)), 2), np.int64)
        self._numbers = {id(step): number for number, step in enumerate(self.steps)}
        self._function: object = None

    def text(self) -> str:
        """The function `i64 @now()`: nanoseconds of a clock that only goes on."""
        get = getattr(ctypes.CDLL(None), "clock_gettime", None) if hasattr(ctypes, "CDLL") else None
        if get is None or not hasattr(time, "CLOCK_MONOTONIC"):
            self._function = ctypes.CFUNCTYPE(ctypes.c_int64)(time.perf_counter_ns)
            return _now(lambda code: code.ask("i64", code.at(address_of(self._function))))
        return _now(lambda code: monotonic_ns(code, code.at(address_of(get))))

    def around(self, step: Step, writer: Writer, write: Callable[[Step], None]) -> None:
        """Write the step, and what times it."""
        start = writer.effect("i64", "call i64 @now()")
        write(step)
        end = writer.effect("i64", "call i64 @now()")
        words = self.table.ctypes.data + 16 * self._numbers[id(step)]
        self._add(writer, words, end - start)
        self._add(writer, words + 8, end.like(1))

    def _add(self, writer: Writer, address: int, value: Value) -> None:
        at = f"inttoptr (i64 {address} to ptr)"
        before = writer.load("i64", Value(writer, "ptr", at))
        writer.store(before + value, Value(writer, "ptr", at))


def _now(read: Callable[[Code], Value]) -> str:
    return define(("i64", "now", ""), read)
