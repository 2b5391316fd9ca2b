"""Many devices for a long time: training that leaks nothing, and collectives with random delays.

RUNE_CPU_DEVICES=8 python -m tests.sharding.soak steps 10000
RUNE_CPU_DEVICES=8 python -m tests.sharding.soak programs 1000

steps      of training on four devices: memory, handles and threads after a tenth and at the end
programs   of random collectives with random delays before each, on two to eight devices: each run
           ends, and its bits are those of a run without delays
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import P, make_mesh

LONGEST_DELAY_S = 2e-3
SLACK_MIB, SLACK = 24, 2  # of memory, that allocators keep; of handles and threads


class Footprint(NamedTuple):
    """The memory, handles and threads of a process."""

    mib: float
    handles: int
    threads: int

    @staticmethod
    def now() -> Footprint:
        """The footprint of this process, read from /proc."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return Footprint(size, len(os.listdir("/proc/self/fd")), threading.active_count())


def training(steps: int) -> str:
    """Train a small network on four devices. Errors: AssertionError if the process grows."""
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=s).astype("f") * 0.3 for s in ((13, 32), (32, 5))]
    rows, targets = draw.normal(size=(64, 13)).astype("f"), draw.normal(size=(64, 5)).astype("f")

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return lax.pmean(((rnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean(), "data")

    def step(weights: Any, x: Any, y: Any) -> Any:
        value, gradient = rune.value_and_grad(loss)(weights, x, y)
        return rune.tree.map(lambda w, g: w - 0.05 * g, weights, gradient), value

    mesh, specs = make_mesh((4,), ("data",)), (P(), P("data"), P("data"))
    update = rune.jit(rune.shard_map(step, mesh=mesh, in_specs=specs, out_specs=(P(), P())))
    losses, early = [], Footprint.now()
    for number in range(steps):
        weights, value = update(weights, rows, targets)
        losses.append(float(value))
        if number == steps // 10:
            early = Footprint.now()
    late = Footprint.now()

    assert losses[-1] < 0.8 * losses[0], losses[:: max(1, steps // 10)]
    assert late.mib - early.mib < SLACK_MIB, (early, late)
    assert max(late.handles - early.handles, late.threads - early.threads) <= SLACK, (early, late)
    return f"{steps} steps: {early} after a tenth, {late} at the end"


# --- random programs ----------------------------------------------------------------------------


def _ring(count: int) -> list[tuple[int, int]]:
    return [(n, (n + 1) % count) for n in range(count)]


COLLECTIVES: list[Callable[[Any, int], Any]] = [
    lambda x, n: lax.psum(x, "a"),
    lambda x, n: x - lax.pmean(x, "a"),
    lambda x, n: lax.pmax(x, "a") * 0.5 + x,
    lambda x, n: lax.ppermute(x, "a", _ring(n)),
    lambda x, n: lax.all_gather(x, "a").mean(axis=0),
    lambda x, n: lax.psum_scatter(rnp.outer(rnp.arange(1.0, n + 1.0), x), "a"),
    lambda x, n: lax.all_to_all(rnp.outer(rnp.arange(1.0, n + 1.0), x), "a", 0, 0).sum(axis=0),
    lambda x, n: lax.scan(lambda c, r: (rnp.tanh(lax.psum(c, "a") * 0.1 + r), None), x, x[:3, None])[0],
    lambda x, n: lax.cond(lax.psum(x[0], "a") > 0, lambda v: lax.psum(v, "a"), lambda v: lax.pmin(v, "a"), x),
]


def random_body(seed: int, devices: int, delays: random.Random | None) -> Callable[[Any], Any]:
    """Some collectives, each behind a delay of the device if there are delays."""
    draw = random.Random(seed)
    collectives = [draw.choice(COLLECTIVES) for _ in range(draw.randint(2, 7))]

    def wait(x: np.ndarray) -> np.ndarray:
        time.sleep(delays.random() * LONGEST_DELAY_S if delays else 0.0)
        return x

    def body(x: Any) -> Any:
        for collective in collectives:
            if delays:
                x = rune.io_callback(wait, rune.ShapeDtypeStruct(x.shape, x.dtype), x)
            x = rnp.sin(collective(x, devices))
        return x

    return body


def programs(count: int) -> str:
    """Run random programs with and without delays. Errors: AssertionError where bits differ."""
    start = time.monotonic()
    for seed in range(count):
        devices = 2 + seed % 7
        x = np.sin(np.arange(devices * 5.0, dtype="f") * (seed + 1))
        run = [
            rune.jit(
                rune.shard_map(
                    random_body(seed, devices, delays),
                    mesh=make_mesh((devices,), ("a",)),
                    in_specs=P("a"),
                    out_specs=P("a"),
                    check_vma=False,
                )
            )
            for delays in (None, random.Random(seed))
        ]
        np.testing.assert_array_equal(*(np.asarray(f(x)) for f in run), err_msg=f"program {seed}")
    return f"{count} programs with delays: the same bits, none waited for ever ({time.monotonic() - start:.0f} s)"


SUBJECTS: dict[str, Callable[[int], str]] = {"steps": training, "programs": programs}

if __name__ == "__main__":
    print(SUBJECTS[sys.argv[1]](int(sys.argv[2])))
