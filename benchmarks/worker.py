"""One library in one process: reads a case's name per line, measures a burst, writes JSON.

A burst warms the case up, then takes samples until BURST seconds are over; each sample is the mean
of as many calls as fill SAMPLE seconds. The answer is the median sample. With --first CASE the
process measures the first call of one case, tracing and compiling included, and ends.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import SIZES
from libraries import LIBRARIES, Library

BURST, SAMPLE, WARM_UP = 0.3, 1e-3, 0.1


def seconds(call: Callable[[], Any], wait: Callable[[Any], Any], times: int) -> float:
    """Mean seconds of `times` calls, the last result waited for."""
    start = time.perf_counter()
    for _ in range(times - 1):
        call()
    wait(call())
    return (time.perf_counter() - start) / times


def burst(call: Callable[[], Any], wait: Callable[[Any], Any], length: float) -> float:
    """Median seconds of a call, measured for `length` seconds after a warm-up."""
    warm_until = time.perf_counter() + WARM_UP * length / BURST
    once = seconds(call, wait, 1)
    while time.perf_counter() < warm_until:
        once = min(once, seconds(call, wait, 1))
    times = max(1, int(SAMPLE / once))
    samples = [seconds(call, wait, times)]
    until = time.perf_counter() + length
    while time.perf_counter() < until:
        samples.append(seconds(call, wait, times))
    return statistics.median(samples)


def answer(library: Library, call: Callable[[], Any], length: float) -> dict[str, Any]:
    """The time of a burst, and the mean size of the result, by which the parent compares."""
    gc.collect()
    gc.disable()
    try:
        seconds = burst(call, library.wait, length)
    finally:
        gc.enable()
    sizes = np.abs(library.to_numpy(call()))
    return {"seconds": seconds, "check": float(np.mean(sizes, dtype=np.float64))}


def first_call(call: Callable[[], Any]) -> dict[str, Any]:
    """Seconds of the first call."""
    start = time.perf_counter()
    call()
    return {"seconds": time.perf_counter() - start}


def serve(library: Library, size: str, length: float) -> None:
    """Answer requests until standard input ends."""
    print(json.dumps({"version": library.version}), flush=True)
    calls: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in calls:
            calls[name] = library.calls[name](SIZES[size])
        print(json.dumps(answer(library, calls[name], length)), flush=True)


def main() -> None:
    """Serve, or measure one first call."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--burst", type=float, default=BURST)
    parser.add_argument("--first", metavar="CASE")
    options = parser.parse_args()
    library = LIBRARIES[options.library]()
    if options.first:
        print(json.dumps(first_call(library.calls[options.first](SIZES[options.size]))))
    else:
        serve(library, options.size, options.burst)


if __name__ == "__main__":
    main()
