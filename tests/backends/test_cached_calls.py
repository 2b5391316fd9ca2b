"""Cached calls of a device, made by native code: few steps, and the behaviour of any other call.

First which calls are native, and that they run none of the general code; then everything that could
make a recorded call wrong: results that are still referenced, the same buffer passed twice, other
sizes, threads, lack of memory, interrupts, callbacks, other settings, profiles. On each device
present.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import FrameType
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import DeletedArrayError, DeviceError, NaNError, OutOfMemory
from rune.transforms.compile import jit
from tests.support import shortage
from tests.support.child import as_a_child
from tests.support.close import close, near, same
from tests.support.sampling import IS_WHOLE
from tests.transforms.compile.native_kinds import warm

NAMES = [d.name for d in rune.devices() if d.target.backend in ("cuda", "opencl", "vulkan", "wgpu")]
devices = pytest.mark.parametrize("name", NAMES)
SIZES = (1, 7, 64, 257)
SAME = "the same kernels"
# Of Python in a call, by executor: each takes 40 to 100 ns. Native code does the rest.
MOST_LINES = {"opencl": 0, "cuda": 0, "vulkan": 0, "wgpu": 0}


def put(name: str, values: Any) -> Any:
    return rune.device_put(np.asarray(values, np.float32), name)


def several(x: Any) -> Any:
    """A plan of several kernels, with an arena."""
    for _ in range(3):
        x = rnp.sin(0.01 * rnp.sum(x[:, None] * x[None, :], axis=1))
    return x


def several_in_numpy(x: np.ndarray) -> np.ndarray:
    for _ in range(3):
        x = np.sin(np.float32(0.01) * np.sum(x[:, None] * x[None, :], axis=1))
    return x


def general_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The calls that do not run native code from here on."""
    calls: list[object] = []
    original = jit.Jitted._run
    monkeypatch.setattr(jit.Jitted, "_run", lambda *args: (calls.append(args), original(*args))[1])
    return calls


# --- which calls ------------------------------------------------------------------------------


@devices
def test_a_call_is_native_from_the_third_on(name: str, monkeypatch: pytest.MonkeyPatch):
    f, x = rune.jit(lambda x, y: {"sum": x + y, "both": (x * y,)}), put(name, [1.0, 2.0, 3.0])
    warm(f, x, x)
    calls = general_calls(monkeypatch)
    result = f(x, x)
    assert not calls
    close(np.array([2, 4, 6], np.float32), np.asarray(result["sum"]), ulps=0, why="whole numbers")
    close(np.array([1, 4, 9], np.float32), np.asarray(result["both"][0]), ulps=0, why="whole numbers")


def lines_of_rune(call: Callable[[], object]) -> int:
    """How many different lines of rune's Python a call executes."""
    lines = set[tuple[str, int]]()

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "line" and frame.f_code.co_filename.startswith(rune.__path__[0]):
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    call()
    sys.settrace(None)
    return len(lines)


@devices
def test_a_native_call_executes_few_lines_of_python(name: str):
    x = put(name, np.linspace(0, 1, 37))
    f = warm(rune.jit(lambda x: rnp.sin(x) * 2.0), x)
    for _ in range(3):  # what is prepared for each block of memory
        rune.block_until_ready(f(x))

    # Of two, because every sixteenth call also counts those before it.
    assert min(lines_of_rune(lambda: f(x)) for _ in range(2)) <= MOST_LINES[name.split(":")[0]]
    assert lines_of_rune(lambda: x * 2.0) > 10  # an eager call is Python


@devices
def test_a_native_call_is_refused_in_a_forked_process(name: str):
    x = put(name, np.linspace(0, 1, 37))
    f = warm(rune.jit(several), x)

    with as_a_child(), pytest.raises(DeviceError, match="cannot be used in a forked process"):
        f(x)
    same(np.asarray(rune.jit(several)(x)), np.asarray(f(x)))


@devices
def test_a_native_call_answers_as_a_general_one(name: str, monkeypatch: pytest.MonkeyPatch):
    x = put(name, np.linspace(0, 1, 37))
    monkeypatch.setattr(jit, "NATIVE_CALLS", 0)
    general = warm(rune.jit(several), x)(x)
    monkeypatch.undo()
    native = warm(rune.jit(several), x)(x)
    assert (native.type, native.place) == (general.type, general.place)
    same(np.asarray(general), np.asarray(native))


@devices
@pytest.mark.parametrize("is_committed", [False, True])
def test_results_are_committed_as_arguments_are(name: str, is_committed: bool):
    f = rune.jit(lambda x: x + 1.0)
    with rune.configure(device=name):
        x = put(name, [1.0]) if is_committed else rnp.ones(1)
        result = warm(f, x)(x)
    assert (result.device.name, result.committed) == (name, is_committed)


@devices
def test_a_captured_array_of_the_host_is_read_from_its_copy(name: str, monkeypatch: pytest.MonkeyPatch):
    host, x = rnp.arange(3.0), put(name, [1.0, 1.0, 1.0])
    f = warm(rune.jit(lambda x: x + host), x)
    calls = general_calls(monkeypatch)
    close(np.array([1, 2, 3], np.float32), np.asarray(f(x)), ulps=0, why="whole numbers")
    assert not calls


@devices
def test_a_free_array_of_the_host_that_is_new_is_copied(name: str):
    f, x = rune.jit(lambda x, y: x + y), put(name, [1.0, 1.0])
    for k in range(6):
        result = f(x, rnp.full(2, float(k)))
        close(np.array([k + 1, k + 1], np.float32), np.asarray(result), ulps=0, why="whole numbers")


@devices
def test_a_call_with_committed_arrays_of_the_host_is_refused_as_before(name: str):
    f, x = rune.jit(lambda x, y: x + y), put(name, [1.0])
    warm(f, x, rnp.ones(1))
    with pytest.raises(DeviceError, match="different devices"):
        f(x, rune.device_put(rnp.ones(1), "cpu"))


@devices
def test_donated_arguments_go_the_general_way(name: str):
    f = rune.jit(lambda x: x + 1.0, donate_argnums=0)
    for _ in range(4):
        x = put(name, [1.0])
        close(np.array([2], np.float32), np.asarray(f(x)), ulps=0, why="whole numbers")
        assert x.is_deleted()
    assert not f._native_calls


@devices
def test_a_function_runs_where_its_arguments_are(name: str):
    f, host, x_on_device = rune.jit(lambda x: x * 2.0), rnp.ones(3), put(name, [1.0, 1.0, 1.0])
    for _ in range(5):
        assert f(host).device.name == "cpu:0"
        assert f(x_on_device).device.name == name


@devices
def test_a_deleted_argument_is_an_error(name: str):
    x = put(name, [1.0])
    f = warm(rune.jit(lambda x: x + 1.0), x)
    x.delete()
    with pytest.raises(DeletedArrayError):
        f(x)


# --- what is recorded -------------------------------------------------------------------------


@devices
def test_referenced_results_are_not_overwritten(name: str):
    inputs = [np.full(33, 0.01 * k, np.float32) for k in range(50)]
    x = put(name, inputs[0])
    f = warm(rune.jit(several), x)
    results = [f(put(name, x)) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        near(several_in_numpy(x), np.asarray(result), relative=1e-4, why="sums in another order")


@devices
def test_a_result_may_be_the_next_argument(name: str):
    x = put(name, np.ones(9))
    f = warm(rune.jit(lambda x: x + 1.0), x)
    for _ in range(600):  # more calls than may be under way at once
        x = f(x)
    same(np.full(9, 601, np.float32), np.asarray(x))


@devices
def test_one_buffer_may_be_two_arguments_and_then_one(name: str):
    a, b = put(name, [1.0, 2.0]), put(name, [10.0, 20.0])
    f = warm(rune.jit(lambda x, y: 2.0 * x + y), a, b)
    for x, y, reference in ((a, b, [12, 24]), (a, a, [3, 6]), (b, a, [21, 42]), (b, b, [30, 60])):
        same(np.array(reference, np.float32), np.asarray(f(x, y)))


@devices
def test_a_result_that_is_an_argument_has_its_own_memory(name: str):
    x = put(name, [1.0, 2.0])
    f = warm(rune.jit(lambda x: (x, x + 1.0)), x)
    first, second = f(x)
    x.delete()
    same(np.array([1, 2], np.float32), np.asarray(first))
    same(np.array([2, 3], np.float32), np.asarray(second))


@devices
def test_sizes_in_turns_are_each_their_own(name: str):
    f = rune.jit(several, dims={"n": (1, 300)})
    for _ in range(4):
        for n in SIZES:
            x = np.linspace(0, 0.1, n, dtype=np.float32)
            near(several_in_numpy(x), np.asarray(f(put(name, x))), relative=1e-4, why="sums in another order")


@devices
def test_a_loop_that_the_host_decides_is_right_again_and_again(name: str):
    f = rune.jit(lambda x: rune.lax.while_loop(lambda s: rnp.sum(s) < 100.0, lambda s: s * 2.0, x))
    for start in (1.0, 3.0, 200.0, 0.25):
        for _ in range(4):
            reference = np.full(5, start, np.float32)
            while reference.sum() < 100:
                reference = reference * 2
            same(reference, np.asarray(f(put(name, np.full(5, start)))))


@devices
def test_an_empty_result_and_an_empty_grid_are_called_again(name: str):
    x = put(name, np.ones((0, 3)))
    f = warm(rune.jit(lambda x: (x + 1.0, rnp.sum(x, axis=0))), x)
    for _ in range(3):
        empty, zeros = f(x)
        assert empty.shape == (0, 3)
        same(np.zeros(3, np.float32), np.asarray(zeros))


# --- around a call ----------------------------------------------------------------------------


@devices
def test_threads_call_one_function_each_with_its_own_values(name: str):
    f = warm(rune.jit(several), put(name, np.ones(33)))

    def work(number: int) -> list[tuple[np.ndarray, np.ndarray]]:
        x = np.full(33, 0.01 * number, np.float32)
        x_on_device = put(name, x)
        return [(several_in_numpy(x), np.asarray(f(x_on_device))) for _ in range(30)]

    with ThreadPoolExecutor(4) as threads:
        for pairs in threads.map(work, range(4)):
            for reference, result in pairs:
                near(reference, result, relative=1e-4, why="sums in another order")


@devices
def test_threads_call_functions_of_many_sizes_at_once(name: str):
    f = rune.jit(several, dims={"n": (1, 300)})

    def work(n: int) -> None:
        x = np.linspace(0, 0.1, n, dtype=np.float32)
        x_on_device = put(name, x)
        for _ in range(20):
            near(several_in_numpy(x), np.asarray(f(x_on_device)), relative=1e-4, why="sums in another order")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, SIZES))


@devices
def test_memory_is_freed_and_calls_end(name: str):
    backend: Any = rune.backends.device_named(name).backend
    x = put(name, np.ones(64))

    def live_after(calls: int) -> int:
        for _ in range(calls):
            f(x)
        backend.synchronize()
        gc.collect()
        return backend.memory_stats().live_bytes

    before = live_after(0)
    f = warm(rune.jit(several), x)
    one_call = live_after(1) - before
    work = backend.work_stats()
    levels = [live_after(50) for _ in range(20)]
    after = backend.work_stats()
    # As many calls are recorded as were ever under way at once: 50 here, not 1,000.
    assert max(levels) - before <= 50 * one_call < 1_000 * x.nbytes
    assert (after.submitted - work.submitted, after.in_flight) == (1_000, 0)


@devices
def test_short_memory_is_the_same_error_as_in_a_general_call(name: str, monkeypatch: pytest.MonkeyPatch):
    x = put(name, np.ones(1 << 18))
    f = warm(rune.jit(lambda x: rnp.tile(x, 4) + 1.0), x)
    with monkeypatch.context() as patch:
        shortage.leave(1 << 20, name, patch)
        with pytest.raises(OutOfMemory, match="largest live buffers"):
            _ = [f(x) for _ in range(3)]
    same(np.full(1 << 20, 2, np.float32), np.asarray(f(x)))


# An interrupt may also come in a library's own finaliser, whose error cannot be caught.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@devices
def test_an_interrupted_row_of_calls_leaves_the_device_whole(name: str):
    x = put(name, np.full(33, 0.01))
    f = warm(rune.jit(several), x)
    reference = np.asarray(f(x))

    interrupts = sum(is_interrupted(lambda: f(x), 1e-5 * (1 + k)) for k in range(60))

    assert interrupts
    same(reference, np.asarray(f(x)))


def test_a_submission_that_an_interrupt_hid_is_known_again_before_the_next():
    x = put("vulkan:0", np.full(33, 0.01))
    f = warm(rune.jit(several), x)
    reference, session = np.asarray(f(x)), rune.backends.device_named("vulkan:0").backend.session()  # type: ignore[attr-defined]
    _ = f(x)
    submission_count = session.device.submissions

    # As if the interrupt had come between the driver's answer and its being noted.
    session.device.submissions, session.device._is_unsure = submission_count - 1, True

    same(reference, np.asarray(f(x)))
    assert session.device.submissions > submission_count


def is_interrupted(call: Callable[[], object], seconds: float) -> bool:
    """Whether an alarm has come while the call was made again and again."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for _ in range(100_000):
            call()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@devices
def test_a_callback_that_calls_the_device_is_refused_and_others_wait(name: str):
    x = put(name, [1.0])
    inner = warm(rune.jit(lambda x: x + 1.0), x)

    def call(values: np.ndarray) -> np.ndarray:
        inner(x)
        return values

    outer = rune.jit(lambda x: rune.pure_callback(call, x, x))
    # Vulkan holds no lock while it calls back.
    with nullcontext() if name.startswith("vulkan") else pytest.raises(DeviceError, match="from a callback"):
        np.asarray(outer(x))
    same(np.array([2], np.float32), np.asarray(inner(x)))


@devices
def test_other_settings_are_heard(name: str):
    x = put(name, [-1.0])
    f = warm(rune.jit(rnp.log), x)
    assert np.isnan(np.asarray(f(x)))
    with rune.configure(check_nans=True), pytest.raises(NaNError):
        f(x)


@devices
def test_profiled_calls_are_timed_even_if_others_are_native(name: str):
    x = put(name, np.ones(8))
    f = warm(rune.jit(lambda x: rnp.cumsum(x)), x)
    with rune.debug.profile() as profile:
        for _ in range(4):
            f(x)
    assert "4" in str(profile)
    assert not any(type(call).__name__ == "Profiled" for call in f._native_calls)


# --- steps that depend on each other, and steps that do not -------------------------------------


def tangled(seed: int) -> Callable[[Any, Any], Any]:
    """A function of many kernels, each of two values from before, for rune and NumPy."""
    draw = random.Random(seed)
    pairs = [(draw.randrange(k + 1), draw.randrange(k + 1)) for k in range(12)]

    def f(x: Any, numpy: Any) -> Any:
        values = [x]
        for a, b in pairs:
            product = numpy.sum(values[a][:, None] * values[b][None, :], axis=1)
            values.append(numpy.cos(np.float32(0.01) * product))
        return tuple(values[-5:])

    return f


@devices
@pytest.mark.parametrize("seed", range(6 if IS_WHOLE else 3))
def test_tangled_steps_give_the_same_again_and_again(name: str, seed: int):
    f, x = tangled(seed), np.linspace(0, 1, 37, dtype=np.float32)
    program, x_on_device = rune.jit(lambda x: f(x, rnp)), put(name, x)
    for _ in range(4):
        for reference, result in zip(f(x, np), program(x_on_device), strict=True):
            near(reference, np.asarray(result), relative=1e-4, why="sums in another order")


@devices
@pytest.mark.parametrize("seed", range(3))
def test_interleaved_steps_may_overwrite_donated_arguments(name: str, seed: int):
    f, x = tangled(seed), np.linspace(0, 1, 37, dtype=np.float32)
    program = rune.jit(lambda x, y: (*f(x, rnp), x + y, x * y), donate_argnums=(0, 1))
    for k in range(4):
        y = np.full(37, k, np.float32)
        results = program(put(name, x), put(name, y))
        for reference, result in zip((*f(x, np), x + y, x * y), results, strict=True):
            near(reference, np.asarray(result), relative=1e-4, why="sums in another order")
