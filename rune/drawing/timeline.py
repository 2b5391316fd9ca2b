"""A timeline: bars over time, a band for each row, and areas of memory below them.

A bar nested in another is drawn below it. Bars too narrow to be visible are merged, so that a
picture of a million events has a few thousand shapes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rune.drawing.axes import ticks
from rune.drawing.svg import COLOURS, LETTER, Picture, legend, line, picture, shortened, text
from rune.records import dataclass

WIDTH, LANE, GAP, TOP, AREA = 760, 16, 8, 34, 36  # [px]
DEEPEST = 6  # lanes of a row; more deeply nested bars are not drawn
NARROWEST = 0.7  # [px] of a bar
UNDERLINED = "_ on a processor"
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `start` to `end` [s]; `kind` selects its colour, `note` appears on hovering.

    share: the fraction of its time that was spent on a processor, drawn as an underline
    """

    row: str
    kind: str
    name: str
    start: float
    end: float
    note: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Area:
    """A step function of (time [s], amount) points; `most` is the text for its maximum."""

    name: str
    points: Sequence[tuple[float, float]]
    most: str


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps seconds to pixels."""

    origin: float
    start: float
    end: float

    def x(self, seconds: float) -> float:
        """The horizontal position of a time [px]."""
        share = (seconds - self.start) / ((self.end - self.start) or 1.0)
        return self.origin + WIDTH * min(max(share, 0.0), 1.0)


def timeline(
    bars: Sequence[Bar], areas: Sequence[Area], colours: Mapping[str, str], span: tuple[float, float], title: str
) -> Picture:
    """A picture of bars, with `colours` by kind, and of areas, over a span of time [s]."""
    names = list(dict.fromkeys(b.row for b in bars))
    labels = [*names, *(a.name for a in areas)]
    scale = _Scale(14 + LETTER * max(map(len, labels), default=0), *span)
    shapes, y = [*legend(colours.items(), scale.origin, 12)], float(TOP)
    for name in names:
        lanes = lanes_of([b for b in bars if b.row == name])
        shapes += [text(0, y + 12, name), *_lanes(lanes, scale, y, colours)]
        y += LANE * len(lanes) + GAP
    for number, area in enumerate(areas):
        shapes += _area(area, scale, y, COLOURS[number % len(COLOURS)])
        y += AREA + GAP
    shapes += _axis(scale, y)
    if any(b.share for b in bars):
        shapes.append(text(0, y + 16, UNDERLINED, 'font-size="10" opacity="0.75"'))
    return picture((scale.origin + WIDTH + 14, y + 22), title, shapes)


def lanes_of(bars: Iterable[Bar]) -> list[list[Bar]]:
    """The bars of one row, grouped by how deep they are nested."""
    lanes: list[list[Bar]] = []
    around: list[Bar] = []
    for bar in sorted(bars, key=lambda b: (b.start, -b.end)):
        while around and bar.start >= around[-1].end:
            around.pop()
        depth = len(around)
        around.append(bar)
        if depth < DEEPEST:
            if depth == len(lanes):
                lanes.append([])
            lanes[depth].append(bar)
    return lanes


def _lanes(lanes: Sequence[Sequence[Bar]], scale: _Scale, y: float, colours: Mapping[str, str]) -> Iterator[str]:
    for depth, lane in enumerate(lanes):
        coverage: dict[str, float] = {}
        for bar in lane:
            x, end = scale.x(bar.start), scale.x(bar.end)
            # Omit a narrow bar that one of its kind, widened to be visible, already covers.
            if end - x < NARROWEST and x < coverage.get(bar.kind, -1.0):
                continue
            coverage[bar.kind] = end = max(end, x + NARROWEST)
            yield _bar(bar, x, y + LANE * depth, end - x, colours[bar.kind])


def _bar(bar: Bar, x: float, y: float, width: float, colour: str) -> str:
    words = shortened(bar.name, width - 6)
    label = text(x + 3, y + 11, words, 'font-size="10"') if words else ""
    note = f"{bar.name}: {seconds_text(bar.end - bar.start)}{f', {bar.note}' if bar.note else ''}"
    share = _share(bar, x, y, width)
    return (
        f"<g><title>{html.escape(note)}</title>"
        f'<rect class="{bar.kind}" x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{LANE - 2}" '
        f'fill="{colour}" fill-opacity="0.45" stroke="{colour}" stroke-width="0.5"/>{share}{label}</g>'
    )


def _share(bar: Bar, x: float, y: float, width: float) -> str:
    """A line below the bar, whose length is the bar's share."""
    length, bottom = width * bar.share, y + LANE - 3
    return line(x, bottom, x + length, bottom, 'class="share" stroke-width="1.5"') if length >= NARROWEST else ""


def _area(area: Area, scale: _Scale, y: float, colour: str) -> Iterator[str]:
    """The shapes of an area, scaled so that the largest amount fills its height."""
    most = max((amount for _, amount in area.points), default=0.0) or 1.0
    bottom = y + AREA
    steps = [f"M{scale.x(scale.start):.1f} {bottom:.1f}"]
    for moment, amount in _thinned(area.points, scale):
        steps.append(f"H{scale.x(moment):.1f} V{bottom - AREA * amount / most:.1f}")
    steps.append(f"H{scale.x(scale.end):.1f} V{bottom:.1f} Z")
    yield text(0, y + 12, area.name)
    yield text(0, y + 26, area.most, 'font-size="10" opacity="0.75"')
    yield f'<path class="area" d="{" ".join(steps)}" fill="{colour}" fill-opacity="0.3" stroke="{colour}"/>'


def _thinned(points: Sequence[tuple[float, float]], scale: _Scale) -> Iterator[tuple[float, float]]:
    """The largest and the last point in each half pixel."""
    by_place: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        by_place.setdefault(int(2 * scale.x(point[0])), []).append(point)
    for group in by_place.values():
        largest = max(group, key=lambda p: p[1])
        yield from (largest, group[-1]) if group[-1] is not largest else (largest,)


def _axis(scale: _Scale, y: float) -> Iterator[str]:
    """The axis: times from the beginning, in one unit."""
    seconds = scale.end - scale.start
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    yield line(scale.origin, y, scale.origin + WIDTH, y)
    for number in ticks(0.0, seconds / size):
        x = scale.x(scale.start + number * size)
        yield line(x, TOP - 6, x, y + 4, 'stroke-dasharray="1 3" opacity="0.4"')
        yield text(x, y + 16, f"{number:g} {unit}", 'text-anchor="middle" opacity="0.75"')


def seconds_text(seconds: float) -> str:
    """`1.20 ms`."""
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
