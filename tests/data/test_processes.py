"""Worker processes: the same elements, errors with the user's line, and nothing left behind.

They start by fork here, as spawning a process takes seconds on a busy machine; one test spawns its
workers and sends them the function by pickle.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rune import data
from rune.data import processes, shared_memory
from rune.errors import DataError
from tests.data import functions
from tests.support.close import same
from tests.support.eventually import HANG_S, eventually

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
FORK = data.Processes(2, start="fork")
SHARED = Path(shared_memory._MOUNT)


def shared_files() -> set[str]:
    return {p.name for p in SHARED.glob("rune-data-*")} if SHARED.is_dir() else set()


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Any:
    before = shared_files(), len(multiprocessing.active_children())
    yield
    assert (shared_files(), len(multiprocessing.active_children())) == before


def test_they_change_no_element():
    rows = data.sequence(range(23)).shuffle(0)

    alone = list(rows.map(functions.square).batch(4))
    together = list(rows.map(functions.square, workers=FORK).batch(4))

    same(together, alone)


def test_long_arrays_of_growing_sizes_arrive_whole():
    numbers = [0, 3, 1, 9, 2, 2, 40, 5]

    for number, row in zip(numbers, data.sequence(numbers).map(functions.wide, workers=FORK), strict=True):
        same(row, functions.wide(number))


def test_results_may_be_changed_by_the_caller():
    for row in data.sequence([1, 2]).map(functions.wide, workers=FORK):
        row += 1


def test_elements_that_shared_memory_has_no_room_for_come_through_the_pipe(monkeypatch: pytest.MonkeyPatch):
    def full(file: int, nbytes: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_memory, "_reserve", full)

    for number, row in enumerate(data.sequence(range(7)).map(functions.wide, workers=FORK)):
        same(row, functions.wide(number))


def test_they_take_elements_of_streams():
    stream = data.iterable({"n": n, "x": np.full(50_000, n)} for n in range(9))

    sums = list(stream.map(lambda row: int(row["x"].sum()), workers=FORK).batch(4))

    assert np.concatenate(sums).tolist() == [50_000 * n for n in range(9)]


def test_the_work_is_done_elsewhere_by_all_of_them():
    processes = set(data.sequence(range(8)).map(functions.process_of, workers=FORK))

    assert len(processes) == 2
    assert os.getpid() not in processes


def test_an_error_is_raised_here_with_the_line_of_the_worker():
    with pytest.raises(ValueError, match="five is refused") as error:
        list(data.sequence(range(9)).map(functions.refuse_five, workers=FORK))

    notes = "\n".join(error.value.__notes__)
    assert 'raise ValueError("five is refused")' in notes
    assert "at element 5 of" in notes


def test_an_error_that_cannot_be_pickled_is_reported_by_its_text():
    with pytest.raises(DataError, match="Unsendable: 0 for a reason"):
        list(data.sequence(range(9)).map(functions.raise_unsendable, workers=FORK))


def test_a_worker_that_is_killed_is_an_error_and_no_wait():
    with pytest.raises(DataError, match=r"worker process 1 of 2 was ended by SIGKILL"):
        list(data.sequence(range(9)).map(functions.die_at_five, workers=FORK))


def test_a_worker_that_leaves_is_an_error_and_no_wait():
    with pytest.raises(DataError, match=r"worker process 0 of 2 left with 3"):
        list(data.sequence(range(9)).map(functions.leave, workers=FORK))


def test_a_function_that_pickle_cannot_send_is_refused():
    with pytest.raises(DataError, match="cannot send the function to a process") as error:
        list(data.sequence(range(9)).map(lambda x: x, workers=data.Processes(1, start="spawn")))

    assert "Processes(n, start='fork')" in str(error.value)


def test_a_run_that_ends_early_has_its_workers_end_unkilled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "_STOP_S", HANG_S)  # in which a busy machine lets them end
    killed, kill = [], BaseProcess.kill
    monkeypatch.setattr(BaseProcess, "kill", lambda p: (killed.append(p), kill(p)))
    run = iter(data.sequence(range(1000)).map(functions.wide, workers=FORK))
    next(run)

    run.close()

    assert killed == []
    assert not multiprocessing.active_children()


def test_dropping_the_last_reference_to_a_run_ends_its_workers():
    run = iter(data.sequence(range(1000)).map(functions.wide, workers=FORK))
    next(run)

    del run

    assert eventually(lambda: not multiprocessing.active_children())


def test_a_fork_that_drops_a_run_ends_no_worker_of_its_parent():
    run = iter(data.sequence(range(100)).map(functions.wide, workers=FORK))
    next(run)
    child = os.fork()
    if not child:
        run.close()
        os._exit(0)

    os.waitpid(child, 0)

    same(next(run), functions.wide(1))
    run.close()


def test_two_concurrent_runs_end_separately():
    # A process that is forked later has copies of the first run's pipes.
    first = iter(data.sequence(range(1000)).map(functions.wide, workers=FORK))
    next(first)
    second = iter(data.sequence(range(1000)).map(functions.wide, workers=FORK))
    next(second)

    first.close()

    same(next(second), functions.wide(1))
    second.close()


def test_a_worker_process_cannot_start_processes():
    def inner(n: int) -> list[int]:
        return list(data.sequence(range(n)).map(functions.square, workers=FORK))

    with pytest.raises(DataError, match="cannot start processes in a worker process"):
        list(data.sequence(range(3)).map(inner, workers=FORK))


def test_they_are_spawned_if_function_and_arrays_can_be_pickled(tmp_path: Path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(40_000.0).reshape(4, 10_000))
    workers = data.Processes(1)

    for source in (data.file(path), data.arrays(np.load(path))):
        sums = list(source.map(np.sum, workers=workers).batch(3))
        same(np.concatenate(sums), np.load(path).sum(axis=1))
