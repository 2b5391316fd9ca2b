"""Copies beside programs: on a second stream, in order with what uses the memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.backends.shared.protocol import CopiesAside
from tests.backends.cuda.fake import FakeCuda
from tests.support.close import same


def test_a_copy_aside_has_the_contents_that_the_host_array_had(device: Any, fake: FakeCuda):
    x = np.arange(6, dtype=np.float32)

    buffer, join = device.copy_in_aside(x)
    x[:] = -1
    join()

    same(np.arange(6, dtype=np.float32), device.copy_out(buffer, buffer.type))


def test_the_device_says_that_it_can(device: Any):
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
