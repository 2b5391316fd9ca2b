"""What a search for schedules gains over the defaults: thirty kernels on one device.

    python benchmarks/search.py                                 on the CPU, ten seconds for each
    python benchmarks/search.py --device opencl --seconds 30
    python benchmarks/search.py --cases 'sum of*' --check       exit 1 if a bar is broken

Every kernel is searched from nothing, as `rune.tune` does it. Then its winner and its default run
in turns once more, on other values, in rounds that the search has not seen: `again` is the median
of their ratios. The bars: a third of the kernels at least 10 % faster, and none slower.
"""

from __future__ import annotations

import argparse
import fnmatch
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import lax
from rune.backends import Device, device_named
from rune.lowering.build.schedule import parse
from rune.lowering.build.space import candidates
from rune.lowering.kernels import Kernel
from rune.lowering.stages import stages
from rune.lowering.steps import step_costs
from rune.transforms.tuning.report import TunedKernel
from rune.transforms.tuning.search import Budget, search
from rune.transforms.tuning.trials import Trials

ROUNDS = 31
FASTER, SLOWER = 0.9, 1.05  # of the default's time; rounds of one and the same kernel differ by as much as the second
SHARE = 1 / 3

_rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    """Values of a normal distribution, f32."""
    return _rng.normal(size=shape).astype(np.float32)


def _softmax(x: Any) -> Any:
    e = rnp.exp(x - rnp.max(x, axis=1, keepdims=True))
    return e / rnp.sum(e, axis=1, keepdims=True)


def _normalised(x: Any) -> Any:
    return (x - rnp.mean(x, axis=1, keepdims=True)) / rnp.sqrt(rnp.var(x, axis=1, keepdims=True) + 1e-5)


def _stencil(x: Any) -> Any:
    return 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


def _windows(x: Any) -> Any:
    return lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


CASES: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "add": (lambda x, y: x + y, (floats(1000, 1000), floats(1000, 1000))),
    "gelu": (lambda x: 0.5 * x * (1 + rnp.tanh(0.8 * (x + 0.045 * x**3))), (floats(1000, 1000),)),
    "bias and relu": (lambda x, b: rnp.maximum(x + b, 0), (floats(1000, 1000), floats(1000))),
    "outer product": (lambda x, y: x[:, None] * y[None], (floats(1000), floats(1000))),
    "transpose": (lambda x: x.T * 2, (floats(1000, 1000),)),
    "axes 2, 0, 1": (lambda x: rnp.transpose(x, (2, 0, 1)) + 1, (floats(64, 96, 64),)),
    "axes 1, 2, 0": (lambda x: rnp.transpose(x, (1, 2, 0)) + 1, (floats(64, 96, 64),)),
    "channels last": (lambda x: rnp.transpose(x, (0, 2, 3, 1)) + 1, (floats(8, 16, 32, 32),)),
    "flip": (lambda x: x[::-1, ::-1] * 2, (floats(1000, 1000),)),
    "concatenate": (lambda x, y: rnp.concatenate([x, y], 1) + 1, (floats(500, 500), floats(500, 500))),
    "stencil": (_stencil, (floats(1000, 1000),)),
    "max pooling": (_windows, (floats(8, 16, 64, 64),)),
    "sum of rows": (lambda x: rnp.sum(x, axis=1), (floats(1000, 1000),)),
    "sum of short rows": (lambda x: rnp.sum(x, axis=1), (floats(20_000, 24),)),
    "sum of columns": (lambda x: rnp.sum(x, axis=0), (floats(1000, 1000),)),
    "sum of the middle": (lambda x: rnp.sum(x, axis=1), (floats(64, 64, 96),)),
    "sum of two axes": (lambda x: rnp.sum(x, axis=(0, 2)), (floats(64, 64, 96),)),
    "sum of all": (rnp.sum, (floats(700, 700),)),
    "maxima": (lambda x: rnp.max(x, axis=1), (floats(1000, 512),)),
    "places of maxima": (lambda x: rnp.argmax(x, axis=1), (floats(1000, 512),)),
    "places in columns": (lambda x: rnp.argmax(x, axis=0), (floats(512, 1000),)),
    "softmax": (_softmax, (floats(512, 1000),)),
    "layer norm": (_normalised, (floats(1000, 256),)),
    "square distances": (
        lambda x, y: rnp.sum((x[:, None] - y[None]) ** 2, axis=-1),
        (floats(300, 16), floats(300, 16)),
    ),
    "taxicab of columns": (
        lambda x, y: rnp.sum(rnp.abs(x[:, :, None] - y[:, None]), axis=0),
        (floats(16, 300), floats(16, 300)),
    ),
    "rows by index": (lambda x, i: x[i], (floats(1000, 64), _rng.integers(0, 1000, 5000).astype(np.int32))),
    "running sum": (lambda x: rnp.cumsum(x, axis=1), (floats(500, 500),)),
    "weighted mean": (lambda x, w: rnp.sum(x * w[:, None], axis=0) / rnp.sum(w), (floats(700, 600), floats(700))),
    "any beyond": (lambda x: rnp.any(x > 4, axis=1), (floats(1000, 1000),)),
    "sum of bytes": (lambda x: rnp.sum(x, axis=1), (_rng.integers(0, 99, (1000, 1000)).astype(np.uint8),)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel, its search, and the winner's ratio in the rounds after it."""

    case: str
    tuned: TunedKernel
    again: float

    def __str__(self) -> str:
        t = self.tuned
        times = f"{1e6 * t.default_seconds:9.1f} µs {t.ratio:6.2f} {self.again:6.2f}"
        return f"{self.case:20} {times} {t.tried:5}/{t.candidates:<5} {t.default} -> {t.winner}"


def heaviest(function: Callable[..., Any], arguments: Sequence[np.ndarray], device: Device) -> tuple[Kernel, Any]:
    """The kernel of a function that moves most bytes, and its default schedule."""
    lowered = stages(rune.jit(function).program(*arguments), device.target)
    costs = {c.name: c.bytes_moved for c in step_costs(lowered.kernels, lowered.plan)}
    name = max(lowered.kernels.kernels, key=lambda n: costs.get(n, 0))
    return lowered.kernels.kernels[name], lowered.schedules[name]


def row(case: str, device: Device, seconds: float) -> Row:
    """One case searched, and measured again."""
    kernel, default = heaviest(*CASES[case], device)
    space = list(candidates(kernel, device.target))
    trials = Trials(kernel, device, {}, seed=0)
    outcome = search(default, space, trials.prepare, Budget(seconds, perf_counter), 0, lambda *_: None)
    fresh = Trials(kernel, device, {}, seed=1)
    tuned = TunedKernel.of(kernel.name, outcome)
    if outcome.winner == default:
        return Row(case, tuned, 1.0)
    standard = fresh.prepare(default)
    winner = fresh.prepare(parse(tuned.winner))
    ratios = [_ratio(winner, standard, number) for number in range(ROUNDS)]
    return Row(case, tuned, statistics.median(ratios))


def _ratio(winner: Callable[[], float], standard: Callable[[], float], number: int) -> float:
    """The winner's time over the default's. They take turns to run first."""
    if number % 2:
        return winner() / standard()
    time = standard()
    return winner() / time


def summary(rows: Sequence[Row]) -> str:
    """How many kernels are faster, and by how much all of them are."""
    faster = sum(r.again <= FASTER for r in rows)
    slower = [r.case for r in rows if r.again > SLOWER]
    mean = math.exp(statistics.fmean(math.log(r.again) for r in rows))
    much = f"{faster} of {len(rows)} at least 10 % faster"
    return f"{much}, slower: {', '.join(slower) or 'none'}, geometric mean {mean:.2f}"


def main() -> int:
    """Print the table; return 1 with --check if a bar is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each kernel")
    parser.add_argument("--cases", nargs="*", default=["*"])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is broken")
    options = parser.parse_args()
    device = device_named(options.device)
    print(f"{device}\n{'kernel':20} {'default':>12} {'ratio':>6} {'again':>6} {'tried':>11} schedule")
    rows = []
    for case in CASES:
        if any(fnmatch.fnmatch(case, pattern) for pattern in options.cases):
            rows.append(row(case, device, options.seconds))
            print(rows[-1], flush=True)
    print(summary(rows))
    broken = sum(r.again <= FASTER for r in rows) < SHARE * len(rows) or any(r.again > SLOWER for r in rows)
    return int(options.check and broken)


if __name__ == "__main__":
    sys.exit(main())
