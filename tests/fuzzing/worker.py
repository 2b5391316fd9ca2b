"""A process that runs seeds one after another and reports them, line by line, in JSON.

It names each seed before it begins, so that the reader knows where it died.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import rune
from tests.fuzzing.trial import WAYS, Way, shrunk, trial, way_of


def chosen_ways(names: str) -> tuple[Way, ...]:
    """The ways of these names, divided by commas; all of them for none. Absent devices are out."""
    backends = {d.target.backend for d in rune.devices()}
    devices = {"opencl", "vulkan", "wgpu"}
    way_names = [n for n in names.split(",") if n]
    return tuple(
        w for w in WAYS if (not way_names or w.name in way_names) and (w.name not in devices or w.name in backends)
    )


def say(**fact: Any) -> None:
    """One line for the reader."""
    print(json.dumps(fact), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Run the seeds; the exit status has no meaning."""
    parser = argparse.ArgumentParser("worker")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--ways", default="")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    ways = chosen_ways(options.ways)
    with rune.configure(cache_dir=""):
        run_seeds(range(options.seed, options.seed + options.count), ways)


def run_seeds(seeds: Sequence[int], ways: Sequence[Way]) -> None:
    """Run each seed in its way, and report the outcome."""
    for seed in seeds:
        way = way_of(seed, ways).name
        say(at=seed, way=way)
        begin = time.monotonic()
        failure = trial(seed, ways)
        message = str(shrunk(failure, 20.0)) if failure else ""
        say(seed=seed, way=way, seconds=time.monotonic() - begin, failure=message)


if __name__ == "__main__":
    main(sys.argv[1:])
