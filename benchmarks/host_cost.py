"""What a cached call costs the host: µs per plan of 1, 10 and 100 kernels, on every executor.

    python benchmarks/host_cost.py

The kernels are tiny and each needs all of the one before it, so none is fused away: their number
is checked in the plan. Each call replaces the result of the one before, as in a loop of a program.

"host" is the processor time of the calling thread, without the time that the driver's own functions
took in it: what machine code calls on the way (rune/backends/shared/call_list.py) is bracketed by
two readings of the thread's clock, and the cost of a reading is measured and taken off. "driver" is
what was taken off. Both are the median of many bursts; the best burst stands in brackets, since a
device that is software computes on the host's own cores, and slows it down. A driver's functions
that Python calls itself, as for the status of an event, count as the host's. "done" is the time
until the result is there, one call at a time, by the clock on the wall.

The plans take turns. The last column is "host" of the second plan over that of the first, of the
best bursts.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune.backends.cpu import compiler, conventions, host_abi
from rune.backends.cpu.routines import Code, define
from rune.backends.shared import call_list
from rune.lowering.codegen.llvm.ir.text import Value

KERNELS = (1, 10, 100)
BURST = 4  # calls in a row: drivers of software devices hardly begin to compute beside the host
WIDTH = 16
WARM = 100  # calls before the first that is timed
READINGS = 20_000  # of the clock, to learn what one costs


# --- the time in the driver -------------------------------------------------------------------


class Clock:
    """Time of the calling thread that machine code spends in lists of calls."""

    def __init__(self) -> None:
        self.words = array("Q", [0, 0])  # ns in lists, how often a list was played
        inner = call_list.helpers()
        self.read = host_abi.address_of(ctypes.CDLL(None).clock_gettime)
        text = "\n\n".join(
            [
                define(("i64", "now", ""), self._now),
                define(("ptr", "timed", "ptr self, ptr argv, i64 count"), self._timed("ptr", inner.play), ""),
                define(("i64", "timed_run", "ptr starts"), self._timed("i64", inner.run), ""),
                define(("i64", "readings", "i64 count"), self._readings, ""),
            ]
        )
        self.code = compiler.compile_module("timed", text, conventions.LITTLE)
        timed = replace(inner, play=self.code.address("timed"), run=self.code.address("timed_run"))
        call_list.helpers = lambda: timed  # lists made from here on are timed
        readings = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self.code.address("readings"))
        self.reading_ns = min(readings(READINGS) for _ in range(9)) / READINGS

    def _now(self, code: Code) -> Value:
        timespec = code.allocate("[2 x i64]")
        code.tell("i32", code.at(self.read), code.constant("i32", time.CLOCK_THREAD_CPUTIME_ID), timespec)
        seconds, at = code.load("i64", timespec), code.item(timespec, "i64", code.constant("i64", 1))
        return seconds * 1_000_000_000 + code.load("i64", at)

    def _timed(self, type: str, play: int) -> Callable[..., Value]:
        def write(code: Code, *arguments: Value) -> Value:
            start = code.ask("i64", "now")
            answer = code.ask(type, code.at(play), *arguments)
            elapsed = code.ask("i64", "now") - start
            total = code.at(self.words.buffer_info()[0])
            code.store(code.load("i64", total) + elapsed, total)
            plays = code.item(total, "i64", code.constant("i64", 1))
            code.store(code.load("i64", plays) + 1, plays)
            return answer

        return write

    def _readings(self, code: Code, count: Value) -> Value:
        start = code.ask("i64", "now")
        code.count_up(code.constant("i64", 0), count, 1, lambda _: code.tell("i64", "now"))
        return code.ask("i64", "now") - start

    def driver_ns(self) -> tuple[float, float]:
        """In lists without the readings, and what the readings have cost, since the last time."""
        spent, plays = self.words
        self.words[0] = self.words[1] = 0
        # Of two readings, about one falls between them.
        return spent - plays * self.reading_ns, 2 * plays * self.reading_ns


# --- what is measured ---------------------------------------------------------------------------


def chain(count: int) -> Callable[[Any], Any]:
    """A function of `count` kernels, each a sum over the result of the one before it."""

    def f(x: Any) -> Any:
        for _ in range(count):
            x = rnp.sin(rnp.sum(x[:, None] * x[None, :], axis=1))
        return x

    return f


def compiled(count: int, device: str) -> Callable[[Any], Any]:
    """The chain on a device, its kernels counted."""
    x = np.ones(WIDTH, np.float32)
    launches = rune.explain(chain(count), device=device)(x).costs.launches
    if launches != count:
        raise SystemExit(f"{count} kernels were meant on {device}, the plan has {launches}")
    return rune.jit(chain(count), device=device)


@dataclass(frozen=True)
class Cost:
    """Of one call, µs."""

    host: float
    least_host: float
    driver: float
    done: float

    def __str__(self) -> str:
        return f"{self.host:.1f} ({self.least_host:.1f}) / {self.driver:.1f} / {self.done:.0f}"


class Plan:
    """A compiled function, and the times of its bursts. Units: µs."""

    def __init__(self, f: Callable[[Any], Any], x: Any, clock: Clock):
        self.f, self.x, self.clock = f, x, clock
        self.host, self.driver, self.done = list[float](), list[float](), list[float]()
        result = None
        for _ in range(WARM):
            result = f(x)
        rune.block_until_ready(result)

    def burst(self) -> None:
        """Some calls in a row, and then one whose result is waited for."""
        result = None
        self.clock.driver_ns()
        start = time.thread_time_ns()
        for _ in range(BURST):
            result = self.f(self.x)
        elapsed = time.thread_time_ns() - start
        spent, readings = self.clock.driver_ns()
        self.host.append((elapsed - spent - readings) / BURST / 1e3)
        self.driver.append(spent / BURST / 1e3)
        rune.block_until_ready(result)
        start = time.perf_counter_ns()
        rune.block_until_ready(self.f(self.x))
        self.done.append((time.perf_counter_ns() - start) / 1e3)

    def cost(self) -> Cost:
        """Medians over the bursts."""
        median = statistics.median
        return Cost(median(self.host), min(self.host), median(self.driver), median(self.done))


def row(device: str, kernels: Sequence[int], clock: Clock, rounds: int) -> str:
    """The line of one device."""
    x = rune.device_put(np.full(WIDTH, 0.1, np.float32), device)
    plans = [Plan(compiled(count, device), x, clock) for count in kernels]
    for _ in range(rounds):
        for plan in plans:
            plan.burst()
    costs = [plan.cost() for plan in plans]
    ratio = f"{costs[1].least_host / costs[0].least_host:.2f}" if len(costs) > 1 else ""
    return "| " + " | ".join([device, *map(str, costs), ratio]) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table."""
    here = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
    parser = argparse.ArgumentParser(prog="benchmarks/host_cost.py")
    parser.add_argument("--device", choices=[d.name for d in rune.devices()], action="append")
    parser.add_argument("--kernels", type=int, nargs="+", default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args(argv)
    heads = [f"{n} kernel{'s' if n > 1 else ''}: host / driver / done, µs" for n in options.kernels]
    print("| device | " + " | ".join(heads) + " | host of the second / of the first |")
    print("|" + "---|" * (len(heads) + 2))
    clock = Clock()
    for device in options.device or here:
        print(row(device, options.kernels, clock, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
