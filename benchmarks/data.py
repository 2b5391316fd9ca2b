"""Loading: whether steps wait for their data, and pipelines beside torch's DataLoader.

    python benchmarks/data.py                  both tables
    python benchmarks/data.py overlap          steps of a slow source, on the default device
    python benchmarks/data.py overlap cuda:0   on another one
    python benchmarks/data.py loaders          beside torch, where that is installed

overlap  A source that takes as long as a step, half of it, or twice: with `prefetch` a step should
         take max(load, compute), and not their sum. The source waits, as a disk or a network does.
loaders  The same rows, transformed by the same NumPy function, in batches: rows per second
         of each in turn, the best of several rounds. A ratio above 1 says that rune is
         faster.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import data

STEPS, WARM = 30, 5
BATCH, SIDE, ROWS = 64, 64, 6400  # images of SIDE x SIDE x 3 bytes


# --- overlap ----------------------------------------------------------------------------------


def make_step(device: str | None, x: np.ndarray, seconds: float) -> Callable[[Any], Any]:
    """A compiled function of a batch that takes about so long on the device."""

    side = min(512, math.isqrt(x.size))

    def step(x: Any, rounds: Any) -> Any:
        square = x.reshape(-1)[: side * side].reshape(side, side)
        return rune.fori_loop(0, rounds, lambda _, y: rnp.tanh(y @ square), square)[0, 0]

    compiled = rune.jit(step)
    here = rune.device_put(x, device)
    rounds, duration = 1, 0.0
    while duration < 0.9 * seconds:
        rounds = int(rounds * min(2.0, seconds / max(duration, 1e-6))) + 1
        duration = min(_seconds(compiled, here, rounds) for _ in range(5))
    return lambda batch: compiled(batch, rounds)


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    begin = time.perf_counter()
    rune.block_until_ready(function(*arguments))
    return time.perf_counter() - begin


def slow(row: np.ndarray, seconds: float) -> np.ndarray:
    """A batch that comes from far away."""
    time.sleep(seconds)
    return row


def milliseconds(batches: Iterable[Any], step: Callable[[Any], Any]) -> float:
    """The median of a step's time, loading and all, without the first ones."""
    times, before = [], time.perf_counter()
    for batch in batches:
        rune.block_until_ready(step(batch))
        now = time.perf_counter()
        times.append(now - before)
        before = now
    return 1e3 * statistics.median(times[WARM:])


def overlap(device: str | None, compute_ms: float, size: int, rounds: int) -> None:
    """Print times of steps with and without `prefetch`."""
    batch = np.full((size, SIDE, SIDE, 3), 1e-3, np.float32)
    step = make_step(device, batch, 1e-3 * compute_ms)
    source = np.broadcast_to(batch, (STEPS + WARM, *batch.shape))
    print(f"batches of {batch.nbytes / 1e6:.1f} MB")
    print("| load | compute | one after the other | prefetch | prefetch / max(load, compute) |")
    print("|---|---|---|---|---|")
    for share in (0.0, 0.5, 1.0, 2.0):
        rows = data.arrays(source).map(lambda row, s=share: slow(row, 1e-3 * s * compute_ms))
        here = [rune.device_put(source[0], device)] * (STEPS + WARM)
        best = {
            "load": min(milliseconds(rows, lambda _: 0) for _ in range(rounds)),
            "compute": min(milliseconds(here, step) for _ in range(rounds)),
            "apart": min(milliseconds(rows.map(lambda x: rune.device_put(x, device)), step) for _ in range(rounds)),
            "together": min(milliseconds(rows.prefetch(device), step) for _ in range(rounds)),
        }
        ratio = best["together"] / max(best["load"], best["compute"])
        print(f"| {' | '.join(f'{ms:.2f} ms' for ms in best.values())} | {ratio:.3f} |")


# --- loaders ----------------------------------------------------------------------------------


def transformed(row: tuple[np.ndarray, Any]) -> tuple[np.ndarray, Any]:
    """Images, flipped and shifted, as numbers in place of bytes."""
    image, label = row
    image = np.roll(image[:, ::-1], 3, axis=0)
    return (image.astype(np.float32) - 127.5) / 127.5, label


class Images:
    """The rows as both libraries read them: a sequence."""

    def __init__(self, rows: int):
        random = np.random.default_rng(0)
        self.images = random.integers(0, 256, (rows, SIDE, SIDE, 3), dtype=np.uint8)
        self.labels = random.integers(0, 10, rows)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[np.ndarray, Any]:
        return self.images[number], self.labels[number]


class Transformed(Images):
    """The rows with the function applied, as torch's data sets do."""

    def __getitem__(self, number: int) -> tuple[np.ndarray, Any]:
        return transformed(super().__getitem__(number))


def rows_per_second(batches: Iterable[Any]) -> float:
    """Rows of all batches but the first ones, in which workers start."""
    count, begin = 0, 0.0
    for number, (images, _) in enumerate(batches):
        if number == WARM:
            begin = time.perf_counter()
        count += len(images) if number > WARM else 0
    return count / (time.perf_counter() - begin)


def loaders(torch_data: Any, rows: int, rounds: int) -> None:
    """Print rows per second of both, and the ratio."""
    images, transformed_images = Images(rows), Transformed(rows)
    source = data.sequence(images).shuffle(0).map
    kinds: dict[str, tuple[data.Pipeline, dict[str, Any]]] = {
        "no workers": (source(transformed), {}),
        "2 processes": (source(transformed, data.Processes(2, start="fork")), {"num_workers": 2}),
        "4 processes": (source(transformed, data.Processes(4, start="fork")), {"num_workers": 4}),
        "2 threads (torch: processes)": (source(transformed, 2), {"num_workers": 2}),
    }
    print("| workers | rune | torch | rune / torch |")
    print("|---|---|---|---|")
    for name, (pipeline, options) in kinds.items():
        loader = torch_data.DataLoader(transformed_images, BATCH, shuffle=True, **options)
        pairs = [(rows_per_second(pipeline.batch(BATCH)), rows_per_second(loader)) for _ in range(rounds)]
        ours, theirs = (max(column) for column in zip(*pairs))
        print(f"| {name} | {ours:,.0f} rows/s | {theirs:,.0f} rows/s | {ours / theirs:.2f} |")


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description="loading beside computing")
    parser.add_argument("table", nargs="?", choices=["overlap", "loaders"])
    parser.add_argument("device", nargs="?")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=BATCH, help="images in a batch of the first table")
    parser.add_argument("--compute-ms", type=float, default=10.0)
    options = parser.parse_args()
    if options.table != "loaders":
        overlap(options.device, options.compute_ms, options.batch, options.rounds)
    if options.table != "overlap":
        if find_spec("torch") is None:
            print("NOT INSTALLED: torch")
        else:
            loaders(__import__("torch.utils.data").utils.data, options.rows, options.rounds)


if __name__ == "__main__":
    main()
