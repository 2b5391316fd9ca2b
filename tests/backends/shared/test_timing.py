"""Profiles record every step of a compiled program once per run, on every executor present."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu.timed import TimedExecutable
from rune.backends.shared.protocol import Backend
from rune.backends.shared.timing import TimesSteps
from rune.profiling import PlanProfile, Profile, StepProfile, plan_text
from tests.support.close import same

ROOT = Path(__file__).parents[3]
COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_each_executor = pytest.mark.parametrize("device", COMPUTING)
X = np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64)


def chain(x: Any) -> Any:
    y = rnp.sin(rnp.sum(x[:, None, :] * x[None, :, :], axis=2))
    return rnp.cumsum(y, axis=0)


def looped(x: Any) -> Any:
    return rune.fori_loop(0, 7, lambda i, v: rnp.flip(rnp.sin(v)) + i, x)


def until(x: Any) -> Any:
    def more(carry: Any) -> Any:
        return carry[0] < 5

    return rune.while_loop(more, lambda c: (c[0] + 1, rnp.flip(c[1]) * 0.5), (0, x))[1]


def branching(x: Any) -> Any:
    flip, sin = (lambda v: rnp.flip(v) * 2.0), (lambda v: rnp.cumsum(v, axis=0))
    return rune.cond(rnp.sum(x) > 0, flip, sin, x)


def profiled(function: Callable[[Any], Any], device: str, calls: int) -> tuple[PlanProfile, Any]:
    f = rune.jit(function, device=device)
    reference = np.asarray(f(X))
    with rune.debug.profile() as profile:
        outputs = [np.asarray(f(X)) for _ in range(calls)]
    for output in outputs:
        same(reference, output)
    (plan,) = profile.plans
    assert (plan.name, plan.device, plan.calls) == (function.__name__, device, calls)
    return plan, profile


def launches(plan: PlanProfile) -> dict[str, int]:
    """How often each step of the plan's own ran, without what an executor adds."""
    overhead = ("copy", "copy1", "copy4", "advance", "choose", "hold")
    return {s.name: s.calls for s in plan.steps if s.name not in overhead}


@on_each_executor
def test_each_step_of_a_plan_is_counted_once_a_call(device: str):
    plan, profile = profiled(chain, device, 3)
    names = {s.name for s in rune.explain(chain, device=device)(X).lowered.steps()}

    assert launches(plan) == dict.fromkeys(names, 3)
    assert profile.counters.runs == 3


@on_each_executor
def test_times_are_of_the_device_and_no_more_than_the_calls_took(device: str):
    plan, _ = profiled(chain, device, 3)

    assert all(step.seconds > 0 for step in plan.steps)
    # Clocks of host and device may run apart a little.
    assert sum(step.seconds for step in plan.steps) <= 1.05 * plan.seconds


@on_each_executor
def test_operations_and_bytes_are_those_of_explain_for_each_call(device: str):
    plan, _ = profiled(chain, device, 2)
    costs = {s.name: s for s in rune.explain(chain, device=device)(X).lowered.steps()}

    for step in plan.steps:
        assert step.flops == 2 * costs[step.name].flops
        assert step.bytes_moved == 2 * costs[step.name].bytes_moved
        assert step.flops_per_second == pytest.approx(step.flops / step.seconds)
        assert step.bytes_per_second == pytest.approx(step.bytes_moved / step.seconds)


@on_each_executor
def test_a_step_has_the_line_of_the_user(device: str):
    plan, _ = profiled(chain, device, 1)
    first = chain.__code__.co_firstlineno

    lines = {step.lines for step in plan.steps}
    assert lines <= {f"test_timing.py:{first + k}" for k in (1, 2)}
    assert f"test_timing.py:{first + 2}" in lines


@on_each_executor
def test_steps_within_a_loop_are_counted_as_often_as_they_run(device: str):
    plan, _ = profiled(looped, device, 2)
    assert max(launches(plan).values()) == 14


@on_each_executor
def test_steps_under_a_condition_are_counted_as_often_as_they_run(device: str):
    plan, _ = profiled(until, device, 1)
    assert 5 in launches(plan).values()
    assert max(launches(plan).values()) <= 6  # the condition runs once more


@on_each_executor
def test_the_branch_that_was_not_taken_did_not_run(device: str):
    plan, _ = profiled(branching, device, 1)
    lines = " ".join(s.lines for s in plan.steps)
    assert "cumsum" not in " ".join(launches(plan))
    assert f":{branching.__code__.co_firstlineno + 1}" in lines


@on_each_executor
def test_the_arena_is_that_of_the_plan(device: str):
    plan, _ = profiled(chain, device, 1)
    assert plan.arena_bytes == rune.explain(chain, device=device)(X).costs.arena_bytes


@on_each_executor
def test_symbolic_sizes_are_those_of_each_call(device: str):
    f = rune.jit(lambda x: x * 2.0, dims={"n": (1, 4096)}, device=device)
    with rune.debug.profile() as profile:
        f(np.ones(100, np.float32))
        small = profile.plans[0].steps[0].bytes_moved
        f(np.ones(300, np.float32))
    (step,) = profile.plans[0].steps
    assert (small, step.bytes_moved) == (800, 800 + 2400)


@on_each_executor
def test_nothing_is_timed_outside_of_the_block(device: str):
    f = rune.jit(chain, device=device)
    with rune.debug.profile() as profile:
        f(X)
    before = str(profile)
    f(X)
    assert str(profile) == before


@on_each_executor
def test_every_executor_times_its_steps(device: str):
    backend: Backend = rune.backends.device_named(device).backend
    assert isinstance(backend, TimesSteps)


def test_code_compiled_without_a_profile_stays_unchanged():
    f = rune.jit(chain)
    f(X)
    plain = f.traced(X)
    with rune.debug.profile():
        f(X)
        assert f.traced(X) is not plain
    assert f.traced(X) is plain
    assert not isinstance(plain.on_cpu, TimedExecutable)


def test_an_inner_profile_has_its_calls_for_itself():
    f = rune.jit(chain)
    with rune.debug.profile() as outer:
        f(X)
        with rune.debug.profile() as inner:
            f(X)
            f(X)
    assert (outer.plans[0].calls, inner.plans[0].calls) == (1, 2)


def test_threads_of_one_process_profile_apart():
    f, profiles = rune.jit(chain), {}
    f(X)

    def work(number: int) -> None:
        with rune.debug.profile() as profile:
            for _ in range(number + 1):
                f(X)
        profiles[number] = profile

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {n: profile.plans[0].calls for n, profile in profiles.items()} == {n: n + 1 for n in range(4)}
    ran = sum(step.calls for profile in profiles.values() for step in profile.plans[0].steps)
    assert ran == len(profiles[0].plans[0].steps) * 10


def test_a_backend_without_step_times_reports_whole_calls(monkeypatch: Any):
    f = rune.jit(chain, device="null")
    with rune.debug.profile() as profile:
        f(X)
    (plan,) = profile.plans
    assert (plan.calls, plan.steps) == (1, [])
    assert "chain on null:0: 1 call," in str(profile)


def test_the_table_has_the_longest_step_first_and_rates():
    plan = PlanProfile("f", "cpu:0", 2, 0.003, 4096, processor=0.0025)
    plan.steps.append(StepProfile("sin_0", "demo.py:3", 2, 1e-3, 2_000_000, 4_000_000))
    plan.steps.append(StepProfile("dot", "demo.py:4", 2, 2e-3, 0, 0))

    assert plan_text(plan).splitlines() == [
        "f on cpu:0: 2 calls, 3.00 ms (2.50 ms on a processor), arena 4096 B",
        "step   calls     time  share  GFLOP/s  GB/s  line",
        "dot        2  2.00 ms    67%     0.00  0.00  demo.py:4",
        "sin_0      2  1.00 ms    33%     2.00  4.00  demo.py:3",
    ]


def test_binaries_on_disk_are_counted(tmp_path: Path):
    profiles: list[Profile] = []
    for _ in range(2):
        with rune.configure(cache_dir=str(tmp_path)), rune.debug.profile() as profile:
            rune.jit(lambda x: rnp.cumsum(x) * 3.5, device="cpu")(X)
        profiles.append(profile)
    first, second = (profile.counters for profile in profiles)
    assert (first.disk_hits, first.disk_misses) == (0, 1)
    assert second.disk_hits + second.disk_misses == 1


def test_the_environment_profiles_a_whole_process_and_prints_at_its_end():
    script = "import numpy as np, rune\nf = rune.jit(lambda x: x * 2.0)\nf(np.ones(9, 'f4'))\n"
    process = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "RUNE_DEBUG": "profile"},
    )
    assert process.stdout == ""
    assert "lambda on cpu:0: 1 call" in process.stderr
    assert "GFLOP/s" in process.stderr
