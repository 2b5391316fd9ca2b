"""Copies that run alongside the programs of a Vulkan device: their queue, and what waits for what.

Most devices in tests have one queue. two_queues.py simulates two queues, so that commands that are
not ordered by a wait run in the wrong order.
"""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data
from rune.backends import Device, doctor, vulkan
from rune.backends.shared.protocol import CopiesAside
from rune.backends.vulkan.aside import MOST, SIZES
from rune.backends.vulkan.driver import QueuePlace, api, copy_queue, queue_counts
from rune.core.types import ArrayType
from rune.errors import DeviceError, OutOfMemory
from tests.backends.vulkan.cases import TARGETS, chain, needs_device, opened, with_memory
from tests.backends.vulkan.two_queues import number_of, two_queues
from tests.support.close import same

pytestmark = needs_device
GRAPHICS, COMPUTE, TRANSFER, SPARSE, PROTECTED, DECODE = 1, 2, 4, 8, 16, 32
DRAWING = GRAPHICS | COMPUTE | TRANSFER | SPARSE
SEEDS = range(12)
X = np.arange(30, dtype=np.float32)  # as many as `chain` takes


# --- which queue ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("families", "computing", "place"),
    [
        # NVIDIA: copies, then copies for video.
        (
            [(DRAWING, 16), (TRANSFER | SPARSE, 2), (COMPUTE | TRANSFER | SPARSE, 8), (TRANSFER | SPARSE | DECODE, 1)],
            2,
            QueuePlace(1, 0),
        ),
        ([(DRAWING, 1), (TRANSFER | DECODE, 1), (TRANSFER | PROTECTED, 1)], 0, QueuePlace(2, 0)),
        ([(DRAWING, 1), (COMPUTE | TRANSFER | SPARSE, 4), (TRANSFER | SPARSE, 1)], 1, QueuePlace(2, 0)),  # AMD
        ([(DRAWING, 1), (COMPUTE | TRANSFER | SPARSE, 4)], 1, QueuePlace(1, 1)),  # AMD, an older driver
        ([(DRAWING, 2)], 0, QueuePlace(0, 1)),  # Arm
        ([(DRAWING, 1)], 0, None),  # Intel, Mesa's processor
        ([(GRAPHICS, 1)], -1, None),
    ],
)
def test_copies_have_a_family_of_their_own_or_a_second_queue_or_none(
    families: list[tuple[int, int]], computing: int, place: QueuePlace | None
):
    assert copy_queue(families, computing) == place


@pytest.mark.parametrize(
    ("place", "counts"), [(None, {2: 1}), (QueuePlace(1, 0), {2: 1, 1: 1}), (QueuePlace(2, 1), {2: 2})]
)
def test_a_device_is_opened_with_the_queues_that_are_used(place: QueuePlace | None, counts: dict[int, int]):
    assert queue_counts(2, place) == counts


@pytest.mark.parametrize(("place", "families"), [(None, [0]), (QueuePlace(0, 1), [0]), (QueuePlace(1, 0), [0, 1])])
def test_memory_is_of_all_families_whose_queues_use_it(
    place: QueuePlace | None, families: list[int], monkeypatch: pytest.MonkeyPatch
):
    with opened("staged") as backend:
        device = backend.session().device
        device.physical, create = replace(device.physical, copies=place), device.create
        buffer_families: list[tuple[list[int], int]] = []

        def create_noted(kind: str, info: Any) -> Any:
            if kind == "Buffer":
                buffer_families.append(([*info.pQueueFamilyIndices[0 : info.queueFamilyIndexCount]], info.sharingMode))
                info.sharingMode = api().VK_SHARING_MODE_EXCLUSIVE  # the driver has one family
            return create(kind, info)

        monkeypatch.setattr(device, "create", create_noted)
        backend.alloc(ArrayType((1 << 20,), np.dtype(np.float32)))

    modes = api().VK_SHARING_MODE_EXCLUSIVE, api().VK_SHARING_MODE_CONCURRENT
    assert buffer_families == [(families, modes[len(families) > 1])]


def test_a_device_without_another_queue_says_so_and_copies_between_programs():
    with opened("staged") as backend:
        assert doctor._examined(listed(backend)).lacks == (
            "no second queue, prefetched arrays are copied between programs",
        )
        buffer, join = backend.copy_in_aside(X)
        join()
        same(X, backend.copy_out(buffer, buffer.type))


def test_a_device_that_shares_memory_with_the_host_needs_no_queue_and_lacks_none():
    with opened("shared") as backend:
        buffer, join = backend.copy_in_aside(X)
        join()

        same(X, backend.copy_out(buffer, buffer.type))
        assert backend.lacks() == ()
        assert list(backend.memory_stats().pools) == ["device"]


_numbers = itertools.count()


def listed(backend: vulkan.VulkanBackend) -> Device:
    """The device as `rune.devices()` would list it; a device is opened once, by what it is."""
    target = replace(TARGETS[0], description=f"opened for a test {next(_numbers)}")
    return Device(target, SimpleNamespace(open_device=lambda target: backend))


# --- what waits for what ----------------------------------------------------------------------


def test_the_device_supports_copies_beside_programs():
    with two_queues() as late:
        assert isinstance(late.backend, CopiesAside)
        assert late.backend.lacks() == ()


@pytest.mark.parametrize("memory", ["staged", "apart", "cached and staged"])
@pytest.mark.parametrize("nbytes", [1, 100, SIZES[0], SIZES[0] + 1, SIZES[1], 3 * SIZES[1] + 5])
def test_a_copy_has_the_contents_that_the_host_array_had(memory: str, nbytes: int):
    x = (np.arange(nbytes) * 31 % 251).astype(np.uint8)
    before = x.copy()
    with two_queues(memory=memory) as late:
        buffer, join = late.backend.copy_in_aside(x)
        x[:] = 7
        join()

        same(before, late.backend.copy_out(buffer, buffer.type))


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_an_empty_array_needs_no_copy(shape: tuple[int, ...]):
    with two_queues() as late:
        buffer, join = late.backend.copy_in_aside(np.zeros(shape, np.float32))
        join()

        assert not late.copies
        assert late.backend.copy_out(buffer, buffer.type).shape == shape


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_wait_for_a_copy_and_the_host_does_not(seed: int):
    with two_queues(seed) as late:
        run = late.backend.record(chain(3))
        run([late.backend.copy_in(X)])
        late.backend.synchronize()
        late.host_waits.clear()
        buffer, join = late.backend.copy_in_aside(X)
        join()
        y, _ = run([buffer])

        assert (len(late.copies), late.host_waits) == (1, [])
        same(8 * X, late.backend.copy_out(y, y.type))


def test_a_program_that_does_not_use_it_waits_for_no_copy_that_is_not_joined():
    with two_queues() as late:
        run, x = late.backend.record(chain(3)), late.backend.copy_in(X)
        _, join = late.backend.copy_in_aside(X)

        run([x])

        assert not any(s.waits for s in late.programs)
        join()


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_that_a_pending_program_reads_is_written_after_it(seed: int):
    with two_queues(seed) as late:
        run, arguments = late.backend.record(chain(3)), [late.backend.copy_in(X)]
        memory = arguments[0].memory.span
        y, _ = run(arguments)
        arguments.clear()
        threes, join = late.backend.copy_in_aside(np.full_like(X, 3))
        assert threes.memory.span == memory  # from the pool, though a pending kernel reads it
        join()

        same(np.full_like(X, 3), late.backend.copy_out(threes, threes.type))
        same(8 * X, late.backend.copy_out(y, y.type))


@pytest.mark.parametrize("is_joined", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_memory_of_a_pending_copy_is_written_after_it(seed: int, is_joined: bool):
    with two_queues(seed) as late:
        buffer, join = late.backend.copy_in_aside(X)
        memory = buffer.memory.span
        if is_joined:
            join()
        del buffer, join  # without a call, the end of the join is one
        ones = late.backend.copy_in(np.ones_like(X))
        assert ones.memory.span == memory
        late.play(lambda: not late.programs and not late.copies)

        same(np.ones_like(X), late.backend.copy_out(ones, ones.type))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_into_the_memory_of_a_copy_runs_after_it(seed: int):
    with two_queues(seed) as late:
        late.backend.copy_in_aside(X)[1]()
        ones, join = late.backend.copy_in_aside(np.ones_like(X))
        join()

        same(np.ones_like(X), late.backend.copy_out(ones, ones.type))


def test_a_join_in_a_finalizer_calls_no_driver(monkeypatch: pytest.MonkeyPatch):
    with two_queues() as late:
        buffer, join = late.backend.copy_in_aside(X)
        calls = len(late.programs)
        with monkeypatch.context() as patch:
            for name in vars(late.device.vk):
                patch.setattr(late.device.vk, name, lambda *_: pytest.fail("a call of the driver"))
            del buffer, join

        assert len(late.programs) == calls
        assert late.device.joins


@pytest.mark.parametrize("seed", SEEDS)
def test_random_uses_of_memory_are_in_order_under_every_driver(seed: int):
    """Copies, joins, programs, drops and reads in any order; of one size: memory serves again."""
    choose = random.Random(seed)
    with two_queues(seed) as late:
        run = late.backend.record(chain(3))
        waiting: list[tuple[Any, Any, float]] = []
        arrivals: list[tuple[Any, float]] = []

        def send() -> None:
            number = choose.randrange(1000)
            copy_in = late.backend.copy_in_aside if choose.random() < 0.7 else direct
            buffer, join = copy_in(np.full(30, number, np.float32))
            waiting.append((buffer, join, number))

        def direct(x: np.ndarray) -> tuple[Any, Callable[[], None]]:
            return late.backend.copy_in(x), lambda: None

        def take() -> None:
            buffer, join, number = waiting.pop(0)
            join()
            arrivals.append((buffer, number))

        def lose() -> None:
            waiting.pop(choose.randrange(len(waiting)))

        def compute() -> None:
            buffer, number = arrivals.pop(choose.randrange(len(arrivals)))
            product, copy = run([buffer])
            arrivals.extend([(product, 8 * number), (copy, number)])

        def read() -> None:
            buffer, number = arrivals.pop(choose.randrange(len(arrivals)))
            same(np.full(30, number, np.float32), late.backend.copy_out(buffer, buffer.type))

        for _ in range(120):
            possible = [send, *[take, lose] * bool(waiting), *[compute, read, read] * bool(arrivals)]
            choose.choice(possible)()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_imported_array_is_ready_once_the_device_is_synchronized(seed: int):
    with two_queues(seed) as late:
        _, join = late.backend.copy_in_aside(X)
        join()
        second_copy = late.backend.copy_in_aside(X) if seed % 2 else None  # by which programs already wait
        late.backend.synchronize()
        assert late.clocks[number_of(late.device.copies.clock.array[0])] >= 1
        del second_copy


def test_memory_is_given_back_to_the_driver_when_all_copies_have_ended():
    with two_queues() as late:
        late.backend.copy_in_aside(np.ones(1 << 22, np.float32))
        late.backend.session().memory.pool.trim()

        assert not late.copies
        assert late.backend.memory_stats().cached_bytes == 0


def test_memory_in_between_is_used_in_turn_and_waited_for_when_all_of_it_is_in_use():
    x = np.arange((MOST + 3) * SIZES[1] // 4, dtype=np.int32)
    with two_queues() as late:
        buffer, join = late.backend.copy_in_aside(x)
        join()

        assert late.host_waits == [number_of(late.device.copies.clock.array[0])] * 3
        assert late.backend.memory_stats().pools["aside"].allocations == MOST
        same(x, late.backend.copy_out(buffer, buffer.type))


# --- what may go wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_that_fails_halfway_frees_its_memory_after_the_pending_commands(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    x = np.arange(2 * SIZES[1], dtype=np.uint8)
    with two_queues(seed) as late:
        submit = late.device.vk.vkQueueSubmit
        refusal = api().VK_ERROR_OUT_OF_DEVICE_MEMORY
        answers = iter([0, refusal])

        def fails(*args: Any) -> int:
            return next(answers, 0) or submit(*args)

        with monkeypatch.context() as patch:
            patch.setattr(late.device.vk, "vkQueueSubmit", fails)
            with pytest.raises(OutOfMemory, match="cannot submit a copy"):
                late.backend.copy_in_aside(x)
        gc.collect()  # the error's traceback holds the memory
        assert len(late.copies) == 1
        ones = late.backend.copy_in(np.ones_like(x))
        late.play(lambda: not late.programs and not late.copies)

        same(np.ones_like(x), late.backend.copy_out(ones, ones.type))


def test_a_device_that_is_lost_in_a_copy_raises_an_error_and_is_reopened():
    with two_queues() as late:
        _, join = late.backend.copy_in_aside(X)
        device = late.device
        device.vk.vkQueueSubmit, submit = lambda *_: api().VK_ERROR_DEVICE_LOST, device.vk.vkQueueSubmit
        with pytest.raises(DeviceError, match="the device was lost when it had to submit a copy"):
            late.backend.copy_in_aside(X)
        device.vk.vkQueueSubmit = submit
        join()

        assert late.backend.session().device is not device
        device.close()


def test_an_interrupt_in_the_middle_of_a_copy_is_settled_before_the_next(monkeypatch: pytest.MonkeyPatch):
    with two_queues() as late:
        submit = late.device.vk.vkQueueSubmit

        def interrupted(*args: Any) -> int:
            submit(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(late.device.vk, "vkQueueSubmit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                late.backend.copy_in_aside(X)
        for _ in range(3):
            buffer, join = late.backend.copy_in_aside(X)
            join()
            same(X, late.backend.copy_out(buffer, buffer.type))


# --- prefetch ---------------------------------------------------------------------------------


def test_steps_of_prefetch_never_wait_for_programs():
    rows = np.random.default_rng(0).standard_normal((12, 311), dtype=np.float32)
    with two_queues() as late:
        device = listed(late.backend)
        total = rune.jit(lambda x: rnp.sum(x * x, axis=1))
        total(rune.device_put(rows[:2], device)).numpy()
        late.backend.synchronize()
        late.host_waits.clear()
        sums = [total(x) for x in data.arrays(rows).batch(2).prefetch(device)]

        assert late.host_waits == []
        assert len(late.copies) == 6  # none has begun
        np.testing.assert_allclose(np.concatenate([s.numpy() for s in sums]), (rows**2).sum(1), rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_many_arrays_arrive_in_order(seed: int):
    generator = np.random.default_rng(seed)
    batches = [
        {"x": generator.integers(0, 1000, 90 + n % 3, dtype=np.int32), "y": np.full((n % 3, 3), n, np.int32)}
        for n in range(40)
    ]
    with two_queues(seed) as late:
        total = rune.jit(lambda x, y: rnp.sum(x) + rnp.sum(y))
        stages = data.sequence(batches).prefetch(listed(late.backend), depth=3)
        sums = [total(b["x"], b["y"]) for b in stages if b["x"].size != 91]

        expected = [b["x"].sum() + b["y"].sum() for b in batches if b["x"].size != 91]
        assert [int(s) for s in sums] == expected


def test_runs_that_end_early_leave_no_memory_on_the_device():
    rows = np.zeros((64, 1003), np.float32)
    with two_queues() as late:
        device = listed(late.backend)
        for _ in range(20):
            with iter(data.arrays(rows).batch(4).prefetch(device, depth=3)) as run:
                next(run)
        gc.collect()

        assert late.backend.memory_stats().live_bytes == 0


@pytest.mark.parametrize("memory", ["staged", "apart", "cached and staged"])
def test_the_real_driver_takes_the_same_submissions(memory: str):
    """Without the driver in between: one queue is both, or two where there are two."""
    real = with_memory(memory)
    backend = vulkan.VulkanBackend(TARGETS[0], replace(real, copies=real.copies or QueuePlace(real.family, 0)))
    run = backend.record(chain(3))
    for number in range(50):
        buffer, join = backend.copy_in_aside(np.full(30, number, np.float32))
        join()
        y, _ = run([buffer])
        same(np.full(30, 8 * number, np.float32), backend.copy_out(y, y.type))
    assert backend.memory_stats().pools["aside"].allocations <= 3
    backend.close()
