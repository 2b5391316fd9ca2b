"""How well predicted times order kernels on the processor: rank correlation with measured ones.

    python benchmarks/cost_model.py
    python benchmarks/cost_model.py --kernels 'sum*' --forms 20

Each kernel is built by a hundred of the schedules that a search may try, spread evenly over all of
them, and all are timed in turn, round after round; the least counts. The time is the processor's,
of one core, for which they are predicted. "model picks" is the time of the schedule that is
predicted to be fastest, over that of the fastest.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from time import process_time
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune.backends import Device, device_of
from rune.backends.shared.protocol import Executable
from rune.errors import ArgumentError
from rune.lowering.build import build, has_schedules
from rune.lowering.build.schedule import Schedule
from rune.lowering.build.space import candidates
from rune.lowering.codegen.target import Target
from rune.lowering.costs import cost
from rune.lowering.explain import Lowered
from rune.lowering.kernels import Kernel
from rune.lowering.stages import stages
from rune.profiling import aligned

ROUNDS, BURST_S, MOST_CALLS = 7, 1e-3, 20
FORMS = 100


def conv(x: Any, w: Any) -> Any:
    """Images by filters."""
    return rune.lax.conv_general_dilated(x, w, (1, 1), "SAME")


KERNELS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "250 x 256 x 260": (lambda a, b: a @ b, ((250, 256), (256, 260))),
    "512 x 512 x 512": (lambda a, b: a @ b, ((512, 512), (512, 512))),
    "a @ b.T, 256": (lambda a, b: a @ b.T, ((256, 256), (256, 256))),
    "a.T @ b, 256": (lambda a, b: a.T @ b, ((256, 256), (256, 256))),
    "matrix vector, 1024": (lambda a, b: a @ b, ((1024, 1024), (1024,))),
    "vector matrix, 1024": (lambda a, b: a @ b, ((1024,), (1024, 1024))),
    "transpose 1500 x 1100": (lambda x: x.T + 1, ((1500, 1100),)),
    "sum axis 0, 2000 x 700": (lambda x: rnp.sum(x, axis=0), ((2000, 700),)),
    "sum axis 1, 2000 x 700": (lambda x: rnp.sum(x, axis=1), ((2000, 700),)),
    "softmax 512 x 1000": (rune.nn.softmax, ((512, 1000),)),
    "conv 4x32x28x28 3x3": (conv, ((4, 32, 28, 28), (32, 32, 3, 3))),
    "tanh(x)*y, 1M": (lambda x, y: rnp.tanh(x) * y, ((1 << 20,), (1 << 20,))),
    "x * column, 1000": (lambda x, y: x * y[:, None], ((1000, 1000), (1000,))),
}


@dataclass(frozen=True, slots=True)
class Times:
    """Predicted and measured seconds of each form of a kernel."""

    predicted: tuple[float, ...]
    measured: tuple[float, ...]

    def __add__(self, other: Times) -> Times:
        return Times(self.predicted + other.predicted, self.measured + other.measured)

    @property
    def correlation(self) -> float:
        """The correlation of the ranks; 1 where all are in order."""
        predicted, measured = (np.argsort(np.argsort(times)) for times in (self.predicted, self.measured))
        return float(np.corrcoef(predicted, measured)[0, 1])

    @property
    def pick(self) -> float:
        """The time of the form that is predicted to be fastest."""
        return self.measured[int(np.argmin(self.predicted))]


def forms(name: str, target: Target, most: int) -> Iterator[Lowered]:
    """A program, its largest kernel by many schedules whose code differs."""
    function, shapes = KERNELS[name]
    program = rune.make_program(function)(*(rune.ShapeDtypeStruct(s, "f32") for s in shapes))
    kernels = [k for k in stages(program, target).kernels.kernels.values() if has_schedules(k)]
    spaces = {kernel.name: _legal(kernel, target) for kernel in kernels}
    kernel, space = max(spaces.items(), key=lambda item: len(item[1]))
    known = set[str]()
    for schedule in space[:: -(-len(space) // most)]:
        lowered = stages(program, target, schedules={kernel: str(schedule)})
        text = lowered.text("code")
        if text not in known:
            known.add(text)
            yield lowered


def _legal(kernel: Kernel, target: Target) -> list[Schedule]:
    return [s for s in candidates(kernel, target) if _is_built(kernel, s, target)]


def _is_built(kernel: Kernel, schedule: Schedule, target: Target) -> bool:
    try:
        build(kernel, schedule, target)
    except ArgumentError:
        return False
    return True


def times_of(name: str, device: Device, most: int) -> Times:
    """All forms of a kernel, predicted and measured."""
    # Products are left to kernels, not to the library of products.
    target = replace(device.target, routines=frozenset(), cores=1)
    lowered = list(forms(name, target, most))
    predicted = (sum(cost(code, target).seconds for code in form.plan.kernels.values()) for form in lowered)
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(s).astype(np.float32) for s in KERNELS[name][1]]
    programs = [device.backend.record(form.plan) for form in lowered]
    rounds = [[_seconds(program, arguments) for program in programs] for _ in range(ROUNDS)]
    return Times(tuple(predicted), tuple(map(min, zip(*rounds, strict=True))))


def _seconds(program: Executable, arguments: Sequence[Any]) -> float:
    """The mean of a burst of calls."""
    start, calls = process_time(), 0
    while calls < MOST_CALLS and (calls == 0 or process_time() - start < BURST_S):
        program(arguments)
        calls += 1
    return (process_time() - start) / calls


def cells(name: str, times: Times) -> tuple[str, ...]:
    """A row of the table."""
    fastest, slowest = min(times.measured), max(times.measured)
    middle = np.median(np.array(times.measured) / np.array(times.predicted))
    order = f"{times.correlation:.2f}" if len(times.measured) > 2 else ""
    span = f"{1e6 * fastest:.0f} to {1e6 * slowest:.0f}"
    return name, str(len(times.measured)), order, span, f"{times.pick / fastest:.2f}", f"{middle:.2f}"


def main() -> None:
    """Time the kernels that are asked for."""
    os.environ["RUNE_CPU_THREADS"] = "1"  # read when the device is opened
    parser = argparse.ArgumentParser(description="predicted beside measured times on the processor")
    parser.add_argument("--kernels", nargs="*", default=["*"], help="names or patterns")
    parser.add_argument("--forms", type=int, default=FORMS, help="schedules of each kernel")
    options = parser.parse_args()
    names = [n for n in KERNELS if any(fnmatch(n, p) for p in options.kernels)]
    times = {name: times_of(name, device_of("cpu:0"), options.forms) for name in names}
    head = ("kernel", "forms", "rank correlation", "µs", "model picks", "measured / predicted")
    print("\n".join(aligned([head, *(cells(name, each) for name, each in times.items())])))
    everything = sum(times.values(), Times((), ()))
    print(f"{len(everything.measured)} forms: rank correlation {everything.correlation:.2f}")


if __name__ == "__main__":
    main()
