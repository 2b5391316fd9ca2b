"""Seconds between a press of the stop button and the KeyboardInterrupt.

    python benchmarks/stop_button.py [--times 5]

A row for each thing that a notebook's user may interrupt: loops and long kernels on every executor,
and long routines on the CPU. The button is pressed a tenth of a second after the call begins.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp

BEFORE = 0.1  # seconds until the button is pressed
STEPS, LENGTH = 2**31 - 2, 4_099


def press(*_: object) -> None:
    """Raise KeyboardInterrupt, as the handler of a notebook's SIGINT does."""
    raise KeyboardInterrupt


def answer(call: Callable[[], object]) -> float:
    """Units: s, from the press until the call has raised. NaN if it ended before."""
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, BEFORE)
    try:
        call()
    except KeyboardInterrupt:
        return time.perf_counter() - start - BEFORE
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return float("nan")


def loop(x: Any) -> Any:
    """A scan that takes a quarter of an hour or more."""
    return rune.scan(lambda c, _: (rnp.sin(c) * 1.01, None), x, None, length=STEPS)[0]


def pairs(x: Any, rows: int) -> Any:
    """One kernel: of a second if there are 16,000 rows, of a quarter of an hour if two million."""
    y = rnp.resize(x, rows)
    return rnp.sum(rnp.sin(y[:, None] * y[None, :]), axis=1)


def matrix(n: int) -> np.ndarray:
    """Symmetric and positive definite."""
    a = np.random.default_rng(0).random((n, n), dtype=np.float32)
    return a + a.T + 2 * n * np.eye(n, dtype=np.float32)


def compiled(function: Callable[[Any], Any], x: Any) -> Callable[[], object]:
    """A call of a function that is compiled already."""
    f = rune.jit(function)
    f.lower(x).compile()
    return lambda: np.asarray(f(x))


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls to interrupt, with their names."""
    for device in [d.name for d in rune.devices() if d.target.backend != "null"]:
        yield f"loop on {device}", compiled(loop, rune.device_put(rnp.ones(LENGTH), device))
        yield f"kernel on {device}", compiled(lambda x: pairs(x, 16_000), rune.device_put(rnp.ones(7), device))
    product, symmetric = rnp.asarray(matrix(5_000)), rnp.asarray(matrix(2_500))
    yield "product of 5,000 x 5,000", lambda: product.T @ product
    yield "eigh of 2,500 x 2,500", lambda: rnp.linalg.eigh(symmetric)


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row for each call."""
    parser = argparse.ArgumentParser(prog="benchmarks/stop_button.py")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args(argv)
    signal.signal(signal.SIGALRM, press)
    print("| interrupted | median, ms | longest, ms |\n|---|---|---|")
    for name, call in calls():
        answers = [1e3 * answer(call) for _ in range(options.times)]
        print(f"| {name} | {median(answers):.0f} | {max(answers):.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
