"""A running loop hears the stop button within a second, on every executor, which goes on after."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import steps

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


# --- kernels that take long -------------------------------------------------------------------


def pairs(x: Any, rows: int = 200_000) -> Any:
    """One kernel of many seconds."""
    y = rnp.resize(x, rows)
    return rnp.sum(rnp.sin(y[:, None] * y[None, :]), axis=1)


def test_a_long_kernel_of_the_processor_hears_the_stop_button(stop: Callable[[], None]):
    x, f = rnp.ones(7), rune.jit(pairs, device="cpu")
    f.lower(x).compile()
    stop()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        f(x)
    assert time.perf_counter() - start < BEFORE + WITHIN
    assert (rnp.ones(5) * 2).sum().item() == 10


# What a driver has begun it ends: seconds, in which the next answer is waited for.
@pytest.mark.skipif("opencl:0" not in DEVICES, reason="no OpenCL device here")
@pytest.mark.parametrize("wait", [np.asarray, rune.block_until_ready, lambda y: y.start_numpy()()])
def test_who_waits_for_a_long_kernel_of_opencl_hears_the_stop_button(
    wait: Callable[[Any], object], stop: Callable[[], None]
):
    x, f = rune.device_put(rnp.ones(7), "opencl:0"), rune.jit(lambda x: pairs(x, 14_000))
    f.lower(x).compile()
    stop()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        wait(f(x))
    assert time.perf_counter() - start < BEFORE + WITHIN
    assert (rune.device_put(rnp.ones(5), "opencl:0") * 2).sum().item() == 10


CALLS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: rnp.sin(x) + rnp.arange(x.size).reshape(x.shape),
    "rows": lambda x: rnp.sum(rnp.cos(x), axis=1),
    "columns": lambda x: rnp.max(x * x, axis=0),
    "transposed": lambda x: rnp.exp(x).T + 1,
    "running": lambda x: rnp.cumsum(x, axis=0),
}


@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (257, 129), (64, 1000)])
@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_in_parts_gives_what_it_gives_at_once(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    x = rnp.asarray(np.random.default_rng(0).normal(size=shape), dtype="f4")
    at_once = rune.jit(lambda x: CALLS[name](x))(x)
    monkeypatch.setattr(steps, "PART_COST", 500.0)
    in_parts = rune.jit(lambda x: CALLS[name](x))(x)
    assert np.array_equal(np.asarray(in_parts), np.asarray(at_once))
