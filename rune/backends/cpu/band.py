"""Bands of a plan (lowering/bands.py) as steps of its code: where they are worth it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.backends.cpu import conventions, kinds_of_calls
from rune.backends.cpu.host import Host
from rune.lowering.codegen.llvm.render import Rendered
from rune.lowering.plan import Call, Plan, Slot, Step
from rune.records import dataclass

UNEVEN = 1.25  # how many times the average share of a core the largest one may be


@dataclass(frozen=True, slots=True)
class Band:
    """Steps that run entry by entry. passing: memory of which one entry at a time is needed."""

    steps: tuple[Step, ...]
    entries: int
    passing: frozenset[Slot]


def items_of(plan: Plan, host: Host, kernels: Mapping[str, Rendered]) -> Sequence[Step | Band]:
    """The steps of a plan, some of them in bands."""
    # A draft is soon replaced, and a clock times each step.
    if host.effort == conventions.HURRY or host.clock is not None or not _has_batch(plan):
        return plan.steps
    return kinds_of_calls.bands().in_bands(plan, host, kernels)


def is_even(entries: int, cores: int) -> bool:
    """Whether all cores get about as many entries."""
    return -(-entries // cores) * cores <= UNEVEN * entries


def _has_batch(plan: Plan) -> bool:
    return any(isinstance(s, Call) and dict(s.parameters).get("batch", 1) != 1 for s in plan.steps)
