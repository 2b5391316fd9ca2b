"""Copies alongside programs: on a second stream, in order with all uses of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rune.backends.shared.protocol import CopiesAside
from rune.errors import DeviceError
from tests.backends.cuda.fake import FakeCuda
from tests.support.close import same


def test_an_asynchronous_copy_has_the_contents_at_the_time_of_the_call(device: Any, fake: FakeCuda):
    x = np.arange(6, dtype=np.float32)

    buffer, join = device.copy_in_aside(x)
    x[:] = -1
    join()

    same(np.arange(6, dtype=np.float32), device.copy_out(buffer, buffer.type))


def test_the_device_supports_copies_beside_programs(device: Any):
    assert isinstance(device, CopiesAside)


def test_it_waits_for_programs_and_they_for_it(device: Any, fake: FakeCuda):
    before = len(fake.waits)

    _, join = device.copy_in_aside(np.ones(6, np.float32))
    copying = len(fake.waits) - before
    join()

    assert (copying, len(fake.waits) - before) == (1, 2)


def test_an_empty_array_needs_no_copy(device: Any, fake: FakeCuda):
    buffer, join = device.copy_in_aside(np.zeros((0, 3), np.float32))
    join()

    assert "htod" not in fake.log
    assert device.copy_out(buffer, buffer.type).shape == (0, 3)


def test_its_pinned_memory_is_counted_apart(device: Any):
    assert "aside" not in device.memory_stats().pools

    _, join = device.copy_in_aside(np.ones(6, np.float32))
    join()

    assert device.memory_stats().pools["aside"].allocations == 1


def test_an_unjoined_copy_is_waited_for_before_its_memory_is_reused(device: Any, fake: FakeCuda):
    buffer, join = device.copy_in_aside(np.ones(6, np.float32))
    before, memory, kind = len(fake.waits), buffer.memory.span, buffer.type

    del buffer
    meanwhile = device.alloc(kind)
    del join
    later = device.alloc(kind)

    assert (meanwhile.memory.span == memory, later.memory.span == memory) == (False, True)
    assert len(fake.waits) == before + 1


def test_a_called_join_is_not_repeated_when_it_is_dropped(device: Any, fake: FakeCuda):
    _, join = device.copy_in_aside(np.ones(6, np.float32))
    join()
    before = len(fake.waits)
    join()
    del join

    assert len(fake.waits) == before


def test_a_copy_that_fails_halfway_is_waited_for(device: Any, fake: FakeCuda, monkeypatch: pytest.MonkeyPatch):
    def fails(address: int, data: np.ndarray) -> None:
        raise MemoryError("the second piece")

    device.copy_in_aside(np.ones(6, np.float32))
    monkeypatch.setattr(device.aside._staging, "send", fails)
    before = len(fake.waits)

    with pytest.raises(MemoryError, match="the second piece"):
        device.copy_in_aside(np.ones(6, np.float32))

    assert len(fake.waits) == before + 2  # the copy for programs, and they for it


def test_joining_a_lost_device_is_silent(device: Any):
    _, join = device.copy_in_aside(np.ones(6, np.float32))
    device.turns.loss = "a kernel has failed"

    with pytest.raises(DeviceError, match="its context was lost"):
        join()
    del join  # an error here would be a warning, and a warning fails
