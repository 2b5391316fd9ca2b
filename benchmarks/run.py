"""rune beside NumPy, JAX and torch: one table of medians and paired ratios.

    python benchmarks/run.py                        the whole table
    python benchmarks/run.py --cases mlp softmax    some rows
    python benchmarks/run.py --cases 'matmul*'      products of every size
    python benchmarks/run.py --check                exit 1 if a bar is broken

Each library lives in a process of its own, so that no thread pool disturbs another's measurement;
all of them get the same cores and the same number of threads. A round asks every library for one
burst of the same case, in an order that changes from round to round; the ratio of a round pairs
bursts taken within a second or two of each other, and the table shows the median over rounds.
A library that is not installed is named in the first lines and its column stays empty.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import CASES, SIZES, Case

FOLDER = Path(__file__).parent
NAMES = ("rune", "numpy", "jax", "torch")
SETTLE = 0.05  # seconds in which the threads of the library measured before fall asleep
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TOLERANCE = 1e-3  # relative, between the mean sizes of two libraries' results


@dataclass(slots=True)
class Worker:
    """A library's process; see worker.py."""

    process: subprocess.Popen[str]
    version: str

    def ask(self, case: str) -> dict[str, Any]:
        """One burst of a case."""
        assert self.process.stdin is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return _read(self.process)


@dataclass(slots=True)
class Row:
    """The rounds of one case: seconds by library."""

    case: Case
    rounds: list[dict[str, float]] = field(default_factory=list)

    def median(self, library: str) -> float | None:
        """Median seconds of a library."""
        values = [r[library] for r in self.rounds if library in r]
        return statistics.median(values) if values else None

    def ratio(self, peer: str) -> float | None:
        """Median of rune's time over the peer's, round by round."""
        values = [r["rune"] / r[peer] for r in self.rounds if peer in r]
        return statistics.median(values) if values else None

    def bar_holds(self) -> bool | None:
        """Whether the bar holds; None where its peer is missing."""
        bar, rune = self.case.bar, self.median("rune")
        assert rune is not None
        if bar.peer is None:
            return bar.holds(rune, None)
        peer, ratio = self.median(bar.peer), self.ratio(bar.peer)
        if peer is None or ratio is None:
            return None
        return bar.holds(rune, peer) if bar.added else bar.holds(ratio, 1.0)


# --- processes ----------------------------------------------------------------------------------


def _python(options: argparse.Namespace) -> list[str]:
    return [sys.executable, "-X", f"pycache_prefix={options.bytecode}"]


def _command(library: str, options: argparse.Namespace, *more: str) -> list[str]:
    worker = [*_python(options), str(FOLDER / "worker.py"), library]
    return [*worker, "--size", options.size, "--burst", str(options.burst), *more]


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"benchmarks: a worker ended early: {process.args}")
    return json.loads(line)


def start(library: str, options: argparse.Namespace) -> Worker:
    """Start a library's process and wait until it has imported."""
    process = subprocess.Popen(_command(library, options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return Worker(process, _read(process)["version"])


def stop(worker: Worker) -> None:
    """End a process by ending its input."""
    assert worker.process.stdin is not None
    assert worker.process.stdout is not None
    worker.process.stdin.close()
    worker.process.wait(timeout=60)
    worker.process.stdout.close()


def import_seconds(library: str, options: argparse.Namespace) -> float:
    """Seconds of importing a library in a fresh process."""
    code = f"import time; t = time.perf_counter(); import {library}; print(time.perf_counter() - t)"
    done = subprocess.run([*_python(options), "-c", code], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def first_seconds(library: str, case: str, options: argparse.Namespace) -> float:
    """Seconds of the first call in a fresh process that has imported the library."""
    command = _command(library, options, "--first", case)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["seconds"]


# --- measuring ----------------------------------------------------------------------------------


def measure(case: Case, libraries: Sequence[str], workers: Mapping[str, Worker], options: argparse.Namespace) -> Row:
    """All rounds of one case."""
    taking = [n for n in libraries if n == "rune" or n in case.peers]
    row, checks = Row(case), {}
    if case.how != "warm":  # once unmeasured: writes the byte code, as an installation does
        for name in taking:
            _seconds(case, name, workers, options, checks)
    for number in range(options.rounds):
        turn = number % len(taking)
        seconds = {}
        for name in (*taking[turn:], *taking[:turn]):
            time.sleep(SETTLE)
            seconds[name] = _seconds(case, name, workers, options, checks)
        row.rounds.append(seconds)
    _compare(case, checks)
    return row


def _seconds(
    case: Case, name: str, workers: Mapping[str, Worker], options: argparse.Namespace, checks: dict[str, float]
) -> float:
    if case.how == "import":
        return import_seconds(name, options)
    if case.how == "first":
        return first_seconds(name, case.name, options)
    answer = workers[name].ask(case.name)
    checks[name] = answer["check"]
    return answer["seconds"]


def _compare(case: Case, checks: Mapping[str, float]) -> None:
    for name, check in checks.items():
        if abs(check - checks["rune"]) > TOLERANCE * abs(check):
            raise SystemExit(
                f"benchmarks: {case.name}: rune's result differs from {name}'s "
                f"(mean size {checks['rune']} against {check})"
            )


# --- the table ----------------------------------------------------------------------------------


def readable_time(seconds: float | None) -> str:
    """A time with a fitting unit."""
    if seconds is None:
        return ""
    unit, factor = next((u, f) for u, f in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if seconds * f >= 1 or u == "µs")
    return f"{seconds * factor:.3g} {unit}"


def cells(row: Row) -> list[str]:
    """One row of the table."""
    ratios = [row.ratio(n) for n in NAMES[1:]]
    verdict = {True: "yes", False: "NO", None: "not measured"}[row.bar_holds()]
    return [
        row.case.title,
        *(readable_time(row.median(n)) for n in NAMES),
        *("" if r is None else f"{r:.2f}" for r in ratios),
        str(row.case.bar),
        verdict,
    ]


HEAD = ["case", *NAMES, *(f"rune/{n}" for n in NAMES[1:]), "bar", "held"]
SHORT = [0, 1, 5, 6, 7]  # columns of the short table


def table(rows: Sequence[Row], columns: Sequence[int] = range(len(HEAD))) -> str:
    """A Markdown table of the chosen columns, aligned."""
    lines = [[line[i] for i in columns] for line in (HEAD, *map(cells, rows))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    rule = ["-" * w for w in widths]
    return "\n".join(
        "| " + " | ".join(text.ljust(w) for text, w in zip(line, widths)) + " |"
        for line in (lines[0], rule, *lines[1:])
    )


def processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def installed() -> list[str]:
    """The libraries that are there; says loudly which are not."""
    present = [n for n in NAMES if importlib.util.find_spec(n) is not None]
    for name in NAMES:
        if name not in present:
            print(f"NOT INSTALLED: {name}. Its column is empty and its bars are not measured.")
    if "rune" not in present:
        raise SystemExit("benchmarks: rune itself is not importable (set PYTHONPATH)")
    return present


def use_threads(count: int) -> None:
    """Give this process and its children `count` cores and threads."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py")
    names = [c.name for c in CASES]
    parser.add_argument("--cases", nargs="+", default=["*"], metavar="CASE", help="names, or patterns: 'matmul*'")
    parser.add_argument("--rounds", type=int, default=7, help="bursts of each library per case")
    parser.add_argument("--burst", type=float, default=0.3, help="seconds of one burst")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--short", action="store_true", help="print rune's time and the ratios only")
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is broken")
    options = parser.parse_args(argv)
    for pattern in options.cases:
        if not fnmatch.filter(names, pattern):
            parser.error(f"--cases: no {pattern!r} ({', '.join(names)})")
    options.cases = [n for n in names if any(fnmatch.fnmatch(n, x) for x in options.cases)]
    return options


def measure_all(libraries: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Start the libraries, say what runs, measure the chosen cases."""
    workers = {name: start(name, options) for name in libraries}
    versions = ", ".join(f"{n} {w.version}" for n, w in workers.items())
    print(f"{processor()}, {options.threads} threads, Python {platform.python_version()}")
    print(f"{versions}; {options.rounds} rounds of {options.burst:g} s, size {options.size}")
    try:
        return [measure(c, libraries, workers, options) for c in CASES if c.name in options.cases]
    finally:
        for worker in workers.values():
            stop(worker)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = arguments(argv)
    use_threads(options.threads)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["RUNE_CACHE_DIR"] = ""  # a first call compiles
    libraries = installed()
    with tempfile.TemporaryDirectory() as options.bytecode:
        rows = measure_all(libraries, options)
    print(f"\n{table(rows, SHORT) if options.short else table(rows)}\n", flush=True)
    memory = subprocess.run([sys.executable, str(FOLDER / "memory.py"), "--size", options.size])
    broken = memory.returncode != 0 or any(row.bar_holds() is False for row in rows)
    return int(options.check and broken)


if __name__ == "__main__":
    sys.exit(main())
