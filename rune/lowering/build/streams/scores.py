"""The scores of a tile: dots of some rows by some keys for each thread, and their peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rune import dtypes
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.streams.frame import Frame, Place, base_of, equal, is_least
from rune.lowering.build.streams.panels import Panel, piece_of, slice_of
from rune.lowering.build.streams.sums import scaled
from rune.lowering.build.streams.units import UnitTile, unit_dots
from rune.lowering.kernel.expr import Expr, Load, Local, Op, const
from rune.lowering.kernel.nodes import Accumulate, Assign, Kind, Let, Stmt, Store, Var
from rune.lowering.kernels import Axis, Reduce


def point(frame: Frame, row: Place, i: int, j: int, key: Size) -> Place:
    """The place of a row and a key of a thread."""
    bound = [p.name for p in frame.parts()] + [
        let.name for p in frame.parts() if isinstance(p, Reduce) for let in p.lets
    ]
    names = {name: f"{name}_{i}_{j}" for name in bound}
    if frame.stream.peak is not None:
        names[frame.stream.peak.name] = f"{frame.stream.peak.name}_base_{i}"
    return Place({**row.sizes, **frame.outer, frame.key_axis.name: key}, {**row.names, **names})


def values(frame: Frame, parts: Sequence[Let | Reduce], points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """Scalars of every row and key of a thread."""
    flat = [p for row in points for p in row]
    for part in parts:
        if isinstance(part, Let):
            for place in flat:
                yield from place.lets((part,))
        else:
            yield from _dots(frame, part, points)


def _dots(frame: Frame, dot: Reduce, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """A dot of every row and key of a thread, in one loop."""
    for row in points:
        for place in row:
            yield Var(f"{place.names[dot.name]}_acc", const(0, dot.dtype))
    assert isinstance(dot.value, Op)
    panels = [frame.panels.of_dots.get((dot.name, operand)) for operand in dot.value.args]
    # One operand has to be staged by row and the other by key; anything else reads memory directly.
    sides = {p in frame.panels.rows for p in panels}
    if isinstance(frame.tile, UnitTile):
        yield from unit_dots(frame, dot, points)
    elif None in panels or len(sides) < 2:
        inner = [s for i, row in enumerate(points) for j, p in enumerate(row) for s in _summand(frame, dot, p, i, j)]
        yield from loops.nest(dot.axes, [Kind.SERIAL] * len(dot.axes), inner)
    else:
        yield from _staged_dots(frame, dot, [p for p in panels if p is not None], points)
    for row in points:
        for place in row:
            total = place.names[dot.name]
            yield Let(total, Local(f"{total}_acc", dot.dtype))


def _staged_dots(
    frame: Frame, dot: Reduce, panels: Sequence[Panel], points: Sequence[Sequence[Place]]
) -> Iterator[Stmt]:
    """The products of a dot whose operands are both in panels, a piece of both lines at a time."""
    piece = piece_of(panels[0].elements)
    step = Axis(f"{dot.axes[0].name}_step", panels[0].elements // piece)

    def line(panel: Panel, n: int) -> Iterator[Stmt]:
        position = frame.row_of(n) if panel in frame.panels.rows else frame.key_at(n)
        for m in range(piece):
            at = frame.element(panel, position, step.symbol * piece + m)
            yield Let(f"{panel.name}_{n}_{m}", Load(panel.name, (at,), panel.value.dtype))

    def products(i: int, j: int) -> Iterator[Stmt]:
        for m in range(piece):
            lines = [(p, i if p in frame.panels.rows else j) for p in panels]
            factors = tuple(Local(f"{p.name}_{n}_{m}", p.value.dtype) for p, n in lines)
            total = f"{points[i][j].names[dot.name]}_acc"
            yield Accumulate(total, "add", Op("mul", factors, dot.dtype), contract=True)

    # The lines of the shorter side stay in registers, those of the longer side are read one by one.
    (by_row,), (by_key,) = ([p for p in panels if (p in frame.panels.rows) is rows] for rows in (True, False))
    rows, keys = len(points), len(points[0])
    first, second = (by_row, by_key) if rows <= keys else (by_key, by_row)
    body = [s for n in range(min(rows, keys)) for s in line(first, n)]
    for outer in range(max(rows, keys)):
        body += line(second, outer)
        for inner in range(min(rows, keys)):
            body += products(*((inner, outer) if rows <= keys else (outer, inner)))
    yield from loops.nest([step], [Kind.SERIAL], body)


def _summand(frame: Frame, dot: Reduce, place: Place, i: int, j: int) -> list[Stmt]:
    """One product of a dot, whose operands come from shared memory if they have panels."""
    panel_loads: dict[Expr, Load] = {}
    assert isinstance(dot.value, Op)
    for operand in dot.value.args:
        panel = frame.panels.of_dots.get((dot.name, operand))
        if panel is not None:
            position = frame.row_of(i) if panel in frame.panels.rows else frame.key_at(j)
            panel_loads[operand] = Load(
                panel.name, (frame.element(panel, position, dot.axes[0].symbol),), operand.dtype
            )
    factors = [panel_loads.get(a) or place.expr(a) for a in dot.value.args]
    operand_lets = [let for a in dot.value.args if a not in panel_loads for let in slice_of(a, dot.lets)]
    lets = place.lets(dict.fromkeys(operand_lets))
    total = f"{place.names[dot.name]}_acc"
    return [*lets, Accumulate(total, "add", Op("mul", tuple(factors), dot.dtype), contract=True)]


def largest(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The largest score of each thread, shared with all threads of the row."""
    peak = frame.stream.peak
    assert peak is not None
    dtype = peak.value.dtype
    tile = frame.by_rows(f"{peak.name}_scores", frame.tile.across, dtype)
    # A maximum over the thread's own keys first: then one number for each row is exchanged.
    for i, (first, *others) in enumerate(points):
        yield Var(f"{peak.name}_most_{i}", _counted(frame, 0, first.expr(peak.value)))
        for j, place in enumerate(others, 1):
            yield Accumulate(f"{peak.name}_most_{i}", "max", _counted(frame, j, place.expr(peak.value)))
    for i in range(len(points)):
        at = frame.row_cell(frame.part * frame.tile.across + frame.across, frame.row_of(i))
        yield Store(tile, at, Local(f"{peak.name}_most_{i}", dtype))


def _counted(frame: Frame, j: int, score: Expr) -> Expr:
    """A score of a key of a thread; -inf beyond the end, where units multiply zeros."""
    # Without units, the score beyond the end is that of the last key once more.
    return frame.if_inside(j, score, -np.inf) if isinstance(frame.tile, UnitTile) else score


def raised(frame: Frame) -> Iterator[Stmt]:
    """The peaks raised to the largest scores of the tile, and the sums scaled to them."""
    peak = frame.stream.peak
    assert peak is not None
    dtype, rows = peak.value.dtype, range(frame.tile.thread_rows)
    tile = frame.by_rows(f"{peak.name}_scores", frame.tile.across, dtype)
    for i in rows:
        yield Var(f"{peak.name}_top_{i}", Local(frame.peak_name(i), dtype))
    for x in range(frame.tile.across):
        for i in rows:
            at = frame.row_cell(frame.part * frame.tile.across + x, frame.row_of(i))
            yield Let(f"{peak.name}_of_{x}_{i}", Load(tile, (at,), dtype))
        for i in rows:
            yield Accumulate(f"{peak.name}_top_{i}", "max", Local(f"{peak.name}_of_{x}_{i}", dtype))
    for i in rows:
        yield from _raised(frame, i, dtype)


def _raised(frame: Frame, i: int, dtype: np.dtype) -> Iterator[Stmt]:
    """The new peak of a row, and its sums scaled to it."""
    assert frame.stream.peak is not None
    name = frame.stream.peak.name
    before, after = Local(frame.peak_name(i), dtype), Local(f"{name}_top_{i}", dtype)
    yield Let(f"{name}_base_{i}", base_of(after))
    base = Local(f"{name}_base_{i}", dtype)
    # Before the first score above -inf there is nothing to shrink, and 0 · exp(-base) may be NaN.
    same = Op("or", (is_least(before), equal(before, base)), dtypes.bool_)
    yield from scaled(frame, i, before, base, same, "")
    yield Assign(frame.peak_name(i), after)
