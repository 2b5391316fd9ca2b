"""What the code of a plan runs one after the other: its steps, some of them in bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.backends.cpu import conventions, kinds_of_calls
from rune.backends.cpu.band import Band
from rune.backends.cpu.host import Host
from rune.lowering.codegen.llvm.render import Rendered
from rune.lowering.plan import Call, Plan, Step

Item = Step | Band


def items_of(plan: Plan, host: Host, kernels: Mapping[str, Rendered]) -> Sequence[Item]:
    """The steps of a plan, those of bands together."""
    # A draft is soon replaced, and a clock times each step.
    if host.effort == conventions.HURRY or host.clock is not None or not _has_batch(plan):
        return plan.steps
    return kinds_of_calls.bands().in_bands(plan, host, kernels)


def _has_batch(plan: Plan) -> bool:
    return any(isinstance(s, Call) and dict(s.parameters).get("batch", 1) != 1 for s in plan.steps)
