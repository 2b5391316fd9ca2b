"""A long run: thousands of training steps must leave live memory flat.

    python benchmarks/soak.py --steps 10000

Counts the arrays of rune that are alive, and the memory that the system gave to the process, after
a warm-up and then at regular intervals. Exits with 1 when live bytes changed at all, or the process
grew by more than GROWTH_BYTES.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import nn, optim

GROWTH_BYTES = 4 << 20
REPORTS = 10
WARM_UP = 100  # steps before the first count: caches are filled, the allocator has its pages


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory after so many steps. Units: bytes; resident is None where the system hides it."""

    step: int
    arrays: int
    live_bytes: int
    resident_bytes: int | None


def resident_bytes() -> int | None:
    """Memory of this process now, from /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(x for x in status.read_text().splitlines() if x.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def read_memory(step: int) -> Reading:
    """Count the arrays that are alive."""
    gc.collect()
    found = [x for x in gc.get_objects() if isinstance(x, rune.Array) and not x.is_deleted]
    return Reading(step, len(found), sum(x.nbytes for x in found), resident_bytes())


def training(seed: int) -> Iterator[None]:
    """Adam steps of a small network on random data; one per item."""
    random = np.random.default_rng(seed)
    optimizer = optim.adam(1e-3)

    def loss(params: Any, images: Any, labels: Any) -> Any:
        hidden = nn.relu(images @ params["in"])
        return rnp.mean(
            nn.softmax_cross_entropy_with_integer_labels(hidden @ params["out"], labels)
        )

    @rune.jit
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


def soak(steps: int) -> list[Reading]:
    """Memory after the warm-up, and after each tenth of the steps."""
    run = training(seed=0)
    for _ in range(WARM_UP):
        next(run)
    readings = [read_memory(0)]
    for step in range(1, steps + 1):
        next(run)
        if step % max(1, steps // REPORTS) == 0:
            readings.append(read_memory(step))
    return readings


def complaints(readings: Sequence[Reading]) -> list[str]:
    """What is not flat."""
    first, last, found = readings[0], readings[-1], []
    if any(r.live_bytes != first.live_bytes for r in readings):
        found.append(f"live bytes went from {first.live_bytes} to {last.live_bytes}")
    if first.resident_bytes is not None and last.resident_bytes is not None:
        grown = last.resident_bytes - first.resident_bytes
        if grown > GROWTH_BYTES:
            found.append(f"the process grew by {grown} bytes")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a table, complain."""
    parser = argparse.ArgumentParser(prog="benchmarks/soak.py")
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args(argv)
    start = time.perf_counter()
    readings = soak(options.steps)
    print(f"{'step':>8} {'arrays':>8} {'live bytes':>12} {'resident bytes':>16}")
    for r in readings:
        shown = "unknown" if r.resident_bytes is None else str(r.resident_bytes)
        print(f"{r.step:>8} {r.arrays:>8} {r.live_bytes:>12} {shown:>16}")
    print(f"{time.perf_counter() - start:.1f} s")
    found = complaints(readings)
    print(*(f"NOT FLAT: {c}" for c in found) if found else ["flat"], sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
