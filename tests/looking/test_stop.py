"""The stop button ends a loop or a kernel before its end on every executor, which remains usable.

No limit of seconds says so, which a busy machine would miss. Loops and kernels compute for a
quarter of an hour where they can, so that an answer at their end is a hang, which ends the tests
(faulthandler_timeout). Where a call takes seconds, its processor time is compared with that of the
same call undisturbed. benchmarks/stop_button.py prints how long the answer takes.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import steps
from rune.backends.shared.apart import apart, is_long

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import stop_button
from stop_button import BEFORE, LENGTH, STEPS, matrix, pairs

from tests.support.processor import processor_time
from tests.support.sampling import IS_WHOLE

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def until(x: Any) -> Any:
    return rune.while_loop(lambda c: c[0] < STEPS, lambda c: (c[0] + 1, rnp.sin(c[1])), (0, x))[1]


def counted(x: Any) -> Any:
    return rune.fori_loop(0, STEPS, lambda i, v: rnp.flip(v) + i, x)


LOOPS: dict[str, Callable[[Any], Any]] = {"while": until, "scan": stop_button.loop, "fori": counted}


@pytest.fixture
def stop() -> Iterator[Callable[[], None]]:
    """Presses the button in a while: what a notebook's does is a SIGINT, whose handler raises."""

    before = signal.signal(signal.SIGALRM, stop_button.press)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, BEFORE)  # type: ignore[misc]
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupt(stop: Callable[[], None], call: Callable[[], object]) -> None:
    """Press the button during the call, which raises."""
    with pytest.raises(KeyboardInterrupt):
        stop_in(stop, call)


def stop_in(stop: Callable[[], None], call: Callable[[], object]) -> None:
    stop()
    call()


def ends_early(stop: Callable[[], None], call: Callable[[], object]) -> None:
    """The button ends a call of some seconds after a part of its work.

    The undisturbed call comes first: what an earlier test has left to a driver's threads is done by
    then, and does not count as the interrupted call's.
    """
    undisturbed = processor_time(call)
    assert processor_time(lambda: interrupt(stop, call)) < 0.6 * undisturbed


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loop", LOOPS)
def test_the_stop_button_ends_a_compiled_loop(loop: str, device: str, stop: Callable[[], None]):
    x = rune.device_put(rnp.ones(LENGTH), device)
    f = rune.jit(LOOPS[loop])
    f.lower(x).compile()  # an interrupt of the compiler is another test's
    interrupt(stop, lambda: rune.block_until_ready(f(x)))
    assert rnp.sum(rune.device_put(rnp.ones(5), device) * 2).item() == 10


def test_the_stop_button_ends_an_eager_loop(stop: Callable[[], None]):
    interrupt(stop, lambda: until(rnp.ones(LENGTH)))


# --- kernels that take long -------------------------------------------------------------------


def test_the_stop_button_ends_a_long_kernel_on_the_cpu(stop: Callable[[], None]):
    x, f = rnp.ones(7), rune.jit(lambda x: pairs(x, 2_000_000), device="cpu")
    f.lower(x).compile()
    interrupt(stop, lambda: f(x))
    assert (rnp.ones(5) * 2).sum().item() == 10


# Each takes a second of one core or more.
ROUTINES: dict[str, tuple[Callable[[Any], Any], Callable[[], np.ndarray]]] = {
    "product": (lambda a: a.T @ a, lambda: matrix(4000)),
    "cholesky": (lambda a: rnp.linalg.cholesky(a, symmetrize_input=False), lambda: matrix(6000)),
    "solution by LAPACK": (lambda a: rnp.linalg.solve(a, a), lambda: matrix(3000)),
    "eigenvalues by LAPACK": (rnp.linalg.eigh, lambda: matrix(1800)),
}
WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": lambda f: rune.jit(f, device="cpu")}
# LAPACK's are called apart from both ways.
BOTH = [*itertools.product(ROUTINES, WAYS)]
IN_SHORT = [("product", "jit"), ("product", "eager"), ("cholesky", "jit"), ("eigenvalues by LAPACK", "eager")]


@pytest.mark.parametrize(("name", "way"), BOTH if IS_WHOLE else IN_SHORT)
def test_the_stop_button_ends_a_long_routine_on_the_cpu(name: str, way: str, stop: Callable[[], None]):
    function, make = ROUTINES[name]
    x, f = rnp.asarray(make()), WAYS[way](lambda x: function(x))
    if hasattr(f, "lower"):
        f.lower(x).compile()
    ends_early(stop, lambda: rune.block_until_ready(f(x)))
    assert (rnp.ones(5) * 2).sum().item() == 10


def test_a_signal_is_not_lost_on_the_way_into_a_python_function(
    stop: Callable[[], None], monkeypatch: pytest.MonkeyPatch
):
    """Its handler raises before the first line of the function has run."""
    monkeypatch.setattr(steps, "PART_COST", 1e30)
    monkeypatch.setattr(steps, "HEARD_COST", 1e30)
    x, f = rnp.ones(7), rune.jit(lambda x: rune.pure_callback(np.sin, x, pairs(x, 40_000)[:7]), device="cpu")
    f.lower(x).compile()
    stop()
    with pytest.raises(KeyboardInterrupt):
        f(x)
    assert (rnp.ones(5) * 2).sum().item() == 10


def test_an_error_of_a_routine_in_another_thread_is_raised_at_its_call():
    singular = np.zeros((3, 300, 300), np.float32)
    assert is_long([(3, 8192, 8192)])
    with pytest.raises(np.linalg.LinAlgError, match="Singular") as error:
        apart(lambda: np.linalg.inv(singular))
    assert "test_stop.py" in "".join(map(str, error.traceback))


def test_short_routines_are_plain_calls():
    assert not is_long([(1000, 1000), ()])


def test_a_signal_comes_between_the_kernels_of_a_plan(stop: Callable[[], None], monkeypatch: pytest.MonkeyPatch):
    """Many, none of which takes so long that it is run in parts."""
    monkeypatch.setattr(steps, "PART_COST", 1e30)

    def many(x: Any) -> Any:
        for _ in range(60):
            x = rnp.flip(rnp.sum(rnp.sin(x[:, None] * x[None, :]), axis=1))
        return x

    x, f = rnp.ones(6000), rune.jit(many, device="cpu")
    f.lower(x).compile()
    ends_early(stop, lambda: f(x))


# What a driver has begun it ends; the next answer waits for that.
@pytest.mark.skipif("opencl:0" not in DEVICES, reason="no OpenCL device here")
@pytest.mark.parametrize("wait", [np.asarray, rune.block_until_ready, lambda y: y.start_numpy()()])
def test_the_stop_button_ends_a_wait_for_a_long_opencl_kernel(wait: Callable[[Any], object], stop: Callable[[], None]):
    x, f = rune.device_put(rnp.ones(7), "opencl:0"), rune.jit(lambda x: pairs(x, 8_000))
    f.lower(x).compile()
    ends_early(stop, lambda: wait(f(x)))
    assert (rune.device_put(rnp.ones(5), "opencl:0") * 2).sum().item() == 10


@pytest.mark.skipif("wgpu:0" not in DEVICES, reason="no WebGPU device here")
@pytest.mark.parametrize("calls", [0, 1], ids=["first", "again"])
def test_the_stop_button_ends_a_long_webgpu_kernel_on_a_processor(calls: int, stop: Callable[[], None]):
    x, f = rune.device_put(rnp.ones(7), "wgpu:0"), rune.jit(lambda x: pairs(x, 10_000))
    f.lower(x).compile()
    for _ in range(calls):  # what was encoded is played again
        rune.block_until_ready(f(x))
    interrupted = processor_time(lambda: interrupt(stop, lambda: np.asarray(f(x))))
    assert interrupted < 0.6 * processor_time(lambda: np.asarray(f(x)))
    assert (rune.device_put(rnp.ones(5), "wgpu:0") * 2).sum().item() == 10


CALLS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: rnp.sin(x) + rnp.arange(x.size).reshape(x.shape),
    "rows": lambda x: rnp.sum(rnp.cos(x), axis=1),
    "columns": lambda x: rnp.max(x * x, axis=0),
    "transposed": lambda x: rnp.exp(x).T + 1,
    "running": lambda x: rnp.cumsum(x, axis=0),
}


@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (257, 129), (64, 1000)])
@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_in_parts_gives_the_result_of_the_undivided_kernel(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    x = rnp.asarray(np.random.default_rng(0).normal(size=shape), dtype="f4")
    at_once = rune.jit(lambda x: CALLS[name](x))(x)
    monkeypatch.setattr(steps, "PART_COST", 500.0)
    in_parts = rune.jit(lambda x: CALLS[name](x))(x)
    assert np.array_equal(np.asarray(in_parts), np.asarray(at_once))
