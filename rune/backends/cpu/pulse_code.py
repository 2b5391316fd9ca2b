"""The functions of pulse.py as IR text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rune.backends.cpu.routines import Code, define, monotonic_ns
from rune.lowering.codegen.llvm.ir.text import Value

MOST_STEPS = 1 << 40  # between two calls: four times as many are still an i64
BRIEF_NS, LONG_NS = 25_000_000, 100_000_000  # between two calls: outside, the steps are adapted
PERIOD_NS = 50_000_000  # the time that the steps are adapted to
SILENCE_NS = 250_000_000  # between two checks of signals: not felt by a user who presses Ctrl-C


def text(outside: Mapping[str, int], over: int) -> str:
    """The module. outside: addresses of the process by name; over: the number of a watch's word."""
    functions = [
        define(("i64", "pulse", "ptr state"), partial(_pulse, outside), ""),
        define(("i1", "is_over", "ptr watch"), partial(_is_over, outside, over), ""),
    ]
    lines = "\n".join(["@asked = internal global i64 0", *functions]).splitlines()
    declarations = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*declarations, *(line for line in lines if line not in declarations)])


def _pulse(outside: Mapping[str, int], code: Code, state: Value) -> Value:
    """The number of steps until the next call, 0 for none."""
    code.declarations.add("declare i32 @clock_gettime(i32, ptr)")
    time, answer = monotonic_ns(code, "clock_gettime"), code.allocate("i64")
    called_at, asked_at = (code.item(state, "i64", k) for k in (1, 2))
    steps, last_call = code.load("i64", state), code.load("i64", called_at)
    code.store(time, called_at)
    code.store(steps, answer)

    def begin() -> None:
        code.store(time, asked_at)

    def go_on() -> None:
        new_steps = _adapted(steps, time - last_call)
        code.store(new_steps, state)
        code.store(new_steps, answer)
        silence = time - code.load("i64", asked_at)
        code.either(silence.compare("ugt", SILENCE_NS), ask)

    def ask() -> None:
        code.store(time, asked_at)
        is_interrupted = _check_signals(outside, code).compare("ne", 0)
        code.either(is_interrupted, lambda: code.store(steps.like(0), answer))

    code.either(last_call.equals(0), begin, go_on)
    return code.load("i64", answer)


def _adapted(steps: Value, duration: Value) -> Value:
    """The steps that take about a period: four times as many after a brief time, fewer after a long
    one."""
    more = (steps << 2).call("umin", MOST_STEPS)
    periods = duration.binary("udiv", PERIOD_NS).call("umax", 1)
    fewer = steps.binary("udiv", periods).call("umax", 1)
    select = steps.writer.select
    unless_brief = select(duration.compare("ugt", LONG_NS), fewer, steps)
    return select(duration.compare("ult", BRIEF_NS), more, unless_brief)


def _check_signals(outside: Mapping[str, int], code: Code) -> Value:
    """Run Python's signal handlers; not 0 if one raised an error, which is then set."""
    # The loop may run with or without the interpreter's lock: Ensure works in both cases.
    state = code.ask("i32", code.at(outside["PyGILState_Ensure"]))
    result = code.ask("i32", code.at(outside["PyErr_CheckSignals"]))
    code.tell("void", code.at(outside["PyGILState_Release"]), state)
    return result


def _is_over(outside: Mapping[str, int], number: int, code: Code, watch: Value) -> Value:
    """Whether a signal handler has raised an error, now or earlier."""
    code.declarations |= {"declare i32 @clock_gettime(i32, ptr)", "declare i64 @pthread_self()"}
    over, last_check = code.item(watch, "i64", number), code.symbol("asked")

    def ask(time: Value) -> None:
        code.store(time, last_check)
        is_interrupted = _check_signals(outside, code).compare("ne", 0)
        code.either(is_interrupted, lambda: code.set_word("i64", over, 1))

    def look() -> None:
        time = monotonic_ns(code, "clock_gettime")
        silence = time - code.load("i64", last_check)
        code.either(silence.compare("ugt", SILENCE_NS), lambda: ask(time))

    # As an address, because compiler.py replaces only those: the next process has another number.
    main = Value(code, "i64", f"ptrtoint (ptr {code.at(outside['main thread']).text} to i64)")
    is_main = code.ask("i64", "pthread_self").equals(main)
    goes_on = code.word("i64", over).equals(0)
    code.either(is_main & goes_on, look)
    return code.word("i64", over).compare("ne", 0)
