"""Processes that save are killed: every checkpoint reported as saved exists, and is complete.

`./scripts/stress saves` kills two hundred.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import rune
import rune.numpy as rnp
from rune.checkpoints import Manager

ROWS, HANG_S = 50_021, 600


def state(step: int) -> dict[str, object]:
    """A tree that tells its step everywhere."""
    return {"w": rnp.asarray(np.full(ROWS, step, "int32")), "step": step}


def is_state(tree: dict[str, object], step: int) -> bool:
    """Whether the whole tree is of this step."""
    return tree["step"] == step and bool((np.asarray(tree["w"]) == step).all())


def train(folder: Path, pipe: int) -> None:
    """Save steps without an end, in the folder and in one file, and report each that is saved."""
    with Manager(folder) as manager:
        first = (manager.latest or 0) + 1
        for step in range(first, first + 1_000_000):
            rune.tree.save(folder / "last.npz", state(step))
            manager.save(step, state(step)).result()
            os.write(pipe, step.to_bytes(8, "little"))


def saves(count: int) -> Counter[str]:
    """Kill this many processes at random moments, and check what they reported."""
    outcomes, last_step = Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rune.tree.save(folder / "last.npz", state(0))  # so that children find everything loaded
        for _ in range(count):
            report = _killed(folder, random.uniform(0.01, 0.3), outcomes, is_first=last_step == 0)
            last_step = max(last_step, int.from_bytes(report[-8:], "little")) if report else last_step
            outcomes.update(_losses(folder, last_step))
        outcomes["nothing was saved"] += last_step == 0
        # Each process may have died before it removed an old one; the next one that saves does.
        with Manager(folder) as manager:
            manager.save(last_step + 2, state(last_step + 2))
        outcomes["too many"] += len(manager.steps) > 3
    return outcomes


def _killed(folder: Path, after: float, outcomes: Counter[str], is_first: bool) -> bytes:
    """The reports of a process until it is killed after this many seconds of saving.

    is_first: nothing has been saved yet, and the seconds begin with the first report; a busy
              machine may kill all others before they save.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read_end)
            signal.alarm(HANG_S)
            train(folder, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    with open(read_end, "rb") as reports:
        octets = reports.read(8) if is_first else b""
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        outcomes["not killed"] += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL
        octets += reports.read()
    return octets[: len(octets) // 8 * 8]


def _losses(folder: Path, last_step: int) -> Counter[str]:
    """The faults of a folder in which this step was reported as saved."""
    losses, manager = Counter[str](), Manager(folder)
    losses["lost"] += (manager.latest or 0) < last_step
    losses["torn"] += sum(not is_state(manager.restore(step).tree, step) for step in manager.steps)
    tree = rune.tree.load(folder / "last.npz")
    losses["lost, of one file"] += tree["step"] < last_step or not is_state(tree, tree["step"])
    return losses
