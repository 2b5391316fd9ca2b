"""Out of memory in a plan: its name, its arena, and what is alive in it, with the user's lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import device_named
from rune.backends.shared import host_memory
from rune.backends.shared.shortage import alive_at_once
from rune.errors import OutOfMemory
from rune.lowering.kernel.text import parse
from tests.backends.plans import plan_of
from tests.support import shortage

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
POOLED = [name for name in DEVICES if not name.startswith("cpu")]
SIDE = 1024


def wide(x: Any) -> Any:
    rows = rnp.cumsum(x[:, None] + x[None, :], axis=0)
    columns = rnp.cumsum(rows, axis=1)
    return rnp.sum(columns * rows)


@pytest.mark.parametrize("device", POOLED)
def test_an_error_names_the_plan_its_arena_and_what_is_alive_with_lines(device: str, monkeypatch: pytest.MonkeyPatch):
    x = rune.device_put(np.ones(SIDE, np.float32), device)
    f = rune.jit(wide, device=device)
    shortage.leave(1 << 20, device, monkeypatch)
    monkeypatch.setattr(shortage.pool_of(device), "_free_bytes", None)

    with pytest.raises(OutOfMemory, match=f"wide: cannot run on {device}") as error:
        f(x).block_until_ready()
    message = error.value.message
    arena = rune.explain(wide, device=device)(np.ones(SIDE, np.float32)).costs.arena_bytes
    assert f"its arena takes {arena} B, its results 4 B" in message
    first = wide.__code__.co_firstlineno
    assert any(f"test_shortage.py:{first + k})" in message for k in (1, 2, 3))
    assert "cannot allocate" in message
    assert "smaller batches" in (error.value.hint or "")

    monkeypatch.undo()
    assert np.isfinite(np.asarray(f(x)))


def last_call_refused(repeat: Callable[..., Any]) -> Callable[..., Any]:
    """A list of the driver's calls that seems to have one more, which is refused."""

    def one_more(executable: Any, *args: Any) -> Any:
        plan = repeat(executable, *args)
        return replace(plan, calls=replace(plan.calls, count=plan.calls.count + 1))

    return one_more


@pytest.mark.parametrize("device", [name for name in POOLED if not name.startswith("wgpu")])
def test_a_call_that_is_played_again_names_the_plan_too(device: str, monkeypatch: pytest.MonkeyPatch):
    backend: Any = device_named(device).backend
    code = parse("code twice(x: read f32[3], y: write f32[3]) { for i in 3 grid { store y[i] = x[i] + x[i] } }")
    executable, x = backend.record(plan_of(code)), backend.copy_in(np.ones(3, np.float32))
    executable([x])

    def refuse(*_: object) -> None:
        raise OutOfMemory("pool: cannot allocate 5 B")

    if device.startswith("opencl"):
        monkeypatch.setattr(type(executable), "repeat", last_call_refused(type(executable).repeat))
    if device.startswith("vulkan"):
        # Native code makes the call if the first one has ended, and Python otherwise: both fail.
        monkeypatch.setattr(type(executable), "_repeat", last_call_refused(type(executable)._repeat))
        monkeypatch.setattr(type(backend.session().device), "refuse_list", refuse)
    player = executable.player([x])
    again = {"vulkan": "_run", "opencl": "_go_on"}.get(device.split(":")[0], "run_again")
    monkeypatch.setattr(type(executable), again, refuse)
    with pytest.raises(OutOfMemory, match=f"twice: cannot run on {device}"):
        player.play(x)


def test_the_cpu_names_the_plan_too(monkeypatch: pytest.MonkeyPatch):
    f = rune.jit(wide)

    def refuse(nbytes: int) -> Any:
        raise host_memory.out_of_memory(nbytes)

    host_memory.clear()
    monkeypatch.setattr(host_memory, "aligned", refuse)
    with pytest.raises(OutOfMemory, match=r"wide: cannot run on cpu:0 \(its arena takes"):
        f(np.ones(SIDE + 1, np.float32))
    monkeypatch.undo()
    f(np.ones(SIDE + 1, np.float32))


def test_the_live_values_at_the_peak_add_up_to_the_bytes_of_explain():
    plan = rune.explain(wide)(np.ones(SIDE, np.float32)).plan
    step, uses = alive_at_once(plan, {})

    assert step in {getattr(s, "kernel", "") for s in plan.steps}
    assert sum(use.bytes for use in uses) == plan.live_peak_bytes


def test_memory_reused_by_successive_values_is_counted_once():
    def f(x: Any) -> Any:
        for _ in range(5):
            x = rnp.cumsum(x[::-1])
        return x

    plan = rune.explain(f)(np.ones(1024, np.float32)).plan
    _, uses = alive_at_once(plan, {})
    assert sum(use.bytes for use in uses) == plan.live_peak_bytes


def test_the_arena_of_a_loop_is_one_of_the_values():
    def f(x: Any) -> Any:
        return rune.fori_loop(0, 3, lambda i, v: rnp.cumsum(rnp.cumsum(v[::-1])[::-1]), x)

    plan = rune.explain(f)(np.ones(1000, np.float32)).plan
    _, uses = alive_at_once(plan, {})
    assert any("intermediates of loop of 3" in str(use) for use in uses)


def test_a_plan_without_an_arena_has_nothing_alive():
    plan = rune.explain(lambda x: x + 1.0)(np.ones(3, np.float32)).plan
    assert alive_at_once(plan, {}) == ("", [])


# --- pools by kind ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_memory_is_counted_by_kind_and_the_arrays_are_the_first(device: str):
    np.asarray(rune.jit(lambda x: x + 1.0, device=device)(np.ones(1 << 19, np.float32)))
    stats = rune.memory_stats(device)

    first = "host" if device.startswith("cpu") else "device"
    assert next(iter(stats.pools)) == first
    for name in ("live_bytes", "cached_bytes", "peak_bytes", "allocations", "raw_allocations"):
        assert getattr(stats, name) == getattr(stats.pools[first], name)
    for pool in stats.pools.values():
        assert 0 <= pool.live_bytes <= pool.peak_bytes


def test_the_arena_of_a_plan_on_the_cpu_is_counted_while_the_plan_lives():
    f = rune.jit(wide)
    x = np.ones(SIDE, np.float32)
    before = rune.memory_stats("cpu").live_bytes
    f(x)
    arena = rune.explain(wide)(x).costs.arena_bytes
    assert rune.memory_stats("cpu").live_bytes == before + arena

    f.clear_cache()
    assert rune.memory_stats("cpu").live_bytes == before
