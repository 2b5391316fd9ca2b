"""The worker pool: every piece runs once in each call, by any thread, and also after a fork."""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rune.backends.cpu import threads
from rune.backends.cpu.compiler import compile_module
from tests.support.eventually import HANG_S

pytestmark = pytest.mark.skipif(not threads.is_available(), reason="no threads on this system")

# Adds 1 to each word of begin..end; `words` is the array itself.
TASK = compile_module(
    "task",
    """
define void @task(ptr %words, i64 %begin, i64 %end) #0 {
entry:
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %one, label %leave
one:
  %at = getelementptr i64, ptr %words, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  br label %test
leave:
  ret void
}""",
)
_PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def run(total: int, chunk: int, cores: int = 4) -> np.ndarray:
    """How often each point ran."""
    counts = np.zeros(total + 1, np.int64)
    parallel = _PARALLEL(threads.parallel_address(threads.Share(0, 1, cores)))
    parallel(TASK.address("task"), counts.ctypes.data, total, chunk)
    return counts


@pytest.mark.parametrize("total", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("chunk", [1, 3, 64, 5000])
def test_every_point_runs_once(total, chunk):
    counts = run(total, chunk)

    assert (counts[:total] == 1).all()
    assert counts[total] == 0


def test_many_jobs_in_a_row_lose_nothing():
    for _ in range(2000):
        assert (run(40, 5)[:40] == 1).all()


def test_callers_at_once_do_not_mix():
    def call(k: int) -> bool:
        return all((run(100 + k, 7)[: 100 + k] == 1).all() for _ in range(200))

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(call, range(8)))


def test_sleeping_workers_wake_up():
    for _ in range(5):
        threading.Event().wait(0.02)  # longer than they spin
        assert (run(1000, 10)[:1000] == 1).all()


def test_other_threads_take_part():
    thread_ids, is_met = set(), threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def task(words, begin, end):
        thread_ids.add(threading.get_native_id())
        if len(thread_ids) > 1:
            is_met.set()
        is_met.wait(HANG_S)
        is_met.set()  # if nobody has come, nobody will

    parallel = _PARALLEL(threads.parallel_address(threads.Share(0, 1, 4)))
    parallel(ctypes.cast(task, ctypes.c_void_p), None, 40, 1)

    assert len(thread_ids) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_everything_itself():
    run(100, 10)

    child = os.fork()
    if child == 0:
        os._exit(0 if (run(100, 10)[:100] == 1).all() else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_pool_works_where_the_c_library_places_no_threads(monkeypatch):
    monkeypatch.setattr(threads, "can_place", lambda: False)
    pool = threads._pool.__wrapped__(threads.Share(0, 1, 3))
    counts = np.zeros(1001, np.int64)

    for _ in range(100):
        parallel = _PARALLEL(pool.code.address("parallel"))
        parallel(TASK.address("task"), counts.ctypes.data, 1000, 7)

    assert pool.workers == 2
    assert (counts[:1000] == 100).all()
    assert counts[1000] == 0
