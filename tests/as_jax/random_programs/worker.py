"""A process that compares the programs of seeds with jax, and reports lines of JSON."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import rune
from tests.as_jax.random_programs.beside import peer, ways
from tests.fuzzing.worker import run_seeds


def main(arguments: Sequence[str]) -> None:
    """Run the seeds; the exit status has no meaning."""
    parser = argparse.ArgumentParser("worker")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--ways", default="")
    parser.add_argument("--jax", required=True)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    way_names = [name for name in options.ways.split(",") if name]
    with rune.configure(cache_dir=""), peer(options.jax) as jax_process:
        selection = tuple(way for way in ways(jax_process) if not way_names or way.name in way_names)
        run_seeds(range(options.seed, options.seed + options.count), selection)


if __name__ == "__main__":
    main(sys.argv[1:])
