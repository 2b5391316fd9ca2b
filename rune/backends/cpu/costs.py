"""Costs of a plan's steps on the CPU. Units: estimated instructions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rune import dims
from rune.backends.cpu import kinds_of_calls
from rune.lowering.codegen.machine import Machine
from rune.lowering.factors import factor_of, is_factor
from rune.lowering.kernelize.walks import SIZES
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Step, all_steps
from rune.records import dataclass

MOST_WORK = 5e6  # estimated instructions of a draft, one or two milliseconds
SURE_STEPS = 1000  # of a `while` that a draft must be able to take if its loops run one by one
INNER_STEPS = 100  # of a `while`, expected in a draft each time that a loop around it runs it
FIRST_COST = 1e6  # instructions before a loop first checks for signals: under a millisecond
_DOT_COST = 1 / 16  # of one multiplication of a matrix product, in vectors
_FLOP_COST = 1 / 8  # of one operation of products and factorisations in a draft
_COPY_COST = 1 / 4  # of one element of a copy


class Costed(Protocol):
    """A kernel as text, or only its layout."""

    @property
    def range(self) -> dims.Size:
        """How many units it has."""
        ...

    @property
    def unit_cost(self) -> float:
        """The cost of one of them."""
        ...


Kernels = Mapping[str, Costed]


def cost_of(steps: Iterable[Step], kernels: Kernels) -> float | None:
    """The cost of all steps; None if it depends on symbolic sizes or on data."""
    costs = [_step_cost(step, kernels) for step in steps]
    return None if None in costs else sum(c for c in costs if c is not None)


def _step_cost(step: Step, kernels: Kernels) -> float | None:
    match step:
        case Launch():
            kernel = kernels[step.kernel]
            return _times(kernel.unit_cost, kernel.range)
        case Copy():
            return _times(_COPY_COST, dims.product(step.source.type.shape))
        case Call(routine="dot"):
            return _DOT_COST * _products(step)
        case Loop(condition=None, count=count) if count is not None:
            step_cost = cost_of(step.body.steps, kernels)
            return None if step_cost is None else _times(step_cost, count)
        case Branch():
            costs = [cost_of(plan.steps, kernels) for plan in step.branches]
            return None if None in costs else max(c for c in costs if c is not None)
        case _:
            return None


def _times(cost: float, count: dims.Size) -> float | None:
    return cost * count if isinstance(count, int) else None


def _products(step: Call) -> int:
    """The number of multiplications of a matrix product."""
    parameters = dict(step.parameters)
    return math.prod(x for x in map(parameters.get, SIZES) if isinstance(x, int))


def first_steps(loop: Loop, kernels: Kernels) -> int:
    """The number of steps after which a loop first calls the pulse: too few to be noticed."""
    inside = [loop.body] if loop.condition is None else [loop.body, loop.condition]
    cost = cost_of((step for plan in inside for step in plan.steps), kernels)
    return 1 if cost is None else max(1, int(FIRST_COST / max(cost, 1.0)))


# --- drafts (drafts.py) -------------------------------------------------------------------------


def draft_cost(plan: Plan, kernels: Kernels, machine: Machine) -> float:
    """The cost of a run of a draft; infinite if it depends on symbolic sizes or on data.

    A `while` gives up in time, and the final code begins the run again, which requires that a run
    has no side effects. So it counts as one step. Inside another loop it counts as INNER_STEPS in
    each round, since many take a few steps, and none should give up at its first one.
    A plan that has one inside a loop, and whose results take over arguments, begins with the final
    code, since its draft would be replaced before it ran.
    """
    inner_steps = math.inf if plan.donations else INNER_STEPS
    return _Draft(kernels, machine, can_begin_anew(plan), inner_steps).cost(plan.steps)


def is_short_one_by_one(plan: Plan, kernels: Kernels, machine: Machine) -> bool:
    """Whether a draft may run the loops of these kernels one by one.

    A `while` counts as SURE_STEPS: with few loops in lanes it would give up earlier.
    """
    return _Draft(kernels, machine, inner_steps=SURE_STEPS).cost(plan.steps, is_inner=True) <= MOST_WORK


def can_begin_anew(plan: Plan) -> bool:
    """Whether a run that was given up can be repeated: not if it calls Python, which has
    effects."""
    return not any(isinstance(step, Call) and step.routine == "callback" for step in all_steps(plan))


def rounds_of_draft(loop: Loop, kernels: Kernels, machine: Machine, around: float = 1.0) -> int:
    """How many steps of a loop a draft runs at most; after so many steps of a `while` it gives up.

    around: rounds of the loops around it, in each of which it may run as many steps
    """
    if loop.condition is None:
        return loop.count if isinstance(loop.count, int) else 1
    step_cost = _Draft(kernels, machine).cost([*loop.body.steps, *loop.condition.steps], is_inner=True)
    return max(1, int(MOST_WORK / max(step_cost * around, 1.0)))


@dataclass(frozen=True, slots=True)
class _Draft:
    """The costs of steps in a draft.

    can_stop:    whether a `while` may give up
    inner_steps: those of a `while` inside another loop
    """

    kernels: Kernels
    machine: Machine
    can_stop: bool = True
    inner_steps: float = INNER_STEPS

    def cost(self, steps: Sequence[Step], is_inner: bool = False) -> float:
        """The cost of all steps. is_inner: whether a loop is around them"""
        return sum(self._of_step(step, is_inner) for step in steps)

    def _of_step(self, step: Step, is_inner: bool) -> float:
        match step:
            case Loop(condition=None):
                count = step.count if isinstance(step.count, int) else math.inf
                return self.cost(step.body.steps, is_inner=True) * count
            case Loop(condition=condition) if condition is not None:
                count = math.inf if not self.can_stop else self.inner_steps if is_inner else 1
                return self.cost([*step.body.steps, *condition.steps], is_inner=True) * count
            case Branch():
                return max(self.cost(plan.steps, is_inner) for plan in step.branches)
            case Call(routine="dot" | "strided_dot"):
                return self._of_product(step)
            case Call() if is_factor(step):
                return _FLOP_COST * factor_of(step).flops
            case Call():
                return 0.0  # library code, or transforms, which are as fast in a draft
            case _:
                cost = cost_of([step], self.kernels)
                return math.inf if cost is None else cost

    def _of_product(self, step: Call) -> float:
        small = kinds_of_calls.dots().small_of(step, self.machine)
        if small is not None:
            return small.cost
        sizes = [size for name, size in step.parameters if name in SIZES]
        return _FLOP_COST * math.prod(n if isinstance(n, int) else math.inf for n in (2, *sizes))
