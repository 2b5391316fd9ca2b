"""How a loop runs in lanes: its partial sums, the number of vectors in a round, and the tail.

for i in n { s += x[i] }       s in four vectors side by side, so that no addition waits for another
for i in n { y[i] = f(x[i]) }  whole vectors, and the last under a mask; or, for a long f, every
                               vector under one, since a second copy of f costs more than masks
"""

from __future__ import annotations

import math

import numpy as np

from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Const
from rune.lowering.kernel.nodes import Accumulate, For, If
from rune.lowering.kernel.rewrite import expressions, names_bound, walk
from rune.lowering.lanes.choose import instructions
from rune.records import dataclass

UNROLL = 4  # vectors of partial sums, if the body costs at most UNROLL_COST
UNROLL_COST = 12.0  # longer bodies hide the latency of the addition by themselves
HEAVY = 24.0  # cost of a body from which a mask in every step is cheaper than a second copy


@dataclass(frozen=True, slots=True)
class Sum:
    """A Var that a loop accumulates by an operation."""

    name: str
    combine: str
    dtype: np.dtype

    @property
    def identity(self) -> Const:
        """The initial value of its vectors."""
        return COMBINE[self.combine].identity(self.dtype)


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a loop runs in lanes.

    sums: Vars from outside that it accumulates, as vectors of partial sums
    vectors: how many vectors each Var has
    is_heavy: whether each step should have a mask, if that saves a copy of the body
    """

    sums: tuple[Sum, ...]
    vectors: int
    is_heavy: bool


def rounds_of(loop: For) -> Rounds:
    """How a loop runs in lanes, if it may (choose.py)."""
    cost, bound = _straight_cost(loop), names_bound(loop.body)
    # Each has a single operation, or the loop could not run in lanes.
    outer = {s.name: s for s in walk(loop.body) if isinstance(s, Accumulate) and s.name not in bound}
    sums = tuple(Sum(name, outer[name].combine, outer[name].value.dtype) for name in sorted(outer))
    return Rounds(sums, UNROLL if sums and cost <= UNROLL_COST else 1, HEAVY <= cost < math.inf)


def _straight_cost(loop: For) -> float:
    """The cost of one iteration; infinite if it is more than a sequence of simple statements."""
    if any(isinstance(s, (For, If)) for s in loop.body):
        return math.inf
    return sum(instructions(e) for s in loop.body for e in expressions(s))


__all__ = ["Rounds", "Sum", "rounds_of"]
