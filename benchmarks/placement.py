"""How long programs take on a mesh, as predicted and as measured.

    RUNE_CPU_DEVICES=2 python benchmarks/placement.py

A round measures the devices anew (rune.measure_devices) and then each program; a ratio is formed
within a round, so that a machine that slows down for a while slows both sides, and the table shows
the medians. The bar is that each median ratio is within 20 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import lax
from rune.sharding import Mesh, NamedSharding, P, make_mesh

BAR = 0.2
SAMPLES, SAMPLE_S = 9, 0.2
SIZES, ROWS = (784, 512, 512, 10), 1024
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def loss(layers: Any, x: Any, y: Any) -> Any:
    """The mean square error of an MLP."""
    for w, b in layers[:-1]:
        x = rnp.tanh(x @ w + b)
    w, b = layers[-1]
    return ((x @ w + b - y) ** 2).mean()


def step(layers: Any, x: Any, y: Any) -> Any:
    """A step of gradient descent."""
    gradients = rune.grad(loss)(layers, x, y)
    return rune.tree.map(lambda w, g: w - 0.1 * g, layers, gradients)


def chain(x: Any) -> Any:
    """Elementwise operations, one after the other."""
    for _ in range(8):
        x = rnp.sin(x) * 1.01 + rnp.exp(-x * x)
    return x


def cases(mesh: Mesh) -> Mapping[str, Case]:
    """Programs by their names, with arguments on the mesh."""
    random = np.random.default_rng(0)

    def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
        return random.normal(0, scale, shape).astype(np.float32)

    def on(spec: Any, x: Any) -> Any:
        return rune.device_put(x, NamedSharding(mesh, spec))

    layers = [(draw(a, b, scale=a**-0.5), np.zeros(b, np.float32)) for a, b in pairwise(SIZES)]
    x, y = draw(ROWS, SIZES[0]), draw(ROWS, SIZES[-1])
    column, row, copies = P(None, "i"), P("i"), P()
    specs = [(column, row), (row, copies), (copies, copies)]
    cut = [(on(v, w), on(u, b)) for (w, b), (v, u) in zip(layers, specs, strict=True)]
    block = 1 << 20  # elements on each device
    psum = rune.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=row, out_specs=copies)
    flat = on(row, draw(mesh.size * block))
    return {
        "data-parallel step, MLP 784-512-512-10, batch 1,024": (step, (on(copies, layers), on(row, x), on(row, y))),
        "tensor-parallel MLP, forwards": (loss, (cut, on(copies, x), on(copies, y))),
        "tensor-parallel step": (step, (cut, on(copies, x), on(copies, y))),
        "product of f32[1024,1024], rows cut": (
            lambda a, b: a @ b,
            (on(row, draw(1024, 1024)), on(P(), draw(1024, 1024))),
        ),
        "chain of 40 elementwise operations, 1 M each": (chain, (flat,)),
        "x + 1, 1 M each": (lambda x: x + 1, (flat,)),
        "psum of 4 MiB each": (psum, (flat,)),
        "psum of 8 numbers each": (psum, (on(row, draw(8 * mesh.size)),)),
    }


def seconds(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """The median time of a call."""
    for _ in range(2):
        rune.block_until_ready(function(*args))
    samples: list[float] = []
    end = time.perf_counter() + SAMPLE_S
    while len(samples) < SAMPLES or time.perf_counter() < end:
        start = time.perf_counter()
        rune.block_until_ready(function(*args))
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table; 1 if a median ratio is beyond the bar."""
    parser = argparse.ArgumentParser(prog="benchmarks/placement.py")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args(argv).rounds
    processor = [device for device in rune.devices() if device.name.startswith("cpu:")]
    mesh = make_mesh((len(processor),), ("i",), devices=processor)
    programs = {name: (rune.jit(f), args) for name, (f, args) in cases(mesh).items()}
    explanations = {name: rune.explain(f)(*args) for name, (f, args) in programs.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds):
        print(rune.measure_devices(again=True), "\n", file=sys.stderr)
        for name, (f, args) in programs.items():
            times[name].append((explanations[name].prediction.seconds, seconds(f, args)))
    print(f"| on {mesh.size} devices | predicted | measured | ratio | least and most |\n|---|---|---|---|---|")
    is_within = True
    for name, pairs in times.items():
        ratios = [predicted / measured for predicted, measured in pairs]
        ratio = statistics.median(ratios)
        predicted, measured = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"| {name} | {predicted:.3g} ms | {measured:.3g} ms | {ratio:.2f} | {min(ratios):.2f} {max(ratios):.2f} |"
        )
        is_within = is_within and abs(ratio - 1) <= BAR
    print(f"bar (within {BAR:.0%}): {'held' if is_within else 'NOT HELD'}")
    return int(not is_within)


if __name__ == "__main__":
    sys.exit(main())
