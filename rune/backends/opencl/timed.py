"""Plans on an OpenCL device that time their steps, by the profiling times of their events.

The device's own queue does not measure: another one does, and each call has it for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rune.backends.opencl.run import OpenCLExecutable, Walker
from rune.backends.shared.executor import Concrete, ConcreteStep, run
from rune.backends.shared.pool import Block
from rune.lowering.codegen.cstyle import Rendered
from rune.lowering.plan import Plan, Space

if TYPE_CHECKING:
    from rune.backends.opencl import OpenCLBackend
    from rune.backends.shared.timing import Meter


@dataclass(frozen=True, slots=True)
class _TimedWalker(Walker):
    """Waits for every command, and tells the meter its time."""

    meter: Meter
    made: Concrete

    def step(self, step: ConcreteStep) -> None:
        """Run a kernel or copy, or call Python."""
        backend = self.executable.backend
        backend.last = None
        Walker.step(self, step)
        event = backend.last
        if event is not None:
            event.wait()
            seconds = 1e-9 * (event.profile.end - event.profile.start)
            self.meter.add(step.step, self.made.sizes, seconds)


class TimedExecutable(OpenCLExecutable):
    """A compiled plan that tells a meter of its steps."""

    def __init__(
        self, backend: OpenCLBackend, plan: Plan, kernels: dict[str, Rendered], program: Any,
        meter: Meter,
    ):  # fmt: skip
        super().__init__(backend, plan, kernels, program)
        self.meter = meter

    @property
    def queue(self) -> Any:
        """The device's queue that measures."""
        return self.backend.timing_queue

    def run_steps(self, made: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Run all steps on this memory, and wait."""
        self.backend.queue.finish()
        run(made.steps, _TimedWalker(self, self.prepared(made), memory, self.meter, made))
        self.queue.finish()
