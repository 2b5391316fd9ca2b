"""Executors cache a bounded number of size combinations, and rebuild what was evicted."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.shared.bounded import SIZES_KEPT, Bounded
from rune.transforms.compile.executables import compiled
from tests.support.close import close

QUEUED = [d.name for d in rune.devices() if d.target.backend in ("opencl", "vulkan", "wgpu")]


def test_the_oldest_entries_go_first():
    cache: Bounded[int, int] = Bounded(3)
    for k in range(5):
        assert cache.keep(k, 10 * k) == 10 * k
    assert dict(cache) == {2: 20, 3: 30, 4: 40}


def test_a_key_keeps_its_first_value():
    cache: Bounded[str, int] = Bounded(3)
    cache.keep("a", 1)
    assert cache.keep("a", 2) == 1


def test_threads_keep_no_more_than_the_limit():
    cache: Bounded[tuple[int, int], int] = Bounded(7)

    def work(number: int) -> None:
        for k in range(200):
            cache.keep((number, k), k)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(cache) == 7


@pytest.mark.parametrize("device", QUEUED)
def test_an_executor_keeps_the_last_sizes_and_is_right_for_all(device: str):
    f = rune.jit(lambda x: rnp.flip(x) * 2.0 + rnp.sum(x), dims={"n": (1, 1000)}, device=device)

    def right(n: int) -> None:
        x = np.arange(n, dtype=np.float32)
        reference = x[::-1] * 2 + np.float32(x.sum())
        close(reference, np.asarray(f(x)), ulps=0, why="whole numbers")

    for n in range(1, SIZES_KEPT + 10):
        right(n)
    for n in (1, 2, SIZES_KEPT + 9):
        right(n)
    trace = f.traced(np.ones(3, np.float32))
    executable: Any = compiled(trace.program, rune.backends.device_named(device))
    names = ("_variants", "_recordings", "_step_commands", "_scripts", "_dispatches")
    caches = [getattr(executable, name) for name in names if hasattr(executable, name)]
    assert caches
    assert len(executable._concretes._plans) == SIZES_KEPT
    assert all(len(cache) <= SIZES_KEPT for cache in caches)
