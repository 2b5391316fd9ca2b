"""runner_up: the schedule that the cost model puts next to a kernel's own, and what sets it back.

    dot_0: 3289.1 µs by tile(i0=2, i1=2) stage(i0=16, i1=16, j0=64), bound by f32 units
      next tile(i0=2, i1=2) stage(i0=16, i1=16, j0=32): 1.04 times as long, by requests

All that differs from the schedule in one step is looked at, and a share of the other candidates,
spread evenly. Where a runner-up is predicted to be faster, the line says so: defaults follow rules
that were measured, and `rune.tune` measures.

Invariant: nothing runs, nothing is timed; the same for the same kernel and target.
Cost:      about 20 ms for each schedule; MOST of them, and all neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rune.errors import RuneError
from rune.lowering.build import build, has_schedules
from rune.lowering.build.schedule import Schedule
from rune.lowering.build.space import candidates, difference
from rune.lowering.codegen.target import Target
from rune.lowering.costs import Cost, cost
from rune.lowering.kernels import Kernel
from rune.lowering.stages import optimised
from rune.records import dataclass

MOST = 32  # candidates other than neighbours


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule of a kernel, and what a launch by it is predicted to cost."""

    schedule: Schedule
    cost: Cost


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The schedule of a kernel beside the best other one; None where it has no other."""

    kernel: str
    chosen: Choice
    runner_up: Choice | None

    @property
    def ratio(self) -> float:
        """Of the runner-up's predicted time to that of the schedule; 1 without one."""
        return self.runner_up.cost.seconds / self.chosen.cost.seconds if self.runner_up else 1.0

    @property
    def cause(self) -> str:
        """The part of the device that takes the most time more, or less if it is faster."""
        assert self.runner_up is not None
        mine, others = self.chosen.cost.parts, self.runner_up.cost.parts
        sign = 1 if self.ratio >= 1 else -1
        return max(others, key=lambda part: sign * (others[part] - mine.get(part, 0.0)))

    def __str__(self) -> str:
        cost = self.chosen.cost
        head = f"{self.kernel}: {1e6 * cost.seconds:.1f} µs by {self.chosen.schedule}, bound by {cost.bound}"
        if self.runner_up is None:
            return f"{head}\n  no other schedule"
        line = f"{head}\n  next {self.runner_up.schedule}: {self.ratio:.2f} times as long, by {self.cause}"
        return line if self.ratio >= 1 else f"{line}; predicted, not measured: rune.tune measures"

    __repr__ = __str__


def compared(kernel: Kernel, schedule: Schedule, target: Target) -> Comparison:
    """The schedule of a kernel beside the best of its neighbours and of a share of the others."""
    chosen = Choice(schedule, _cost(kernel, schedule, target))
    space = list(candidates(kernel, target)) if has_schedules(kernel) else []
    costs = [Choice(s, c) for s in _sample(space, schedule) for c in _legal_cost(kernel, s, target)]
    return Comparison(kernel.name, chosen, min(costs, key=lambda c: c.cost.seconds, default=None))


def _sample(space: Sequence[Schedule], schedule: Schedule) -> Sequence[Schedule]:
    others = [s for s in dict.fromkeys(space) if s != schedule]
    neighbours = [s for s in others if difference(s, schedule)]
    return tuple(dict.fromkeys((*neighbours, *others[:: max(1, len(others) // MOST)])))


def _legal_cost(kernel: Kernel, schedule: Schedule, target: Target) -> Iterator[Cost]:
    """The cost of a schedule, or none if the kernel cannot have it."""
    try:
        yield _cost(kernel, schedule, target)
    except RuneError:
        return


def _cost(kernel: Kernel, schedule: Schedule, target: Target) -> Cost:
    return cost(optimised(build(kernel, schedule, target), target), target)
