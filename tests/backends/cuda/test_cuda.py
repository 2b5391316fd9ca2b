"""The CUDA executor without CUDA: calls, memory, and what goes wrong.

The executor talks to a fake driver (fake.py), which interprets kernels over host memory, does no
work before it is synchronised, and detects calls without a current context. So these tests check
the order of calls, not the device; that kernels compile is tested in tests/lowering/test_cuda_c.py,
and the claims about all executors in test_devices.py.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import cuda
from rune.backends.cuda import by_bindings, devices
from rune.backends.cuda.kernels import CONDITIONS, STEPS
from rune.backends.cuda.staging import SIZES
from rune.backends.shared.timing import StepMeter
from rune.errors import DeviceError
from rune.lowering.kernel.text import parse
from rune.lowering.stages import stages
from tests.backends.cuda import fake as cuda_fake
from tests.backends.cuda.fake import Code, FakeCuda, opened, plan_for
from tests.backends.plans import plan_of, run
from tests.lowering.kernel.examples import TEXTS
from tests.support.child import as_a_child
from tests.support.close import near, same
from tests.support.lowering import f32, program_of
from tests.support.sampling import IS_WHOLE

GRAPHS, NO_CONDITIONALS = 13000, 12000  # versions of the driver


# --- plans that run ---------------------------------------------------------------------------


def calls_python(x: Any) -> Any:
    return rune.pure_callback(np.cbrt, x, x + 1) * 2


def counted(count: int) -> Callable[..., Any]:
    return lambda x: rune.fori_loop(0, count, lambda i, x: rnp.sin(x) + i * rnp.flip(x), x)


def doubled_until(limit: int) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        body = lambda c: (c[0] + 1, c[1] + rnp.flip(c[1]))  # noqa: E731
        return rune.while_loop(lambda c: c[0] < limit, body, (0, x))[1]

    return function


def nested(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        inner = rune.fori_loop(0, 65, lambda j, y: y * 0.5 + j, x)
        return rune.cond(i % 2 == 0, lambda y: rnp.flip(y) + i, lambda y: y * 2, inner)

    return rune.fori_loop(0, 33, step, x)


def decided_in_turns(count: int) -> Callable[..., Any]:
    """A short loop over a long one, a branch, and a while loop whose condition has a branch."""

    def goes_on(c: Any) -> Any:
        return rune.cond(c[0] % 2 == 0, lambda: c[0] < 5, lambda: rnp.max(rnp.abs(c[1])) < 1e3)

    def step(i: Any, x: Any) -> Any:
        x = rune.fori_loop(0, 140, lambda j, y: y * 0.9 + rnp.flip(y) * 0.05 + j, x)
        x = rune.cond(i % 2 == 0, lambda y: rnp.flip(y) + i, lambda y: rnp.cumsum(y, 0), x)
        return rune.while_loop(goes_on, lambda c: (c[0] + 1, rnp.cumsum(c[1], 1)), (i, x))[1]

    return lambda x: rune.fori_loop(0, count, step, x)


def accumulated(x: Any) -> Any:
    total, rows = rune.scan(lambda c, row: (c + row, c * row), x[0], x)
    return rnp.concatenate([rows, total[None]])


FUNCTIONS = {
    **{f"counted {n}": counted(n) for n in (0, 1, 2, 3, 150, 151)},
    **{f"while {n}": doubled_until(n) for n in (0, 1, 2, 5, 6)},
    **{f"switch {k}": lambda x, k=k: chosen(k, x) for k in (-3, 0, 1, 2, 9)},
    **{f"decided in {n} turns": decided_in_turns(n) for n in (1, 2, 3, 4)},
    "nested": nested,
    "scan": accumulated,
    "python": calls_python,
}


def chosen(k: int, x: Any) -> Any:
    number = rnp.sum(x > 1e9).astype(rnp.int32) + k
    return rune.switch(number, [rnp.sin, rnp.cos, rnp.flip], x)


# Where the host decides, each kind of loop and branch does, with every third of their numbers.
DECIDED = [(n, GRAPHS) for n in FUNCTIONS] + [
    (n, NO_CONDITIONALS) for n in (FUNCTIONS if IS_WHOLE else [*FUNCTIONS][::3] + [*FUNCTIONS][-3:])
]


@pytest.mark.parametrize(("name", "version"), [*dict.fromkeys(DECIDED)])
def test_control_flow_on_the_device_and_by_the_host_computes_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, version: int
):
    device, function = opened(monkeypatch, FakeCuda(version)), FUNCTIONS[name]
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    (result,) = run(device, plan_for(function, f32(4, 3)), x)

    near(np.asarray(function(rnp.asarray(x))), result, relative=1e-4, why="f32, many steps")


LOOP = f32(4, 3), np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def looped(device: Any) -> None:
    """A loop computes what it should."""
    (result,) = run(device, plan_for(counted(150), LOOP[0]), LOOP[1])
    near(np.asarray(counted(150)(rnp.asarray(LOOP[1]))), result, relative=1e-4, why="f32, many steps")


def test_conditions_are_loaded_as_ptx_in_which_the_driver_finds_its_function(device: Any, fake: FakeCuda):
    looped(device)

    assert [name for name in fake.images if "conditions" in name] == ["conditions of graphs for compute_90"]
    assert device.lacks() == ()


def test_conditions_are_machine_code_where_the_driver_is_older_than_the_ptx(device: Any, fake: FakeCuda):
    fake.foreign = ("for compute_90",)

    looped(device)

    assert "conditions of graphs for sm_90" in fake.images
    assert device.lacks() == ()


def test_the_host_walks_loops_if_conditional_nodes_cannot_be_loaded(device: Any, fake: FakeCuda):
    fake.foreign = ("conditions of graphs for compute_90", "conditions of graphs for sm_90")

    looped(device)

    (sentence,) = device.lacks()
    assert sentence.startswith("no loops in graphs, the host walks them (compute_90: cuda:0: cannot go on")
    assert "cuModuleLoadData: CUDA_ERROR_NOT_FOUND" in sentence


def test_plans_that_decide_nothing_load_no_conditions(device: Any, fake: FakeCuda):
    fake.foreign = ("conditions of graphs for compute_90", "conditions of graphs for sm_90")

    executable = device.record(plan_for(rnp.sin, f32(4)))
    for _ in range(2):
        executable([device.copy_in(np.ones(4, np.float32))])

    assert "cuGraphLaunch" in fake.log
    assert not any("conditions" in name for name in fake.images)


def test_a_call_is_one_copy_and_one_launch_however_many_kernels(device: Any, fake: FakeCuda):
    def function(x: Any) -> Any:
        for _ in range(20):
            x = rnp.cumsum(x) * 0.5
        return x

    executable = device.record(plan_for(function, f32(8)))
    arguments = [device.copy_in(np.full(8, k, np.float32)) for k in range(3)]
    for _ in range(2):
        executable([arguments[0]])
    del fake.log[:]

    results = [executable([x]) for x in arguments[1:]]

    assert fake.log == ["htod", "cuGraphLaunch"] * 2
    for k, (y,) in enumerate(results, 1):
        expected = np.asarray(function(rnp.full(8, float(k))))
        near(expected, device.copy_out(y, y.type), relative=1e-5, why="f32, many steps")


def test_one_graph_covers_each_choice_of_sizes(device: Any, fake: FakeCuda):
    n = rune.dims.symbol("n", 0, 100)
    plan = plan_for(lambda x: rnp.cumsum(x) + 1, f32(n))
    executable = device.record(plan)

    for size in (3, 0, 70, 3, 3, 0, 70, 70):
        x = np.arange(size, dtype=np.float32)
        (y,) = executable([device.copy_in(x)])
        same(np.cumsum(x, dtype=np.float32) + 1, device.copy_out(y, y.type))
    assert fake.log.count("cuGraphInstantiate") == 3


def test_a_size_that_occurs_once_makes_no_graph(device: Any, fake: FakeCuda):
    n = rune.dims.symbol("n", 0, 100)
    executable = device.record(plan_for(lambda x: rnp.cumsum(rnp.cumsum(x)) + 1, f32(n)))

    for size in (3, 4, 5):
        executable([device.copy_in(np.ones(size, np.float32))])
    assert "cuGraphCreate" not in fake.log
    assert fake.log.count("cuLaunchKernel") == 9


def test_a_plan_that_decides_is_a_graph_at_once(device: Any, fake: FakeCuda):
    looped(device)

    assert fake.log.count("cuGraphLaunch") == 1
    assert "cuLaunchKernel" not in fake.log


def test_a_callback_may_not_run_on_the_device_that_waits_for_it(device: Any):
    inner = device.record(plan_for(rnp.sin, f32(4)))
    x = device.copy_in(np.ones(4, np.float32))

    def ask(value: Any) -> Any:
        inner([x])
        return value

    with pytest.raises(DeviceError, match="cannot run on cuda:0 from a callback"):
        run(device, plan_for(lambda x: rune.pure_callback(ask, x, x), f32(4)), np.ones(4, "f4"))


def test_a_kernel_gets_the_shared_memory_it_requests_in_launches_and_graphs(device: Any, fake: FakeCuda):
    text = TEXTS["workgroup"].replace("tile: f32[8]", "tile: f32[20000]")
    executable = device.record(plan_of(parse(text)))
    x = np.arange(32, dtype=np.float32)

    for _ in range(2):
        (y,) = executable([device.copy_in(x)])
        same(x.reshape(4, 8)[:, ::-1].ravel(), device.copy_out(y, y.type))
    assert fake.log.count("cuFuncSetAttribute") == 1
    assert {"cuLaunchKernel", "cuGraphLaunch"} <= set(fake.log)


# --- forks, and what goes wrong ---------------------------------------------------------------


def test_a_lost_context_is_reported_at_once_and_by_every_later_call(device: Any, fake: FakeCuda):
    executable = device.record(plan_for(rnp.sin, f32(4)))
    x = device.copy_in(np.ones(4, np.float32))
    fake.fault = Code.CUDA_ERROR_ILLEGAL_ADDRESS

    with pytest.raises(DeviceError, match=r"cuda:0: cannot go on \(.*CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.synchronize()
    for use in (lambda: executable([x]), lambda: device.copy_out(x, x.type), device.synchronize):
        with pytest.raises(DeviceError, match=r"cuda:0: cannot be used \(its context was lost"):
            use()
    assert fake.context.depth() == 0


def test_a_single_refusal_of_the_driver_does_not_lose_the_context(device: Any, fake: FakeCuda):
    def refuse(*arguments: Any) -> Any:
        raise fake.driver.Error("no")

    fake.driver.memcpy_dtoh_async, copy = refuse, fake.driver.memcpy_dtoh_async
    x = device.copy_in(np.ones(4, np.float32))
    with pytest.raises(DeviceError, match=r"cuda:0: cannot go on \(no\)"):
        device.copy_out(x, x.type)
    fake.driver.memcpy_dtoh_async = copy

    same(np.ones(4, np.float32), device.copy_out(x, x.type))


def test_a_forked_process_is_refused(device: Any):
    with as_a_child(), pytest.raises(DeviceError, match="cuda: cannot be used in a forked process"):
        device.synchronize()


def test_without_a_driver_nothing_is_imported_and_the_reason_is_given():
    program = (
        "import sys; from rune.backends.cuda import devices; devices._library = lambda: 'libabsent.so.1';"
        "from rune.backends import cuda; print(cuda.probe()); print([m for m in sys.modules if m.split('.')[0] in "
        "('pycuda', 'cuda')])"
    )
    command = [sys.executable, "-W", "error", "-c", program]

    process = subprocess.run(command, check=True, timeout=600, capture_output=True, text=True)

    first, modules = process.stdout.splitlines()
    assert "no NVIDIA driver (libabsent.so.1 cannot be loaded)" in first
    assert "pip install 'rune-ml[cuda]'" in first
    assert modules == "[]"
    assert process.stderr == ""


def test_a_driver_without_its_python_packages_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "_library", lambda: None)
    assert "there is no CUDA for" in str(cuda.probe()[1])

    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "version", lambda: 1 / 0)
    assert cuda.probe() == ([], "the NVIDIA driver fails (ZeroDivisionError: division by zero)")


def test_devices_are_listed_as_targets(monkeypatch: pytest.MonkeyPatch, fake: FakeCuda):
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "version", lambda: (13, 5))
    monkeypatch.setattr(cuda, "load", lambda: fake.driver)
    monkeypatch.setattr(by_bindings, "bindings", lambda: fake.bindings)

    (target,), reason = cuda.probe()

    assert reason is None
    assert target.description == "Fake, compute capability 9.0"
    assert (target.cores, target.threads_per_workgroup, target.shared_bytes) == (4, 1024, 232448)


def test_a_driver_older_than_the_compiler_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    old = FakeCuda(NO_CONDITIONALS)
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "version", lambda: (13, 5))
    monkeypatch.setattr(cuda, "load", lambda: old.driver)

    targets, reason = cuda.probe()

    assert targets == []
    assert "the driver is of CUDA 12 and loads no code of NVRTC 13" in str(reason)
    assert "nvidia-cuda-nvrtc-cu12 'cuda-bindings<13'" in str(reason)


def test_the_kernels_of_the_executor_are_those_that_graphs_name():
    steps = {"rune_copy", "rune_store", "rune_advance", "rune_swap"}
    conditions = {"rune_goes_on", "rune_is_odd", "rune_chosen"}

    assert all(f"void {name}(" in STEPS for name in steps)
    assert all(f"void {name}(" in CONDITIONS for name in conditions)


# --- profiles and counts ----------------------------------------------------------------------


def test_a_profiled_plan_is_walked_by_the_host_with_events_around_each_launch(device: Any, fake: FakeCuda):
    program = program_of(lambda x: rnp.cumsum(rnp.cumsum(x) * 0.5), f32(64))
    lowering = stages(program, cuda_fake.TARGET)
    device.record(lowering.plan)  # which lets the driver know its kernels
    with rune.configure(cache_dir=""):
        executable = device.record_timed(lowering.plan, StepMeter(lowering, "cuda:0"))

    with rune.debug.profile() as profile:
        (result,) = executable([device.copy_in(np.ones(64, np.float32))])
    sums = np.cumsum(np.cumsum(np.ones(64)) * 0.5).astype(np.float32)
    near(sums, device.copy_out(result, f32(64)), relative=1e-6, why="sums of halves")
    assert "cuGraphLaunch" not in fake.log
    steps = profile.plans[0].steps
    assert sum(s.calls for s in steps) == 2
    assert [s.seconds for s in steps] == [1e-3 * s.calls for s in steps]  # a command each


def test_a_call_is_in_flight_until_its_event_is_done(device: Any, fake: FakeCuda):
    executable = device.record(plan_for(lambda x: x + 1.0, f32(8)))
    argument = device.copy_in(np.ones(8, np.float32))
    executable([argument])
    assert (device.work_stats().submitted, device.work_stats().in_flight) == (1, 1)

    device.synchronize()
    assert device.work_stats().in_flight == 0


def test_events_go_where_the_context_is_current_in_any_thread(device: Any, fake: FakeCuda):
    executable = device.record(plan_for(lambda x: x + 1.0, f32(8)))

    def work() -> None:
        (result,) = executable([device.copy_in(np.ones(8, np.float32))])
        device.copy_out(result, f32(8))
        device.work_stats()
        device.memory_stats()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert device.work_stats().in_flight == 0
    assert fake.leak_count == 0


def test_a_lost_device_has_nothing_in_flight(device: Any, fake: FakeCuda):
    executable = device.record(plan_for(lambda x: x + 1.0, f32(8)))
    argument = device.copy_in(np.ones(8, np.float32))
    executable([argument])
    fake.fault = Code.CUDA_ERROR_ILLEGAL_ADDRESS

    with pytest.raises(DeviceError):
        executable([argument])
    assert device.work_stats().in_flight == 0


def test_pinned_memory_has_its_own_pool(device: Any, fake: FakeCuda):
    device.copy_in(np.ones(100, np.float32))
    pending = device.memory_stats().pools["pinned"]
    assert (pending.live_bytes, pending.cached_bytes) == (SIZES[0], 0)

    device.synchronize()
    idle = device.memory_stats().pools["pinned"]
    assert (idle.live_bytes, idle.cached_bytes, idle.allocations) == (0, SIZES[0], 1)
