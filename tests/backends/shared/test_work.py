"""Work in flight: counts of submitted and finished work, on every executor present."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.shared.work import KEPT, Work
from rune.errors import DeviceError, DimensionError

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_each_executor = pytest.mark.parametrize("device", COMPUTING)


def idle(device: str) -> int:
    """The calls that have ended, once all have."""
    rune.backends.device_named(device).backend.synchronize()
    stats = rune.work_stats(device)
    assert stats.in_flight == 0
    return stats.finished


@on_each_executor
def test_calls_are_counted_once_and_none_is_in_flight_when_the_device_is_idle(device: str):
    f = rune.jit(lambda x: rnp.sum(rnp.sin(x) * 2.0), device=device)
    x = rune.device_put(np.ones(100, np.float32), device)
    f(x).block_until_ready()
    before = idle(device)

    pending = [f(x) for _ in range(3 * KEPT)]
    assert rune.work_stats(device).submitted == before + len(pending)
    rune.block_until_ready(pending)
    assert idle(device) == before + len(pending)


@on_each_executor
def test_both_totals_only_grow_while_calls_are_pending(device: str):
    f = rune.jit(lambda x: rune.fori_loop(0, 20, lambda _, v: rnp.sin(v), x), device=device)
    x = rune.device_put(np.ones(100, np.float32), device)
    stats = [rune.work_stats(device)]
    for _ in range(30):
        x = f(x)
        stats.append(rune.work_stats(device))

    assert all(a.submitted < b.submitted for a, b in pairwise(stats))
    assert all(a.finished <= b.finished for a, b in pairwise(stats))
    assert all(0 <= s.in_flight for s in stats)


@on_each_executor
def test_a_failed_call_does_not_remain_in_flight(device: str):
    def fail(x: Any) -> Any:
        raise ValueError("the callback fails")

    kind = rune.ShapeDtypeStruct((3,), np.float32)
    f = rune.jit(lambda x: rune.pure_callback(fail, kind, x * 2.0) + 1.0, device=device)
    before = idle(device)

    with pytest.raises(ValueError, match="the callback fails"):
        np.asarray(f(np.ones(3, np.float32)))
    assert idle(device) > before


@on_each_executor
def test_a_call_that_is_refused_before_it_begins_leaves_the_device_idle(device: str):
    f = rune.jit(lambda x: x + 1.0, dims={"n": (2, 5)}, device=device)
    np.asarray(f(np.ones(3, np.float32)))

    with pytest.raises(DimensionError):
        f(np.ones(6, np.float32))
    idle(device)


@on_each_executor
def test_threads_lose_no_count(device: str):
    f = rune.jit(lambda x: x * 3.0, device=device)
    x = rune.device_put(np.ones(10, np.float32), device)
    f(x).block_until_ready()
    before = idle(device)

    def work() -> None:
        for _ in range(25):
            f(x)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert rune.work_stats(device).in_flight >= 0
    for t in threads:
        t.join()
    assert idle(device) == before + 200


def test_calls_finish_in_the_order_of_their_submission():
    work, has_ended = Work(), [False, True]
    for number in range(2):
        work.follow(lambda n=number: has_ended[n])

    assert work.stats().in_flight == 2
    has_ended[0] = True
    assert (work.stats().submitted, work.stats().finished) == (2, 2)


def test_work_of_a_lost_device_counts_as_finished():
    def failing_poll() -> bool:
        raise DeviceError("the device is lost")

    work = Work()
    work.follow(failing_poll)
    assert work.stats().in_flight == 0


def test_few_queries_are_kept_even_if_none_is_polled():
    work = Work()
    for _ in range(10 * KEPT):
        work.follow(lambda: True)
    assert len(work._pending) <= KEPT


def test_a_backend_that_counts_nothing_is_refused_with_its_name(monkeypatch: Any):
    device = rune.backends.device_named("null")
    plain = type("Plain", (), {})()
    monkeypatch.setattr(rune.backends, "_open", lambda _: plain)

    with pytest.raises(DeviceError, match="work_stats: cannot report the work of null:0"):
        rune.work_stats(device)
