"""Plans on the CPU that time their steps (clock.py).

After each call the increase of the table is reported to the meter. Calls of one plan take turns, so
that each reports to the profile of its own caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune import locks, profiling
from rune.backends.cpu.callbacks import CpuCallbacks
from rune.backends.cpu.clock import Clock
from rune.backends.cpu.host import Host
from rune.backends.cpu.run import CpuExecutable
from rune.backends.shared.executor import size_values
from rune.backends.shared.protocol import Buffer
from rune.backends.shared.work import Work
from rune.lowering.plan import Call, Plan
from rune.profiling import Kind, current_row, ended

if TYPE_CHECKING:
    from rune.backends.shared.timing import Meter


class TimedCallbacks(CpuCallbacks):
    """The Python functions of one plan, which report how long they waited for the interpreter."""

    def __init__(self, plan: Plan, clock: Clock):
        super().__init__(plan)
        self._clock = clock

    def _entry(self, step: Call) -> Callable[[int], int]:
        enter = super()._entry(step)

        def enter_timed(address: int) -> int:
            profile = profiling.current()
            if profile is not None:
                profile.add_total(ended(Kind.WAIT, "the interpreter", self._clock.begin(step), current_row()))
            return enter(address)

        return enter_timed


class TimedExecutable(CpuExecutable):
    """A compiled plan that reports its steps to a meter."""

    runs_natively = False

    def __init__(self, plan: Plan, host: Host, work: Work, meter: Meter):
        assert host.clock is not None
        self._clock, self._meter = host.clock, meter
        self._reported = np.zeros_like(self._clock.table)
        self._turn = locks.reentrant()  # a callback may call the same plan
        super().__init__(plan, host, work)

    def callbacks_of(self, plan: Plan) -> CpuCallbacks:
        """Python functions that report how long they waited for the interpreter."""
        return TimedCallbacks(plan, self._clock)

    def __call__(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> list[Buffer]:
        """Run the plan, and report its steps."""
        shapes = [a.shape for a in arguments]
        with self._turn:
            results = super().__call__(arguments, donated)
            table = self._clock.table.copy()
            new, self._reported = table - self._reported, table
        sizes = size_values(self.plan, shapes)
        # The table has one row even if the plan has no steps.
        for step, (nanoseconds, calls, *_) in zip(self._clock.steps, new.tolist(), strict=False):
            if calls:
                self._meter.add(step, sizes, 1e-9 * nanoseconds, calls)
        return results
