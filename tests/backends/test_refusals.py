"""Refusals of drivers and of other libraries become rune's own errors."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from rune.backends import cpu, cuda, dlpack, mpi, opencl, vulkan, wgpu
from rune.backends.cuda import by_bindings as cuda_driver
from rune.backends.cuda import compiler
from rune.backends.remote import ELSEWHERE
from rune.backends.shared import callbacks, disk_cache
from rune.backends.wgpu import read
from rune.errors import CompileError, DeviceError, DistributedError
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.text import parse
from tests.support.lowering import PLAIN


def named(name: str) -> Target:
    """A target with the name of a device."""
    return replace(PLAIN, name=name)


class Code(int):
    """A code of NVIDIA's libraries: a number with a name."""

    name = "WHY"


def driver_of(code: Code) -> SimpleNamespace:
    """A driver with functions that all return this code."""
    return SimpleNamespace(function=lambda: (code,))


def test_a_device_beyond_those_of_the_driver_is_refused_with_their_number(monkeypatch: pytest.MonkeyPatch):
    two = SimpleNamespace(Device=SimpleNamespace(count=lambda: 2))
    monkeypatch.setattr(cuda, "load", lambda: two)
    monkeypatch.setattr(opencl, "_handles", lambda: [None, None])
    monkeypatch.setattr(vulkan, "_usable", lambda: [None, None])
    monkeypatch.setattr(wgpu, "_adapters", lambda: [None, None])

    for backend, kind in ((cuda, "CUDA"), (opencl, "OpenCL"), (vulkan, "Vulkan"), (wgpu, "WebGPU")):
        with pytest.raises(DeviceError, match=rf"device: cannot open x:2 \(2 {kind}"):
            backend.open_device(named("x:2"))


def test_the_cpu_cannot_be_opened_without_a_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cpu, "probe", lambda: ([], "llvmlite cannot be imported"))

    with pytest.raises(DeviceError, match=r"cpu: cannot open cpu:0 \(llvmlite cannot be imported\)"):
        cpu.open_device(named("cpu:0"))


def test_a_cuda_driver_without_memory_is_a_memory_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuda_driver, "bindings", lambda: driver_of(Code(cuda_driver._OUT_OF_MEMORY)))

    with pytest.raises(MemoryError):
        cuda_driver.call("function")


def test_any_other_refusal_of_a_cuda_driver_says_the_function_and_the_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuda_driver, "bindings", lambda: driver_of(Code(999)))

    with pytest.raises(cuda_driver.Refused, match="function: WHY"):
        cuda_driver.call("function")


def test_an_error_of_nvidias_compiler_names_the_function_and_the_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler, "_nvrtc", lambda: driver_of(Code(5)))

    with pytest.raises(CompileError, match=r"cuda: cannot call function \(WHY\)"):
        compiler._ask("function")


def test_callbacks_nested_too_deeply_are_refused_before_the_native_stack_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(callbacks._nesting, "depth", callbacks.MOST_NESTED)
    function: Any = SimpleNamespace(borrows=False)

    with pytest.raises(RecursionError, match="64 callbacks are nested"):
        callbacks._called(function, (), ())


def test_shared_elements_of_several_lanes_are_refused():
    tensor = dlpack._Tensor(code=dlpack._FLOAT, bits=32, lanes=4)

    with pytest.raises(BufferError, match="type code 2, 32 bits, 4 lanes"):
        dlpack._memory(tensor)


def test_more_rounds_than_a_driver_runs_are_refused_with_both_numbers():
    loops = "for i in 1 grid { var s: f32 = 0_f32 for k in 100 serial { s add= x[k] } store y[i] = s }"
    code = parse(f"code long(x: read f32[100], y: write f32[1]) {{ {loops} }}")

    with pytest.raises(DeviceError, match=r"up to 101 rounds .* silently stops after 100"):
        require_few(code, replace(PLAIN, loop_rounds=100))


class Full(Exception):
    """The error of a driver that is out of memory."""


def full(*_: object) -> None:
    """A driver's allocation that fails."""
    raise Full


def test_an_opencl_driver_without_memory_is_a_memory_error():
    cl = SimpleNamespace(Buffer=full, mem_flags=SimpleNamespace(READ_WRITE=1), MemoryError=Full, RuntimeError=Full)
    backend: Any = SimpleNamespace(cl=cl, context=None)

    with pytest.raises(MemoryError):
        opencl.OpenCLBackend._raw_alloc(backend, 8)


def test_a_webgpu_driver_without_memory_is_a_memory_error():
    backend: Any = SimpleNamespace(wgpu=SimpleNamespace(GPUOutOfMemoryError=Full, GPUError=Full))
    backend.translate = partial(wgpu.WgpuBackend.translate, backend)

    with pytest.raises(MemoryError), wgpu.WgpuBackend.failing(backend, "alloc"):
        full()


def test_a_read_that_webgpu_refuses_is_an_error_of_the_copy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(read, "wait_for", lambda promise: None)
    mapping = SimpleNamespace(promise=SimpleNamespace(sync_wait=refuse))
    backend: Any = SimpleNamespace(target=named("wgpu:0"), failing=lambda action: nullcontext())
    backend.refusal = partial(wgpu.WgpuBackend.refusal, backend)
    reads: Any = SimpleNamespace(backend=backend, under_way={7: mapping})

    with pytest.raises(DeviceError, match=r"copy_out: cannot use wgpu:0 \(the driver refuses: Validation error\)"):
        read.Reads.end(reads, 7, 20)
    assert not reads.under_way


def refuse() -> None:
    """A wait of a driver that fails."""
    raise RuntimeError("Validation error")


# --- other processes --------------------------------------------------------------------------


def test_a_device_of_another_process_cannot_be_opened():
    with pytest.raises(DeviceError, match=r"device: cannot use 1/cpu:0 here \(it belongs to another process\)"):
        ELSEWHERE.open_device(named("1/cpu:0"))


def test_a_missing_mpi_library_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise RuntimeError("cannot load MPI library")

    monkeypatch.setattr(mpi, "import_module", missing)

    with pytest.raises(DistributedError, match=r"distributed: cannot load MPI \(cannot load MPI library\)") as error:
        mpi._mpi()
    assert error.value.hint == "pip install 'rune-ml[distributed]'"


def test_a_process_that_raises_the_alarm_ends_the_wait_of_the_others():
    inbox = {("alarm", 1): [memoryview(b"ZeroDivisionError: division by zero")]}
    world: Any = SimpleNamespace(failures={}, count=3, inbox=inbox, departures=set())

    with pytest.raises(DistributedError, match=r"psum: cannot go on \(process 1 raised ZeroDivisionError: division"):
        mpi.MpiWorld._require_hope(world, "psum", [2], "alarm")


# --- the cache on disk ------------------------------------------------------------------------


def test_a_cache_in_the_home_of_an_unknown_user_is_refused_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RUNE_CACHE_DIR", "~no_such_user_of_rune/cache")

    with pytest.raises(disk_cache.Unusable, match="'~no_such_user_of_rune/cache'"):
        disk_cache.configured()
