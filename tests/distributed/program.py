"""Programs under test: `python -m tests.distributed.program NAME…`, or `FAULT STEP`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import numpy as np

from rune import distributed, make_array_from_callback, processes
from rune import numpy as rnp
from rune.backends.mpi import MpiWorld
from rune.checkpoints import Manager
from rune.errors import DistributedError
from rune.sharding import NamedSharding, P, make_mesh

STEPS, FAULTY = 5, 1  # the process that goes wrong
PATIENCE_S = 120.0  # a busy machine may let one process wait for another this long
DEADLINE = 2.0  # of the steps in which no answer is to come


def exchanges() -> None:
    """Arrays of several dtypes, in trees, gathered and sent from one process."""
    me, count = distributed.process_index(), distributed.process_count()
    values = {"x": np.arange(3, dtype="f") + 10 * me, "half": rnp.full(2, me, "bfloat16"), "empty": np.zeros((0, 2))}

    results = distributed.process_allgather(values)
    np.testing.assert_array_equal(results["x"], np.arange(3) + 10 * np.arange(count)[:, None])
    np.testing.assert_array_equal(results["half"].astype("f"), [[n, n] for n in range(count)])
    assert results["half"].dtype == "bfloat16"
    assert results["empty"].shape == (count, 0, 2)

    rows = distributed.process_allgather(np.full((2, 3), me), tiled=True)
    np.testing.assert_array_equal(rows[:, 0], np.repeat(np.arange(count), 2))

    np.testing.assert_array_equal(distributed.broadcast_one_to_all(np.full(3, me)), 0)
    last = distributed.broadcast_one_to_all((me, rnp.full(2, me)), is_source=me == count - 1)
    np.testing.assert_array_equal(np.concatenate([[last[0]], last[1]]), count - 1)

    large = np.full(1_000_003, me, "f8")  # past what one message holds at once
    np.testing.assert_array_equal(distributed.process_allgather(large)[:, -1], np.arange(count))
    distributed.sync_global_devices("the end")


def checkpoints() -> None:
    """The first process writes, and all read."""
    folder = Path(tempfile.gettempdir()) / f"rune-checkpoint-{os.environ.get('PMIX_NAMESPACE', 'alone')}"
    weights = {"w": rnp.arange(6.0).reshape(2, 3), "b": rnp.ones(3, "bfloat16")}
    try:
        distributed.save_checkpoint(folder, weights)
        copy = distributed.load_checkpoint(folder, weights)
        np.testing.assert_array_equal(copy["w"], np.arange(6.0).reshape(2, 3))
        distributed.sync_global_devices("all have read")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def manager() -> None:
    """Arrays cut over all processes, saved and resumed together; what is torn is passed over."""
    rows = NamedSharding(make_mesh((distributed.process_count(),), ("rows",)), P("rows"))
    folder = Path(tempfile.gettempdir()) / f"rune-manager-{os.environ.get('PMIX_NAMESPACE', 'alone')}"

    def state(step: int) -> dict[str, Any]:
        numbers = np.full((6, 2), step, "f")
        w = make_array_from_callback(numbers.shape, rows, lambda i: rnp.asarray(numbers[i]))
        return {"w": w, "step": step, "rate": 0.1 * step}

    try:
        with Manager(folder, keep=2) as steps:
            assert steps.resume(state(0)).step == 0
            for step in (1, 2, 3):
                steps.save(step, state(step)).result()
            assert steps.steps == (2, 3), steps.steps
        distributed.sync_global_devices("all are saved")
        if distributed.process_index() == 0:
            (block, *_) = sorted((folder / "step_000000003").glob("*/0.*"))
            block.write_bytes(block.read_bytes()[:-1] + b"!")
        distributed.sync_global_devices("one is damaged")
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            step, tree = Manager(folder).resume(state(0))
        assert (step, tree["step"], tree["rate"]) == (2, 2, 0.2)
        assert all((shard.data.numpy() == 2).all() for shard in tree["w"].addressable_shards)
        assert any("is damaged" in str(w.message) for w in records)
        distributed.sync_global_devices("all have read")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def background() -> None:
    """Arrays are exchanged while a thread of each process saves; a failure to write reaches all."""
    me = distributed.process_index()
    folder = Path(tempfile.gettempdir()) / f"rune-background-{os.environ['PMIX_NAMESPACE']}"
    may_write, fsync = threading.Event(), os.fsync
    counts = np.full(3, 7)
    try:
        with Manager(folder) as steps:
            with mock.patch("os.fsync", lambda number: (may_write.wait(PATIENCE_S), fsync(number))):
                saving = steps.save(1, {"n": counts, "me": rnp.arange(3)})
                counts[:] = 8
                np.testing.assert_array_equal(distributed.process_allgather(np.full(2, me))[:, 0], range(3))
                assert (saving.done(), steps.steps) == (False, ())
                # Process 0 writes for all: none may let go before the others have looked.
                distributed.sync_global_devices("nothing is saved")
                may_write.set()
                saving.result()
            assert steps.steps == (1,)
            with mock.patch("os.fsync", _full if me == 0 else fsync):
                error = steps.save(2, {"n": counts}).exception()
            assert isinstance(error, OSError if me == 0 else DistributedError), error
            assert "No space left" in str(error)
            with contextlib.suppress(OSError, DistributedError):
                steps.wait()
            assert steps.save(3, {"n": counts}).result() == folder / "step_000000003"
            assert steps.steps == (1, 3)
            with mock.patch.object(steps, "_prune", _full if me == 0 else steps._prune):
                error = steps.save(4, {"n": counts}).exception(timeout=PATIENCE_S)
            assert isinstance(error, OSError if me == 0 else DistributedError), error
            with contextlib.suppress(OSError, DistributedError):
                steps.wait()
            assert steps.steps == (1, 3, 4)
        _, tree = Manager(folder).restore(1, {"n": counts, "me": rnp.arange(3)})
        np.testing.assert_array_equal(tree["n"], 7)
        distributed.sync_global_devices("all have read")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _full(*_: int) -> NoReturn:
    raise OSError(28, "No space left on device")


def fail() -> NoReturn:
    """An error of the user's program."""
    raise ValueError("the data are bad")


def leave() -> NoReturn:
    """An end before the others."""
    sys.exit(0)


def die() -> None:
    """Exit silently."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    """No answer until the others have waited long enough, and failed."""
    world = mpi_world()
    world.deadline = PATIENCE_S
    with contextlib.suppress(DistributedError):
        world.hear("hang", "a topic of no message", [0])


def call_another() -> None:
    """Another call than that of the others."""
    distributed.sync_global_devices("elsewhere")


def send_another_type() -> None:
    """An array of another type."""
    distributed.process_allgather(np.zeros(4, "f"))


PROGRAMS: dict[str, Callable[[], object]] = {f.__name__: f for f in (exchanges, checkpoints, manager, background)}
FAULTS: dict[str, Callable[[], object]] = {
    f.__name__: f for f in (fail, leave, die, hang, call_another, send_another_type)
}


def be_impatient() -> None:
    """Have all processes, which have come as far as this one, wait no longer than for a test."""
    distributed.sync_global_devices("all are here")
    mpi_world().deadline = DEADLINE


def mpi_world() -> MpiWorld:
    """This process among the others."""
    world = processes.current()
    assert isinstance(world, MpiWorld)
    return world


def with_fault(name: str, at: int) -> None:
    """Some steps of all processes, until one of them fails."""
    for step in range(STEPS):
        if step == at and name == "hang":
            be_impatient()
        if step == at and distributed.process_index() == FAULTY:
            FAULTS[name]()
        distributed.process_allgather(np.full(3, step, "f"))


if __name__ == "__main__":
    distributed.initialize(deadline=PATIENCE_S)
    first, *others = sys.argv[1:]
    if first in FAULTS:
        with_fault(first, int(*others))
    else:
        for program in (first, *others):
            PROGRAMS[program]()
