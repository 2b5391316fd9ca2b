"""Interrupts: critical sections are completed, and native loops stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rune
from rune import lax
from rune.backends.cpu import compiler, llvm, pulse
from rune.backends.shared.interrupts import deferred

ROOT = Path(__file__).parents[3]
posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
pytestmark = [posix, pytest.mark.usefixtures("interrupts")]
HANG_S = 300
CORE = import_module("_signal")  # which the sections call


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


# --- sections that handlers wait for ----------------------------------------------------------


def test_a_handler_that_raises_while_the_others_are_put_off_leaves_them_all_in_place(monkeypatch):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    put_off, interrupts = CORE.signal, [KeyboardInterrupt()]

    def interrupted(number: int, handler: Any) -> Any:
        if number == signal.SIGTERM and interrupts:
            raise interrupts.pop()
        return put_off(number, handler)

    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(CORE, "signal", interrupted)
            with pytest.raises(KeyboardInterrupt), deferred():
                pass
        assert signal.getsignal(signal.SIGINT) is before[0]
    finally:
        signal.signal(signal.SIGTERM, before[1])


def deferred_work(work: Callable[[], object]) -> None:
    with deferred():
        work()


def test_all_handlers_are_restored_even_if_one_of_them_raises(monkeypatch):
    """One signal arrives as soon as its handler is back, another came within the block."""
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    put_back, signals, late = CORE.signal, list[str](), [signal.SIGTERM]

    def term(*_: object) -> None:
        signals.append("term")
        raise KeyboardInterrupt

    def interrupted(number: int, handler: Any) -> Any:
        result = put_back(number, handler)
        if handler is term and late:
            signal.raise_signal(late.pop())
        return result

    signal.signal(signal.SIGINT, lambda *_: signals.append("int"))
    signal.signal(signal.SIGTERM, term)
    ours = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    try:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            deferred_work(lambda: (interrupt(), patch.setattr(CORE, "signal", interrupted)))
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == ours
        assert signals == ["term", "int"]
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_a_signal_within_the_block_is_handled_at_its_end():
    steps: list[int] = []

    def work() -> None:
        with deferred():
            interrupt()
            steps.extend(range(100))

    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(steps) == 100


def test_blocks_nest_and_the_outermost_hands_it_on():
    steps: list[str] = []

    def work() -> None:
        with deferred():
            with deferred():
                interrupt()
                steps.append("inner")
            steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["inner", "outer"]


def test_handlers_are_restored_after_the_block():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    with deferred():
        assert signal.getsignal(signal.SIGINT) is not before[0]

    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before


def test_a_signal_is_raised_together_with_an_error_of_the_block():
    def work() -> None:
        with deferred():
            interrupt()
            raise ValueError("of the block")

    with pytest.raises(KeyboardInterrupt) as error:
        work()
    assert isinstance(error.value.__context__, ValueError)


def test_in_other_threads_no_signal_is_deferred():
    handlers: list[Any] = []

    def work() -> None:
        with deferred():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_no_handler_runs_between_two_calls_of_llvm(monkeypatch: pytest.MonkeyPatch):
    flags: list[bool] = []
    emit = llvm._library().emit

    def interrupted(*args: Any) -> Any:
        interrupt()
        code = emit(*args)
        flags.append(True)
        return code

    monkeypatch.setattr(llvm._library(), "emit", interrupted)
    with pytest.raises(KeyboardInterrupt), rune.configure(cache_dir=""):
        compiler.compile_module("f", "define i64 @f() #0 {\n  ret i64 1\n}")
    assert flags == [True]


# --- loops ------------------------------------------------------------------------------------

LOOP = f"""
import os, signal, threading
import numpy as np
import rune, rune.numpy as rnp
from rune import lax

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been started without
x, most = rnp.ones(3), 2**31 - 1
programs = {{
    "while_loop": lambda n: lax.while_loop(
        lambda c: c[0] != n, lambda c: ((c[0] + 1) % 1000, c[1] * 0.5), (0, x))[1],
    "fori_loop": lambda n: lax.fori_loop(0, n, lambda i, h: h * 0.5 + 1, x),
    "nested": lambda n: lax.fori_loop(
        0, n, lambda i, h: lax.fori_loop(0, n, lambda j, g: g * 0.5 + i, h), x),
    "scan": lambda n: lax.scan(
        lambda c, _: (programs["fori_loop"](n) + c * 0.5, None), x, None, length=100_000)[0],
}}
small = rnp.int32(5)
signal.alarm({HANG_S})
for name, program in programs.items():
    f = rune.jit(program)
    for calls in (1, 3):  # in the second round it is native code that calls
        for _ in range(calls):
            expected = np.asarray(f(small))
        try:
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            f(rnp.int32(most))
            print(name, "ended")
        except KeyboardInterrupt:
            print(name, "stopped", np.array_equal(f(small), expected))
print(rune.work_stats("cpu:0").in_flight)
"""


@pytest.mark.skipif(not pulse.is_available(), reason="this system has no such clock")
def test_an_interrupt_ends_a_loop_and_its_function_still_works():
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOP], cwd=ROOT, capture_output=True, text=True, timeout=2 * HANG_S
    )
    names = ["while_loop", "fori_loop", "nested", "scan"]
    assert process.stdout.splitlines() == [*(f"{name} stopped True" for name in names for _ in range(2)), "0"], (
        process.stderr
    )


def test_a_handler_that_raises_nothing_lets_a_loop_continue():
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    later = threading.Timer(0.1, interrupt)
    try:
        later.start()
        total = rune.jit(lambda n: lax.fori_loop(0, n, lambda i, h: h + 1, 0))(100_000_000)
        later.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert int(total) == 100_000_000
    assert came == [signal.SIGINT]
