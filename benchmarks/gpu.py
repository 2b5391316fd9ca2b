"""Workloads of gpu_workloads.py and gpu_programs.py on a GPU: times, and how much could be gained.

    python benchmarks/gpu.py                                    on cuda:0
    python benchmarks/gpu.py --programs --peer                  the larger ones alone
    python benchmarks/gpu.py --device vulkan:0 --workloads 'sum*' --json times.json
    python benchmarks/gpu.py --peer                             with JAX, if it has the same GPU

Every library has a process of its own. A time is the median of bursts of calls, each of which ends
when the last result is there, so that what a call costs the host hides behind the device's work.
`kernels` is the device's own time of a call, by its clock; `predicted` that of the cost model, and
`best` that of the best known program on an H100. Results are compared with JAX's by their norm.
Products of f32 are asked for in f32 of both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from gpu_programs import PROGRAMS
from gpu_workloads import WORKLOADS, Workload

import rune
from rune.backends import device_named
from rune.lowering.kernelize.cost import estimate
from rune.lowering.plan import Launch, all_steps
from rune.lowering.stages import stages

BURST_S, BURSTS = 0.03, 5
LEAST, MOST = 2, 200  # calls of a burst
SLOW_S = 0.3  # a call that takes longer is measured once
PROFILED = 5  # calls
PROBE = 4099  # elements of a result that are compared with the other library's

Line = dict[str, Any]
EVERY = WORKLOADS | PROGRAMS


def arguments(workload: Workload) -> list[np.ndarray]:
    """Values of a normal distribution, and indices below the first argument's length."""
    generator = np.random.default_rng(0)
    length = estimate(workload.types[0].shape[0])
    arrays = []
    for kind in workload.types:
        if np.issubdtype(kind.dtype, np.integer):
            arrays.append(generator.integers(0, length, kind.shape).astype(kind.dtype))
        else:
            arrays.append(generator.standard_normal(kind.shape, np.float32).astype(kind.dtype))
    return arrays


def seconds(call: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """The time of a call among others. Units: s."""
    start = perf_counter()
    wait(call())
    once = perf_counter() - start
    if once > SLOW_S:
        return once
    calls = int(min(max(BURST_S / max(once, 1e-9), LEAST), MOST))
    times = []
    for _ in range(BURSTS):
        start = perf_counter()
        for _ in range(calls - 1):
            call()
        wait(call())
        times.append((perf_counter() - start) / calls)
    return statistics.median(times)


def probe(results: Any) -> list[list[float]]:
    """Some elements and the norm of every result: few numbers, in which differences show."""
    rows = []
    for result in results if isinstance(results, tuple) else (results,):
        values = np.asarray(result).astype(np.float64).reshape(-1)
        step = max(1, values.size // PROBE)
        rows.append([float(np.linalg.norm(values)), *values[:: step | 1][:PROBE].tolist()])
    return rows


# --- one library, in its own process ----------------------------------------------------------


def by_rune(name: str, device: str) -> Line:
    """The times of rune, kernel by kernel."""
    workload = EVERY[name]
    function = rune.jit(workload.function, device=device)
    arrays = [rune.device_put(a, device) for a in arguments(workload)]
    start = perf_counter()
    result = rune.block_until_ready(function(*arrays))
    first = perf_counter() - start
    seconds_per_call = seconds(lambda: function(*arrays), rune.block_until_ready)
    profiled = PROFILED if seconds_per_call < SLOW_S else 1
    with rune.debug.profile() as profile:
        for _ in range(profiled):
            function(*arrays)
    steps = [(s.name, s.calls / profiled, s.seconds / profiled) for plan in profile.plans for s in plan.steps]
    return {
        "first": first,
        "seconds": seconds_per_call,
        "steps": steps,
        "probe": probe(result),
        **predicted(workload, device),
    }


def predicted(workload: Workload, device: str) -> Line:
    """The time by the cost model, for one launch of every kernel."""
    lowered = stages(rune.make_program(workload.function)(*workload.types), device_named(device).target)
    costs = lowered.predictions()
    launches = [s.kernel for s in all_steps(lowered.plan) if isinstance(s, Launch)]
    return {"predicted": sum(costs[k].seconds for k in launches), "costs": {k: c.seconds for k, c in costs.items()}}


def by_jax(name: str, _: str) -> Line:
    """The times of JAX."""
    import jax

    jax.config.update("jax_default_matmul_precision", "float32")
    workload = EVERY[name]
    function = jax.jit(workload.write(jax))
    arrays = [jax.device_put(a) for a in arguments(workload)]
    start = perf_counter()
    result = jax.block_until_ready(function(*arrays))
    first = perf_counter() - start
    seconds_per_call = seconds(lambda: function(*arrays), jax.block_until_ready)
    return {"first": first, "seconds": seconds_per_call, "probe": probe(result), "device": str(jax.devices()[0])}


LIBRARIES = {"rune": by_rune, "jax": by_jax}


def work(library: str, device: str, names: list[str]) -> None:
    """Measure, and write a line for each workload as soon as it is known."""
    for name in names:
        try:
            line = LIBRARIES[library](name, device)
        except Exception as error:  # of whatever kind: the others are measured all the same
            line = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": name, **line}), flush=True)


# --- all of them ------------------------------------------------------------------------------


def lines(library: str, device: str, names: list[str]) -> Iterator[Line]:
    """The lines of a process that measures one library."""
    command = [sys.executable, __file__, "--worker", library, "--device", device, "--workloads", *names]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield from (json.loads(line) for line in process.stdout if line.startswith("{"))


def difference(one: list[list[float]], other: list[list[float]]) -> float:
    """The difference of two probes, over the norm of the second."""
    errors = []
    for a, b in zip(one, other, strict=True):
        scale = np.linalg.norm(b[1:]) or 1.0
        errors.append(float(np.linalg.norm(np.subtract(a[1:], b[1:])) / scale))
    return max(errors)


_HEAD = f"{'workload':26}{'µs':>10}{'kernels':>10}{'predicted':>11}{'best':>8}{'share':>7}{'jax µs':>10}{'/jax':>7}"


def row(line: Line, peer: Line) -> str:
    """A row of the table."""
    name = f"{line['name']:26}"
    if "error" in line:
        return f"{name}{line['error'][:300]}"
    microseconds, best = 1e6 * line["seconds"], EVERY[line["name"]].best
    kernels = 1e6 * sum(s for _, _, s in line["steps"])
    text = f"{name}{microseconds:10.1f}{kernels:10.1f}{1e6 * line['predicted']:11.1f}"
    text += f"{best:8.0f}{best / microseconds:7.0%}" if best else f"{'':15}"
    if "seconds" in peer:
        text += f"{1e6 * peer['seconds']:10.1f}{line['seconds'] / peer['seconds']:7.2f}"
        text += f"  {difference(line['probe'], peer['probe']):.0e}"
    return text


def main() -> None:
    """Measure the workloads that are asked for."""
    parser = argparse.ArgumentParser(description="the workloads on a GPU")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--workloads", nargs="*", default=["*"], help="names or patterns")
    parser.add_argument("--programs", action="store_true", help="those of gpu_programs.py alone")
    parser.add_argument("--peer", action="store_true", help="JAX, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--worker", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    workloads = PROGRAMS if options.programs else EVERY
    names = [n for n in workloads if any(n == p or fnmatch(n, p) for p in options.workloads)]
    if options.worker:
        work(options.worker, options.device, names)
        return
    peers = {line["name"]: line for line in lines("jax", options.device, names)} if options.peer else {}
    print(_HEAD)
    measured = []
    for line in lines("rune", options.device, names):
        measured.append({**line, "jax": peers.get(line["name"], {})})
        print(row(line, peers.get(line["name"], {})), flush=True)
    estimated = [m for m in measured if "seconds" in m and EVERY[m["name"]].best]
    shares = [1e-6 * EVERY[m["name"]].best / m["seconds"] for m in estimated]
    if shares:
        print(f"{len(shares)} workloads: geometric mean {statistics.geometric_mean(shares):.0%} of the best")
    if options.json:
        options.json.write_text(json.dumps([{k: v for k, v in m.items() if k != "probe"} for m in measured]))


if __name__ == "__main__":
    main()
