"""A process that runs seeds beside a process with jax, and says so line by line, in JSON."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import rune
from tests.as_jax.random_programs.beside import peer, ways
from tests.fuzzing.worker import run_seeds


def main(arguments: Sequence[str]) -> None:
    """Run the seeds; the exit status says nothing."""
    parser = argparse.ArgumentParser("worker")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--ways", default="")
    parser.add_argument("--jax", required=True)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    wanted = [name for name in asked.ways.split(",") if name]
    with rune.configure(cache_dir=""), peer(asked.jax) as jax_process:
        chosen = tuple(way for way in ways(jax_process) if not wanted or way.name in wanted)
        run_seeds(range(asked.seed, asked.seed + asked.count), chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
