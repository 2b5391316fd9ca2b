"""Try random programs for as long as you like, seed after seed, until a law fails.

    ./scripts/fuzz                       ten minutes, from a seed that the clock gives
    ./scripts/fuzz --minutes 60          an hour
    ./scripts/fuzz --seed 7              what seed 7 draws, once: how a failure is replayed
    ./scripts/fuzz --seed 7 -- -k lanes  the same, of some tests; what follows -- goes to pytest

A seed decides every example, so a replay fails in the same example and shrinks it to the same one.
A failure prints that example, and the command that replays it. Laws: tests/laws.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAWS = tuple(f"tests/laws/test_{n}.py" for n in ("control", "programs", "executors"))


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser("fuzz", description="Try random programs until a law fails.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="replay what this seed draws, once")
    parser.add_argument("rest", nargs="*", help="arguments of pytest, behind --")
    return parser.parse_args(arguments)


def holds(seed: int, rest: Sequence[str]) -> bool:
    """Whether the laws hold for what the seed draws."""
    paths = [] if any(r.endswith(".py") for r in rest) else LAWS
    command = [
        sys.executable, "-m", "pytest", "-x", f"--hypothesis-seed={seed}",
        "-o", "faulthandler_timeout=1800", *paths, *rest,
    ]  # fmt: skip
    environment = {**os.environ, "RUNE_TEST_PROFILE": "fuzz", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 where every law held."""
    given = options(arguments)
    stop = time.monotonic() + 60.0 * given.minutes
    seed = time.time_ns() % 10**6 if given.seed is None else given.seed
    while holds(seed, given.rest):
        if given.seed is not None or time.monotonic() > stop:
            return 0
        seed += 1
    rest = f" -- {' '.join(given.rest)}" if given.rest else ""
    print(f"replay: ./scripts/fuzz --seed {seed}{rest}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
