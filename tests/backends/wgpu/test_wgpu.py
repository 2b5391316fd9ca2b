"""WebGPU where it differs from other executors, and neither conformance tests nor laws reach.

Numbers first: floats that no compiler may rearrange, narrow elements of neighbouring threads. Then
plans: one submission per call, steps with too many buffers, arguments passed twice, grids larger
than a dispatch, 32-bit indices. Finally refusals and a lost device. Common behaviour of executors:
test_devices.py.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dims, dtypes
from rune.backends import wgpu
from rune.backends.wgpu import read, run, script
from rune.errors import CompileError, DeviceError, DtypeError
from rune.lowering.codegen.wgsl.render import render
from rune.lowering.kernel.text import parse
from rune.lowering.plan import SizeSource
from rune.lowering.stages import lower
from rune.transforms.compile import executables
from tests.backends.plans import plan_of
from tests.support.close import close, same

TARGETS, WHY = wgpu.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no WebGPU adapter: {WHY}")
DTYPES = sorted(TARGETS[0].program_dtypes, key=dtypes.short) if TARGETS else []
rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def device() -> wgpu.WgpuBackend:
    return wgpu.open_device(TARGETS[0])


def floats(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def compiled(device: wgpu.WgpuBackend, function: Any, *arrays: np.ndarray) -> Any:
    """A function on these arrays as an executable, and its arguments there."""
    program = rune.make_program(function)(*map(rnp.asarray, arrays))
    executable = device.record(lower(program, device.target))
    return executable, [device.copy_in(a) for a in arrays]


def results(device: wgpu.WgpuBackend, function: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of a function on the device."""
    executable, arguments = compiled(device, function, *arrays)
    return [device.copy_out(r, r.type) for r in executable(arguments)]


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda a, b, c: (a * c) + (b * c), (1e20, -1e20, 1e10)),
        (lambda a, b, c: (a + b) - b, (1.0, 1e8, 0.0)),
        (lambda a, b, c: (a * b) * c, (1e30, 1e30, 1e-30)),
        (lambda a, b, c: a * b - c, (1 + 2**-12, 1 - 2**-12, 1.0)),
        (lambda a, b, c: a - a, (np.inf, 0.0, 0.0)),
        (lambda a, b, c: a * 0.0, (np.nan, 0.0, 0.0)),
        (lambda a, b, c: a + 0.0, (-0.0, 0.0, 0.0)),
        (lambda a, b, c: 0.0 - a, (0.0, 0.0, 0.0)),
    ],
    ids=["distributed", "cancelled", "reordered", "contracted", "inf", "nan", "-0", "negated"],
)
def test_no_compiler_rearranges_what_the_user_wrote(device, function, arguments):
    arrays = [np.array([a], np.float32) for a in arguments]

    with np.errstate(all="ignore"):
        expected = function(*arrays).astype(np.float32)
    same(expected, results(device, function, *arrays)[0])


def test_a_sum_is_rounded_before_something_is_taken_from_it(device):
    x = np.array([[1e8, 1.0]], np.float32)

    same([np.zeros(1, np.float32)], results(device, lambda x: rnp.sum(x, axis=1) - x[:, 0], x))


def test_comparisons_and_tests_of_nan_and_infinity_are_right(device):
    x = np.array([np.nan, 1, -np.inf, np.inf, 1e-40, -0.0], np.float32)

    outputs = results(device, lambda x: [x < 1, ~(x < 1), x != x, rnp.isinf(x), x > 0, x == 0], x)

    with np.errstate(all="ignore"):
        same([x < 1, ~(x < 1), x != x, np.isinf(x), x > 0, x == 0], outputs)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.itemsize < 4], ids=dtypes.short)
def test_neighbours_in_one_word_are_written_by_threads_that_do_not_wait(device, dtype):
    x = rng.integers(0, 2, 10_007).astype(np.int8)

    outputs = results(device, lambda x: [x.astype(dtype), x[::-1].astype(dtype)], x)

    same([x.astype(dtype), x[::-1].astype(dtype)], outputs)


# --- plans ------------------------------------------------------------------------------------

DOUBLE = parse("""
code double(x: read f32[n], y: write f32[n]) sizes n in 1..100 {
  for i in n grid { store y[i] = x[i] + x[i] }
}""")


class Submissions:
    """Counts what is handed to the queue."""

    def __init__(self, queue: Any):
        self._queue, self.count = queue, 0

    def submit(self, commands: Any) -> None:
        self.count += 1
        self._queue.submit(commands)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


@pytest.fixture
def submissions(device, monkeypatch) -> Submissions:
    counting = Submissions(device.queue)
    monkeypatch.setattr(device, "queue", counting)
    return counting


def loop(x: Any) -> Any:
    return rune.fori_loop(0, 50, lambda i, v: v * 0.5 + i, x)


def test_a_call_with_a_loop_is_submitted_once(device, submissions):
    executable, arguments = compiled(device, loop, floats(10))

    executable(arguments)

    assert submissions.count == 1


def test_a_condition_is_waited_for_and_a_known_count_is_not(device, submissions):
    executable, arguments = compiled(
        device, lambda x: rune.while_loop(lambda v: v[0] < 100, lambda v: v * 2, x), np.ones(3, np.float32)
    )

    (result,) = executable(arguments)

    conditions = 8  # 1, 2, ..., 128: each is submitted and read, and then the end
    assert submissions.count == 2 * conditions
    assert device.copy_out(result, result.type)[0] == 128


def test_a_long_call_is_submitted_in_parts(device, submissions, monkeypatch):
    x = floats(10)
    expected = results(device, loop, x)
    monkeypatch.setattr(run, "_COMMANDS", 16)
    before = submissions.count

    same(expected, results(device, loop, x))
    assert submissions.count - before > 4


def test_a_launch_of_much_work_is_submitted_in_parts(monkeypatch):
    device = wgpu.open_device(replace(TARGETS[0], submission_work=20_000))  # of 90,000
    executable, arguments = compiled(device, lambda x: x + 1, floats(10_000))
    counting = Submissions(device.queue)
    monkeypatch.setattr(device, "queue", counting)

    executable(arguments)

    assert counting.count >= 5


def test_a_script_is_submitted_where_it_was_cut_when_it_was_encoded(monkeypatch):
    device = wgpu.open_device(replace(TARGETS[0], submission_work=20_000))
    executable, arguments = compiled(device, lambda x: x + 1, floats(10_000))
    for _ in range(3):  # results come back to the same memory
        executable(arguments)
    (commands,) = {tuple(map(type, s.commands)) for s in executable._scripts.values()}

    assert commands == (script.Launch, *(script.Cut, script.Launch) * (len(commands) // 2))
    assert len(commands) >= 9


def test_a_step_with_too_many_buffers_has_them_packed(device, monkeypatch):
    arrays = [floats(5), floats(1), *(floats(5) for _ in range(4))]

    def function(*xs: Any) -> Any:
        return xs[0] + xs[1], xs[2] * xs[3] - xs[4], sum(xs)

    expected = results(device, function, *arrays)
    monkeypatch.setattr(device, "most_memories", 3)

    same(expected, results(device, function, *arrays))


def test_a_kernel_with_more_buffers_than_the_adapter_binds_is_compiled_packed(device):
    count = device.most_memories + 5
    if count > 200:
        pytest.skip("this adapter binds as many buffers as anybody has")
    arrays = [np.full(3, number, np.float32) for number in range(count)]

    (result,) = results(device, lambda *xs: sum(xs[1:], xs[0]), *arrays)

    same(np.full(3, sum(range(count)), np.float32), result)


def test_an_argument_given_twice_is_bound_once(device):
    executable, (x,) = compiled(device, lambda x: x + 1, floats(4))
    del executable
    executable, _ = compiled(device, lambda x, y: x * 2 + y, floats(4), floats(4))

    (result,) = executable([x, x])

    host = device.copy_out(x, x.type)
    same(host * 2 + host, device.copy_out(result, result.type))


def test_a_grid_wider_than_a_dispatch_is_folded(device, monkeypatch):
    x = floats(1000)
    monkeypatch.setattr(device, "most_groups", 3)

    same([x + 1], results(device, lambda x: x + 1, x))


def test_more_steps_than_an_index_can_count_are_refused(device):
    size = dims.symbol("n", 1)
    code = parse("""
    code f(x: read f32[n], y: write f32[1]) sizes n in 1.. {
      for i in n*n serial { store y[0] = x[0] }
    }""")
    plan = plan_of(code, {"x": (size,)}, [SizeSource("n", 0, 0, 1, None)])
    executable = device.record(plan)

    with pytest.raises(DeviceError, match=r"4225000000 elements .* run_f; indices are 32-bit"):
        executable([device.copy_in(np.zeros(65_000, np.float32))])


# --- refusals ---------------------------------------------------------------------------------


def test_a_dtype_that_webgpu_lacks_is_refused_before_anything_is_lowered():
    with pytest.raises(DtypeError, match=r"cannot use f64\[3\] on wgpu:0") as error:
        rune.jit(lambda: rnp.zeros(3, "f64") * 2, device="wgpu:0")()

    assert "convert to f32" in str(error.value)


def test_a_refused_module_shows_its_numbered_source(device):
    source = render(DOUBLE)
    wrong = replace(source, text=source.text.replace("let i = point", "let i = undeclared"))

    with pytest.raises(CompileError) as error:
        device.pipeline(wrong)

    assert "wgpu: cannot compile run_double for wgpu:0 (line " in str(error.value)
    assert "no definition in scope for identifier: `undeclared`" in str(error.value)
    assert "  let i = undeclared;" in str(error.value)


def test_a_lost_device_is_an_error_and_another_one_still_works(device):
    backend = wgpu.open_device(TARGETS[0])
    executable, arguments = compiled(backend, lambda x: x + 1, floats(3))
    backend.device.destroy()

    for use in (
        lambda: executable(arguments),
        lambda: backend.copy_in(floats(5000)),
        lambda: backend.copy_out(arguments[0], arguments[0].type),
    ):
        with pytest.raises(DeviceError, match=r"wgpu:0 \(the device is lost"):
            use()
    close(np.ones(3, np.float32), results(device, lambda x: x + 1, np.zeros(3, np.float32))[0], ulps=0, why="exact")


def test_limits_are_those_that_the_adapter_offers(device):
    name = "max-storage-buffers-per-shader-stage"

    assert device.device.limits[name] == device.most_memories > 8


def test_the_description_names_the_adapter_and_the_api_below(device):
    info = device.device.adapter.info

    assert device.target.description == f"{info['device']} ({info['backend_type']})"


# --- reading back -----------------------------------------------------------------------------


def test_reads_of_a_tree_are_all_begun_before_one_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    events: list[str] = []
    begin, end = read.Reads.begin, read.Reads.end
    monkeypatch.setattr(read.Reads, "begin", lambda *args: (events.append("begin"), begin(*args))[1])
    monkeypatch.setattr(read.Reads, "end", lambda *a: (events.append("end"), end(*a))[1])
    tree = {k: rune.device_put(np.full(100, k, np.float32), "wgpu") for k in range(4)}

    copies = rune.device_get(tree)
    assert events == ["begin"] * 4 + ["end"] * 4
    for k, array in copies.items():
        same(np.full(100, k, np.float32), array)


def test_reads_that_are_ended_in_another_order_have_their_own_bytes():
    arrays = [rune.device_put(np.full(10, k, np.int32), "wgpu") for k in range(5)]
    finishers = [a.start_numpy() for a in arrays]
    for k in (3, 0, 4, 1, 2):
        same(np.full(10, k, np.int32), finishers[k]())


def test_a_read_sees_the_values_from_before_it_only():
    f = rune.jit(lambda x: x + 1.0, donate_argnums=0, device="wgpu")
    x = f(np.zeros(1000, np.float32))
    finish = x.start_numpy()
    f(x)  # takes the memory over
    same(np.ones(1000, np.float32), finish())


def test_an_unawaited_read_frees_its_memory():
    backend: Any = rune.backends.device_named("wgpu").backend
    x = rune.device_put(np.ones(1000, np.float32), "wgpu")
    np.asarray(x)
    before = rune.memory_stats("wgpu").pools["staging"]

    for _ in range(20):
        x.start_numpy()
    same(np.ones(1000, np.float32), np.asarray(x))
    after = rune.memory_stats("wgpu").pools["staging"]
    assert not backend.reads.under_way
    assert after.live_bytes == before.live_bytes == 0
    assert after.raw_allocations - before.raw_allocations <= 2


def test_an_interrupted_read_frees_its_memory(monkeypatch: pytest.MonkeyPatch):
    backend: Any = rune.backends.device_named("wgpu").backend
    x = rune.device_put(np.ones(1000, np.float32), "wgpu")
    np.asarray(x)
    before = rune.memory_stats("wgpu").pools["staging"]

    def stop(_: object) -> None:
        monkeypatch.undo()  # the next one waits
        raise KeyboardInterrupt

    monkeypatch.setattr(read, "wait_for", stop)
    with pytest.raises(KeyboardInterrupt):
        np.asarray(x)

    same(np.ones(1000, np.float32), np.asarray(x))
    after = rune.memory_stats("wgpu").pools["staging"]
    assert not backend.reads.under_way
    assert after.live_bytes == before.live_bytes == 0


def interrupt_at(line: int) -> Callable[[], bool]:
    """Raise after this many lines of read.py, as a signal handler could; whether it has."""
    lines_ahead, handler = [line], signal.getsignal(signal.SIGINT)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != read.__file__:
            return None
        if event == "line" and signal.getsignal(signal.SIGINT) is handler:
            lines_ahead[0] -= 1
            if lines_ahead[0] == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    return lambda: lines_ahead[0] <= 0


@pytest.mark.usefixtures("interrupts")
def test_a_read_may_be_interrupted_at_any_line():
    backend: Any = rune.backends.device_named("wgpu").backend
    x, before = rune.device_put(np.ones(1000, np.float32), "wgpu"), sys.gettrace()
    np.asarray(x)
    line, is_interrupted = 0, True
    while is_interrupted:
        line += 1
        has_raised = interrupt_at(line)
        try:
            with suppress(KeyboardInterrupt):
                x.start_numpy()()
        finally:
            sys.settrace(before)
        is_interrupted = has_raised()
        same(np.ones(1000, np.float32), np.asarray(x))
        assert not backend.reads.under_way
    assert line > 5


def test_staging_memory_is_reused():
    x = rune.device_put(np.ones(5000, np.float32), "wgpu")
    np.asarray(x)
    before = rune.memory_stats("wgpu").pools["staging"].raw_allocations
    for _ in range(10):
        np.asarray(x)
    assert rune.memory_stats("wgpu").pools["staging"].raw_allocations == before


# --- scripts ----------------------------------------------------------------------------------


def walks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The steps that are walked from here on."""
    steps: list[Any] = []
    launch = run.Walker.launch
    monkeypatch.setattr(run.Walker, "launch", lambda self, step: (steps.append(step), launch(self, step))[1])
    return steps


def test_a_call_on_the_memory_of_an_earlier_one_walks_no_steps(monkeypatch: pytest.MonkeyPatch):
    f = rune.jit(lambda x: rnp.cumsum(rnp.sin(x))[::-1] * 2.0, device="wgpu")
    x = rune.device_put(floats(64), "wgpu")
    reference = np.asarray(f(x))
    np.asarray(f(x))
    steps = walks(monkeypatch)

    for _ in range(5):
        same(reference, np.asarray(f(x)))
    assert not steps


def test_calls_on_other_memory_have_their_own_scripts():
    f = rune.jit(lambda x: rnp.cumsum(x) + 1.0, device="wgpu")
    arrays = [rune.device_put(floats(32), "wgpu") for _ in range(5)]
    for _ in range(3):
        for x in arrays:
            close(np.cumsum(np.asarray(x)) + 1, np.asarray(f(x)), ulps=64, why="32 additions")


def test_few_scripts_are_kept():
    f = rune.jit(lambda x: x + 1.0, device="wgpu")
    x = rune.device_put(floats(8), "wgpu")
    results = [f(x) for _ in range(3 * script.KEPT)]
    for y in results:
        same(np.asarray(x) + np.float32(1), np.asarray(y))
    (trace,) = f._trace_cache.by_key.values()
    device = rune.backends.device_named("wgpu")
    executable: Any = executables.compiled(trace[0].program, device)
    assert len(executable._scripts) == script.KEPT


def test_a_donated_argument_is_written_in_place_by_the_script_too():
    f = rune.jit(lambda x: x * 2.0, donate_argnums=0, device="wgpu")
    x = rune.device_put(np.ones(100, np.float32), "wgpu")
    for _ in range(6):
        x = f(x)
    same(np.full(100, 64, np.float32), np.asarray(x))


def test_a_plan_with_more_buffers_than_are_bound_keeps_no_script():
    @rune.jit(device="wgpu")
    def f(*xs: Any) -> Any:
        return sum(xs[1:], xs[0])

    many = [np.full(4, k, np.float32) for k in range(130)]
    for _ in range(3):
        same(np.full(4, sum(range(130)), np.float32), np.asarray(f(*many)))


def test_a_loop_is_walked(monkeypatch: pytest.MonkeyPatch):
    f = rune.jit(lambda x: rune.fori_loop(0, 3, lambda i, v: v[::-1] + i, x), device="wgpu")
    x = np.arange(4, dtype=np.float32)
    reference = np.asarray(f(x))
    steps = walks(monkeypatch)
    same(reference, np.asarray(f(x)))
    assert len(steps) >= 3
