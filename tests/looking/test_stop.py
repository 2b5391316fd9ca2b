"""A running loop hears the stop button within a second, on every executor, which goes on after."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rune
import rune.numpy as rnp

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]
STEPS, BEFORE, WITHIN = 10**9, 0.3, 1.0  # of a loop that nobody waits for; seconds

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def until(x: Any) -> Any:
    return rune.while_loop(lambda c: c[0] < STEPS, lambda c: (c[0] + 1, rnp.sin(c[1])), (0, x))[1]


def scanned(x: Any) -> Any:
    return rune.scan(lambda c, _: (rnp.sin(c) * 1.01, None), x, None, length=STEPS)[0]


def counted(x: Any) -> Any:
    return rune.fori_loop(0, STEPS, lambda i, v: rnp.flip(v) + i, x)


LOOPS: dict[str, Callable[[Any], Any]] = {"while": until, "scan": scanned, "fori": counted}


@pytest.fixture
def stop() -> Iterator[Callable[[], None]]:
    """Presses the button in a while: what a notebook's does is a SIGINT, whose handler raises."""

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, pressed)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, BEFORE)  # type: ignore[misc]
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_compiled_loop_hears_the_stop_button(loop: str, device: str, stop: Callable[[], None]):
    x = rune.device_put(rnp.ones(7), device)
    f = rune.jit(LOOPS[loop])
    f.lower(x).compile()  # an interrupt of the compiler is another test's
    stop()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        rune.block_until_ready(f(x))
    assert time.perf_counter() - start < BEFORE + WITHIN
    assert rnp.sum(rune.device_put(rnp.ones(5), device) * 2).item() == 10


def test_an_eager_loop_hears_the_stop_button(stop: Callable[[], None]):
    stop()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        until(rnp.ones(7))
    assert time.perf_counter() - start < BEFORE + WITHIN
