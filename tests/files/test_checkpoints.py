"""rune.checkpoints: the newest saved checkpoints exist, and a run resumes from them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import processes
from rune.checkpoints import Manager
from rune.errors import ArgumentError, FileError, FileWarning
from rune.files import trees
from tests.files.kills import saves
from tests.support.eventually import HANG_S


def filled(folder: Path, steps: Any, keep: int | None = 3) -> Manager:
    with Manager(folder, keep) as manager:
        for step in steps:
            manager.save(step, {"w": rnp.full(5, step % 1000)})
    return manager


def test_the_newest_few_stay(tmp_path: Path):
    assert filled(tmp_path, range(7)).steps == (4, 5, 6)
    assert len([*tmp_path.iterdir()]) == 3


def test_without_a_limit_all_checkpoints_stay(tmp_path: Path):
    assert filled(tmp_path, (0, 5, 3, 10**17), keep=None).steps == (0, 3, 5, 10**17)


def test_each_step_comes_back(tmp_path: Path):
    manager = filled(tmp_path, range(3))

    assert [int(manager.restore(step).tree["w"][0]) for step in manager.steps] == [0, 1, 2]
    assert manager.restore().step == manager.latest == 2


def test_resuming_from_a_folder_without_checkpoints_starts_at_the_beginning(tmp_path: Path):
    manager, initial = Manager(tmp_path / "new"), {"w": 1}

    assert manager.resume(initial) == (0, initial)
    assert manager.latest is None
    with pytest.raises(ArgumentError, match="cannot find a checkpoint"):
        manager.restore()


def test_a_resumed_run_gives_the_results_of_an_uninterrupted_one(tmp_path: Path):
    @rune.jit
    def step(state: Any) -> Any:
        key, step_key = rune.random.split(state["key"])
        return {"w": state["w"] * 0.9 + rune.random.normal(step_key, (4,)), "key": key, "n": state["n"] + 1}

    def run(first: int, last: int, state: Any, manager: Manager | None = None) -> Any:
        for number in range(first, last):
            state = step(state)
            if manager is not None:
                manager.save(number + 1, state)
        return state

    start = {"w": rnp.zeros(4), "key": rune.random.key(0), "n": rnp.asarray(0)}
    with Manager(tmp_path) as manager:
        run(0, 5, start, manager)

    first, state = Manager(tmp_path).resume(start)
    restart, one_run = run(first, 9, state), run(0, 9, start)
    assert np.asarray(restart["w"]).tobytes() == np.asarray(one_run["w"]).tobytes()


def test_arrays_donated_or_overwritten_during_a_save_are_saved_with_their_old_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begin, write = threading.Event(), trees.write
    monkeypatch.setattr(trees, "write", lambda *a: (begin.wait(HANG_S), write(*a)))
    w, counts = rnp.ones(1000), np.ones(3)

    with Manager(tmp_path) as manager:
        saving = manager.save(1, (w, counts))
        rune.jit(lambda x: x + 1, donate_argnums=0)(w)
        counts[:] = 7
        assert not saving.done()
        begin.set()
    copy = manager.restore().tree
    assert all((np.asarray(x) == 1).all() for x in copy)


def test_an_error_of_writing_is_raised_by_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    manager = filled(tmp_path, [1])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        saving = manager.save(2, {"w": rnp.ones(3)})
        with pytest.raises(OSError, match="No space left"):
            manager.wait()
    assert isinstance(saving.exception(), OSError)
    manager.wait()  # it is raised once
    assert manager.steps == (1,)


def test_torn_files_are_passed_over_with_a_warning(tmp_path: Path):
    manager = filled(tmp_path, range(3))
    for step, size in ((2, 100), (1, 0)):
        os.truncate(manager.path(step), size)

    with pytest.warns(FileWarning, match="step_00000000[12]") as records:
        step, _ = manager.resume({"w": rnp.zeros(5, "int32")})
    assert (step, len(records), manager.steps) == (0, 2, (0,))
    assert records[0].filename == __file__


def test_requesting_a_torn_file_is_an_error(tmp_path: Path):
    manager = filled(tmp_path, [4])
    os.truncate(manager.path(4), 100)

    with pytest.raises(FileError, match="step_000000004"):
        manager.restore(4)


def test_torn_files_do_not_count_among_those_that_stay(tmp_path: Path):
    manager = filled(tmp_path, range(3))
    for step in (8, 9):
        manager.path(step).write_bytes(b"torn")
    manager.save(3, {"w": rnp.ones(5)}).result(HANG_S)
    manager.wait()

    assert manager.steps == (1, 2, 3)


def test_a_checkpoint_of_another_tree_is_an_error(tmp_path: Path):
    with pytest.raises(ArgumentError, match="the leaf w as f32"):
        filled(tmp_path, [1]).resume({"w": rnp.zeros((5, 2))})


def test_partial_files_of_processes_that_died_long_ago_are_removed(tmp_path: Path):
    old, new = (tmp_path / f".step_00000000{n}.safetensors.0a1b2c3d.partial" for n in (1, 2))
    for file in (old, new):
        file.write_bytes(b"part")
    os.utime(old, (0, 0))

    assert filled(tmp_path, [1]).steps == (1,)
    assert (old.exists(), new.exists()) == (False, True)


def test_other_files_of_the_folder_stay_untouched(tmp_path: Path):
    (tmp_path / "log.txt").write_text("text")

    filled(tmp_path, range(5))

    assert (tmp_path / "log.txt").read_text() == "text"


@pytest.mark.parametrize("step", [-1, 1.0, True, "3", 10**18])
def test_a_step_is_a_number_from_0_on(tmp_path: Path, step: Any):
    with pytest.raises(ArgumentError, match="cannot use the step"):
        Manager(tmp_path).save(step, {})


@pytest.mark.parametrize("keep", [0, -1, 1.5, True])
def test_a_positive_number_of_checkpoints_stays(tmp_path: Path, keep: Any):
    with pytest.raises(ArgumentError, match="cannot keep"):
        Manager(tmp_path, keep)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_waits_for_no_thread_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begin, write = threading.Event(), trees.write
    monkeypatch.setattr(trees, "write", lambda *a: (begin.wait(HANG_S), write(*a)))
    manager = Manager(tmp_path)
    manager.save(1, [1])
    child = os.fork()
    if not child:
        manager.wait()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    begin.set()
    manager.wait()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_checkpoint_reported_as_saved_survives_kills():
    assert not +saves(5)  # ./scripts/stress saves: 200


def test_metadata_that_would_hide_the_step_are_refused(tmp_path: Path):
    with Manager(tmp_path) as manager:
        with pytest.raises(ArgumentError, match="save: cannot note metadata under the name 'step'"):
            manager.save(3, {"w": 1.0}, {"step": "9"})
        manager.save(3, {"w": 1.0}, {"steps": "9"}).result()

    assert manager.steps == (3,)
    assert rune.files.open(manager.path(3)).metadata["steps"] == "9"


def test_metadata_are_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    manager = Manager(tmp_path)
    monkeypatch.setattr(processes, "current", lambda: SimpleNamespace(count=2, index=0))

    with pytest.raises(ArgumentError, match="save: cannot note metadata of several processes"):
        manager.save(3, {"w": 1.0}, {"by": "me"})


def test_a_checkpoint_of_several_processes_is_read_into_a_tree(tmp_path: Path):
    with Manager(tmp_path) as manager:
        rune.distributed.save_checkpoint(tmp_path / "step_000000003", {"w": rnp.ones(2)})

        assert manager.restore(3, {"w": rnp.zeros(2)}).tree["w"].tolist() == [1.0, 1.0]
        with pytest.raises(ArgumentError, match="without a tree"):
            manager.restore(3)
