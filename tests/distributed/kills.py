"""Kill one of several processes that save together: every reported checkpoint can be read.

python -m tests.distributed.kills 100       so many kills
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rune
import rune.numpy as rnp
from rune import distributed
from rune.checkpoints import Manager
from rune.errors import FileWarning
from rune.sharding import NamedSharding, P, make_mesh
from tests.distributed.faults import LIMIT_S, ROOT, mpirun
from tests.distributed.program import PATIENCE_S

ROWS, PROCESSES = 6_000, 2


def state(step: int, sharding: NamedSharding | None = None) -> dict[str, object]:
    """A tree that tells its step everywhere, cut over all processes."""
    numbers = np.full(ROWS, step, "i4")
    if sharding is None:
        return {"w": rnp.asarray(numbers), "step": step}
    return {"w": rune.make_array_from_callback((ROWS,), sharding, lambda i: rnp.asarray(numbers[i])), "step": step}


def train(folder: Path, victim: int, seconds: float) -> None:
    """Save steps and report each, until one process is killed `seconds` after its first report."""
    rows = NamedSharding(make_mesh((PROCESSES,), ("rows",)), P("rows"))
    manager = Manager(folder)
    first, _ = manager.resume(state(0, rows))
    for step in range(first + 1, first + 1_000_000):
        manager.save(step, state(step, rows)).result()
        with open(folder / f"reported-{distributed.process_index()}", "ab") as report:
            report.write(step.to_bytes(8, "little"))
        if step == first + 1 and distributed.process_index() == victim:
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def reported(folder: Path) -> int:
    """The newest step that a process has reported as saved."""
    reports = [file.read_bytes() for file in folder.glob("reported-*")]
    return max((int.from_bytes(r[: len(r) // 8 * 8][-8:], "little") for r in reports if len(r) >= 8), default=0)


def kills(count: int) -> Iterator[Counter[str]]:
    """Kill a process that many times at any moment, and look at what was reported: after each
    kill, how often what has happened so far."""
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(count):
            arguments = [str(folder), str(number % PROCESSES), str(random.uniform(0.05, 1.5))]
            command = mpirun([1] * PROCESSES, sys.executable, "-m", "tests.distributed.kills", "train", *arguments)
            process = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=LIMIT_S)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FileWarning)  # steps that were not complete
                step, tree = Manager(folder).resume(state(0))
            outcomes["ended without a kill"] += process.returncode == 0
            outcomes["lost"] += step < reported(folder)
            outcomes["mixed"] += tree["step"] != step or bool((np.asarray(tree["w"]) != step).any())
            outcomes["kills"] += 1
            yield +outcomes
        outcomes["nothing was saved"] += reported(folder) == 0
    yield +outcomes


if __name__ == "__main__":
    if sys.argv[1] == "train":
        distributed.initialize(deadline=PATIENCE_S)
        train(Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        for counts in kills(int(sys.argv[1])):
            print(dict(counts), flush=True)
