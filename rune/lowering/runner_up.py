"""runner_up: the best schedule other than a kernel's own, by the cost model, and what slows it.

    dot_0: 3289.1 µs by tile(i0=2, i1=2) stage(i0=16, i1=16, j0=64), bound by f32 units
      next tile(i0=2, i1=2) stage(i0=16, i1=16, j0=32): 1.04 times as long, by requests

All schedules that differ in one step are compared, and an evenly spaced sample of the others. If a
runner-up is predicted to be faster, the line says so: defaults follow rules that were measured, and
`rune.tune` measures.

Invariant: nothing runs or is timed; the result is the same for the same kernel and target.
Cost:      about 20 ms for each schedule: about MOST of them, and all neighbours.
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
    """A schedule of a kernel, and the predicted cost of a launch."""

    schedule: Schedule
    cost: Cost


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The schedule of a kernel and the best other one, or None if there is no other."""

    kernel: str
    current: Choice
    runner_up: Choice | None

    @property
    def ratio(self) -> float:
        """The runner-up's predicted time over that of the schedule; 1 without a runner-up."""
        return self.runner_up.cost.seconds / self.current.cost.seconds if self.runner_up else 1.0

    @property
    def cause(self) -> str:
        """The part of the device whose time grows most, or shrinks most if the ratio is below 1."""
        assert self.runner_up is not None
        current_parts, other_parts = self.current.cost.parts, self.runner_up.cost.parts
        sign = 1 if self.ratio >= 1 else -1
        return max(other_parts, key=lambda part: sign * (other_parts[part] - current_parts.get(part, 0.0)))

    def __str__(self) -> str:
        cost = self.current.cost
        head = f"{self.kernel}: {1e6 * cost.seconds:.1f} µs by {self.current.schedule}, bound by {cost.bound}"
        if self.runner_up is None:
            return f"{head}\n  no other schedule"
        line = f"{head}\n  next {self.runner_up.schedule}: {self.ratio:.2f} times as long, by {self.cause}"
        return line if self.ratio >= 1 else f"{line}; predicted, not measured: rune.tune measures"

    __repr__ = __str__


def compared(kernel: Kernel, schedule: Schedule, target: Target) -> Comparison:
    """The schedule of a kernel and the best of its neighbours and of a sample of the others."""
    current = Choice(schedule, _cost(kernel, schedule, target))
    space = list(candidates(kernel, target)) if has_schedules(kernel) else []
    costs = [Choice(s, c) for s in _sample(space, schedule) for c in _legal_cost(kernel, s, target)]
    return Comparison(kernel.name, current, min(costs, key=lambda c: c.cost.seconds, default=None))


def _sample(space: Sequence[Schedule], schedule: Schedule) -> Sequence[Schedule]:
    others = [s for s in dict.fromkeys(space) if s != schedule]
    neighbours = [s for s in others if difference(s, schedule)]
    return tuple(dict.fromkeys((*neighbours, *others[:: max(1, len(others) // MOST)])))


def _legal_cost(kernel: Kernel, schedule: Schedule, target: Target) -> Iterator[Cost]:
    """The cost of a schedule; nothing if the kernel cannot have it."""
    try:
        yield _cost(kernel, schedule, target)
    except RuneError:
        return


def _cost(kernel: Kernel, schedule: Schedule, target: Target) -> Cost:
    return cost(optimised(build(kernel, schedule, target), target), target)
