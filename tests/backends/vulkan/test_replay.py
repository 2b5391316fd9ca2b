"""Vulkan: a plan is recorded once and replayed with one submission; loops stay on the device.

Counts of the driver's calls show what a replay costs; what is recorded shows which loops and
branches need the host; and every loop and branch means what the oracle says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune.backends import vulkan
from rune.backends.shared.executor import Concretes
from rune.backends.vulkan import replay, schedule
from rune.backends.vulkan.driver import api
from rune.backends.vulkan.items import Choice, Repeat, Run, is_recordable, runs_of
from rune.lowering.plan import Launch, Slot, Space
from tests.backends.plans import run
from tests.backends.vulkan.cases import (
    CASES,
    MEMORIES,
    TARGETS,
    VECTOR,
    X,
    chain,
    counted,
    lowered,
    needs_device,
    opened,
)
from tests.backends.vulkan.two_queues import two_queues
from tests.support.close import close, same
from tests.support.oracle import by_reference
from tests.support.sampling import one_in

pytestmark = needs_device


def native(executable: Any, buffer: Any) -> Callable[..., Any]:
    """The native function for calls with such an argument."""
    play = executable.player([buffer]).play
    assert type(play).__name__ == "builtin_function_or_method"
    return play


@pytest.fixture
def backend() -> Iterator[vulkan.VulkanBackend]:
    """A device of this test alone."""
    with opened() as backend:
        yield backend


# --- replay -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 100])
def test_a_replay_is_one_submission_however_many_kernels_it_has(backend, monkeypatch, length):
    executable = backend.record(chain(length))
    x = backend.copy_in(np.ones(5, np.float32))
    calls = counted(backend, monkeypatch)
    executable([x])
    backend.synchronize()
    calls.clear()

    executable([x])

    assert [c for c in calls if c != "vkGetSemaphoreCounterValue"] == ["vkQueueSubmit"]


def test_calls_in_flight_share_neither_table_nor_arena(backend):
    executable = backend.record(chain(60))
    inputs = [np.full(100, k, np.float32) for k in range(40)]

    results = [executable([backend.copy_in(x)])[0] for x in inputs]

    for x, result in zip(inputs, results):
        same(x * np.float32(2.0**60), backend.copy_out(result, result.type))


def test_more_calls_in_flight_than_recordings_wait_for_the_oldest(backend):
    executable = backend.record(chain(5))
    x = backend.copy_in(np.ones(5, np.float32))

    for _ in range(50):
        executable([x])

    (variant,) = executable._variants.values()
    assert 1 <= len(variant.recordings) <= replay.IN_FLIGHT


def test_native_calls_in_flight_have_tables_of_their_own_however_late_the_device_is():
    with two_queues() as late:
        backend, inputs = late.backend, [np.full(30, k, np.float32) for k in range(replay.IN_FLIGHT + 9)]
        executable, buffers = backend.record(chain(5)), [backend.copy_in(x) for x in inputs]
        for _ in range(3):
            executable([buffers[0]])
        play = native(executable, buffers[0])

        results = [play(buffer) for buffer in buffers]

        for x, (result, _) in zip(inputs, results, strict=True):
            same(x * np.float32(2.0**5), backend.copy_out(result, result.type))


def test_a_native_call_on_memory_of_a_lost_device_is_not_made(backend):
    executable, x = backend.record(chain(2)), backend.copy_in(np.ones(5, np.float32))
    executable([x])
    play = native(executable, x)
    backend.session().device.failure(api().VK_ERROR_DEVICE_LOST, "submit work")
    y = backend.copy_in(np.ones(5, np.float32))
    executable([y])
    play_now = native(executable, y)

    assert play(x) is play(y) is play_now(x) is None
    same(np.full(5, 4, np.float32), backend.copy_out(play_now(y)[0], y.type))


def test_a_barrier_stands_only_between_launches_that_touch_the_same_bytes(backend, monkeypatch):
    x = Slot(Space.ARGUMENT, VECTOR)
    apart = [Launch("double", (x, Slot(Space.ARENA, VECTOR, offset=400 * k))) for k in range(4)]
    end = Launch("double", (Slot(Space.ARENA, VECTOR, offset=1200), Slot(Space.RESULT, VECTOR)))
    plan = replace(chain(1), results=(VECTOR,), steps=(*apart, end), arena_bytes=1600)
    executable = backend.record(plan)
    calls = counted(backend, monkeypatch)

    executable([backend.copy_in(np.ones(5, np.float32))])

    commands = [c for c in calls if c in ("vkCmdDispatch", "vkCmdPipelineBarrier")]
    launch, barrier = "vkCmdDispatch", "vkCmdPipelineBarrier"
    assert commands == [barrier, *[launch] * 4, barrier, launch, barrier]


# --- loops and branches -----------------------------------------------------------------------


@pytest.fixture(scope="module", params=MEMORIES)
def device(request) -> Iterator[vulkan.VulkanBackend]:
    """Devices whose memory the host sees, in part, or not."""
    with opened(request.param) as backend:
        yield backend


@pytest.mark.parametrize("name", one_in(2, list(CASES)))
def test_a_loop_or_branch_agrees_with_the_oracle(device, name):
    program, plan, args = lowered(name)

    results = run(device, plan, *args)

    for expected, actual in zip(by_reference(program, args), results, strict=True):
        close(np.asarray(expected), actual, ulps=4, why="sums in another order")


def scheduled(name: str) -> schedule.Schedule:
    """The recorded plan of a case."""
    _, plan, args = lowered(name)
    backend = vulkan.open_device(TARGETS[0])
    return schedule.schedule(plan, Concretes(plan)([a.shape for a in args]), backend.record(plan).kernels)


def test_a_counted_loop_is_some_steps_that_are_submitted_again_and_again():
    items = scheduled("many steps").items

    (repeat,) = (i for i in items if isinstance(i, Repeat))
    steps = [r for r in runs_of(repeat.items) if r.kernel == "%advance"]
    advances = [r for r in items if isinstance(r, Run) and r.kernel == "%advance"]
    assert len(repeat.items) <= schedule.UNROLLED
    assert len(steps) * repeat.count + len(advances) == 1001


def test_branches_wait_at_gates_and_need_no_host():
    items = scheduled("branches in steps").items

    assert all(map(is_recordable, items))
    assert any(run.gate is not None for run in runs_of(items))


def test_only_a_branch_of_many_launches_is_chosen_by_the_host():
    items = scheduled("a long branch taken").items

    assert [type(i) for i in items if not is_recordable(i)] == [Choice]


def test_the_host_looks_at_a_condition_only_after_some_steps(backend, monkeypatch):
    _, plan, _ = lowered("many steps of a while")
    executable = backend.record(plan)
    executable([backend.copy_in(X)])
    backend.synchronize()
    calls = counted(backend, monkeypatch)

    count, _ = executable([backend.copy_in(X)])

    assert int(backend.copy_out(count, count.type)) > 50
    assert calls.count("vkWaitSemaphores") < 12
