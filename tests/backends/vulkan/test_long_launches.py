"""Vulkan: no submission exceeds the limit on work, and which queue it goes to.

The limit is lowered here, since on a processor launches are not split.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from rune.backends import vulkan
from rune.backends.vulkan.driver import api, compute_family
from rune.lowering.codegen.target import DISCRETE_WORK, INTEGRATED_WORK
from rune.lowering.kernel.text import parse
from rune.lowering.stages import stages
from tests.backends.plans import plan_of, run
from tests.backends.vulkan.cases import CASES, TARGETS, chain, counted, lowered, needs_device, physical
from tests.support.close import close, same
from tests.support.oracle import by_reference

pytestmark = needs_device
POINTS = 10_000
ADD = parse(f"""
code add(x: read i32[{POINTS}], y: write i32[{POINTS}]) {{
  for i in {POINTS} grid {{ store y[i] = x[i] + 1_i32 }}
}}""")
X = np.arange(POINTS, dtype=np.int32)


@contextmanager
def bounded(work: int | None) -> Iterator[vulkan.VulkanBackend]:
    """The first device, which accepts only this much work at once."""
    target = replace(TARGETS[0], submission_work=work)
    backend = vulkan.VulkanBackend(target, physical())
    yield backend
    backend.close()


def called(backend: vulkan.VulkanBackend, name: str, patch: pytest.MonkeyPatch) -> int:
    """How often the second call of `ADD` calls the driver's function."""
    executable = backend.record(plan_of(ADD))
    calls = counted(backend, patch)
    buffers = executable([backend.copy_in(X)])
    same(X + 1, backend.copy_out(buffers[0], buffers[0].type))
    return calls.count(name)


def test_a_launch_of_much_work_is_several_submissions(monkeypatch: pytest.MonkeyPatch):
    with bounded(None) as backend:
        assert called(backend, "vkQueueSubmit", monkeypatch) == 1
    with bounded(9 * POINTS // 4) as backend:
        assert called(backend, "vkQueueSubmit", monkeypatch) >= 4


@pytest.mark.parametrize("name", CASES)
def test_loops_and_branches_of_launches_in_parts_mean_the_same(name: str):
    program, _, args = lowered(name)
    with bounded(8) as backend:
        results = run(backend, stages(program, backend.target).plan, *args)

    for expected, actual in zip(by_reference(program, args), results, strict=True):
        close(np.asarray(expected), actual, ulps=4, why="sums in another order")


def test_many_small_launches_are_several_submissions(monkeypatch: pytest.MonkeyPatch):
    with bounded(5000) as backend:  # of 9 * 100 in each launch
        executable, x = backend.record(chain(60)), backend.copy_in(np.ones(100, np.float32))
        calls = counted(backend, monkeypatch)
        y, _ = executable([x])

        assert 10 <= calls.count("vkQueueSubmit") <= 20
        same(np.full(100, 2.0**60, np.float32), backend.copy_out(y, y.type))


def test_a_processor_is_given_all_at_once():
    vk = api()
    kinds = ("CPU", "DISCRETE_GPU", "INTEGRATED_GPU", "VIRTUAL_GPU", "OTHER")
    devices = [replace(physical(), kind=getattr(vk, f"VK_PHYSICAL_DEVICE_TYPE_{kind}")) for kind in kinds]

    works = [device.submission_work for device in devices]
    assert works == [None, DISCRETE_WORK, INTEGRATED_WORK, INTEGRATED_WORK, INTEGRATED_WORK]


GRAPHICS, COMPUTE, TRANSFER, SPARSE = 1, 2, 4, 8
DRAWING = GRAPHICS | COMPUTE | TRANSFER | SPARSE


@pytest.mark.parametrize(
    ("flags", "family"),
    [
        ([DRAWING, TRANSFER | SPARSE, COMPUTE | TRANSFER | SPARSE], 2),  # NVIDIA
        ([DRAWING, COMPUTE | TRANSFER | SPARSE, TRANSFER | SPARSE], 1),  # AMD
        ([GRAPHICS | COMPUTE | TRANSFER], 0),  # Intel, Arm, Mesa's processor
        ([GRAPHICS | TRANSFER, DRAWING, TRANSFER], 1),
        ([GRAPHICS | TRANSFER], -1),
    ],
)
def test_a_queue_that_draws_nothing_is_preferred(flags: list[int], family: int):
    assert compute_family(flags) == family
