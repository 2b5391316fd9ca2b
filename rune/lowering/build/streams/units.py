"""Streams on units for matrices: each subgroup has some rows of a tile, and all keys and columns.

Both products of a stream are products of halves in panels: scores of rows and keys, and weights,
which lie in shared memory as halves row by row, times lines of keys. A thread has the rows, keys
and columns that kernel/matrices.py gives it; peaks and sums are as in other streams.

Every product must be of halves that are read unchanged. Elements beyond the ends are zero, and
their scores do not count. Panels are fetched without passing through registers, and keys for the
next tile while this one is added up, so sums have panels of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build import loops
from rune.lowering.build.streams.frame import Frame, Place
from rune.lowering.build.streams.panels import Panel, Panels, set_apart
from rune.lowering.build.streams.tile import Tile, columns_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import matrices
from rune.lowering.kernel.expr import Cast, Expr, Load, Local
from rune.lowering.kernel.nodes import Factor, Kind, Let, MatrixProduct, Stmt, Store
from rune.lowering.kernels import Axis, Reduce, Stream, Sum
from rune.records import dataclass

FETCHED = 8  # halves of a piece


@dataclass(frozen=True, slots=True)
class UnitTile(Tile):
    """A tile whose products are made by subgroups; `across` is 4, `down` 8 for each of them."""

    @property
    def subgroup_rows(self) -> int:
        """The rows of a subgroup."""
        return self.rows * matrices.SUBGROUP // self.lanes

    def first_row(self, lane: Size) -> Size:
        """The first row of a thread's subgroup."""
        return lane // matrices.SUBGROUP * self.subgroup_rows

    def row(self, lane: Size, number: int) -> Size:
        """A row of a thread."""
        return self.first_row(lane) + matrices.row(lane, number)

    def key(self, lane: Size, number: int) -> Size:
        """A key of a thread."""
        return matrices.column(lane, number)

    def column(self, lane: Size, number: int, columns: int) -> Size:
        """A column of a thread."""
        return matrices.column(lane, number)

    def column_run(self, columns: int) -> int:
        """How many columns of a thread are neighbours."""
        return 2

    def thread_columns(self, columns: int) -> int:
        """Columns of a thread."""
        return columns // self.across


def unit_tile(tile: Tile, stream: Stream, target: Target) -> UnitTile | None:
    """The tile on units of a target, if they can compute all its products."""
    panels = set_apart(tile.panels)
    dots = [p for p in (*stream.scores, *stream.weights) if isinstance(p, Reduce)]
    wide_sums = [s for s in stream.sums if s.columns]
    if not dots or len(panels.of_dots) != 2 * len(dots) or len(panels.of_sums) != len(wide_sums):
        return None
    # Units multiply halves: f32 operands count where they were converted from one just before.
    narrow = {p: _narrowed(p) for p in (*panels.rows, *panels.of_keys)}
    halves = {None if p is None else p.value.dtype for p in narrow.values()}
    # Weights of f32 would be rounded to halves, which is another program (decision 0092).
    halves |= {None if w is None else w.dtype for w in map(_half, (s.weight for s in wide_sums))}
    lengths = [*(p.elements for p in narrow if p in panels.rows), *map(columns_of, wide_sums)]
    # Every panel and every weight has to have the one format that the units multiply.
    if len(halves) != 1 or None in halves or any(n % matrices.DEPTH for n in (*lengths, tile.keys)):
        return None
    (dtype,) = halves
    if not {("multiply", dtype), ("fetch", dtype)} <= target.native:
        return None
    subgroups = tile.rows // matrices.ROWS
    # A subgroup multiplies at least 16 rows.
    if not subgroups:
        return None
    return UnitTile(tile.axis, tile.rows, tile.keys, 8 * subgroups, 4, 1, _with(panels, narrow))


def _with(panels: Panels, narrow: dict[Panel, Panel | None]) -> Panels:
    """The panels as halves."""
    new = {p: n for p, n in narrow.items() if n is not None}
    return Panels(
        tuple(new[p] for p in panels.rows),
        tuple(new[p] for p in panels.keys),
        tuple(new[p] for p in panels.factors),
        {key: new[p] for key, p in panels.of_dots.items()},
        {key: new[p] for key, p in panels.of_sums.items()},
    )


def _narrowed(panel: Panel) -> Panel | None:
    """The panel as halves, if it can be fetched like that."""
    match panel.value, panel.lets:
        # A let that only names the element.
        case (Local(name=name), (Let(name=bound, value=value),)) if name == bound:
            return _narrowed(replace(panel, value=value, lets=()))
        case (Cast(arg=Load(guard=None) as load), ()) if load.dtype in matrices.NARROW:
            narrow = replace(panel, value=load)
            # A fetch has to begin at a multiple of eight halves.
            piece = dims.substitute(_index(load), {panel.along.name: FETCHED * dims.symbol("piece", 0)})
            return narrow if narrow.is_along and dims.divides(FETCHED, piece) is True else None
        case _:
            return None


def _index(load: Load) -> Dim:
    (index,) = load.indices
    assert isinstance(index, Dim)
    return index


def _half(expr: Expr) -> Expr | None:
    """The half that an expression widens."""
    match expr:
        case Cast(arg=arg) if arg.dtype in matrices.NARROW:
            return arg
        case _:
            return None


# --- products -----------------------------------------------------------------------------------


def unit_dots(frame: Frame, dot: Reduce, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """A dot of every row and key of a thread."""
    panels = [p for (name, _), p in frame.panels.of_dots.items() if name == dot.name]
    (rows,) = (p for p in panels if p in frame.panels.rows)
    (keys,) = (p for p in panels if p not in frame.panels.rows)
    step = Axis(f"{dot.axes[0].name}_step", rows.elements // matrices.DEPTH)
    depth = step.symbol * matrices.DEPTH
    a = Factor(rows.name, frame.element(rows, _first_row(frame), depth), rows.line, 1, rows.value.dtype)
    b = Factor(keys.name, frame.element(keys, 0, depth), keys.line, 1, keys.value.dtype)
    sums = tuple(tuple(f"{place.names[dot.name]}_acc" for place in row) for row in points)
    yield from loops.nest([step], [Kind.SERIAL], [MatrixProduct(a, b, sums)])


def _first_row(frame: Frame) -> Size:
    assert isinstance(frame.tile, UnitTile)
    return frame.tile.first_row(frame.lane)


def _line(frame: Frame) -> int:
    """The length of a line of weights."""
    # An odd number of pieces, so that the lines of eight rows begin in different banks.
    pieces = frame.tile.keys // FETCHED
    return frame.tile.keys + (FETCHED if pieces % 2 == 0 else 0)


def unit_tiles(frame: Frame) -> dict[Expr, tuple[str, Expr]]:
    """For each weight, its memory and the half that it widens."""
    size = frame.tile.parts * frame.tile.rows * _line(frame)
    halves = {s.weight: _half(s.weight) for s in frame.wide_sums}
    tiles: dict[Expr, tuple[str, Expr]] = {}
    for n, (weight, half) in enumerate(halves.items()):
        assert half is not None
        tiles[weight] = frame.memory(f"weights_{n}", size, half.dtype), half
    return tiles


def unit_weights(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The weights of every row and key of a thread; zero beyond the last key."""
    for tile, half in unit_tiles(frame).values():
        for i, row in enumerate(points):
            for j, place in enumerate(row):
                at = _weight_row(frame, frame.row_of(i)) + frame.key_at(j)
                yield Store(tile, at, frame.if_inside(j, place.expr(half), 0))


def _weight_row(frame: Frame, row: Size) -> Size:
    return (frame.part * frame.tile.rows + row) * _line(frame)


def unit_added(frame: Frame) -> list[Stmt]:
    """The products that add the keys of a tile to all sums."""
    step = Axis(f"{frame.key_axis.name}_step", frame.tile.keys // matrices.DEPTH)
    body = [_added(frame, total, step.symbol * matrices.DEPTH) for total in frame.wide_sums]
    return loops.nest([step], [Kind.SERIAL], body)


def _added(frame: Frame, total: Sum, depth: Size) -> Stmt:
    panel, (tile, half) = frame.panels.of_sums[total.name], unit_tiles(frame)[total.weight]
    a = Factor(tile, _weight_row(frame, _first_row(frame)) + depth, _line(frame), 1, half.dtype)
    b = Factor(panel.name, frame.element(panel, depth, 0), 1, panel.line, half.dtype)
    return MatrixProduct(a, b, tuple(tuple(frame.sum_names(total, i)) for i in range(frame.tile.thread_rows)))
