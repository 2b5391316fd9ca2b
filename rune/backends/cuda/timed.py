"""Plans on a CUDA device that time their steps, by events around each launch.

The host walks the steps, as where a plan calls Python: a graph does not tell of its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rune.backends.cuda.graph import Memory
from rune.backends.cuda.launch import Program
from rune.backends.cuda.run import CudaExecutable, Prepared, Walker
from rune.backends.shared.executor import ConcreteStep, Steps
from rune.lowering.codegen.cstyle import Rendered
from rune.lowering.plan import Call, Plan

if TYPE_CHECKING:
    from rune.backends.cuda import CudaBackend
    from rune.backends.shared.timing import Meter


@dataclass(frozen=True, slots=True)
class _TimedWalker(Walker):
    """Waits for every step, and tells the meter its time."""

    meter: Meter

    def step(self, step: ConcreteStep) -> None:
        """Launch a kernel, or call Python."""
        if isinstance(step.step, Call):
            Walker.step(self, step)
            return
        backend = self.executable.backend
        start, end = backend.driver.Event(), backend.driver.Event()
        start.record(backend.stream)
        Walker.step(self, step)
        end.record(backend.stream)
        end.synchronize()
        self.meter.add(step.step, self.prepared.made.sizes, 1e-3 * start.time_till(end))


class TimedExecutable(CudaExecutable):
    """A compiled plan that tells a meter of its steps."""

    def __init__(
        self, backend: CudaBackend, plan: Plan, kernels: dict[str, Rendered], program: Program,
        meter: Meter,
    ):  # fmt: skip
        super().__init__(backend, plan, kernels, program)
        self.meter = meter

    def needs_host(self, steps: Steps) -> bool:
        """The host runs all of them."""
        return True

    def walker(self, prepared: Prepared, addresses: Mapping[Memory, int]) -> Walker:
        """What runs the steps one by one."""
        return _TimedWalker(self, prepared, addresses, self.meter)
