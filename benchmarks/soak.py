"""A long run: thousands of steps must leave memory, handles and threads flat, on every executor.

    python benchmarks/soak.py                                    all that follows
    python benchmarks/soak.py --work training --steps 10000      training steps, on the CPU
    python benchmarks/soak.py --work cycles --steps 1000         compile, run, drop; on every device
    python benchmarks/soak.py --work loops --steps 200           the same with derivatives of loops

Counts are read after a warm-up, and then at regular intervals: rune's arrays that are alive, the
memory of the device for them (rune.memory_stats), that of the process, its open files and threads.
Each is printed as it is read. Exits with 1 when live bytes changed at all, there are more than LATE
new handles or threads, or the process grew by more than GROWTH_BYTES, in cycles and
GROWTH_OF_COMPILING_BYTES for each program. One jump is no growth, wherever the readings fall in it:
the interval that grew most does not count, nor the larger of those beside it.

Nothing that was compiled before is used, by rune or by pocl. A program that pocl finds on disk
needs no compiler; the first that it does not find loads it, 135 MB at an irregular moment.
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import nn, optim

GROWTH_BYTES = 4 << 20
# LLVM's instruction combiner keeps about 4 KiB of each module that it has seen.
GROWTH_OF_COMPILING_BYTES = 8 << 10
LATE = 2  # files that a driver may open, and threads that it may start, after the warm-up
REPORTS = 20
WARM_UP = 100  # steps before the first count: caches are filled, the allocator has its pages


@dataclass(frozen=True, slots=True)
class Reading:
    """Counts after so many steps. Units: bytes; None where the system hides it."""

    step: int
    arrays: int
    live_bytes: int
    device_bytes: int
    resident_bytes: int | None
    handles: int | None
    threads: int | None


def resident_bytes() -> int | None:
    """Memory of this process now, from /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(x for x in status.read_text().splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def entries(folder: str) -> int | None:
    """How many entries a folder of /proc/self has."""
    path = Path("/proc/self") / folder
    return len(os.listdir(path)) if path.exists() else None


def read_counts(step: int, device: str) -> Reading:
    """Count what is alive."""
    gc.collect()
    arrays = [x for x in gc.get_objects() if isinstance(x, rune.Array) and not x.is_deleted()]
    held = rune.memory_stats(device).live_bytes
    live = sum(x.nbytes for x in arrays)
    process = resident_bytes(), entries("fd"), entries("task")
    return Reading(step, len(arrays), live, held, *process)


def training(device: str) -> Iterator[None]:
    """Adam steps of a small network on random data; one per item."""
    random = np.random.default_rng(0)
    optimizer = optim.adam(1e-3)

    def loss(params: Any, images: Any, labels: Any) -> Any:
        hidden = nn.relu(images @ params["in"])
        return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(hidden @ params["out"], labels))

    @functools.partial(rune.jit, device=device)
    def step(params: Any, state: Any, images: Any, labels: Any) -> Any:
        grads = rune.grad(loss)(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    shapes = {"in": (64, 32), "out": (32, 10)}
    params = {k: rnp.asarray(random.normal(0, 0.1, s)) for k, s in shapes.items()}
    state = optimizer.init(params)
    images, labels = random.normal(size=(16, 64)).astype("f4"), random.integers(0, 10, 16)
    while True:
        params, state = step(params, state, images, labels.astype("i4"))
        yield


def cycles(device: str) -> Iterator[None]:
    """Compile a program that was never compiled, run it, drop all; one per item."""
    x = np.ones(1000, np.float32)
    for number in itertools.count():
        f = rune.jit(lambda v, k=number: rnp.sum(rnp.sin(v) * (1.0 + k)), device=device)
        np.asarray(f(x))
        del f
        yield


def loops(device: str) -> Iterator[None]:
    """The same with the gradient of a scan and a branch, of which many programs are made."""
    x = rune.device_put(np.ones(8, np.float32), device)

    def loss(k: int, v: Any) -> Any:
        last, _ = rune.scan(lambda c, a: (rnp.sin(c * a + k), None), 1.0, v)
        return rune.cond(last > 0.0, lambda: last * (1.0 + k), lambda: last)

    for number in itertools.count():
        f = rune.grad(rune.jit(functools.partial(loss, number), device=device))
        np.asarray(f(x))
        del f
        yield


WORK: dict[str, Callable[[str], Iterator[None]]] = {"training": training, "cycles": cycles, "loops": loops}
STEPS = {"training": 10_000, "cycles": 1000, "loops": 200}
COMPILED = {"training": 0, "cycles": 1, "loops": 2}  # programs in a step


def soak(work: Iterator[None], steps: int, device: str, warm_up: int) -> Iterator[Reading]:
    """Counts after the warm-up, and after each of REPORTS parts of the steps."""
    for _ in range(warm_up):
        next(work)
    yield read_counts(0, device)
    for step in range(1, steps + 1):
        next(work)
        if step % max(1, steps // REPORTS) == 0:
            yield read_counts(step, device)


def growth(resident: Sequence[int]) -> int:
    """How much a count grew, but for one jump, which two intervals may share.

    >>> growth([10, 11, 150, 151, 152]), growth([10, 11, 80, 150, 151]), growth([0, 10, 20, 30, 40])
    (2, 2, 20)
    """
    steps = [after - before for before, after in itertools.pairwise(resident)]
    if not steps:
        return 0
    most = steps.index(max(steps))
    beside = [k for k in (most - 1, most + 1) if 0 <= k < len(steps)]
    left_out = {most, *(sorted(beside, key=steps.__getitem__)[-1:])}
    return sum(step for k, step in enumerate(steps) if k not in left_out)


def complaints(readings: Sequence[Reading], growth_bytes: int) -> list[str]:
    """The counts that have grown."""
    failures = []
    for name, slack in (("live_bytes", 0), ("device_bytes", 0), ("handles", LATE), ("threads", LATE)):
        values = [getattr(r, name) for r in readings if getattr(r, name) is not None]
        if values and max(values) - min(values) > slack:
            failures.append(f"{name} went from {min(values)} to {max(values)}")
    resident = [r.resident_bytes for r in readings if r.resident_bytes is not None]
    if growth(resident) > growth_bytes:
        failures.append(f"the process grew by {growth(resident)} bytes besides its largest jump")
    return failures


def report(name: str, device: str, steps: int, warm_up: int) -> list[str]:
    """Run one work on one device, print its table line by line; the counts that have grown."""
    start, readings = time.perf_counter(), []
    columns = Reading.__dataclass_fields__
    print(f"{name} on {device}", "  ".join(columns), sep="\n", flush=True)
    for r in soak(WORK[name](device), steps, device, warm_up):
        readings.append(r)
        shown = ("unknown" if (x := getattr(r, c)) is None else str(x) for c in columns)
        line = "  ".join(x.rjust(len(c)) for x, c in zip(shown, columns, strict=True))
        print(line, flush=True)
    print(f"{time.perf_counter() - start:.1f} s", flush=True)
    allowed = GROWTH_BYTES + GROWTH_OF_COMPILING_BYTES * steps * COMPILED[name]
    return [f"{name} on {device}: {c}" for c in complaints(readings, allowed)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print tables, complain."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(RUNE_CACHE_DIR="", POCL_CACHE_DIR=folder)  # before a driver is loaded
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    here = [d.name for d in rune.devices() if d.target.backend != "null"]
    parser = argparse.ArgumentParser(prog="benchmarks/soak.py")
    parser.add_argument("--work", choices=WORK, action="append")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--device", choices=here, action="append")
    options = parser.parse_args(argv)
    failures: list[str] = []
    for name in options.work or WORK:
        default = ["cpu:0"] if name == "training" else here
        for device in options.device or default:
            failures += report(name, device, options.steps or STEPS[name], options.warm_up)
    print(*(f"NOT FLAT: {c}" for c in failures) if failures else ["flat"], sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
