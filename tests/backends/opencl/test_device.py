"""An OpenCL device apart from its kernels: parts of a device, binaries on disk, waiting, memory."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import device_named, opencl
from rune.backends.opencl import run
from rune.backends.shared import disk_cache
from rune.errors import DeviceError, OutOfMemory
from rune.lowering.stages import lower
from tests.support import shortage
from tests.support.close import close
from tests.support.eventually import eventually

TARGETS, WHY = opencl.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no OpenCL device: {WHY}")
ROOT = Path(__file__).parents[3]
OPENCL = "opencl:0"


def python(code: str, **environment: str) -> Any:
    """The output of a fresh interpreter, parsed as JSON."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


# --- parts of a device ------------------------------------------------------------------------

PARTS = """
import ctypes
import gc
import json
import numpy as np
import rune
from rune.backends import opencl

targets, why = opencl.probe()
found = []
for t in targets:
    y = rune.jit(lambda x: x * 2.0, device=t.name)(np.arange(3, dtype=np.float32))
    found.append([t.name, t.cores, y.device.name, y.tolist()])
print(json.dumps(found))
"""


@pytest.mark.skipif(bool(TARGETS) and TARGETS[0].cores < 2, reason="a device of one unit")
def test_a_device_in_two_parts_is_three_devices_that_compute():
    all_cores = TARGETS[0].cores
    reports = python(PARTS, RUNE_OPENCL_PARTS="2")

    names = [f"opencl:{n}" for n in range(len(reports))]
    assert [f[0] for f in reports] == [f[2] for f in reports] == names
    assert [f[1] for f in reports][:1] == [all_cores]
    assert [f[1] for f in reports][-2:] == [all_cores // 2] * 2
    assert all(f[3] == [0.0, 2.0, 4.0] for f in reports)


def test_without_the_request_a_device_is_whole():
    assert len(python(PARTS, RUNE_OPENCL_PARTS="1")) == len(TARGETS)


# --- devices that are listed and cannot compile ------------------------------------------------


def test_a_device_that_builds_no_kernel_is_absent_and_the_reason_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(opencl, "_SMALLEST", "neither C nor OpenCL")
    monkeypatch.setattr(opencl, "TRIAL", "neither C nor OpenCL")
    monkeypatch.setattr(opencl, "_header", opencl._header.__wrapped__)
    monkeypatch.setattr(opencl, "_fault", opencl._fault.__wrapped__)

    targets, why = opencl.probe()

    assert targets == []
    assert why is not None
    assert "builds no kernel for" in why


def test_a_compiler_that_fails_without_a_word_gives_no_reason():
    assert opencl._first_error("\n") == "no reason given"


# --- binaries on disk -------------------------------------------------------------------------


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that the driver compiles during the test."""
    sources: list[str] = []
    original: Any = opencl.OpenCLBackend._from_source

    def counted(self: Any, key: bytes, source: str, options: list[str]) -> Any:
        sources.append(source)
        return original(self, key, source, options)

    monkeypatch.setattr(opencl.OpenCLBackend, "_from_source", counted)
    monkeypatch.setattr(opencl, "CACHING", frozenset())
    return sources


def compute(device: str = OPENCL) -> np.ndarray:
    """The result of a newly compiled function."""
    f = rune.jit(lambda x: rnp.sin(x) * 3.0, device=device)
    return np.asarray(f(np.linspace(0, 1, 50, dtype=np.float32)))


def test_a_program_is_compiled_once_for_the_next_function_too(tmp_path, builds):
    with rune.configure(cache_dir=str(tmp_path)):
        first, second = compute(), compute()

    assert len(builds) == 1
    close(first, second, ulps=0, why="one binary")


def test_a_binary_that_the_driver_refuses_is_compiled_again(tmp_path, builds, monkeypatch):
    with rune.configure(cache_dir=str(tmp_path)):
        first = compute()
        monkeypatch.setattr(disk_cache, "load", lambda key: b"no binary")
        second = compute()

    assert len(builds) == 2
    close(first, second, ulps=0, why="one source")


def test_switched_off_nothing_is_kept(builds):
    with rune.configure(cache_dir=""):
        compute()
        compute()

    assert len(builds) == 2


@pytest.mark.parametrize("keeps_its_own", [False, True])
def test_no_binary_is_requested_if_none_will_be_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keeps_its_own: bool
):
    cl = pytest.importorskip("pyopencl")
    queries: list[Any] = []
    original = cl.Program.get_info

    def noted(program: Any, query: Any) -> Any:
        queries.append(query)
        return original(program, query)

    monkeypatch.setattr(cl.Program, "get_info", noted)
    backend: Any = device_named(OPENCL).backend
    platform = backend.device.platform.name
    monkeypatch.setattr(opencl, "CACHING", frozenset({platform} if keeps_its_own else ()))
    with rune.configure(cache_dir=str(tmp_path) if keeps_its_own else ""):
        compute()

    assert cl.program_info.BINARIES not in queries


# --- waiting ----------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The places that calls wait for during the test."""
    places: list[Any] = []
    original = run.Walker.read

    def counted(self: Any, place: Any) -> int:
        places.append(place)
        return original(self, place)

    monkeypatch.setattr(run.Walker, "read", counted)
    return places


def test_a_loop_of_known_length_is_enqueued_without_waiting(reads):
    f = rune.jit(lambda x: rune.fori_loop(0, 20, lambda i, c: rnp.sin(c) + rnp.sum(c) * i, x), device=OPENCL)
    f(np.ones(5, np.float32))

    assert reads == []


def test_a_loop_with_a_condition_waits_once_a_step(reads):
    f = rune.jit(lambda x: rune.while_loop(lambda c: rnp.sum(c) < 10.0, lambda c: c + 1.0, x), device=OPENCL)
    result = f(np.zeros(2, np.float32))

    assert result.tolist() == [5.0, 5.0]
    assert len(reads) == 6


def test_block_until_ready_waits_for_the_queue(monkeypatch):
    x = rune.jit(lambda x: x + 1.0, device=OPENCL)(np.zeros(3, np.float32))
    waits: list[str] = []
    backend = rune.backends.device_named(OPENCL).backend
    original = backend.synchronize
    monkeypatch.setattr(backend, "synchronize", lambda: (waits.append("queue"), original())[1])

    assert x.block_until_ready() is x
    assert rune.block_until_ready({"x": x, "y": 1.0})["x"] is x
    assert waits == ["queue"] * 2


# --- memory -----------------------------------------------------------------------------------


def test_out_of_memory_in_a_jitted_call_names_the_live_buffers_and_their_origin(monkeypatch):
    x = rune.jit(lambda x: x + 1.0, device=OPENCL)(np.zeros(1 << 20, np.float32))
    shortage.leave(1 << 20, OPENCL, monkeypatch)

    def larger(x: Any) -> Any:
        return rnp.concatenate([x, x])

    with pytest.raises(OutOfMemory, match="cannot allocate 8388608 B on opencl:0") as error:
        rune.jit(larger)(x)
    assert "f32[1048576] of lambda (4194304 B, test_device.py:" in error.value.message


def test_after_out_of_memory_the_device_works_on(monkeypatch):
    with monkeypatch.context() as patch:
        shortage.leave(0, OPENCL, patch)
        with pytest.raises(OutOfMemory):
            rune.device_put(np.zeros(1 << 22, np.float32), OPENCL)

    close(np.float32(6), np.asarray(rune.device_put(np.float32(5), OPENCL) + 1), ulps=0, why="5+1")


# --- handles ----------------------------------------------------------------------------------


def references() -> tuple[int, int]:
    """Who refers to context and queue: every event to its queue, programs and buffers to both."""
    backend: Any = rune.backends.device_named(OPENCL).backend
    gc.collect()
    backend.synchronize()
    assert rune.work_stats(OPENCL).in_flight == 0
    # Threads of the driver let go of an event a little after its end.
    counts = None
    while counts != (latest := (backend.context.reference_count, backend.queue.reference_count)):
        counts = latest
        time.sleep(0.05)
    return latest


def none_is_left(before: tuple[int, int]) -> bool:
    """Whether the driver lets go of all that has been added."""
    return eventually(lambda: all(now <= count for now, count in zip(references(), before, strict=True)))


def test_events_of_calls_are_released():
    def body(i: Any, v: Any) -> Any:
        return rnp.flip(v) + i

    program = rune.jit(lambda x: rune.fori_loop(0, 9, body, x), device=OPENCL)
    x = rune.device_put(np.ones(50, np.float32), OPENCL)
    program(x)
    before = references()

    for _ in range(20):
        program(x)
    assert none_is_left(before)


def test_an_event_that_somebody_keeps_would_be_noticed():
    backend: Any = rune.backends.device_named(OPENCL).backend
    double = rune.jit(lambda x: x * 2.0, device=OPENCL)
    x = rune.device_put(np.ones(50, np.float32), OPENCL)
    double(x)
    before, events = references(), []
    for _ in range(3):
        double(x)
        events.append(backend.turns.last)
    assert references()[1] > before[1]


def test_programs_and_kernels_that_are_dropped_are_released():
    def cycle(number: int) -> None:
        f = rune.jit(lambda x: rnp.cumsum(x * number) + number, device=OPENCL)
        np.asarray(f(np.ones(64, np.float32)))

    cycle(0)
    before = references()
    for number in range(1, 6):
        cycle(number)
    assert none_is_left(before)


def test_events_of_profiled_calls_are_released():
    f = rune.jit(lambda x: rnp.cumsum(rnp.cumsum(x)), device=OPENCL)
    x = rune.device_put(np.ones(50, np.float32), OPENCL)
    with rune.debug.profile():
        f(x)
        before = references()
        for _ in range(5):
            f(x)
        assert none_is_left(before)


# --- scripts ----------------------------------------------------------------------------------


class Driver:
    """The driver's functions, with a log of calls; `refuse` replaces some results."""

    def __init__(self, backend: Any):
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.refuse: list[tuple[str, int]] = []
        self.functions = functions = backend.functions
        self.callbacks = [
            self._noted("launch", functions.launch, "ppupppupp"),
            self._noted("set_argument", functions.set_argument, "puzp"),
            self._noted("flush", functions.flush, "p"),
        ]
        addresses = {name: ctypes.cast(f, ctypes.c_void_p).value for name, f in self.callbacks}
        backend.functions = replace(functions, **addresses)

    def _noted(self, name: str, address: int, letters: str) -> tuple[str, Any]:
        kinds = {"p": ctypes.c_void_p, "u": ctypes.c_uint, "z": ctypes.c_size_t}
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(kinds[letter] for letter in letters))
        original = prototype(address)

        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            if self.refuse and self.refuse[0][0] == name:
                return self.refuse.pop(0)[1]
            return original(*arguments)

        return name, prototype(call)

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def opened(**limits: Any) -> tuple[Any, Driver]:
    """A device of its own, and its driver."""
    backend: Any = opencl.open_device(replace(TARGETS[0], **limits))
    return backend, Driver(backend)


def recorded(backend: Any, f: Any, size: int) -> tuple[Any, Any, np.ndarray]:
    """A plan of the device, its argument, and what it should give."""
    host = np.linspace(0, 1, size, dtype=np.float32)
    executable = backend.record(lower(rune.make_program(f)(rnp.asarray(host)), backend.target))
    return executable, backend.copy_in(host), np.asarray(f(rnp.asarray(host)))


def fetched(backend: Any, buffer: Any) -> np.ndarray:
    return backend.copy_out(buffer, buffer.type)


def twice_summed(x: Any) -> Any:
    return rnp.cumsum(rnp.cumsum(x)[::-1])


def test_arguments_are_set_again_only_where_memory_changed():
    backend, driver = opened()
    executable, x, _ = recorded(backend, twice_summed, 64)
    (first,) = executable([x])
    reference = fetched(backend, first)
    driver.calls.clear()
    (second,) = executable([x])  # another result
    close(reference, fetched(backend, second), ulps=0, why="the same program")
    close(reference, fetched(backend, first), ulps=0, why="nothing wrote it")
    assert driver.names().count("set_argument") == 1


def test_freed_memory_is_bound_again_even_if_the_driver_reuses_its_handle():
    backend, driver = opened()
    executable, x, _ = recorded(backend, twice_summed, 64)
    executable([x])
    arguments = driver.names().count("set_argument")
    backend.pool.trim()
    driver.calls.clear()
    executable([x])
    assert driver.names().count("set_argument") == arguments


def test_sizes_in_turns_have_their_own_arguments():
    f = rune.jit(lambda x: rnp.cumsum(x)[::-1] * 2.0, dims={"n": (1, 100)}, device=OPENCL)
    for n in (5, 9, 5, 9, 100, 5):
        reference = 2 * np.cumsum(np.ones(n, np.float32))[::-1]
        close(reference, np.asarray(f(np.ones(n, np.float32))), ulps=0, why="whole numbers")


def test_memory_that_runs_out_within_a_script_is_given_back_and_tried_again():
    backend, driver = opened()
    executable, x, reference = recorded(backend, twice_summed, 32)
    driver.refuse.append(("launch", -4))
    (result,) = executable([x])
    close(reference, fetched(backend, result), ulps=4, why="sums in another order")
    assert not driver.refuse


def test_memory_that_stays_short_within_a_script_is_an_error_and_the_next_call_is_right():
    backend, driver = opened()
    executable, x, reference = recorded(backend, twice_summed, 32)
    driver.refuse += [("launch", -4), ("launch", -4)]
    with pytest.raises(OutOfMemory, match="cannot allocate"):
        executable([x])
    (result,) = executable([x])
    close(reference, fetched(backend, result), ulps=4, why="sums in another order")


def test_an_argument_that_the_driver_refuses_is_an_error_and_is_set_by_the_next_call():
    backend, driver = opened()
    executable, x, reference = recorded(backend, twice_summed, 32)
    driver.refuse.append(("set_argument", -50))
    with pytest.raises(DeviceError, match="INVALID_ARG_VALUE"):
        executable([x])
    (result,) = executable([x])
    close(reference, fetched(backend, result), ulps=4, why="sums in another order")


def test_a_launch_of_much_work_is_enqueued_in_parts_with_a_flush_between():
    backend, driver = opened(submission_work=20_000)  # of 90,000
    executable, x, _ = recorded(backend, lambda x: x + 1.0, 10_000)
    executable([x])

    starts = [arguments[3] for name, arguments in driver.calls if name == "launch"]
    assert starts[0] is None
    assert len(starts) >= 5
    assert driver.names().count("flush") == len(starts)
