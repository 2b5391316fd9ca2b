"""CUDA: refusals of the driver and of NVRTC are errors that say what failed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune.backends.cuda import compiler
from rune.errors import CompileError, DeviceError, OutOfMemory
from tests.backends.cuda.fake import Error, FakeCuda, opened, plan_for
from tests.support.close import same
from tests.support.lowering import f32


def test_memory_that_the_driver_refuses_is_a_memory_error(device: Any):
    with pytest.raises(MemoryError):
        device._raw_alloc(1 << 40)

    assert device.copy_in(np.ones(3, np.float32)).shape == (3,)


def test_a_plan_that_ran_out_of_memory_is_remade_after_emptying_the_cache(device: Any):
    executable = device.record(plan_for(rnp.sin, f32(4)))
    attempts: list[int] = []

    def make() -> None:
        attempts.append(device.pool.stats().cached_bytes)
        raise MemoryError

    device.copy_in(np.ones(1000, np.float32))  # dropped at once: the pool has it
    device.synchronize()
    with pytest.raises(OutOfMemory, match=r"on cuda:0"):
        executable._with_room(make)
    assert attempts[0] > 0 == attempts[1]


def test_a_call_that_the_driver_refuses_is_named_with_the_code(device: Any):
    with pytest.raises(DeviceError, match=r"cuda:0: cannot go on \(a replay: the driver answers 700\)"):
        device.refuse("a replay", 700)

    same(np.ones(3, np.float32), device.copy_out(x := device.copy_in(np.ones(3, np.float32)), x.type))


def test_a_context_that_cannot_be_left_is_the_drivers_error(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    def refuse() -> None:
        raise Error("invalid context")

    backend = opened(monkeypatch, fake)
    with pytest.raises(Error, match="invalid context"), monkeypatch.context() as patch, backend.in_context:
        patch.setattr(backend.context, "pop", refuse)
    fake.context.pop()


def test_output_of_nvrtc_that_does_not_name_its_version_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler, "supported", lambda: (80, 90))
    monkeypatch.setattr(compiler, "compile_source", lambda source, name, arch: b".version 8.7")

    with pytest.raises(CompileError, match=r"cuda: cannot find NVRTC's version"):
        compiler.full_version.__wrapped__()
