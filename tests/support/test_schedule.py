"""The order of files of two workers is that of xdist's own scheduler."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support.schedule import FileScheduling

CONFIG: Any = SimpleNamespace(
    option=SimpleNamespace(loadscopereorder=False, debug=False), getvalue=lambda _: ["popen", "popen"]
)
TESTS = [f"test_{file}.py::test_{n}" for file, count in enumerate([1, 5, 2, 130, 1, 1, 3, 40]) for n in range(count)]


class Worker:
    """A worker that runs nothing: the numbers of the tests that it was sent, in order."""

    def __init__(self, name: str):
        self.gateway, self.shutting_down = SimpleNamespace(id=name), False
        self.numbers: list[int] = []
        self.done = 0

    def send_runtest_some(self, indices: list[int]) -> None:
        self.numbers += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def started(scheduling: type[LoadFileScheduling]) -> tuple[LoadFileScheduling, list[Worker]]:
    scheduler, workers = scheduling(CONFIG), [Worker("gw0"), Worker("gw1")]
    for worker in workers:
        scheduler.add_node(worker)  # type: ignore[arg-type]
    for worker in workers:
        scheduler.add_node_collection(worker, TESTS)  # type: ignore[arg-type]
    scheduler.schedule()
    return scheduler, workers


def run(scheduler: LoadFileScheduling, workers: list[Worker], seed: int, count: int = len(TESTS)) -> None:
    """So many tests, by the worker that chance chooses among those that have one."""
    chance = random.Random(seed)
    for _ in range(count):
        worker = chance.choice([w for w in workers if w.done < len(w.numbers)])
        scheduler.mark_test_complete(worker, worker.numbers[worker.done])  # type: ignore[arg-type]
        worker.done += 1


@pytest.mark.parametrize("seed", range(5))
def test_workers_run_the_tests_that_xdist_would_have_sent_them(seed: int):
    scheduler, workers = started(FileScheduling)
    oracle, expected = started(LoadFileScheduling)

    run(scheduler, workers, seed)
    run(oracle, expected, seed)

    assert [w.numbers for w in workers] == [w.numbers for w in expected]
    assert sorted(n for w in workers for n in w.numbers) == list(range(len(TESTS)))
    assert scheduler.tests_finished
    assert not scheduler.has_pending
    assert all(w.shutting_down for w in workers)


def test_a_worker_that_ends_early_names_the_test_it_was_at():
    scheduler, workers = started(FileScheduling)
    oracle, expected = started(LoadFileScheduling)

    run(scheduler, workers, 0, 20)
    run(oracle, expected, 0, 20)

    # Sent files stay assigned until their last test: the first test of them that is left crashed.
    assert scheduler.has_pending
    for worker, other in zip(workers, expected, strict=True):
        assert scheduler.remove_node(worker) == oracle.remove_node(other)  # type: ignore[arg-type]
