"""What steps of a plan cost on the CPU, in estimated instructions, where that is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rune import dims
from rune.lowering.codegen.llvm import Rendered
from rune.lowering.kernelize.walks import SIZES
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Step

_DOT_COST = 1 / 16  # of one product of a matrix product
_COPY_COST = 1 / 4  # of one element of a copy


def cost_of(steps: Iterable[Step], kernels: Mapping[str, Rendered]) -> float | None:
    """The cost of all steps; None where sizes or data decide."""
    costs = [_step_cost(step, kernels) for step in steps]
    return None if None in costs else sum(c for c in costs if c is not None)


def _step_cost(step: Step, kernels: Mapping[str, Rendered]) -> float | None:
    match step:
        case Launch():
            kernel = kernels[step.kernel]
            return _times(kernel.unit_cost, kernel.range)
        case Copy():
            return _times(_COPY_COST, dims.product(step.source.type.shape))
        case Call(routine="dot"):
            return _DOT_COST * _products(step)
        case Loop(condition=None, count=count) if count is not None:
            each = cost_of(step.body.steps, kernels)
            return None if each is None else _times(each, count)
        case Branch():
            costs = [cost_of(plan.steps, kernels) for plan in step.branches]
            return None if None in costs else max(c for c in costs if c is not None)
        case _:
            return None


def _times(cost: float, count: dims.Size) -> float | None:
    return cost * count if isinstance(count, int) else None


def _products(step: Call) -> int:
    """How many products a matrix product adds up."""
    parameters = dict(step.parameters)
    return math.prod(x for x in map(parameters.get, SIZES) if isinstance(x, int))
