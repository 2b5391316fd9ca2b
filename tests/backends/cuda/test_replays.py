"""Replays of a graph take events and pinned tables in turn, and wait where all are in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rune.backends.cuda import native
from rune.errors import DeviceError
from tests.backends.cuda.fake import Code, FakeCuda, opened, plan_for
from tests.support.close import same
from tests.support.lowering import f32

ENTRIES = 4


@pytest.fixture
def device(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device that can have few calls under way."""
    monkeypatch.setattr(native, "CALLS", ENTRIES)
    return opened(monkeypatch, fake)


def replayed(device: Any) -> Callable[[float], Any]:
    """A function that adds 1 on the device, whose next call is a replay."""
    executable = device.record(plan_for(lambda x: x + 1.0, f32(8)))

    def call(number: float) -> Any:
        (result,) = executable([device.copy_in(np.full(8, number, np.float32))])
        return result

    for _ in range(2):  # kernels one by one, then the graph
        call(0.0)
    return call


def values(device: Any, result: Any) -> np.ndarray:
    return device.copy_out(result, result.type)


# The stream of the emulated driver does nothing until somebody waits for it.
@pytest.mark.parametrize("count", [ENTRIES - 1, ENTRIES, ENTRIES + 1, 3 * ENTRIES + 1])
def test_calls_beyond_the_entries_wait_for_the_oldest(device: Any, count: int):
    call = replayed(device)

    results = [call(float(k)) for k in range(count)]

    for k, result in enumerate(results):
        same(np.full(8, k + 1, np.float32), values(device, result))
    assert device.work_stats().in_flight == 0


@pytest.mark.parametrize("function", ["cuGraphLaunch", "cuEventRecord"])
def test_a_refused_replay_is_an_error_and_leaves_the_turns_of_the_others(
    device: Any, fake: FakeCuda, monkeypatch: pytest.MonkeyPatch, function: str
):
    call = replayed(device)
    call(0.0)
    with monkeypatch.context() as patch:
        patch.setattr(fake.bindings, function, lambda *arguments: (Code.CUDA_ERROR_NOT_FOUND,))
        with pytest.raises(DeviceError, match="a replay: the driver answers"):
            call(1.0)

    for k in range(2 * ENTRIES):
        same(np.full(8, k + 1, np.float32), values(device, call(float(k))))
    assert device.work_stats().in_flight == 0


def test_tables_too_large_for_an_entry_have_pinned_memory_of_their_own(
    device: Any, fake: FakeCuda, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(native, "TABLE_BYTES", 8)
    call = replayed(device)

    for k in range(2 * ENTRIES):
        same(np.full(8, k + 1, np.float32), values(device, call(float(k))))
