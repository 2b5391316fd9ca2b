"""Ten thousand starts and stops of pipelines: no deadlock, and no thread, process or memory left.

    python -m tests.data.soak                    10,000 runs: some minutes
    python -m tests.data.soak --times 100        fewer
    python -m tests.data.soak --seed 7           another choice of pipelines

Each run has a different pipeline, with threads, processes, prefetching, or several of these, also
nested. It runs to its end, or ends early, by an error, by an interrupt, by being dropped, or in a
reference cycle that the garbage collector finds. Its elements are compared with the expected list.
A run that takes a minute counts as a deadlock: all stacks are printed, and the process ends.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rune import data
from rune.data import shared_memory
from tests.support.eventually import eventually

HANG_S = 60
SIZE = 40
START = "fork" if hasattr(os, "fork") else "spawn"


class Planned(Exception):
    """An error of a mapped function."""


def tripled(x: Any) -> Any:
    return x * 3


def widened(x: Any) -> Any:
    """Enough bytes for shared memory."""
    return np.full(10_000, x)


def narrowed(x: Any) -> Any:
    return x.reshape(-1, 10_000)[:, 0] if x.size > 10_000 else x[0]


def nested(x: Any) -> Any:
    return next(iter(data.sequence([x]).map(tripled, workers=2).prefetch("cpu")))


class Failing:
    """A function that raises at one element."""

    def __init__(self, at: int):
        self.at = at

    def __call__(self, x: Any) -> Any:
        if int(np.max(x)) == self.at:
            raise Planned(self.at)
        return x


def pipeline(choice: random.Random, share_of_processes: float) -> data.Pipeline:
    """Multiples of 3, by some way."""
    stages = data.sequence(range(SIZE)) if choice.random() < 0.6 else data.iterable(range(SIZE))
    workers: Any = choice.choice([None, 1, 2, 3])
    if choice.random() < share_of_processes:
        workers = data.Processes(choice.choice([1, 2]), start=START)  # type: ignore[arg-type]
    stages = stages.map(nested if choice.random() < 0.1 and isinstance(workers, int) else tripled, workers)
    if choice.random() < 0.3:
        stages = stages.map(widened, workers).map(narrowed)
    if choice.random() < 0.3:
        stages = stages.map(Failing(3 * choice.randrange(2 * SIZE)), choice.choice([None, 2]))
    if choice.random() < 0.5:
        stages = stages.batch(choice.choice([1, 3, SIZE, 2 * SIZE]))
    if choice.random() < 0.6:
        stages = stages.prefetch(choice.choice(["cpu", None]), depth=choice.choice([1, 2, 5]))
    return stages.map(np.asarray)


# --- ends: each gives the elements that came --------------------------------------------------


def to_the_end(stages: data.Pipeline, choice: random.Random) -> list[Any]:
    return list(stages)


def early(stages: data.Pipeline, choice: random.Random) -> list[Any]:
    count = choice.randrange(SIZE)
    with iter(stages) as run:
        return [x for x, _ in zip(run, range(count))]


def dropped(stages: data.Pipeline, choice: random.Random) -> list[Any]:
    run = iter(stages)
    elements = [next(run, np.zeros(0, int)) for _ in range(choice.randrange(4))]
    del run
    return elements


def in_a_cycle(stages: data.Pipeline, choice: random.Random) -> list[Any]:
    run = iter(stages)
    elements = [next(run, np.zeros(0, int)) for _ in range(choice.randrange(4))]
    cycle: list[Any] = [run]
    cycle.append(cycle)
    return elements


def interrupted(stages: data.Pipeline, choice: random.Random) -> list[Any]:
    elements: list[Any] = []
    timer = threading.Timer(choice.random() * 0.01, os.kill, (os.getpid(), signal.SIGINT))
    with suppress(KeyboardInterrupt):
        try:
            timer.start()
            with iter(stages) as run:
                for x in run:
                    elements.append(x)
        finally:
            timer.join()  # the interrupt comes here, if not before
    return elements


ENDS: tuple[Callable[..., list[Any]], ...] = (to_the_end, early, dropped, in_a_cycle, interrupted)


def shared_files() -> int:
    return sum(1 for _ in Path(shared_memory._MOUNT).glob("rune-data-*")) if os.path.isdir(shared_memory._MOUNT) else 0


def leftovers() -> dict[str, int]:
    """The threads, processes and shared files that pipelines have left."""
    return {
        "threads": sum(t.name.startswith("rune-data") for t in threading.enumerate()),
        "processes": len(multiprocessing.active_children()),
        "shared files": shared_files(),
    }


def one(choice: random.Random, share_of_processes: float) -> str:
    """The fault of one run; empty if there is none."""
    stages, end = pipeline(choice, share_of_processes), choice.choice(ENDS)
    try:
        elements = [np.atleast_1d(x) for x in end(stages, choice)]
    except Planned:
        return ""
    numbers = np.concatenate([np.zeros(0, int), *elements])
    expected = 3 * np.arange(len(numbers))
    return "" if np.array_equal(numbers, expected) else f"{end.__name__}: other elements"


def main(arguments: list[str] | None = None) -> int:
    """Run them, print what went wrong, and fail if something did."""
    parser = argparse.ArgumentParser(description="starts and stops of pipelines")
    parser.add_argument("--times", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=float, default=0.1, help="share of the runs with worker processes")
    options = parser.parse_args(arguments)
    wrong: Counter[str] = Counter()
    before, begin = leftovers(), time.monotonic()
    for number in range(options.times):
        faulthandler.dump_traceback_later(HANG_S, exit=True, file=sys.__stderr__ or 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads
            problem = one(random.Random(f"{options.seed} {number}"), options.processes)
        if problem:
            wrong[problem] += 1
            print(f"run {number}: {problem}")
    faulthandler.cancel_dump_traceback_later()
    gc.collect()
    # Runs that were dropped end by themselves.
    eventually(lambda: all(n <= before[name] for name, n in leftovers().items()))
    after = leftovers()
    wrong.update({f"{name} left": n - before[name] for name, n in after.items() if n > before[name]})
    seconds = time.monotonic() - begin
    print(f"starts and stops: {options.times}, {sum(wrong.values())} wrong ({seconds:.0f} s) {dict(wrong) or ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
