"""How the first call of a program grows with its length, or with the number of its inputs.

    python benchmarks/growth.py

Each shape of program is traced, compiled and run once at n and at 4 n equations (or leaves), in a
process of its own without kernels kept on disk. Seconds are those of the processor, so other work
beside it changes them little. The exponent is log(time at 4 n / time at n) / log 4; the bar is that
it stays at most 1.2, and that 10,000 leaves take at most 5 s and 300 MiB.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rune
import rune.numpy as rnp
from rune import lax

EXPONENT = 1.2
WIDE = ("leaves", "joined")  # measured by the number of their inputs
LEAVES, LEAVES_S, LEAVES_MIB = 10_000, 5.0, 300.0
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def layers(n: int) -> Program:
    """Layers of a product, tanh and a mean: about n equations."""

    def f(x: Any, w: Any) -> Any:
        for _ in range(n // 5):
            x = rnp.tanh(x @ w)
            x = x - x.mean()
        return x

    return f, (rnp.ones((4, 8)), 0.1 * rnp.ones((8, 8)))


def chain(n: int) -> Program:
    """One elementwise operation after the other."""

    def f(x: Any) -> Any:
        for _ in range(n // 2):
            x = rnp.sin(x) * 1.01
        return x

    return f, (rnp.ones(100),)


def fan_out(n: int) -> Program:
    """Many sums of one stored value."""

    def f(x: Any) -> Any:
        prefix = rnp.cumsum(x)
        return [rnp.sum(prefix * k) for k in range(n // 2)]

    return f, (rnp.ones(64),)


def scans(n: int) -> Program:
    """Short loops, one after the other."""

    def f(x: Any) -> Any:
        for _ in range(n // 4):
            x, _ = lax.scan(lambda c, _: (c * 0.5 + 1.0, None), x, None, length=3)
        return x

    return f, (rnp.ones(8),)


def gradient(n: int) -> Program:
    """The gradient of layers."""
    f, args = layers(n // 3)
    return rune.grad(lambda x, w: rnp.sum(f(x, w)), argnums=(0, 1)), args


def leaves(n: int) -> Program:
    """n arrays in, n arrays out."""
    return lambda xs: [x + 1.0 for x in xs], ([rnp.ones(3) for _ in range(n)],)


def joined(n: int) -> Program:
    """One concatenation of n arrays."""
    return rnp.concatenate, ([rnp.ones(3) for _ in range(n)],)


SHAPES: Mapping[str, Callable[[int], Program]] = {
    f.__name__: f for f in (layers, chain, fan_out, scans, gradient, leaves, joined)
}


def first_call(shape: str, n: int) -> tuple[float, float]:
    """Processor time of the first call, and by how much the process grew. Units: s, MiB."""
    warm, args = layers(20)
    rune.block_until_ready(rune.jit(warm)(*args))
    f, args = SHAPES[shape](n)
    before, start = _peak_mib(), time.process_time()
    rune.block_until_ready(rune.jit(f)(*args))
    return time.process_time() - start, _peak_mib() - before


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(shape: str, n: int) -> tuple[float, float]:
    """`first_call` in a fresh process."""
    command = [sys.executable, __file__, "--alone", shape, str(n)]
    environment = {**os.environ, "RUNE_CACHE_DIR": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, mib = map(float, done.stdout.split())
    return seconds, mib


def row(shape: str, n: int) -> tuple[str, bool]:
    """The line of one shape, and whether its bar holds."""
    (short, _), (long, mib) = alone(shape, n), alone(shape, 4 * n)
    exponent = math.log(long / short) / math.log(4)
    cells = [shape, f"{n:,}: {short:.2f} s", f"{4 * n:,}: {long:.2f} s", f"{exponent:.2f}"]
    return f"| {' | '.join([*cells, f'{mib:.0f} MiB'])} |", exponent <= EXPONENT


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table; 1 if a bar is broken."""
    parser = argparse.ArgumentParser(prog="benchmarks/growth.py")
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--length", type=int, default=25_000, help="n; the longer one is 4 n")
    parser.add_argument("--leaves", type=int, default=LEAVES)
    parser.add_argument("--alone", nargs=2, metavar=("SHAPE", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.alone:
        print(*first_call(options.alone[0], int(options.alone[1])))
        return 0
    print("| shape | shorter | longer | exponent | growth of the process |\n|---|---|---|---|---|")
    held = True
    for shape in options.shape or SHAPES:
        text, is_held = row(shape, options.leaves // 4 if shape in WIDE else options.length)
        print(text, flush=True)
        held = held and is_held
    seconds, mib = alone("leaves", options.leaves)
    held = held and seconds <= LEAVES_S and mib <= LEAVES_MIB
    print(f"{options.leaves:,} leaves: {seconds:.2f} s, {mib:.0f} MiB")
    print(f"bars (exponent ≤ {EXPONENT}, ≤ {LEAVES_S} s, ≤ {LEAVES_MIB:.0f} MiB): {'held' if held else 'NOT HELD'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
