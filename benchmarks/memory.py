"""Memory of the MLP step: the plan's arena beside the most bytes that are alive at once.

python benchmarks/memory.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cases import SIZES, mlp_data
from libraries import mlp_step

import rune
import rune.nn
import rune.numpy as rnp

LIMIT = 1.15  # times the largest sum of live bytes


def measured(size: str) -> tuple[int, int]:
    """Arena and largest sum of live bytes of the step. Units: bytes."""
    data = mlp_data(SIZES[size])
    step = mlp_step(rune.jit, rune.value_and_grad, rnp, rune.nn)
    costs = rune.explain(step)(data.weights, data.images, data.labels).costs
    return int(costs.arena_bytes), int(costs.live_peak_bytes)


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line; 1 if the arena is too large."""
    parser = argparse.ArgumentParser(prog="benchmarks/memory.py")
    parser.add_argument("--size", choices=SIZES, default="full")
    options = parser.parse_args(argv)
    arena, live = measured(options.size)
    held = arena <= LIMIT * live
    print(
        f"memory of the MLP step: arena {arena} B, largest sum of live bytes {live} B, "
        f"ratio {arena / max(live, 1):.2f} (bar ≤ {LIMIT}, held: {'yes' if held else 'NO'})"
    )
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
