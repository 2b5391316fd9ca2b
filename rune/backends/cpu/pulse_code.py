"""Native code hears Ctrl-C: the functions as IR text (pulse.py)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rune.backends.cpu.routines import Code, define, monotonic_ns
from rune.lowering.codegen.llvm.ir.text import Value

MOST_STEPS = 1 << 40
BRIEF_NS, LONG_NS = 25_000_000, 100_000_000  # between two calls, the steps stay as many
PERIOD_NS = 50_000_000
SILENCE_NS = 250_000_000  # before the interpreter is asked again


def text(outside: Mapping[str, int], over: int) -> str:
    """The module. outside: addresses of the process, by their names; over: a word of a watch."""
    functions = [
        define(("i64", "pulse", "ptr state"), partial(_pulse, outside), ""),
        define(("i1", "is_over", "ptr watch"), partial(_is_over, outside, over), ""),
    ]
    lines = "\n".join(["@asked = internal global i64 0", *functions]).splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*declared, *(line for line in lines if line not in declared)])


def _pulse(outside: Mapping[str, int], code: Code, state: Value) -> Value:
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
        is_interrupted = _check_signals(outside, code).compare("ne", 0)
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


def _check_signals(outside: Mapping[str, int], code: Code) -> Value:
    """Run Python's handlers of signals; not 0 where one raised an error, which is then set."""
    # The loop runs without the interpreter's lock, or with it: Ensure copes with both.
    state = code.ask("i32", code.at(outside["PyGILState_Ensure"]))
    result = code.ask("i32", code.at(outside["PyErr_CheckSignals"]))
    code.tell("void", code.at(outside["PyGILState_Release"]), state)
    return result


def _is_over(outside: Mapping[str, int], number: int, code: Code, watch: Value) -> Value:
    """Whether a handler has raised an error, now or earlier."""
    code.declared |= {"declare i32 @clock_gettime(i32, ptr)", "declare i64 @pthread_self()"}
    over, asked = code.item(watch, "i64", code.constant("i64", number)), code.symbol("asked")

    def ask(now: Value) -> None:
        code.store(now, asked)
        is_interrupted = _check_signals(outside, code).compare("ne", 0)
        code.either(is_interrupted, lambda: code.set_word("i64", over, 1))

    def look() -> None:
        now = monotonic_ns(code, "clock_gettime")
        silence = now - code.load("i64", asked)
        code.either(silence.compare("ugt", SILENCE_NS), lambda: ask(now))

    # An address like others, which the next process has elsewhere.
    main = Value(code, "i64", f"ptrtoint (ptr {code.at(outside['main thread']).text} to i64)")
    is_main = code.ask("i64", "pthread_self").equals(main)
    goes_on = code.word("i64", over).equals(0)
    code.either(is_main & goes_on, look)
    return code.word("i64", over).compare("ne", 0)
