"""The driver by pycuda where that is installed, else by cuda-bindings.

What the executor does with either is tested in test_cuda.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rune.backends import cuda
from rune.backends.cuda import by_bindings, devices
from tests.backends.cuda.fake import Code, FakeCuda


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """A driver that cuda-bindings talks to, whose context is current."""
    fake = FakeCuda()
    monkeypatch.setattr(by_bindings, "bindings", lambda: fake.bindings)
    fake.context.push()
    return fake


def load(monkeypatch: pytest.MonkeyPatch, *packages: str) -> Any:
    """The driver where some modules are installed."""
    module = SimpleNamespace(init=lambda: None)
    monkeypatch.setattr(devices, "find_spec", lambda name: name if name in packages else None)
    monkeypatch.setattr(devices, "import_module", lambda name: module if name == "pycuda.driver" else None)
    monkeypatch.setattr(devices, "call", lambda name, *arguments: None)
    driver = devices.load.__wrapped__()
    return "pycuda" if driver is module else driver


def test_pycuda_is_used_if_it_is_installed(monkeypatch: pytest.MonkeyPatch):
    assert load(monkeypatch, "pycuda") == "pycuda"


def test_cuda_bindings_serve_where_pycuda_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    assert isinstance(load(monkeypatch), by_bindings.BindingsDriver)


def test_cuda_works_without_pycuda(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None if name == "pycuda" else name)
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda *arguments: None)
    monkeypatch.setattr(devices, "_library", lambda: "libcuda.so.1")

    assert devices.missing() is None


def test_devices_are_listed_without_pycuda(monkeypatch: pytest.MonkeyPatch, fake: FakeCuda):
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "version", lambda: (13, 0))
    monkeypatch.setattr(cuda, "load", by_bindings.BindingsDriver)

    (target,), reason = cuda.probe()

    assert reason is None
    assert (target.name, target.description) == ("cuda:0", "Fake, compute capability 9.0")
    assert (target.cores, target.threads_per_workgroup, target.shared_bytes) == (4, 1024, 232448)


def test_negative_numbers_are_stored(fake: FakeCuda):
    bound = by_bindings.BindingsDriver()
    stream, block = bound.Stream(), bound.mem_alloc(8)

    bound.memset_d32_async(int(block), -3, 2, stream)
    stream.synchronize()

    assert fake.at(int(block), 8).view(np.int32).tolist() == [-3, -3]


def test_a_full_device_is_a_memory_error_and_full_host_memory_is_not(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    bound = by_bindings.BindingsDriver()
    with pytest.raises(MemoryError, match="cuMemAlloc"):
        bound.mem_alloc(1 << 40)

    monkeypatch.setattr(fake.bindings, "cuMemHostAlloc", lambda *arguments: (Code.CUDA_ERROR_OUT_OF_MEMORY,))
    with pytest.raises(by_bindings.Refused, match="cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY"):
        bound.pagelocked_empty(8, np.uint8)


def test_events_without_a_reference_are_destroyed(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    handles: list[int] = []
    monkeypatch.setattr(fake.bindings, "cuEventDestroy", lambda handle: handles.append(handle) or (0,))

    event = by_bindings.BindingsDriver().Event()
    assert handles == []
    del event

    assert len(handles) == 1
