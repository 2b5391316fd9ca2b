"""Copies to a busy OpenCL device: no call waits, and each array arrives with its values.

The device is kept busy by a command that waits for the test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import opencl
from rune.backends.opencl.staging import MOST, SIZES
from rune.lowering.stages import lower
from tests.support.close import same
from tests.support.eventually import HANG_S

TARGETS, WHY = opencl.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no OpenCL device: {WHY}")


@pytest.fixture(scope="module")
def device() -> opencl.OpenCLBackend:
    return opencl.open_device(TARGETS[0])


@pytest.fixture
def end(device: opencl.OpenCLBackend) -> Iterator[Callable[[], None]]:
    """The device is busy until this is called, or the test is over."""
    cl: Any = device.cl
    gate = cl.UserEvent(device.context)
    device.turns.last = cl.enqueue_marker(device.queue, wait_for=[gate])
    device.queue.flush()
    is_over: list[bool] = []

    def ended() -> None:
        if not is_over:
            is_over.append(True)
            gate.set_status(cl.command_execution_status.COMPLETE)

    yield ended
    ended()
    device.synchronize()


def at_once(function: Callable[[], Any]) -> Any:
    """The result of the function; fails if it waits for the device."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(HANG_S)
    assert results, "it waits for the device"
    return results[0]


@pytest.mark.parametrize("nbytes", [1, 100, SIZES[0], SIZES[0] + 1, SIZES[1], 3 * SIZES[1] + 5])
def test_an_array_is_copied_to_a_busy_device_at_once(device: Any, end: Callable[[], None], nbytes: int):
    x = (np.arange(nbytes) * 31 % 251).astype(np.uint8)

    buffer = at_once(lambda: device.copy_in(x))

    assert not device.marker()()
    end()
    same(x, device.copy_out(buffer, buffer.type))


def test_the_host_array_may_change_before_the_device_has_read_it(device: Any, end: Callable[[], None]):
    x = np.arange(1000, dtype=np.float32)
    buffer = at_once(lambda: device.copy_in(x))
    x[:] = -1
    end()

    same(np.arange(1000, dtype=np.float32), device.copy_out(buffer, buffer.type))


def test_more_bytes_than_all_pieces_hold_wait_for_the_first(device: Any, end: Callable[[], None]):
    x = np.arange((MOST + 3) * SIZES[1] // 4, dtype=np.int32)
    threading.Timer(0.2, end).start()

    buffer = device.copy_in(x)

    same(x, device.copy_out(buffer, buffer.type))
    assert device.memory_stats().pools["pinned"].raw_allocations <= 2 * MOST


def test_memory_that_a_pending_call_reads_is_written_after_it(device: Any, end: Callable[[], None]):
    program = rune.make_program(lambda x: x * 2.0)(rnp.zeros(1000, "float32"))
    executable = device.record(lower(program, device.target))
    arguments = [at_once(lambda: device.copy_in(np.ones(1000, np.float32)))]
    memory = arguments[0].memory.handle
    (twos,) = at_once(lambda: executable(arguments))
    arguments.clear()
    threes = at_once(lambda: device.copy_in(np.full(1000, 3, np.float32)))
    assert threes.memory.handle is memory  # from the pool, though a pending kernel reads it
    end()

    same(np.full(1000, 2, np.float32), device.copy_out(twos, twos.type))
    same(np.full(1000, 3, np.float32), device.copy_out(threes, threes.type))


def test_an_idle_device_is_written_directly(device: Any):
    device.synchronize()
    before = device.memory_stats().pools["pinned"].allocations

    x = device.copy_in(np.ones(1000, np.float32))

    assert device.memory_stats().pools["pinned"].allocations == before
    same(np.ones(1000, np.float32), device.copy_out(x, x.type))
