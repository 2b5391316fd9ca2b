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
from collections.abc import Mapping

from rune.backends.cpu import compiler
from rune.backends.cpu.costs import cost_of
from rune.backends.cpu.host_abi import address_of
from rune.backends.cpu.routines import Code, define, monotonic_ns
from rune.lowering.codegen.llvm import Rendered
from rune.lowering.codegen.llvm_text import Value
from rune.lowering.plan import Loop

STATE_WORDS = 3
WATCH_WORDS = 2
OVER = 1  # the word of a watch that says so
FIRST_COST = 1e6  # estimated instructions before a loop first calls, under a millisecond
MOST_STEPS = 1 << 40

BRIEF_NS, LONG_NS = 25_000_000, 100_000_000  # between two calls, the steps stay as many
PERIOD_NS = 50_000_000
SILENCE_NS = 250_000_000  # before the interpreter is asked again


def is_available() -> bool:
    """Whether this system has the clock that is read."""
    return hasattr(time, "CLOCK_MONOTONIC")


@functools.cache
def _code() -> compiler.Code:
    return compiler.compile_module("pulse", _text())


def _text() -> str:
    functions = [
        define(("i64", "pulse", "ptr state"), _pulse, ""),
        define(("i1", "is_over", "ptr watch"), _is_over, ""),
    ]
    lines = "\n".join(["@asked = internal global i64 0", *functions]).splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*declared, *(line for line in lines if line not in declared)])


def _pulse(code: Code, state: Value) -> Value:
    """How many steps may run until the next call, 0 for none."""
    code.declared.add("declare i32 @clock_gettime(i32, ptr)")
    now, answer = monotonic_ns(code, "clock_gettime"), code.allocate("i64")
    called_at, asked_at = (code.item(state, "i64", code.constant("i64", k)) for k in (1, 2))
    steps, called = code.load("i64", state), code.load("i64", called_at)
    code.store(now, called_at)
    code.store(steps, answer)

    def begin() -> None:
        code.store(now, asked_at)

    def go_on() -> None:
        adapted = _adapted(steps, now - called)
        code.store(adapted, state)
        code.store(adapted, answer)
        silence = now - code.load("i64", asked_at)
        code.either(silence.compare("ugt", SILENCE_NS), ask)

    def ask() -> None:
        code.store(now, asked_at)
        is_interrupted = _check_signals(code).compare("ne", 0)
        code.either(is_interrupted, lambda: code.store(steps.like(0), answer))

    code.either(called.equals(0), begin, go_on)
    return code.load("i64", answer)


def _adapted(steps: Value, elapsed: Value) -> Value:
    """As many steps as take about a period: more after a brief time, fewer after a long one."""
    more = (steps << 2).call("umin", MOST_STEPS)
    periods = elapsed.binary("udiv", elapsed, PERIOD_NS).call("umax", 1)
    fewer = steps.binary("udiv", steps, periods).call("umax", 1)
    select = steps.writer.select
    unless_brief = select(elapsed.compare("ugt", LONG_NS), fewer, steps)
    return select(elapsed.compare("ult", BRIEF_NS), more, unless_brief)


def _check_signals(code: Code) -> Value:
    """Run Python's handlers of signals; not 0 where one raised an error, which is then set."""
    api = ctypes.pythonapi
    # The loop runs without the interpreter's lock, or with it: Ensure copes with both.
    state = code.ask("i32", code.at(address_of(api.PyGILState_Ensure)))
    result = code.ask("i32", code.at(address_of(api.PyErr_CheckSignals)))
    code.tell("void", code.at(address_of(api.PyGILState_Release)), state)
    return result


def _is_over(code: Code, watch: Value) -> Value:
    """Whether a handler has raised an error, now or earlier."""
    code.declared |= {"declare i32 @clock_gettime(i32, ptr)", "declare i64 @pthread_self()"}
    over, asked = code.item(watch, "i64", code.constant("i64", OVER)), code.symbol("asked")

    def ask(now: Value) -> None:
        code.store(now, asked)
        is_interrupted = _check_signals(code).compare("ne", 0)
        code.either(is_interrupted, lambda: code.set_word("i64", over, 1))

    def look() -> None:
        now = monotonic_ns(code, "clock_gettime")
        silence = now - code.load("i64", asked)
        code.either(silence.compare("ugt", SILENCE_NS), lambda: ask(now))

    is_main = code.ask("i64", "pthread_self").equals(threading.main_thread().ident or 0)
    goes_on = code.word("i64", over).equals(0)
    code.either(is_main & goes_on, look)
    return code.word("i64", over).compare("ne", 0)


def address() -> int:
    """Where `pulse` begins."""
    return _code().address("pulse")


def watch_address() -> int:
    """Where `is_over` begins."""
    return _code().address("is_over")


def first_steps(loop: Loop, kernels: Mapping[str, Rendered]) -> int:
    """After how many steps a loop first calls: few enough to take no time that one would notice."""
    inside = [loop.body] if loop.condition is None else [loop.body, loop.condition]
    cost = cost_of((step for plan in inside for step in plan.steps), kernels)
    return 1 if cost is None else max(1, int(FIRST_COST / max(cost, 1.0)))
