"""Launches of much work are split into parts on every executor whose driver has a watchdog.

The results are the same. The limit is lowered here, since on a processor launches are not split.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import control
from rune.backends.shared.timing import record
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse
from rune.lowering.kernel.work import work
from rune.lowering.stages import lower, stages
from tests.backends.plans import plan_of, run
from tests.support.close import same

NAMES = ("cuda", "opencl", "vulkan", "wgpu")
POINTS = 10_000
X = np.arange(POINTS, dtype=np.int32)
IN_PLACE = parse(f"""
code grow(x: read i32[{POINTS}], y: write i32[{POINTS}]) aliases x = y {{
  for i in {POINTS} grid {{ store y[i] = x[i] + 1_i32 }}
}}""")
GROUPS = parse("""
code turned(x: read i32[6720], y: write i32[6720]) {
  for a in 3 grid {
    for b in 7 grid {
      for c in 5 grid {
        for d in 2 grid {
          alloc s: i32[32] shared
          for t in 32 workgroup {
            store s[t] = x[32*(70*a + 10*b + 2*c + d) + t]
            barrier
            store y[32*(70*a + 10*b + 2*c + d) + t] = s[31 - t]
          }
        }
      }
    }
  }
}""")

Opening = Callable[..., Any]


@pytest.fixture(params=NAMES)
def open_backend(request: pytest.FixtureRequest) -> Opening:
    """Opens a separate device that accepts only this much work at once."""
    name = request.param
    if name in rune.missing():
        pytest.skip(f"no {name} device: {rune.missing()[name]}")

    def opening(work: int | None, **fields: Any) -> Any:
        module = import_module(f"rune.backends.{name}")
        return module.open_device(replace(module.probe()[0][0], submission_work=work, **fields))

    return opening


@pytest.mark.parametrize("launch_groups", [65535, 7])
def test_parts_of_a_launch_change_each_element_once(open_backend: Opening, launch_groups: int):
    backend = open_backend(POINTS // 2, launch_groups=launch_groups)
    executable = backend.record(plan_of(IN_PLACE, donations=[(0, 0)]))
    x = backend.copy_in(X)
    for _ in range(5):
        (x,) = executable([x], donated=(0,))

    same(X + 5, backend.copy_out(x, x.type))


@pytest.mark.parametrize("bound", [1, 200, 5000])
def test_workgroups_along_several_axes_are_divided(open_backend: Opening, bound: int):
    x, y = np.arange(6720, dtype=np.int32), np.empty(6720, np.int32)
    interpret(GROUPS, [x, y])

    same([y], run(open_backend(bound), plan_of(GROUPS), x))


def grown(x: Any) -> Any:
    """A branch in steps as many as a condition asks for, of arrays of several groups."""

    def step(state: Any) -> Any:
        i, v = state
        return i + 1, control.cond(i % 2 == 0, lambda v: v * 2, lambda v: v + 1, v)

    return control.while_loop(lambda s: s[0] < 7, step, (0, x))[1]


def test_launches_within_loops_and_branches_are_divided_too(open_backend: Opening):
    program = rune.make_program(grown)(rnp.asarray(X))
    backend = open_backend(POINTS)
    expected = X
    for i in range(7):
        expected = expected + 1 if i % 2 else expected * 2

    same([expected], run(backend, lower(program, backend.target), X))


def test_a_call_is_the_same_when_it_is_played_again(open_backend: Opening):
    program = rune.make_program(lambda x: rnp.cumsum(rnp.cumsum(x)[::-1]))(rnp.asarray(X))
    backend = open_backend(POINTS)
    executable = backend.record(lower(program, backend.target))
    expected = np.cumsum(np.cumsum(X, dtype=np.int32)[::-1], dtype=np.int32)

    for _ in range(3):
        (y,) = executable([backend.copy_in(X)])
        same(expected, backend.copy_out(y, y.type))


def test_a_profile_counts_a_launch_in_parts_as_one(open_backend: Opening):
    backend = open_backend(POINTS)
    lowering = stages(rune.make_program(lambda x: x * 3 + 1)(rnp.asarray(X)), backend.target)
    executable = record(lowering, backend.target.name, backend)
    with rune.debug.profile() as profile:
        executable([backend.copy_in(X)])

    (row,) = [step for plan in profile.plans for step in plan.steps]
    assert (row.calls, row.flops) == (1, 2 * POINTS)
    assert row.seconds > 0


def test_work_counts_every_thread_and_every_round():
    per_point = "x[i] + 1_i32"  # 4 to read, 1 to add, 4 to write
    for grid, serial in [(1, 1), (7, 1), (7, 100)]:
        text = f"""
        code f(x: read i32[{grid}], y: write i32[{grid}]) {{
          for i in {grid} grid {{ for j in {serial} serial {{ store y[i] = {per_point} }} }}
        }}"""
        assert work(parse(text).body) == math.prod((grid, serial, 9 + 1))
