"""Claims about every device executor: kernels, plans, arguments, memory, threads, absence.

On each executor present; CUDA with a fake driver (cuda/fake.py), Vulkan also with
memory that the host does not see, and all that may be watched also with launches in parts. Integers
and moved bits are equal bit for bit. Each executor has a separate file for its special features.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dims, dtypes
from rune.backends.shared.executor import slots_of
from rune.backends.shared.pool import size_class
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CompileError, DimensionError, OutOfMemory
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Call, Copy, Launch, Plan, SizeSource, Slot, Space
from rune.lowering.stages import lower
from tests import cuda_emulator
from tests.backends.cuda import fake as cuda_fake
from tests.backends.plans import DOUBLE, SOURCES, VECTOR, plan_of, run
from tests.backends.vulkan import cases as vulkan_cases
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_code, random_inputs
from tests.lowering.optimize.bodies import PASSES
from tests.support.close import same
from tests.support.lowering import f32, program_of

NAMES = ("cuda", "opencl", "vulkan", "wgpu")
ALSO = ("cuda, no driver", "cuda, in parts", "vulkan, staged", "opencl, in parts", "vulkan, in parts", "wgpu, in parts")


@contextmanager
def fake_cuda() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        yield cuda_fake.opened(patch, cuda_fake.FakeCuda())


def opened(name: str) -> AbstractContextManager[Any]:
    """The first device of an executor; where it has none, why, and the test is skipped."""
    if name == "cuda, no driver":
        return fake_cuda()
    backend = name.split(",")[0]
    if backend in rune.missing():
        pytest.skip(f"no {backend} device: {rune.missing()[backend]}")
    if name == "vulkan, staged":
        return vulkan_cases.opened("staged")
    if name.endswith(", in parts"):
        module = import_module(f"rune.backends.{backend}")
        return nullcontext(module.open_device(replace(module.probe()[0][0], submission_work=64)))
    return nullcontext(rune.backends.device_named(backend).backend)


@pytest.fixture(scope="module", params=[*NAMES, *ALSO])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as backend:
        yield backend


# --- kernels ----------------------------------------------------------------------------------


@settings(max_examples=2)
@given(st.integers(0, 10**5))
def test_random_kernels_agree_bit_for_bit_before_and_after_passes(device: Any, seed: int):
    codes = [random_code(seed + k, 4) for k in range(6)]
    codes += [replace(c, name=f"{c.name}_after") for c in codes[:3]]
    for p in random.Random(seed).choices(PASSES, k=4):
        codes[6:] = [p.run(c) for c in codes[6:]]
    inputs = [random_inputs(seed) for _ in codes]
    for code, arrays in zip(codes, inputs, strict=True):
        interpret(code, arrays)

    results = run(device, several(codes), *inputs[0][:2])

    same([arrays[2] for arrays in inputs], results)


def several(codes: list[KernelCode]) -> Plan:
    """Kernels of the same parameters side by side, a result for each."""
    first = plan_of(codes[0])
    inputs = slots_of(first.steps[0])[:2]
    steps = tuple(Launch(c.name, (*inputs, Slot(Space.RESULT, first.results[0], k))) for k, c in enumerate(codes))
    kernels = {c.name: c for c in codes}
    return replace(first, results=first.results * len(codes), steps=steps, kernels=kernels)


def test_threads_of_a_workgroup_share_memory(device: Any):
    x = np.arange(32, dtype=np.float32)

    (y,) = run(device, plan_of(parse(TEXTS["workgroup"])), x)

    same(x.reshape(4, 8)[:, ::-1].reshape(-1), y)


def test_nothing_is_launched_over_an_empty_grid(device: Any):
    n = dims.symbol("n", 0, 4096)
    code = parse(TEXTS["elementwise"])
    plan = plan_of(code, {"x": (n,), "y": (n,)}, [SizeSource("n", 0, 0, 0, 4096)])

    (y,) = run(device, plan, np.zeros(0, np.float32))

    assert y.shape == (0,)


def test_a_sum_over_nothing_in_the_arena_is_zero(device: Any):
    n = dims.symbol("n", 0, 9)
    code = parse("""
    code total(x: read f32[n], y: write f32[2]) sizes n in 0..9 {
      for i in 2 grid {
        var s: f32 = 0.0_f32
        for j in n serial { s add= x[j] }
        store y[i] = s
      }
    }""")
    plan = plan_of(code, {"x": (n,)}, [SizeSource("n", 0, 0, 0, 9)])
    middle = Slot(Space.ARENA, plan.arguments[0])
    copy = Copy(middle, Slot(Space.ARGUMENT, middle.type))
    steps = (copy, Launch("total", (middle, Slot(Space.RESULT, plan.results[0]))))

    (y,) = run(device, replace(plan, steps=steps, arena_bytes=4 * n), np.zeros(0, np.float32))

    assert y.tolist() == [0, 0]


# --- plans ------------------------------------------------------------------------------------


def chain() -> Plan:
    """Four times x, through the arena and a copy within it, and a copy of x."""
    x, y = Slot(Space.ARGUMENT, VECTOR), Slot(Space.RESULT, VECTOR)
    first, second = (Slot(Space.ARENA, VECTOR, offset=k) for k in (128, 1024))
    steps = (
        Launch("double", (x, first)),
        Launch("double", (first, second)),
        Copy(first, second),
        Copy(y, first),
        Copy(Slot(Space.RESULT, VECTOR, 1), x),
    )
    results = VECTOR, VECTOR
    return Plan("chain", "", (VECTOR,), results, steps, {"double": DOUBLE}, 2048, SOURCES)


def test_one_compiled_plan_covers_every_size_and_keeps_its_arena_apart(device: Any):
    executable = device.record(chain())

    for size in (1, 7, 100, 3):
        x = np.arange(size, dtype=np.float32)
        results = executable([device.copy_in(x)])
        same([4 * x, x], [device.copy_out(r, r.type) for r in results])


def test_a_size_out_of_range_is_refused(device: Any):
    with pytest.raises(DimensionError, match="chain: cannot run with n = 101"):
        device.record(chain())([device.copy_in(np.zeros(101, np.float32))])


def test_a_wrong_dtype_or_number_of_arguments_is_refused(device: Any):
    executable = device.record(chain())

    with pytest.raises(ArgumentError, match="argument 0 must be f32"):
        executable([device.copy_in(np.zeros(5, np.int32))])
    with pytest.raises(ArgumentError, match="0 given, 1 expected"):
        executable([])


def test_a_donated_argument_lends_its_memory_only_if_the_caller_donates_it(device: Any):
    code = replace(DOUBLE, aliases=(("x", "y"),))
    shapes = {"x": VECTOR.shape, "y": VECTOR.shape}
    executable = device.record(plan_of(code, shapes, SOURCES, donations=[(0, 0)]))
    x = device.copy_in(np.ones(4, np.float32))

    (fresh,) = executable([x])
    assert fresh.memory is not x.memory
    (in_place,) = executable([x], donated=(0,))
    assert in_place.memory is x.memory
    same(np.full(4, 2, np.float32), device.copy_out(in_place, in_place.type))


def test_a_routine_that_the_executor_lacks_is_refused(device: Any):
    slot = Slot(Space.ARGUMENT, ArrayType((4,), dtypes.f32))
    plan = Plan("f", "", (), (), (Call("dot", (slot,), (slot, slot), ()),), {}, 0)
    name, backend = device.target.name, device.target.backend

    with pytest.raises(CompileError, match=f"{backend}: cannot call dot on {name}"):
        device.record(plan)


def test_a_callback_may_copy_to_the_device_that_waits_for_it(device: Any):
    def ask(value: Any) -> Any:
        buffer = device.copy_in(value + 1)
        return device.copy_out(buffer, buffer.type)

    program = program_of(lambda x: rune.pure_callback(ask, x, x) * 2, f32(4))

    (result,) = run(device, lower(program, device.target), np.ones(4, np.float32))

    same(np.full(4, 4, np.float32), result)


# --- memory -----------------------------------------------------------------------------------


def test_every_dtype_makes_the_round_trip_in_any_shape(device: Any):
    for dtype in sorted(device.target.program_dtypes, key=dtypes.short):
        for shape in ((), (0, 3), (2, 3)):
            x = np.ones(shape, dtype)
            buffer = device.copy_in(x)

            same(x, device.copy_out(buffer, buffer.type))


def test_a_host_array_may_change_once_it_is_copied(device: Any):
    x = np.arange(1 << 16, dtype=np.float32)
    before = x.copy()

    buffer = device.copy_in(x)
    x[:] = 0

    same(before, device.copy_out(buffer, buffer.type))


def test_out_of_memory_states_requested_and_used_bytes(device: Any):
    limit = r"(one buffer has at most \d+ B, )?"
    pattern = rf"cannot allocate 4398046511104 B on {device.target.name} \({limit}used"

    with pytest.raises(OutOfMemory, match=pattern):
        device.alloc(ArrayType((1 << 40,), dtypes.f32))


def settle(device: Any) -> None:
    """Free unreferenced memory: a driver does so once the work that uses it has ended."""
    gc.collect()
    device.synchronize()


def test_memory_is_given_back_with_the_last_buffer_and_not_held_by_the_last_call(device: Any):
    executable = device.record(chain())
    x = device.copy_in(np.ones(50, np.float32))
    executable([x])
    settle(device)
    before = device.memory_stats().live_bytes

    executable([x])
    settle(device)
    assert device.memory_stats().live_bytes == before
    del x
    settle(device)
    assert device.memory_stats().live_bytes == before - size_class(200)


def test_a_device_in_host_memory_caches_at_most_256_mib(device: Any):
    if not device.target.is_processor:
        pytest.skip("memory of its own")

    for mebibytes in (*range(8, 16), *range(16, 32, 2), 32, 36, 40):  # each serves no other size
        device.alloc(ArrayType((mebibytes << 20,), dtypes.u8))
        settle(device)

    block = device.alloc(ArrayType((7,), dtypes.u8))
    assert device.memory_stats().cached_bytes <= 1 << 28, "after batches of many lengths"
    del block


# --- threads ----------------------------------------------------------------------------------


def doubled_to_100(x: Any) -> Any:
    return rune.while_loop(lambda v: rnp.sum(v) < 100, lambda v: v * 2, x)


def test_eight_threads_mix_nothing_up(device: Any):
    plans = [chain(), lower(program_of(doubled_to_100, f32(4)), device.target)]
    four_times, while_loop = map(device.record, plans)
    wrong: list[Any] = []

    def result(executable: Any, x: np.ndarray) -> np.ndarray:
        first, *_ = executable([device.copy_in(x)])
        return device.copy_out(first, first.type)

    def work(seed: int) -> None:
        for k in range(10):
            x = np.full(4, 100 * seed + k + 1, np.float32)
            if (result(four_times, x) != 4 * x).any():
                wrong.append((seed, k))
            if (result(while_loop, x / 800) != x / 800 * 2 ** np.ceil(np.log2(2e4 / x))).any():
                wrong.append((seed, k, "while"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- drivers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_driver_is_imported_without_a_warning_and_without_a_display(name: str):
    if name == "cuda" and cuda_emulator.SWITCH in os.environ:
        pytest.skip("another process has no emulated device")
    with opened(name):
        pass
    program = (
        f"from rune.backends import {name} as file; targets, why = file.probe();"
        "device = file.open_device(targets[0]);"
        "device.synchronize()"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}

    command = [sys.executable, "-W", "error", "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)

    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "driver", "error", "reason"),
    [
        ("cuda", "load", ImportError(), "cuda-bindings, NVRTC or pycuda cannot be loaded"),
        ("opencl", "_driver", ImportError(), "pyopencl cannot be imported"),
        ("vulkan", "instance", OSError("Cannot find Vulkan SDK"), "apt install libvulkan1"),
        ("wgpu", "_adapters", ImportError(), "wgpu cannot be imported"),
    ],
)
def test_a_missing_driver_is_a_reason_and_no_error(
    monkeypatch: pytest.MonkeyPatch, name: str, driver: str, error: Exception, reason: str
):
    def absent() -> Any:
        raise error

    file: Any = import_module(f"rune.backends.{name}")
    monkeypatch.setattr(file, driver, absent)
    if name == "cuda":
        monkeypatch.setattr(file, "missing", lambda: None)
        monkeypatch.setattr(file, "version", lambda: (13, 5))

    targets, why = file.probe()

    assert targets == []
    assert reason in str(why)
