"""GPU kernels judged without a GPU: machine code, addresses, and predicted times, in one table.

    pip install 'rune-ml[gpu-static]'        # NVRTC and nvdisasm, and g++ from the system
    python benchmarks/gpu_static.py          # the table below in README.md; --json for all of it

For each workload, of the kernel that is predicted to take longest: its launch, registers and spills
(SASS), the share of multiply-adds or matrix products in its busiest inner loop, the widths of its
loads there, and the 32-byte sectors that a request of a warp touches: counted from addresses
(address_trace.py), and as the cost model has them. Times are predicted by that model, and compared
with the roofline of the device (bytes of arguments and results over its memory, operations of
products over its peak, whichever is longer, and one launch), with the best known, and with what was
estimated before there was a model. Nothing here is measured on a GPU.
"""

from __future__ import annotations

import argparse
import json
import mmap
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError
from multiprocessing import get_context
from typing import Any

import numpy as np
from address_trace import Kernels, Trace
from gpu_workloads import WORKLOADS, Workload
from sass import PRODUCTS, Machine, disassembler, machines

import rune
from rune import dtypes
from rune.backends.cuda.compiler import architecture, supported
from rune.backends.cuda.devices import native
from rune.lowering.codegen.c import render as cstyle
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.target import Target
from rune.lowering.costs import Cost, DeviceRecord, cost
from rune.lowering.costs.table import A100, H100
from rune.lowering.explain import Lowered
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernelize.cost import estimate
from rune.lowering.plan import Launch, Loop, Plan, inner_plans
from rune.lowering.stages import stages

NORESERVE = 0x4000  # MAP_NORESERVE of Linux: pages that are never touched take no memory
DEVICES: Mapping[str, tuple[DeviceRecord, int]] = {"sm_90": (H100, 227 << 10), "sm_80": (A100, 163 << 10)}
# Rounds of loops whose number only the data know, of these sizes: sorting networks of 2**20 and
# 2**22 elements have so many.
ROUNDS = {"sort 1M": 210, "scatter-add 4M into 1M": 253}
ENTRY = "run_"  # before the name of a kernel in CUDA C
LARGEST_INDEX = {"gather 4M of 1M": 1 << 20, "scatter-add 4M into 1M": 1 << 20}


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel of a workload, which is launched `times` times."""

    kernel: str
    times: int
    cost: Cost
    machine: Machine
    trace: Trace


@dataclass(frozen=True, slots=True)
class Judgement:
    """A workload on a device. Units: s."""

    name: str
    rows: tuple[Row, ...]
    predicted: float
    roofline: float

    @property
    def share(self) -> float:
        """The share of the roofline."""
        return self.roofline / self.predicted

    @property
    def share_of_best(self) -> float:
        """The share of the best known time, which is known for an H100 alone."""
        return 1e-6 * WORKLOADS[self.name].best / self.predicted

    @property
    def main(self) -> Row:
        """The kernel that takes longest."""
        return max(self.rows, key=lambda r: r.times * r.cost.seconds)


def target(arch: str) -> Target:
    """A CUDA device as its driver would describe it."""
    record, shared_bytes = DEVICES[arch]
    return Target(
        name="cuda:0",
        backend="cuda",
        language="cuda",
        description=f"NVIDIA {record.name}",
        dtypes=frozenset(CUDA_C.scalars),
        vector_bytes=16,
        cores=record.units,
        threads_per_workgroup=1024,
        shared_bytes=shared_bytes,
        scratch_bytes=1 << 12,
        routines=frozenset(),
        subgroup_threads=32,
        native=native(_number(arch)),
    )


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def judge(name: str, arch: str) -> Judgement:
    """Compile a workload, and look at every kernel."""
    workload, device = WORKLOADS[name], target(arch)
    program = rune.make_program(workload.function)(*workload.types)
    lowered = stages(program, device)
    times: dict[str, int] = {}
    for kernel, count in launches(lowered.plan, 1, ROUNDS.get(name, 1)):
        times[kernel] = times.get(kernel, 0) + count
    # As the executor compiles it, with what this architecture alone has.
    exact = architecture(divmod(_number(arch), 10), supported())
    code, trace = machines(program_text(lowered.plan), exact), traced(lowered.plan)
    rows = []
    for kernel, count in times.items():
        costs = cost(lowered.plan.kernels[kernel], device, DEVICES[arch][0])
        rows.append(Row(kernel, count, costs, code[ENTRY + kernel], trace(kernel, costs, name)))
    predicted = sum(r.times * r.cost.seconds for r in rows)
    return Judgement(name, tuple(rows), predicted, roofline(workload, lowered, DEVICES[arch][0]))


def program_text(plan: Plan) -> str:
    """The CUDA C of all kernels of a plan."""
    return cstyle.assemble([cstyle.render(code, CUDA_C) for code in plan.kernels.values()], CUDA_C)


def traced(plan: Plan) -> Callable[[str, Cost, str], Trace]:
    """A function that runs a kernel of a plan on the host: by its name, launch and workload."""
    kernels = Kernels(program_text(plan))

    def trace(kernel: str, costs: Cost, name: str) -> Trace:
        buffers = arguments(plan.kernels[kernel], name)
        return kernels.trace(ENTRY + kernel, costs.groups, costs.group_threads, buffers)

    return trace


def launches(plan: Plan, times: int, unknown: int) -> Iterator[tuple[str, int]]:
    """The kernels of a plan, and how often each runs; loops of unknown length `unknown` times."""
    for step in plan.steps:
        if isinstance(step, Launch):
            yield step.kernel, times
        rounds = 1
        if isinstance(step, Loop):
            rounds = unknown if step.count is None else estimate(step.count)
        for inner in inner_plans(step):
            yield from launches(inner, times * rounds, unknown)


def arguments(code: KernelCode, name: str) -> list[np.ndarray]:
    """Buffers for a kernel: zeros, and random numbers where they may be indices."""
    generator = np.random.default_rng(0)
    buffers = []
    for param in code.params:
        buffer = aligned_zeros(estimate(param.size), param.dtype)
        if param.dtype in (dtypes.i32, dtypes.u32, dtypes.i64):
            buffer[...] = generator.integers(0, LARGEST_INDEX.get(name, 1 << 15), buffer.size)
        buffers.append(buffer)
    return buffers


def aligned_zeros(size: int, dtype: np.dtype) -> np.ndarray:
    """Zeros that begin at a multiple of 256 bytes, as allocations on a device do.

    Values of a trace may be wrong, so there is memory around as far as 32-bit indices reach.
    """
    reach = dtype.itemsize << 31
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    memory = mmap.mmap(-1, 2 * reach + size * dtype.itemsize, flags=flags)
    return np.frombuffer(memory, dtype, size, reach)


def roofline(workload: Workload, lowered: Lowered, record: DeviceRecord) -> float:
    """The time that no program can beat by much. Units: s."""
    types = (*lowered.plan.arguments, *lowered.plan.results)
    size = sum(t.dtype.itemsize * int(np.prod([estimate(n) for n in t.shape])) for t in types)
    size -= workload.unread
    narrow = [t.dtype for t in types if t.dtype in (dtypes.f16, dtypes.bf16)]
    # Products of f32 are asked for in f32, not in tf32.
    peak = record.matrix_flops[narrow[0]] if narrow else record.flops(dtypes.f32)
    return max(size / record.memory_rate, workload.flops / peak) + record.launch_ns * 1e-9


# --- output -----------------------------------------------------------------------------------

_ON_H100 = ("best", "before")
_HEAD = (
    "workload",
    "kernels, launches",
    "grid x block",
    "registers (model)",
    "spills",
    "products",
    "loads in the loop",
    "sectors (model)",
    "bound by",
    "µs",
    "roofline",
    *_ON_H100,
)


def cells(judgement: Judgement) -> tuple[str, ...]:
    """A row of the table."""
    main = judgement.main
    workload = WORKLOADS[judgement.name]
    return (
        judgement.name,
        f"{len(judgement.rows)}, {sum(r.times for r in judgement.rows)}",
        f"{main.cost.groups} x {main.cost.group_threads}",
        f"{main.machine.registers} ({main.cost.registers})",
        str(main.machine.spills),
        f"{main.machine.share(PRODUCTS):.0%}",
        main.machine.widths,
        f"{main.trace.sectors:.1f} ({main.cost.sectors:.1f})",
        main.cost.bound,
        f"{1e6 * judgement.predicted:,.0f}",
        f"{judgement.share:.0%}",
        f"{judgement.share_of_best:.0%}",
        "{:,.0f} to {:,.0f}".format(*workload.baseline),
    )


def table(judgements: Sequence[Judgement], record: DeviceRecord) -> str:
    """The table as Markdown, and its summary."""
    columns = len(_HEAD) if record is H100 else len(_HEAD) - len(_ON_H100)
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(cells, judgements)]
    lines = [f"| {' | '.join(row[:columns])} |" for row in rows]
    lines += ["", f"{record.name}, {len(judgements)} workloads"]
    lines.append(f"{summary(judgements, 'share')} of the roofline")
    if record is H100:
        lines.append(f"{summary(judgements, 'share_of_best')} of the best")
    return "\n".join(lines)


def summary(judgements: Sequence[Judgement], share: str) -> str:
    """The geometric mean of a share, and the least."""
    shares = {j.name: getattr(j, share) for j in judgements}
    worst = min(shares, key=lambda name: shares[name])
    return f"geometric mean {statistics.geometric_mean(shares.values()):.0%}, least {shares[worst]:.1%} ({worst})"


def as_json(judgement: Judgement) -> dict[str, Any]:
    """A workload's judgement, with all its kernels."""
    fields = asdict(judgement)
    return {
        **fields,
        "share": judgement.share,
        "best_us": WORKLOADS[judgement.name].best,
        "baseline_us": WORKLOADS[judgement.name].baseline,
    }


def _judge_apart(name: str, arch: str) -> Judgement:
    """The judgement by a process of its own: wrong values of a trace may lead it anywhere."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        try:
            return process.submit(judge, name, arch).result()
        except BrokenProcessPool as error:
            raise SystemExit(f"gpu_static: cannot trace {name!r} (its kernels left their buffers)") from error


def main() -> None:
    """Judge the workloads that are asked for."""
    parser = argparse.ArgumentParser(description="GPU kernels judged without a GPU")
    parser.add_argument("--workloads", nargs="*", default=["*"], help="names or patterns")
    parser.add_argument("--arch", choices=DEVICES, default="sm_90")
    parser.add_argument("--json", metavar="FILE", help="write all figures of all kernels")
    options = parser.parse_args()
    names = [n for n in WORKLOADS if any(fnmatch(n, p) for p in options.workloads)]
    try:
        disassembler()
    except PackageNotFoundError as error:
        raise SystemExit(
            f"gpu_static: cannot read machine code (no {error}): pip install 'rune-ml[gpu-static]'"
        ) from error
    judgements = [_judge_apart(name, options.arch) for name in names]
    print(table(judgements, DEVICES[options.arch][0]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([as_json(j) for j in judgements], file, indent=1)


if __name__ == "__main__":
    main()
