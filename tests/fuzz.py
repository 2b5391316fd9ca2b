"""Try random programs for as long as you like, seed after seed, until one fails.

    ./scripts/fuzz                       ten minutes, from a seed that the clock gives
    ./scripts/fuzz --minutes 60          an hour
    ./scripts/fuzz --programs 100000     so many programs
    ./scripts/fuzz --seed 7              the program of seed 7 once: how a failure is replayed
    ./scripts/fuzz --ways "vmap,eager"   in these ways alone (tests/fuzzing/trial.py lists them)
    ./scripts/fuzz --schedules           with loops of any legal layout (tests/fuzzing/ways.py)
    ./scripts/fuzz --jobs 4 --on         four processes; go on after a failure, and count
    ./scripts/fuzz --planted             put faults into rune, one of each kind, and see them found
    ./scripts/fuzz --jax ~/jax/bin/python    programs in JAX's names, beside an installed jax 0.10.2
    ./scripts/fuzz --jax ~/jax/bin/python --hunt    texts of strangers, drawn where jax runs
    ./scripts/fuzz --seed 7 -- -k lanes  what seed 7 draws in the laws of tests/laws; what follows
                                         -- goes to pytest

A seed decides the program, its arguments and the way it is run in. A failure prints the smallest
program that fails, and the command that replays it. A process that dies or hangs is a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAWS = tuple(f"tests/laws/test_{n}.py" for n in ("control", "programs", "executors"))
SCHEDULES = "schedules,schedules on opencl,schedules on vulkan"
BATCH = 300  # programs of one process: what it compiled goes with it
HANGS = 600.0  # seconds of one program


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser("fuzz", description="Try random programs until one fails.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on")
    parser.add_argument("--programs", type=int, default=10**9, help="how many at most")
    parser.add_argument("--seed", type=int, help="replay what this seed draws, once")
    parser.add_argument("--first", type=int, help="the seed to begin with")
    parser.add_argument("--ways", default="", help="the ways to run them in, divided by commas")
    parser.add_argument("--schedules", dest="ways", action="store_const", const=SCHEDULES, help="any layout of loops")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--on", action="store_true", help="go on after a failure")
    parser.add_argument("--planted", action="store_true", help="find faults that are put in")
    parser.add_argument(
        "--jax", metavar="PYTHON", help="an interpreter with jax, whose answers are held against rune's"
    )
    parser.add_argument("--hunt", action="store_true", help="with --jax: programs drawn by jax, by their text")
    parser.add_argument("rest", nargs="*", help="arguments of pytest, behind --")
    return parser.parse_args(arguments)


@dataclass(slots=True)
class Tally:
    """The counts so far; several threads add to them."""

    end: float
    following: int  # the next seed
    last: int  # the seed to stop before
    goes_on: bool
    ways: str
    jax: str | None = None
    runs: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def batch(self) -> range:
        """Seeds for one process; none where it is time to stop."""
        with self.lock:
            over = time.monotonic() > self.end or (self.failures and not self.goes_on)
            stop = self.following if over else min(self.following + BATCH, self.last)
            seeds, self.following = range(self.following, stop), stop
            return seeds

    def fail(self, seed: int, report: str) -> None:
        """Note and print a failure."""
        with self.lock:
            self.failures.append(f"seed {seed}: {report.splitlines()[0]}")
            print(f"\n{report}\n", flush=True)


def lines(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """The lines of a process; None if it is silent for too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(HANGS):
                yield None
                return
            line = process.stdout.readline()
            if not line:
                return
            yield line


def worker(jax: str | None) -> list[str]:
    """The command that runs seeds, in rune alone or compared with jax."""
    if jax is None:
        return [sys.executable, "-m", "tests.fuzzing.worker"]
    return [sys.executable, "-m", "rune.as_jax", "-m", "tests.as_jax.random_programs.worker", "--jax", jax]


def run_batch(tally: Tally, seeds: range) -> int:
    """Run seeds in a separate process; returns the next seed."""
    command = [*worker(tally.jax), str(seeds.start), str(len(seeds)), "--ways", tally.ways]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, bufsize=1, text=True)
    at, way = seeds.start, ""
    for line in lines(process):
        if line is None:
            process.kill()
            break
        fact = json.loads(line)
        if "at" in fact:
            at, way = fact["at"], fact["way"]
            continue
        tally.runs[fact["way"]] += 1
        if fact["failure"]:
            tally.fail(fact["seed"], fact["failure"])
            if not tally.goes_on:
                process.kill()
        at = fact["seed"] + 1
    assert process.stdout is not None
    process.stdout.close()
    if process.wait() and at < seeds.stop and (tally.goes_on or not tally.failures):
        reason = f"{way}: the process ended with {process.returncode}"
        tally.fail(at, f"{reason}\n\nreplay: ./scripts/fuzz --seed {at}")
        return at + 1
    return seeds.stop


def run_programs(tally: Tally) -> None:
    """Batch after batch until the time is over."""
    while seeds := tally.batch():
        following = run_batch(tally, seeds)
        while following < seeds.stop and tally.goes_on:
            following = run_batch(tally, range(following, seeds.stop))


def programs(args: argparse.Namespace) -> int:
    """Exit status: 0 if every program passed."""
    first = args.first if args.first is not None else time.time_ns() % 10**9
    first, count = (first, args.programs) if args.seed is None else (args.seed, 1)
    begin = time.monotonic()
    tally = Tally(begin + 60.0 * args.minutes, first, first + count, args.on, args.ways, args.jax)
    threads = [threading.Thread(target=run_programs, args=(tally,)) for _ in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ran, hours = sum(tally.runs.values()), (time.monotonic() - begin) / 3600
    print(f"{ran} programs of seeds {first} to {tally.following - 1} in {hours:.2f} h: {len(tally.failures)} failures")
    print("\n".join([*(f"{n:8} {way}" for way, n in tally.runs.most_common()), *tally.failures]))
    return int(bool(tally.failures))


def hunt(args: argparse.Namespace) -> int:
    """Exit status: 0 where rune answers all programs that jax draws as jax does."""
    begin = time.monotonic()
    seed = args.seed if args.seed is not None else args.first or time.time_ns() % 10**9
    last = seed + (1 if args.seed is not None else args.programs)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    status = 0
    while seed < last and time.monotonic() < begin + 60.0 * args.minutes and (args.on or not status):
        count = min(BATCH, last - seed)
        words = ["-m", "tests.as_jax.hunt.beside", args.jax, str(seed), str(count)]
        status |= subprocess.run([sys.executable, "-m", "rune.as_jax", *words], cwd=ROOT, env=environment).returncode
        seed += count
    return status


def planted(minutes: float) -> int:
    """Exit status: 0 where every planted fault is found, each in its share of the time."""
    from tests.fuzzing.planted import FAULTS, find  # rune is loaded by those who need it

    misses = 0
    for name in FAULTS:
        failure = find(name, 60.0 * minutes / len(FAULTS))
        misses += failure is None
        print(f"{name}: {failure or 'not found'}", flush=True)
    return int(misses > 0)


def holds(seed: int, arguments: Sequence[str]) -> bool:
    """Whether the laws hold for what the seed draws."""
    paths = [] if any(r.endswith(".py") for r in arguments) else LAWS
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        f"--hypothesis-seed={seed}",
        "-o",
        "faulthandler_timeout=1800",
        *paths,
        *arguments,
    ]
    environment = {**os.environ, "RUNE_TEST_PROFILE": "fuzz", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def laws(args: argparse.Namespace) -> int:
    """Exit status: 0 if every law held."""
    stop = time.monotonic() + 60.0 * args.minutes
    seed = time.time_ns() % 10**6 if args.seed is None else args.seed
    while holds(seed, args.rest):
        if args.seed is not None or time.monotonic() > stop:
            return 0
        seed += 1
    print(f"replay: ./scripts/fuzz --seed {seed} -- {' '.join(args.rest)}")
    return 1


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 where nothing failed."""
    args = options(arguments)
    if args.planted:
        return planted(args.minutes)
    if args.hunt:
        return hunt(args)
    return laws(args) if args.rest else programs(args)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
