"""Memory of a CUDA device, lent to other libraries and borrowed from them without a copy.

Each lender and each borrower has its own stream. The device is a fake: the tests check which stream
waits for what, and when memory may be reused.
"""

from __future__ import annotations

import gc
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.array import Array, committed_to
from rune.backends import Device, dlpack
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.numpy import host_data
from tests.backends.cuda.fake import TARGET, FakeCuda, opened
from tests.support.close import same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
THEIR_STREAM = 99
SERIALS = itertools.count()


class Lender:
    """An array of another library on the device."""

    def __init__(self, fake: FakeCuda, host: np.ndarray = X):
        fake.context.push()
        self.fake, self.host, self.address = fake, host, int(fake.mem_alloc(max(1, host.nbytes)))
        fake.context.pop()
        fake.at(self.address, host.nbytes)[...] = host.reshape(-1).view(np.uint8)
        self.stream: Any = None
        self.steps = dlpack.dense_strides(host.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.stream = stream
        memory = dlpack.Memory(self.address, self.host.dtype, self.host.shape, self.steps, (2, 0))
        return dlpack.lend(memory, self, versioned=max_version is not None)


@pytest.fixture
def fake() -> FakeCuda:
    return FakeCuda()


@pytest.fixture(params=["pycuda", "cuda-bindings"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fake: FakeCuda) -> Device:
    """The device, as rune lists it."""
    backend = opened(monkeypatch, fake, request.param)
    monkeypatch.setattr("rune.backends._open_backends", [])  # no later test waits for it

    class File:
        @staticmethod
        def open_device(target: Any) -> Any:
            return backend

    # A device is opened once, by what it is.
    device = Device(replace(TARGET, description=f"device {next(SERIALS)} that does not exist"), File)
    monkeypatch.setattr(host_data, "devices", lambda: (device,))
    return device


def on(place: Device, host: np.ndarray = X) -> Array:
    """An array on the device."""
    return Array(place.backend.copy_in(host), ArrayType(host.shape, host.dtype), committed_to(place))


# --- from others ------------------------------------------------------------------------------


def test_an_array_of_another_library_is_read_where_it_is(place: Device, fake: FakeCuda):
    lender = Lender(fake)
    del fake.log[:]

    ours = rnp.from_dlpack(lender)

    assert fake.log == []
    assert (ours.device, ours.committed) == (place, True)
    assert ours.__cuda_array_interface__["data"][0] == lender.address
    same(X, ours)


def test_the_lender_learns_the_stream_that_reads_its_memory(place: Device, fake: FakeCuda):
    lender = Lender(fake)

    rnp.from_dlpack(lender)

    assert lender.stream == fake.stream


def test_a_lender_is_let_go_when_nothing_reads_it_any_more(place: Device, fake: FakeCuda):
    lender, before = Lender(fake), len(dlpack._lent)
    ours = rnp.from_dlpack(lender)
    double = rune.jit(lambda x: x * 2)(ours)
    del ours
    gc.collect()
    on(place)
    assert len(dlpack._lent) == before + 1

    place.backend.synchronize()
    on(place)
    assert len(dlpack._lent) == before
    same(X * 2, double)


def test_borrowed_memory_is_never_written(place: Device, fake: FakeCuda):
    lender = Lender(fake)

    double = rune.jit(lambda x: x * 2, donate_argnums=0)(rnp.from_dlpack(lender))

    same(X * 2, double)
    same(X, fake.at(lender.address, X.nbytes).view("f4").reshape(X.shape))


def test_a_copy_on_the_device_can_be_requested(place: Device, fake: FakeCuda):
    lender = Lender(fake)
    del fake.log[:]

    ours = rnp.from_dlpack(lender, copy=True)

    assert "dtod" in fake.log
    assert not {"htod", "dtoh"} & set(fake.log)
    assert ours.__cuda_array_interface__["data"][0] != lender.address
    same(X, ours)


def test_memory_with_gaps_is_refused(place: Device, fake: FakeCuda):
    lender = Lender(fake)
    lender.steps = (1, 3)

    with pytest.raises(DeviceError, match=r"(?s)elements are not dense \(strides \(1, 3\)\).*contiguous"):
        rnp.from_dlpack(lender)


def test_an_empty_array_is_borrowed(place: Device, fake: FakeCuda):
    same(np.empty((0, 3), np.float32), rnp.from_dlpack(Lender(fake, np.empty((0, 3), np.float32))))


# --- to others --------------------------------------------------------------------------------


def test_a_stream_that_reads_waits_on_the_device_and_the_host_does_not(place: Device, fake: FakeCuda):
    x = on(place)

    x.__dlpack__(stream=THEIR_STREAM, max_version=(1, 0))

    assert fake.queue
    assert [stream for stream, _ in fake.waits] == [THEIR_STREAM]


def test_without_a_stream_the_host_waits(place: Device, fake: FakeCuda):
    on(place).__dlpack__()

    assert not fake.queue
    assert fake.waits == []


def test_a_consumer_can_ask_for_no_synchronization(place: Device, fake: FakeCuda):
    on(place).__dlpack__(stream=-1)

    assert fake.queue
    assert fake.waits == []


def test_lent_memory_is_reused_only_after_all_streams_are_synchronized(place: Device, fake: FakeCuda):
    x = on(place)
    memory, loan = dlpack.borrow(x.__dlpack__(max_version=(1, 0)))
    del x, loan
    dlpack.sweep()
    gc.collect()
    del fake.log[:]

    y = on(place)

    assert "synchronize" in fake.log or y.__cuda_array_interface__["data"][0] != memory.address


def test_memory_that_was_lent_is_not_lost(place: Device, fake: FakeCuda):
    big = np.zeros(fake.total // 4, np.uint8)
    for _ in range(12):
        x = on(place, big)
        _, loan = dlpack.borrow(x.__dlpack__(max_version=(1, 0)))
        del x, loan
        gc.collect()
        dlpack.sweep()

    assert place.backend.memory_stats().raw_allocations <= 4  # type: ignore[attr-defined]
