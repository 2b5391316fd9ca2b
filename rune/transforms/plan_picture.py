"""A picture of a memory plan: steps from left to right, bytes of the arena from top to bottom.

Every value is a bar over the steps during which it lives. Two bars never overlap, but where a
kernel works in place: that is what the planner promises. Symbolic sizes have no picture.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from rune.dims import product
from rune.lowering.kernel.nodes import Access
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


def slots_written(plan: Plan, step: Step) -> tuple[Slot, ...]:
    """The slots that a step gives a new value."""
    match step:
        case Launch(kernel=kernel, slots=slots):
            params = plan.kernels[kernel].params
            return tuple(s for s, p in zip(slots, params) if p.access is not Access.READ)
        case Call(outputs=outputs):
            return outputs
        case Copy(target=target):
            return (target,)


def slots_read(plan: Plan, step: Step) -> tuple[Slot, ...]:
    """The slots whose value a step needs."""
    match step:
        case Launch(kernel=kernel, slots=slots):
            params = plan.kernels[kernel].params
            return tuple(s for s, p in zip(slots, params) if p.access is not Access.WRITE)
        case Call(inputs=inputs):
            return inputs
        case Copy(source=source):
            return (source,)


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
    """The live range of every value in the arena; a slot written again is another value."""
    found: list[tuple[Slot, int, int]] = []
    newest: dict[Slot, int] = {}
    for number, step in enumerate(plan.steps):
        for slot in slots_read(plan, step):
            if slot in newest:
                _, first, _ = found[newest[slot]]
                found[newest[slot]] = (slot, first, number)
        for slot in slots_written(plan, step):
            if slot.space is Space.ARENA:
                newest[slot] = len(found)
                found.append((slot, number, number))
    return [_bar(*value) for value in found]


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
