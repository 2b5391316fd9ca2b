"""Copies alongside programs of an OpenCL device: on a second queue, in order with all uses.

Either queue is kept busy by a command that waits for the test, so nothing here depends on time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data
from rune.backends import opencl
from rune.backends.opencl.staging import SIZES
from rune.backends.shared.join import Join
from rune.backends.shared.protocol import CopiesAside
from rune.errors import DeviceError, OutOfMemory
from rune.lowering.stages import lower
from tests.backends.opencl.test_staging import at_once
from tests.support.close import same

TARGETS, WHY = opencl.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no OpenCL device: {WHY}")
X = np.arange(1000, dtype=np.float32)


@pytest.fixture
def device() -> opencl.OpenCLBackend:
    return opencl.open_device(TARGETS[0])


class Gate:
    """Holds a queue up until it is opened."""

    def __init__(self, backend: Any, queue: Any):
        self._backend, self._event = backend, backend.cl.UserEvent(backend.context)
        self._is_open = False
        backend.cl.enqueue_barrier(queue, wait_for=[self._event])
        queue.flush()

    def open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._event.set_status(self._backend.cl.command_execution_status.COMPLETE)


@pytest.fixture
def programs(device: opencl.OpenCLBackend) -> Iterator[Gate]:
    """The queue of programs is held up."""
    gate = Gate(device, device.queue)
    device.turns.last = device.cl.enqueue_marker(device.queue)
    yield gate
    gate.open()
    device.synchronize()


@pytest.fixture
def copies(device: opencl.OpenCLBackend) -> Iterator[Gate]:
    """The queue of copies is held up."""
    gate = Gate(device, device.aside._queue)
    yield gate
    gate.open()
    device.synchronize()


def doubled(device: opencl.OpenCLBackend) -> Callable[..., Any]:
    """A program."""
    program = rune.make_program(lambda x: x * 2.0)(rnp.zeros(X.size, "float32"))
    return device.record(lower(program, device.target))


def test_the_device_supports_copies_beside_programs(device: Any):
    assert isinstance(device, CopiesAside)


@pytest.mark.parametrize("nbytes", [1, 100, SIZES[0], SIZES[0] + 1, SIZES[1], 3 * SIZES[1] + 5])
def test_a_copy_has_the_contents_that_the_host_array_had(device: Any, copies: Gate, nbytes: int):
    x = (np.arange(nbytes) * 31 % 251).astype(np.uint8)
    before = x.copy()

    buffer, join = at_once(lambda: device.copy_in_aside(x))
    x[:] = 7
    join()
    copies.open()

    same(before, device.copy_out(buffer, buffer.type))


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_an_empty_array_needs_no_copy(device: Any, shape: tuple[int, ...]):
    buffer, join = device.copy_in_aside(np.zeros(shape, np.float32))
    join()

    assert "aside" not in device.memory_stats().pools
    assert device.copy_out(buffer, buffer.type).shape == shape


def test_a_copy_ends_while_programs_that_came_after_it_do_not(device: Any):
    buffer, join = device.copy_in_aside(X)
    gate = Gate(device, device.queue)
    device.aside._queue.finish()

    join()
    gate.open()
    same(X, device.copy_out(buffer, buffer.type))


def test_programs_wait_for_a_copy_and_the_host_does_not(device: Any, copies: Gate):
    run = doubled(device)
    buffer, join = at_once(lambda: device.copy_in_aside(X))
    at_once(join)
    (y,) = at_once(lambda: run([buffer]))

    assert not device.marker()()
    copies.open()
    same(2 * X, device.copy_out(y, y.type))


def test_a_program_that_does_not_use_it_waits_for_no_copy_that_is_not_joined(device: Any, copies: Gate):
    run, x = doubled(device), device.copy_in(X)
    _, join = device.copy_in_aside(X)

    (y,) = run([x])

    same(2 * X, at_once(lambda: device.copy_out(y, y.type)))
    join()


def test_memory_that_a_pending_program_reads_is_written_after_it(device: Any, programs: Gate):
    run = doubled(device)
    arguments = [at_once(lambda: device.copy_in(X))]
    memory = arguments[0].memory.handle
    (y,) = at_once(lambda: run(arguments))
    arguments.clear()
    threes, join = at_once(lambda: device.copy_in_aside(np.full_like(X, 3)))
    assert threes.memory.handle is memory  # from the pool, though a pending kernel reads it
    at_once(join)
    programs.open()

    same(2 * X, device.copy_out(y, y.type))
    same(np.full_like(X, 3), device.copy_out(threes, threes.type))


@pytest.mark.parametrize("is_joined", [True, False])
def test_memory_of_a_pending_copy_is_written_after_it(device: Any, copies: Gate, is_joined: bool):
    buffer, join = at_once(lambda: device.copy_in_aside(X))
    memory = buffer.memory.handle
    if is_joined:
        join()
    del buffer, join  # without a call, the end of the join is one

    ones = at_once(lambda: device.copy_in(np.ones_like(X)))
    assert ones.memory.handle is memory
    copies.open()
    device.aside._queue.finish()
    same(np.ones_like(X), device.copy_out(ones, ones.type))


def test_a_copy_that_fails_halfway_frees_its_memory_after_the_pending_commands(
    device: Any, copies: Gate, monkeypatch: pytest.MonkeyPatch
):
    x = np.arange(2 * SIZES[1], dtype=np.uint8)
    staging, count = device.aside._staging, 0
    send = staging._send

    def fails(*args: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise MemoryError("the second piece")
        send(*args)

    monkeypatch.setattr(staging, "_send", fails)
    with pytest.raises(MemoryError, match="the second piece"):
        device.copy_in_aside(x)
    gc.collect()  # the error's traceback holds the memory

    assert device.memory_stats().live_bytes == 0
    ones = at_once(lambda: device.copy_in(np.ones_like(x)))
    copies.open()
    device.aside._queue.finish()
    same(np.ones_like(x), device.copy_out(ones, ones.type))


def test_a_device_without_memory_for_it_is_out_of_memory_and_works_on(device: Any, monkeypatch: pytest.MonkeyPatch):
    def refuses(*args: Any) -> None:
        raise device.cl.MemoryError("clEnqueueWriteBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE")

    with monkeypatch.context() as patch:
        patch.setattr(device.aside._staging, "_send", refuses)
        with pytest.raises(OutOfMemory, match="cannot allocate 4000 B"):
            device.copy_in_aside(X)
    buffer, join = device.copy_in_aside(X)
    join()

    same(X, device.copy_out(buffer, buffer.type))


def test_a_copy_that_has_failed_is_an_error_where_it_is_joined(device: Any, copies: Gate):
    _, join = device.copy_in_aside(X)
    event = device.cl.UserEvent(device.context)
    event.set_status(-5)
    failing = Join(partial(device.aside._join, event))

    with pytest.raises(DeviceError, match=r"opencl:0: cannot copy an array to it \(OpenCL says OUT_OF_RESOURCES"):
        failing()
    join()


def test_pinned_memory_of_copies_aside_is_counted_apart(device: Any):
    assert "aside" not in device.memory_stats().pools

    _, join = device.copy_in_aside(X)
    join()

    assert device.memory_stats().pools["aside"].allocations == 1


# --- prefetch ---------------------------------------------------------------------------------


def test_steps_of_prefetch_go_on_while_the_programs_of_the_device_do_not():
    """Reading, copying and enqueueing wait for nothing in the queue of programs."""
    backend: Any = rune.devices("opencl")[0].backend
    rows = np.random.default_rng(0).standard_normal((6, 311), dtype=np.float32)
    total = rune.jit(lambda x: rnp.sum(x * x, axis=1))
    list(map(total, data.arrays(rows).batch(2).prefetch("opencl:0")))  # compiled, and the queues exist
    backend.synchronize()

    gate = Gate(backend, backend.queue)
    backend.turns.last = backend.cl.enqueue_marker(backend.queue)
    sums = at_once(lambda: [total(x) for x in data.arrays(rows).batch(2).prefetch("opencl:0")])
    assert not backend.marker()()
    gate.open()

    np.testing.assert_allclose(np.concatenate([s.numpy() for s in sums]), (rows**2).sum(1), rtol=1e-5)


def test_many_arrays_of_many_sizes_arrive_in_order_while_the_device_computes():
    generator = np.random.default_rng(1)
    batches = [
        {"x": generator.integers(0, 1000, n, dtype=np.int32), "y": np.full((n % 7, 3), n, np.int32)}
        for n in generator.integers(0, 20_000, 300)
    ]
    total = rune.jit(lambda x, y: rnp.sum(x) + rnp.sum(y))

    sums = [total(b["x"], b["y"]) for b in data.sequence(batches).prefetch("opencl:0") if b["x"].size % 50 == 0]

    expected = [b["x"].sum() + b["y"].sum() for b in batches if b["x"].size % 50 == 0]
    assert [int(s) for s in sums] == expected


def test_runs_that_end_early_leave_no_memory_on_the_device():
    backend: Any = rune.devices("opencl")[0].backend
    rows = np.zeros((64, 100_003), np.float32)
    before = backend.memory_stats().live_bytes
    for _ in range(20):
        with iter(data.arrays(rows).batch(4).prefetch("opencl:0", depth=3)) as run:
            next(run)
    gc.collect()

    assert backend.memory_stats().live_bytes == before
