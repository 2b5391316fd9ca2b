"""Loops hear Ctrl-C: every quarter of a second or so, native code asks the interpreter.

    pulse(ptr state)    called by a loop when it has run as many steps as were agreed on; the
                        result is how many it may run until it calls again, or 0: it must end, since
                        a handler of signals has raised an error, which waits in the interpreter

Python's handlers run in the main thread between steps of the interpreter, which native code keeps
from them. A loop counts its steps, and for most calls the clock is all that is read: the number of
steps is adapted until they take some 50 ms, and the interpreter's lock is taken only when it was
not asked for a quarter of a second. The state has three words: the steps, when it was called last,
and when the interpreter was asked last.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Mapping

from rune.backends.cpu import compiler
from rune.backends.cpu.costs import cost_of
from rune.backends.cpu.host_abi import address_of
from rune.lowering.codegen.llvm import Rendered
from rune.lowering.plan import Loop

STATE_WORDS = 3
FIRST_COST = 1e6  # estimated instructions before a loop first calls, under a millisecond
MOST_STEPS = 1 << 40

TEXT = """
declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define i64 @pulse(ptr %state) #0 {
entry:
  %time = alloca [2 x i64], align 16
  call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %called_at = getelementptr i64, ptr %state, i64 1
  %asked_at = getelementptr i64, ptr %state, i64 2
  %steps = load i64, ptr %state
  %called = load i64, ptr %called_at
  store i64 %now, ptr %called_at
  %first = icmp eq i64 %called, 0
  br i1 %first, label %begin, label %adapt
begin:
  store i64 %now, ptr %asked_at
  ret i64 %steps
adapt:
  %took = sub i64 %now, %called
  %is_brief = icmp ult i64 %took, 25000000
  %is_long = icmp ugt i64 %took, 100000000
  %fourfold = shl i64 %steps, 2
  %more = call i64 @llvm.umin.i64(i64 %fourfold, i64 MOST)
  %periods = udiv i64 %took, 50000000
  %divisor = call i64 @llvm.umax.i64(i64 %periods, i64 1)
  %share = udiv i64 %steps, %divisor
  %fewer = call i64 @llvm.umax.i64(i64 %share, i64 1)
  %not_brief = select i1 %is_long, i64 %fewer, i64 %steps
  %next = select i1 %is_brief, i64 %more, i64 %not_brief
  store i64 %next, ptr %state
  %asked = load i64, ptr %asked_at
  %silence = sub i64 %now, %asked
  %is_due = icmp ugt i64 %silence, 250000000
  br i1 %is_due, label %ask, label %go_on
ask:
  store i64 %now, ptr %asked_at
  %held = call i32 ENSURE()
  %code = call i32 CHECK_SIGNALS()
  call void RELEASE(i32 %held)
  %raised = icmp ne i32 %code, 0
  br i1 %raised, label %end, label %go_on
go_on:
  ret i64 %next
end:
  ret i64 0
}
"""


def is_available() -> bool:
    """Whether this system has the clock that is read."""
    return hasattr(time, "CLOCK_MONOTONIC")


@functools.cache
def _code() -> compiler.Code:
    api, text = ctypes.pythonapi, TEXT
    words = {
        "CLOCK": str(time.CLOCK_MONOTONIC), "MOST": str(MOST_STEPS),
        "ENSURE": _pointer(api.PyGILState_Ensure), "RELEASE": _pointer(api.PyGILState_Release),
        "CHECK_SIGNALS": _pointer(api.PyErr_CheckSignals),
    }  # fmt: skip
    for word, value in words.items():
        text = text.replace(word, value)
    return compiler.compile_module("pulse", text)


def _pointer(function: object) -> str:
    return f"inttoptr (i64 {address_of(function)} to ptr)"


def address() -> int:
    """Where `pulse` begins."""
    return _code().address("pulse")


def first_steps(loop: Loop, kernels: Mapping[str, Rendered]) -> int:
    """After how many steps a loop first calls: few enough to take no time that one would notice."""
    inside = [loop.body] if loop.condition is None else [loop.body, loop.condition]
    cost = cost_of((step for plan in inside for step in plan.steps), kernels)
    return 1 if cost is None else max(1, int(FIRST_COST / max(cost, 1.0)))
