"""WebGPU: calls by machine code are guarded as wgpu-py guards its own.

Signals that arrive meanwhile wait for their end, and errors that the library reports are raised
there; by machine code and by Python alike.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
from rune.backends import wgpu
from rune.backends.wgpu import script
from rune.backends.wgpu.guard import Guard
from rune.errors import DeviceError
from tests.transforms.compile.native_kinds import warm

TARGETS, WHY = wgpu.probe()
pytestmark = [
    pytest.mark.skipif(not TARGETS, reason=f"no WebGPU device: {WHY}"),
    pytest.mark.skipif(os.name != "posix", reason="signals are POSIX"),
]
SIGNALS = (signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1)


class Came(Exception):
    """Raised by the handler of a signal."""


@pytest.fixture(params=["machine code", "Python"])
def guard(request: pytest.FixtureRequest) -> Guard:
    guard = Guard()
    if request.param == "Python":
        guard.enter, guard.leave = guard._enter, guard._leave
    return guard


@pytest.fixture
def log() -> Iterator[list[int]]:
    """The signals whose handlers have run; each raises."""
    log = list[int]()

    def handle(number: int, _: object) -> None:
        log.append(number)
        raise Came

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    yield log
    for number, handler in before.items():
        signal.signal(number, handler)


def guarded(guard: Guard, work: Callable[[], object]) -> None:
    with guard:
        work()


def report(kind: str, words: str) -> None:
    """Report an error as the library does."""
    errors: Any = Guard()._errors
    errors.handle_error(kind, words)


def test_handlers_run_when_the_guarded_calls_have_ended_and_none_is_lost(guard: Guard, log: list[int]):
    handlers = [signal.getsignal(number) for number in SIGNALS]
    steps = list[list[int]]()

    with pytest.raises(Came):
        guarded(guard, lambda: (*[os.kill(os.getpid(), number) for number in SIGNALS], steps.append([*log])))

    assert steps == [[]]
    assert sorted(log) == sorted(SIGNALS)
    assert [signal.getsignal(number) for number in SIGNALS] == handlers


@pytest.mark.parametrize("kind", ["Validation", "OutOfMemory", "Internal", "Unknown"])
def test_a_reported_error_is_raised_once_at_the_end(guard: Guard, kind: str):
    errors: Any = guard._errors
    with pytest.raises(guard._kinds.get(kind, guard._kinds[""]), match="no such thing"), guard:
        report(kind, "no such thing")
    with guard:
        pass
    assert not errors._get_proxy_stack()


def test_a_handler_that_raises_and_a_reported_error_leave_nothing_for_the_next_calls(guard: Guard, log: list[int]):
    with pytest.raises(Came):
        guarded(guard, lambda: (report("Validation", "no such thing"), os.kill(os.getpid(), SIGNALS[0])))

    with guard:
        pass
    assert log == [SIGNALS[0]]


def test_guards_hold_no_references(guard: Guard, log: list[int]):
    objects = None, True, signal.getsignal(SIGNALS[0]), guard._slot
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(100):
        guard.enter()
        guard.leave()
    assert all(abs(sys.getrefcount(x) - count) < 50 for x, count in zip(objects, before, strict=True))


def test_an_error_in_a_cached_call_names_function_and_device_and_the_next_call_is_right(
    monkeypatch: pytest.MonkeyPatch,
):
    armed, submit = list[str](), script._Writer.submit
    answer = ctypes.CFUNCTYPE(None)(lambda: report("Validation", armed.pop()) if armed else None)

    def with_report(writer: script._Writer) -> None:
        address = ctypes.cast(answer, ctypes.c_void_p).value
        assert address is not None
        writer.notes.call(address)
        submit(writer)

    monkeypatch.setattr(script._Writer, "submit", with_report)
    x = rune.device_put(np.ones(7, np.float32), "wgpu:0")
    f = warm(rune.jit(lambda x: x * 3.0), x)
    for _ in range(4):
        rune.block_until_ready(f(x))
    armed.append("no such buffer")

    with pytest.raises(DeviceError, match=r"cannot use wgpu:0 \(the driver refuses: no such buffer"):
        f(x)
    np.testing.assert_array_equal(np.asarray(f(x)), np.full(7, 3, np.float32))
    assert not armed
