"""Curves: a line for each series of numbers, with axes and a legend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from rune.drawing.axes import decades, ticks
from rune.drawing.svg import COLOURS, LETTER, Picture, legend, line, path, picture, text
from rune.records import dataclass

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 240, 70, 34, 14, 36  # [px]
MOST_POINTS = 2000  # of a line; a longer one is thinned to about this number
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Axes:
    """Maps numbers to pixels, from the ends of both axes; `logarithmic` refers to the vertical."""

    x_ends: tuple[float, float]
    y_ends: tuple[float, float]
    logarithmic: bool

    def x(self, number: float) -> float:
        """The horizontal position of a number [px]."""
        return LEFT + WIDTH * _share(number, self.x_ends)

    def y(self, number: float) -> float:
        """The vertical position of a number, from the top [px]."""
        ends, n = self.y_ends, number
        if self.logarithmic:
            ends, n = (math.log10(ends[0]), math.log10(ends[1])), math.log10(number)
        return TOP + HEIGHT * (1 - _share(n, ends))


def _share(number: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (number - low) / (high - low) if high > low else 0.5


def curves(series: Mapping[str, Points], title: str, x: str, y: str, logarithmic: bool) -> Picture:
    """A picture of series of (x, y) points, by name. Points that are not finite leave a gap.

    logarithmic: whether the vertical axis is; then points that are not positive leave a gap
    """
    colours = dict(zip(series, itertools.cycle(COLOURS)))
    runs = {name: _runs(points, logarithmic) for name, points in series.items()}
    all_points = [p for of_line in runs.values() for run in of_line for p in run]
    heights = [b for _, b in all_points] or [1.0, 10.0]  # an empty frame may be logarithmic, too
    axes = _Axes(_ends([a for a, _ in all_points]), _ends(heights), logarithmic)
    shapes = [text(LEFT, 12, title, 'font-weight="bold"'), *_frame(axes, x, y)]
    if len(series) > 1:
        shapes += legend(colours.items(), max(LEFT, LETTER * (len(y) + 2)), 26)
    for name, of_line in runs.items():
        shapes += [path([(axes.x(a), axes.y(b)) for a, b in _thinned(run)], colours[name]) for run in of_line]
    return picture((LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM), title or f"curves of {', '.join(series)}", shapes)


def _runs(points: Points, logarithmic: bool) -> list[Points]:
    """The runs of points between gaps."""
    runs: list[list[tuple[float, float]]] = [[]]
    for a, b in points:
        if math.isfinite(a) and math.isfinite(b) and (b > 0 or not logarithmic):
            runs[-1].append((a, b))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _thinned(points: Points) -> Iterator[tuple[float, float]]:
    """The lowest and the highest point of each group of neighbours, in order of x."""
    size = max(1, 2 * len(points) // MOST_POINTS)
    for begin in range(0, len(points), size):
        group = points[begin : begin + size]
        yield from sorted({min(group, key=lambda p: p[1]), max(group, key=lambda p: p[1])})


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    return (min(numbers), max(numbers)) if numbers else (0.0, 1.0)


def _frame(axes: _Axes, x: str, y: str) -> Iterator[str]:
    """The shapes of both axes, with their numbers and names."""
    bottom = TOP + HEIGHT
    yield line(LEFT, bottom, LEFT + WIDTH, bottom)
    for number in ticks(*axes.x_ends):
        at = axes.x(number)
        yield line(at, bottom, at, bottom + 4)
        yield text(at, bottom + 16, f"{number:g}", 'text-anchor="middle" opacity="0.75"')
    for number in (decades if axes.logarithmic else ticks)(*axes.y_ends):
        at = axes.y(number)
        yield line(LEFT, at, LEFT + WIDTH, at, 'stroke-dasharray="1 3" opacity="0.4"')
        yield text(LEFT - 6, at + 4, f"{number:.4g}", 'text-anchor="end" opacity="0.75"')
    yield text(LEFT + WIDTH - LETTER * len(x), bottom + 31, x)
    yield text(0, TOP - 8, y)
