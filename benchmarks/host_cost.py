"""What a call costs the host: µs per plan of 1, 10 and 100 kernels, on every executor.

    python benchmarks/host_cost.py

The kernels are tiny and each needs all of the one before it, so none is fused away: their number
is checked in the plan. "call" is the time until the call returns, of a burst of calls that is
waited for at its end; "done" is the time until the result is there, one call at a time. A plan
that is replayed costs one native call whatever its length: the last column is the call of 10
kernels over that of one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp

KERNELS = (1, 10, 100)
BURST = 20  # calls in flight at once
WIDTH = 16


def chain(count: int) -> Callable[[Any], Any]:
    """A function of `count` kernels, each a sum over what the one before it made."""

    def f(x: Any) -> Any:
        for _ in range(count):
            x = rnp.sin(rnp.sum(x[:, None] * x[None, :], axis=1))
        return x

    return f


def compiled(count: int, device: str) -> Callable[[Any], Any]:
    """The chain on a device, its kernels counted."""
    x = np.ones(WIDTH, np.float32)
    launches = rune.explain(chain(count), device=device)(x).costs.launches
    if launches != count:
        raise SystemExit(f"{count} kernels were meant on {device}, the plan has {launches}")
    return rune.jit(chain(count), device=device)


def medians(f: Callable[[Any], Any], x: Any, rounds: int) -> tuple[float, float]:
    """Time of a call until it returns, and until its result is there. Units: µs."""
    returned, done = [], []
    for _ in range(5):
        f(x).block_until_ready()
    for _ in range(rounds):
        start = time.perf_counter_ns()
        pending = [f(x) for _ in range(BURST)]
        returned.append((time.perf_counter_ns() - start) / BURST)
        rune.block_until_ready(pending)
        start = time.perf_counter_ns()
        f(x).block_until_ready()
        done.append(time.perf_counter_ns() - start)
    return statistics.median(returned) / 1e3, statistics.median(done) / 1e3


def row(device: str, kernels: Sequence[int], rounds: int) -> str:
    """The line of one device."""
    x = rune.device_put(np.full(WIDTH, 0.1, np.float32), device)
    found = [medians(compiled(count, device), x, rounds) for count in kernels]
    cells = [f"{call:.1f} / {done:.1f}" for call, done in found]
    ratio = f"{found[1][0] / found[0][0]:.2f}" if len(found) > 1 else ""
    return "| " + " | ".join([device, *cells, ratio]) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table."""
    here = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
    parser = argparse.ArgumentParser(prog="benchmarks/host_cost.py")
    parser.add_argument("--device", choices=[d.name for d in rune.devices()], action="append")
    parser.add_argument("--kernels", type=int, nargs="+", default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args(argv)
    heads = [f"{n} kernel{'s' if n > 1 else ''}: call / done, µs" for n in options.kernels]
    print("| device | " + " | ".join(heads) + " | call of the second / of the first |")
    print("|" + "---|" * (len(heads) + 2))
    for device in options.device or here:
        print(row(device, options.kernels, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
