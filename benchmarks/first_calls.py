"""First calls in fresh processes: tracing, compiling and running, beside JAX.

    python benchmarks/first_calls.py                              # rune alone, cold and warm
    python benchmarks/first_calls.py --jax /path/to/its/python    # and JAX, in its environment

The time is the processor's, from the first call until its result is there; imports of the library,
with the rooms that a case uses, and the making of arguments come before. Each number is the least
of several processes. Cold is without kernels on disk, warm with those that an earlier process left.
JAX is measured as it is by default, without a cache on disk. The bars are geometric means of the
ratios to that.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

COLD, WARM = 0.5, 0.1
ROOMS = ("", ".numpy", ".lax", ".nn", ".scipy.linalg")
Program = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def normal(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Normal numbers in f32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def elementwise(core: Any, xp: Any) -> Program:
    """A chain of a few functions."""
    return lambda a, b: xp.tanh(a) * b + xp.exp(-a * a), (normal((64, 65), 1), normal((64, 65), 2))


def softmax(core: Any, xp: Any) -> Program:
    """A product and the softmax of its rows."""
    return lambda x, w: core.nn.softmax(x @ w, axis=-1), (normal((32, 48), 1), normal((48, 33), 2))


def mlp(core: Any, xp: Any) -> Program:
    """A step of gradient descent on a network of two layers."""

    def loss(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = weights
        logits = core.nn.relu(x @ w1 + b1) @ w2 + b2
        return -xp.mean(xp.sum(core.nn.one_hot(y, 10) * core.nn.log_softmax(logits), -1))

    def step(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
        value, slopes = core.value_and_grad(loss)((w1, b1, w2, b2), x, y)
        return value, [w - 0.01 * g for w, g in zip((w1, b1, w2, b2), slopes, strict=True)]

    arrays = normal((64, 128), 1), normal((128,), 2), normal((128, 10), 3), normal((10,), 4)
    return step, (*arrays, normal((32, 64), 5), np.arange(32, dtype=np.int32) % 10)


def recurrent(core: Any, xp: Any) -> Program:
    """The gradient of a recurrent network."""

    def loss(w: Any, u: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = xp.tanh(h @ w + x @ u)
            return h, h

        _, states = core.lax.scan(step, xp.zeros((8, 16), "float32"), xs)
        return xp.sum(states * states)

    return core.grad(loss, argnums=(0, 1)), (normal((16, 16), 1), normal((5, 16), 2), normal((20, 8, 5), 3))


def solver(core: Any, xp: Any) -> Program:
    """Newton's iteration for square roots, until all are there."""

    def is_open(state: Any) -> Any:
        k, x, a = state
        return (k < 50) & (xp.max(abs(x * x - a)) > 1e-4)

    def step(state: Any) -> Any:
        k, x, a = state
        return k + 1, 0.5 * (x + a / x), a

    return lambda a: core.lax.while_loop(is_open, step, (0, xp.ones_like(a), a))[1], (abs(normal((100,), 1)) + 0.5,)


def conv(core: Any, xp: Any) -> Program:
    """A convolution, a bias and relu."""

    def layer(x: Any, w: Any, b: Any) -> Any:
        y = core.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return core.nn.relu(y + b)

    return layer, (normal((4, 16, 16, 8), 1), normal((3, 3, 8, 16), 2), normal((16,), 3))


def process(core: Any, xp: Any) -> Program:
    """The likelihood of a Gaussian process and its gradient."""

    def likelihood(p: Any, x: Any, y: Any) -> Any:
        distance = xp.sum((x[:, None] - x[None]) ** 2 * xp.exp(-p[0]), -1)
        covariance = xp.exp(p[1]) * xp.exp(-0.5 * distance) + xp.exp(p[2]) * xp.eye(len(y))
        factor = xp.linalg.cholesky(covariance)
        weights = core.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ weights + xp.sum(xp.log(xp.diag(factor)))

    return core.value_and_grad(likelihood), (np.array([0, 0, -2], np.float32), normal((40, 3), 1), normal((40,), 2))


def attention(core: Any, xp: Any) -> Program:
    """Causal attention of a few heads."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = xp.einsum("bqhd,bkhd->bhqk", q, k) / xp.sqrt(16.0)
        causal = xp.tril(xp.ones(scores.shape[-2:], bool))
        weights = core.nn.softmax(xp.where(causal, scores, -xp.inf), axis=-1)
        return xp.einsum("bhqk,bkhd->bqhd", weights, v)

    return attend, tuple(normal((2, 24, 4, 16), seed) for seed in (1, 2, 3))


CASES: Mapping[str, Callable[[Any, Any], Program]] = {
    f.__name__: f for f in (elementwise, softmax, mlp, recurrent, solver, conv, process, attention)
}


def first_call(library: str, case: str) -> float:
    """Processor time of the first call in this process. Units: s."""
    core, xp, *_ = (importlib.import_module(f"{library}{room}") for room in ROOMS)
    function, arrays = CASES[case](core, xp)
    operands = [*map(xp.asarray, arrays)]
    start = time.process_time()
    core.block_until_ready(core.jit(function)(*operands))
    return time.process_time() - start


def alone(python: str, library: str, case: str, folder: str) -> float:
    """`first_call` in a fresh process."""
    environment = {**os.environ, "RUNE_CACHE_DIR": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users' modules have bytecode on disk
    command = [python, __file__, "--alone", library, case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def row(case: str, jax: str | None, runs: int) -> tuple[float, float, float]:
    """Seconds of rune cold, rune warm, and JAX."""
    cold = min(alone(sys.executable, "rune", case, "") for _ in range(runs))
    with tempfile.TemporaryDirectory() as folder:
        alone(sys.executable, "rune", case, folder)
        warm = min(alone(sys.executable, "rune", case, folder) for _ in range(runs))
    peer = min(alone(jax, "jax", case, "") for _ in range(runs)) if jax else math.nan
    return cold, warm, peer


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table; 1 if a bar is broken."""
    parser = argparse.ArgumentParser(prog="benchmarks/first_calls.py")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that imports jax")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--alone", nargs=2, metavar=("LIBRARY", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.alone:
        print(first_call(*options.alone))
        return 0
    print("| first call | cold, ms | warm, ms | JAX, ms | cold / JAX | warm / JAX |\n|---|---|---|---|---|---|")
    ratios: list[tuple[float, float]] = []
    for case in options.case or CASES:
        cold, warm, peer = row(case, options.jax, options.runs)
        ratios.append((cold / peer, warm / peer))
        cells = [f"{1e3 * t:.1f}" for t in (cold, warm, peer)] + [f"{r:.2f}" for r in ratios[-1]]
        print(f"| {' | '.join([case, *cells])} |", flush=True)
    means = [math.exp(sum(map(math.log, column)) / len(ratios)) for column in zip(*ratios, strict=True)]
    is_held = not options.jax or (means[0] <= COLD and means[1] <= WARM)
    print(f"geometric means {means[0]:.2f}, {means[1]:.2f} (bars {COLD}, {WARM}): {'held' if is_held else 'NOT HELD'}")
    return int(not is_held)


if __name__ == "__main__":
    sys.exit(main())
