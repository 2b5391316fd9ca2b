"""A picture of a memory plan: steps from left to right, bytes of the arena from top to bottom.

A step is a dotted line with its name. A value is a bar from the step that writes it to the last
step that reads it, as high as its bytes. So bars never overlap, and where a kernel works in place,
one bar begins where another ends. Symbolic sizes are drawn at typical values.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

from rune import dims
from rune.drawing.svg import LETTER, SMALL, Picture, picture, text
from rune.lowering.arena import type_bytes
from rune.lowering.kernelize.cost import estimate
from rune.lowering.plan import Branch, Launch, Loop, Plan, Slot, Space, inner_plans
from rune.lowering.steps import memory, slots_read, slots_written, step_name
from rune.profiling import bytes_text
from rune.records import dataclass

# Pixels. At 45 degrees, names one line apart need columns of 17.
LEFT, TOP, WIDTH, HEIGHT, LINE = 76, 8, 720, 190, 13
NARROWEST, WIDEST = 17, 110  # columns
PADDING = 5  # of a label in its bar
NAME = 24  # letters of a step's name that are shown
KERNEL, ROUTINE = "#4292c6", "#e6912c"  # by what wrote the value


@dataclass(frozen=True, slots=True)
class Bar:
    """One value in the arena: the steps that write and last read it; offset and size in bytes."""

    first: int
    last: int
    offset: int
    size: int
    text: str
    by_kernel: bool = True


def bars(plan: Plan) -> list[Bar]:
    """The live range of every value in the arena; a slot written again is a new value."""
    ranges: list[tuple[Slot, int, int]] = []
    newest: dict[tuple, int] = {}  # for each piece of memory, the number of its last value's range
    for number, step in enumerate(plan.steps):
        for key in map(memory, slots_read(plan, step)):
            if key in newest:  # a read prolongs the value written there last
                range_slot, first, _ = ranges[newest[key]]
                ranges[newest[key]] = (range_slot, first, number)
        for slot in slots_written(plan, step):
            if slot.space is Space.ARENA:
                newest[memory(slot)] = len(ranges)
                ranges.append((slot, number, number))
    return [*(_bar(plan, *value) for value in ranges), *_within(plan)]


def _within(plan: Plan) -> Iterator[Bar]:
    """The memory used by the steps of loops and branches."""
    for number, step in enumerate(plan.steps):
        size = max((estimate(p.arena_bytes) for p in inner_plans(step)), default=0)
        if isinstance(step, Loop | Branch) and size:
            yield Bar(number, number, estimate(step.offset), size, "within", False)


def _bar(plan: Plan, slot: Slot, first: int, last: int) -> Bar:
    offset, size = estimate(slot.offset), estimate(type_bytes(slot.type))
    return Bar(first, last, offset, size, str(slot.type), isinstance(plan.steps[first], Launch))


def typical_sizes(plan: Plan) -> str:
    """The values of the symbolic sizes in the picture, `n = 1024`; empty for a static plan."""
    symbols = {s.name: dims.symbol(s.name, s.low, s.high) for s in plan.size_sources}
    return ", ".join(f"{name} = {estimate(size)}" for name, size in symbols.items())


@dataclass(frozen=True, slots=True)
class _Scale:
    """From steps and bytes to pixels."""

    names: tuple[str, ...]
    arena_bytes: int

    @property
    def column(self) -> float:
        """Between two steps."""
        return min(max(WIDTH / len(self.names), NARROWEST), WIDEST)

    @property
    def left_end(self) -> float:
        """The left end of the plot, with room for the first names, which lean to the left."""
        reaches = (_reach(n) - (i + 0.5) * self.column for i, n in enumerate(self.names))
        return max(LEFT, *reaches)

    @property
    def right(self) -> float:
        """The right end of the plot."""
        return self.left_end + len(self.names) * self.column

    def x(self, step: int) -> float:
        """The position of a step."""
        return self.left_end + (step + 0.5) * self.column

    def y(self, offset: int) -> float:
        """The position of a byte."""
        return TOP + HEIGHT * offset / self.arena_bytes


def _reach(name: str) -> float:
    """The extent of a name at 45 degrees, to the left and down."""
    return (len(name) * LETTER + LINE) * math.sqrt(0.5)


def plan_svg(plan: Plan) -> str:
    """The picture as SVG; empty for an arena of no bytes."""
    return plan_picture(plan).svg if estimate(plan.arena_bytes) else ""


def plan_picture(plan: Plan) -> Picture:
    """The picture of an arena of some bytes."""
    arena = estimate(plan.arena_bytes)
    names = tuple(f"{n} {_short(step_name(step))}" for n, step in enumerate(plan.steps))
    scale = _Scale(names, arena)
    width, height = scale.right + LINE, TOP + HEIGHT + LINE + max(map(_reach, names))
    parts = [*_axes(scale), *_steps(scale), *(_rect(b, scale) for b in bars(plan))]
    return picture((width, height), f"arena of {bytes_text(arena)} over {len(names)} steps", parts)


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _axes(scale: _Scale) -> Iterator[str]:
    """The arena's frame, and bytes at its side."""
    yield (
        f'<rect class="arena" x="{scale.left_end:.1f}" y="{TOP}" height="{HEIGHT}" '
        f'width="{scale.right - scale.left_end:.1f}" fill="none" stroke="currentColor" opacity="0.35"/>'
    )
    for offset in sorted({0, scale.arena_bytes // 2, scale.arena_bytes}):
        at = scale.y(offset) + 4
        yield text(scale.left_end - 6, at, bytes_text(offset), 'text-anchor="end" opacity="0.75"')


def _steps(scale: _Scale) -> Iterator[str]:
    """A dotted line for each step, its name below at an angle."""
    bottom = TOP + HEIGHT
    for number, name in enumerate(scale.names):
        x = scale.x(number)
        yield (
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom + 4}" '
            f'stroke="currentColor" stroke-dasharray="1 3" opacity="0.5"/>'
        )
        turn = f'transform="rotate(-45 {x + 4:.1f} {bottom + LINE})"'
        yield text(x + 4, bottom + LINE, name, f'class="step" text-anchor="end" {turn}')


def _rect(bar: Bar, scale: _Scale) -> str:
    x, y = scale.x(bar.first), scale.y(bar.offset)
    # A value that no later step reads gets a narrow bar.
    width = scale.x(bar.last) - x or scale.column / 3
    height = max(scale.y(bar.offset + bar.size) - y, 1)
    caption = f"{bar.text} {bytes_text(bar.size)}"
    color = KERNEL if bar.by_kernel else ROUTINE
    return (
        f"<g><title>{html.escape(caption)} at {bar.offset}, steps {bar.first} to {bar.last}</title>"
        f'<rect class="value" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{color}" fill-opacity="0.3" stroke="{color}"/>'
        f"{''.join(_label(bar, x, y, width, height))}</g>"
    )


def _label(bar: Bar, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """Type and size beside or below each other, as far as the bar has room."""
    size = bytes_text(bar.size)
    one_line = len(f"{bar.text} {size}") * SMALL + PADDING <= width
    lines = [f"{bar.text} {size}"] if one_line else [bar.text, size]
    fitting = [t for t in lines[: int(height // LINE)] if len(t) * SMALL + PADDING <= width]
    first = y + height / 2 + 4 - (len(fitting) - 1) * LINE / 2
    for number, line in enumerate(fitting):
        yield text(x + 3, first + number * LINE, line, 'font-size="10"')
