"""Plans on a WebGPU device that time their steps: each is submitted by itself, and waited for.

A pass writes its own time stamps where the adapter has them; else, and for copies, the host's clock
has to do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.backends.shared.executor import Concrete, ConcreteStep, run
from rune.backends.shared.pool import Block
from rune.backends.wgpu.run import Encoder, Walker, WgpuExecutable
from rune.backends.wgpu.script import Notes
from rune.lowering.plan import Call, Plan, Space

if TYPE_CHECKING:
    from rune.backends.shared.timing import Meter
    from rune.backends.wgpu import WgpuBackend

STAMPS = "timestamp-query"


class Stamps:
    """Where a pass writes when it began and ended, in nanoseconds."""

    def __init__(self, backend: WgpuBackend):
        self.backend, usage, device = backend, backend.wgpu.BufferUsage, backend.device
        self.queries = device.create_query_set(type="timestamp", count=2)
        self.memory = device.create_buffer(size=16, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        self.writes = {
            "query_set": self.queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }

    def seconds(self) -> float:
        """Wait for the pass; how long it took."""
        start, end = self.backend.fetch(self.memory, 0, 16).view(np.uint64).tolist()
        return 1e-9 * max(0, end - start)


@dataclass(slots=True)
class _TimedEncoder(Encoder):
    """Each pass writes its stamps."""

    stamps: Stamps | None = None
    is_stamped: bool = False  # a pass of this step has written them

    def open_pass(self, commands: Any) -> Any:
        """Begin a pass."""
        if self.stamps is None:
            return commands.begin_compute_pass()
        self.is_stamped = True
        return commands.begin_compute_pass(timestamp_writes=self.stamps.writes)

    def close(self, commands: Any) -> None:
        """The last command."""
        if self.is_stamped and self.stamps is not None:
            commands.resolve_query_set(self.stamps.queries, 0, 2, self.stamps.memory, 0)


@dataclass(frozen=True, slots=True)
class _TimedWalker(Walker):
    """Waits for every step, and tells the meter its time."""

    encoder: _TimedEncoder
    meter: Meter

    def step(self, step: ConcreteStep) -> None:
        """Run a kernel or copy, or call Python."""
        encoder, start = self.encoder, time.perf_counter()
        encoder.submit()
        encoder.is_stamped = False
        Walker.step(self, step)
        if isinstance(step.step, Call):
            return
        encoder.submit()
        if encoder.is_stamped and encoder.stamps is not None:
            seconds = encoder.stamps.seconds()
        else:
            self.executable.backend.synchronize()
            seconds = time.perf_counter() - start
        self.meter.add(step.step, self.made.sizes, seconds)


class TimedExecutable(WgpuExecutable):
    """A compiled plan that tells a meter of its steps."""

    def __init__(self, backend: WgpuBackend, plan: Plan, meter: Meter):
        super().__init__(backend, plan)
        self.meter = meter
        self.stamps = Stamps(backend) if STAMPS in backend.device.features else None

    def run_steps(self, made: Concrete, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Run all steps on this memory, one by one."""
        with self.backend.failing(self.plan.name):
            encoder = _TimedEncoder(self.backend, Notes(fits=False), stamps=self.stamps)
            run(made.steps, _TimedWalker(self, made, memory, encoder, self.meter))
            encoder.submit()
