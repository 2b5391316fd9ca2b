"""A picture of a memory plan: steps from left to right, bytes of the arena from top to bottom.

Every buffer is a bar over the steps during which it lives. Two bars never overlap: that is what
the planner promises. Symbolic sizes have no picture.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from rune.dims import product
from rune.lowering.plan import Call, Copy, Launch, Plan, Slot, Space, Step

STEP_WIDTH, HEIGHT, LABEL = 90, 160, 16  # pixels


@dataclass(frozen=True, slots=True)
class Bar:
    """One buffer of the arena: first and last step, offset and size in bytes."""

    first: int
    last: int
    offset: int
    size: int
    text: str


def step_slots(step: Step) -> tuple[Slot, ...]:
    """Every slot that a step touches."""
    match step:
        case Launch(slots=slots):
            return slots
        case Call(outputs=outputs, inputs=inputs):
            return (*outputs, *inputs)
        case Copy(target=target, source=source):
            return (target, source)


def step_name(step: Step) -> str:
    """The kernel or routine of a step."""
    match step:
        case Launch(kernel=kernel):
            return kernel
        case Call(routine=routine):
            return routine
        case Copy():
            return "copy"


def bars(plan: Plan) -> list[Bar]:
    """The live range of every buffer of the arena."""
    seen: dict[Slot, tuple[int, int]] = {}
    for number, step in enumerate(plan.steps):
        for slot in step_slots(step):
            if slot.space is Space.ARENA:
                first, _ = seen.get(slot, (number, number))
                seen[slot] = (first, number)
    return [_bar(slot, *span) for slot, span in seen.items()]


def _bar(slot: Slot, first: int, last: int) -> Bar:
    size = product(slot.type.shape)
    if not isinstance(size, int) or not isinstance(slot.offset, int):
        return Bar(first, last, 0, 0, str(slot.type))
    return Bar(first, last, slot.offset, size * slot.type.dtype.itemsize, str(slot.type))


def plan_svg(plan: Plan) -> str:
    """The picture as SVG; empty for an arena of no bytes or of symbolic size."""
    if not isinstance(plan.arena_bytes, int) or plan.arena_bytes == 0:
        return ""
    width = STEP_WIDTH * len(plan.steps)
    scale = HEIGHT / plan.arena_bytes
    drawn = "".join(_rect(b, scale) for b in bars(plan))
    labels = "".join(
        f'<text x="{i * STEP_WIDTH + 3}" y="{HEIGHT + 12}">'
        f"{i}: {html.escape(step_name(s)[:12])}</text>"
        for i, s in enumerate(plan.steps)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT + LABEL}" '
        f'font-family="monospace" font-size="10" role="img">'
        f"<title>arena of {plan.arena_bytes} bytes over {len(plan.steps)} steps</title>"
        f"{drawn}{labels}</svg>"
    )


def _rect(bar: Bar, scale: float) -> str:
    x, y = bar.first * STEP_WIDTH + 1, bar.offset * scale
    width, height = (bar.last - bar.first + 1) * STEP_WIDTH - 2, max(bar.size * scale - 1, 1)
    label = html.escape(f"{bar.text} {bar.size} B at {bar.offset}")
    return (
        f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{height:.1f}" fill="#9ecae1" '
        f'stroke="#3182bd"><title>{label}</title></rect>'
        f'<text x="{x + 3}" y="{y + min(height, 11):.1f}">{html.escape(bar.text)}</text>'
    )
