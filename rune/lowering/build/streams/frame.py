"""The frame of a stream's code: its tile, positions in it, names, and memory that a group shares.

A Place says for which row, key and column a copy of some statements is, and how locals are named
in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.lowering.build.streams.panels import Panel, Panels, line_of
from rune.lowering.build.streams.tile import Tile, columns_of
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Expr, Op, const, of_size
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Let, Stmt, Store
from rune.lowering.kernel.rewrite import rename
from rune.lowering.kernels import Axis, Kernel, Reduce, Stream, Sum, positions
from rune.records import dataclass

THREAD = "thread"
Part = Let | Reduce


@dataclass(frozen=True, slots=True)
class Place:
    """A copy of some statements: the values of index symbols, and the names of locals."""

    sizes: Mapping[str, Size]
    names: Mapping[str, str]

    def lets(self, lets: Iterable[Let]) -> list[Stmt]:
        """The lets in this copy."""
        return list(rename(tuple(lets), self.names, self.sizes))

    def expr(self, expr: Expr) -> Expr:
        """The expression in this copy."""
        # Wrapped into statements, since renaming and replacing work on those.
        (let,) = self.lets((Let("_", expr),))
        assert isinstance(let, Let)
        return let.value

    def index(self, index: Size) -> Size:
        """The index in this copy."""
        (store,) = rename((Store("_", index, const(0, dtypes.i32)),), self.names, self.sizes)
        assert isinstance(store, Store)
        return store.index


@dataclass(slots=True)
class Frame:
    """The code of one stream kernel."""

    kernel: Kernel  # flat
    stream: Stream
    tile: Tile
    before: tuple[Let, ...]  # scalars of a row, computed before the stream
    group_memory: dict[str, Alloc] = field(default_factory=dict)

    # --- positions ---------------------------------------------------------------------------

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol(THREAD, 0, self.tile.threads - 1)

    @property
    def lane(self) -> Size:
        """The number of a thread in its part."""
        return self.thread if self.tile.parts == 1 else self.thread % self.tile.lanes

    @property
    def part(self) -> Size:
        """The part of a thread."""
        return 0 if self.tile.parts == 1 else self.thread // self.tile.lanes

    @property
    def row_axis(self) -> Axis:
        """The axis of the domain that is tiled."""
        return self.kernel.domain[self.tile.axis]

    @property
    def key_axis(self) -> Axis:
        """The axis of the keys."""
        return self.stream.axes[-1]

    @property
    def domain(self) -> list[Axis]:
        """The axes of the grid."""
        domain = list(self.kernel.domain)
        domain[self.tile.axis] = Axis(self.row_axis.name, -(-self.row_axis.size // self.tile.rows))
        return domain

    @property
    def first_row(self) -> Size:
        """The first row of a group."""
        return self.domain[self.tile.axis].symbol * self.tile.rows

    @property
    def panels(self) -> Panels:
        """The panels in shared memory."""
        return self.tile.panels

    @property
    def key_tiles(self) -> Size:
        """Tiles along the keys."""
        return -(-self.key_axis.size // self.tile.keys)

    @property
    def tiles(self) -> Size:
        """All tiles of keys, for each point of the other axes of the stream."""
        return dims.product(a.size for a in self.stream.axes[:-1]) * self.key_tiles

    @property
    def rounds(self) -> Axis:
        """The rounds; in each of them every part has one tile."""
        return Axis(f"{self.key_axis.name}_tile", -(-self.tiles // self.tile.parts))

    @property
    def is_even(self) -> bool:
        """Whether all parts have a tile in every round."""
        return dims.divides(self.tile.parts, self.tiles) is True

    def tile_number(self, name: str, tile_index: Size, is_inside: bool) -> tuple[list[Stmt], Size]:
        """The number of a tile, or of the last tile if it is beyond the end."""
        # A tile beyond the end repeats the last one, so that all threads reach every barrier; the
        # weights of its keys do not count (`count`).
        if is_inside:
            return [], tile_index
        least = Op("min", (of_size(tile_index), of_size(self.tiles - 1)), dtypes.i64)
        return [Let(name, least)], dims.symbol(name, 0, self.tiles - 1)

    @property
    def tile_index(self) -> Size:
        """The number of the tile, which may be beyond the end in the last round."""
        return self.rounds.symbol * self.tile.parts + self.part

    def number(self) -> tuple[list[Stmt], Size]:
        """The number of the tile."""
        return self.tile_number(f"{self.rounds.name}_here", self.tile_index, self.is_even)

    def number_after(self) -> tuple[list[Stmt], Size]:
        """The number of the tile after this one."""
        return self.tile_number(f"{self.rounds.name}_next", self.tile_index + self.tile.parts, False)

    def key_of(self, number: Size) -> Size:
        """The first key of a tile."""
        return (number % self.key_tiles if len(self.stream.axes) > 1 else number) * self.tile.keys

    def outer_of(self, number: Size) -> dict[str, Size]:
        """The position of a tile on the other axes of the stream."""
        return positions(number // self.key_tiles, self.stream.axes[:-1])[0]

    @property
    def first_key(self) -> Size:
        """The first key of the tile."""
        return self.key_of(self.number()[1])

    @property
    def outer(self) -> dict[str, Size]:
        """The position of the current tile on the other axes of the stream."""
        return self.outer_of(self.number()[1])

    @property
    def across(self) -> Size:
        """The number of a thread among those that share its rows."""
        return self.lane % self.tile.across

    def row_of(self, number: int) -> Size:
        """A row of a thread, within the tile."""
        return self.tile.row(self.lane, number)

    def key_at(self, number: int) -> Size:
        """A key of a thread, within the tile."""
        return self.tile.key(self.lane, number)

    def column_of(self, number: int, columns: int) -> Size:
        """A column of a thread, of so many in all; it may be beyond the end."""
        return self.tile.column(self.lane, number, columns)

    def if_inside(self, number: int, value: Expr, otherwise: object) -> Expr:
        """A value of a key of a thread, or another one if the key is beyond the end."""
        if not self.count():
            return value
        condition = Op("lt", (of_size(self.key_at(number)), of_size(self.keys_here)), dtypes.bool_)
        return Op("select", (condition, value, const(otherwise, value.dtype)), value.dtype)

    def column_inside(self, name: str, number: int, columns: int) -> tuple[list[Stmt], Size]:
        """A column of a thread, or one of the last columns if it is beyond the end."""
        # One clamp for a run, whose columns are all inside or all beyond the end.
        run = self.tile.column_run(columns)
        if columns % (run * self.tile.across) == 0:
            return [], self.column_of(number, columns)
        clamp, place = self.inside(
            f"{name}_{number // run}",
            self.across + number // run * self.tile.across,
            Axis(name, columns // run),
            self.tile.across,
        )
        return clamp if number % run == 0 else [], place * run + number % run

    def inside(self, name: str, index: Size, axis: Axis, count: int) -> tuple[list[Stmt], Size]:
        """An index of an axis that is cut by `count`, or the last one beyond the end."""
        # Clamped, not guarded: the values are computed and left out later, so no thread branches.
        if dims.divides(count, axis.size) is True:
            return [], index
        least = Op("min", (of_size(index), of_size(axis.size - 1)), dtypes.i64)
        return [Let(name, least)], dims.symbol(name, 0, axis.size - 1)

    def memory(self, name: str, size: int, dtype: np.dtype) -> str:
        """An array that the group shares."""
        self.group_memory.setdefault(name, Alloc(name, dtype, size, AddressSpace.SHARED))
        return name

    def row_cell(self, position: Size, row: Size) -> Size:
        """The place of a row's element at a position, next to those of the other rows."""
        # Rows are neighbours, so that a thread reads several of its rows at once.
        return position * line_of(self.tile.rows) + row

    def by_rows(self, name: str, positions: int, dtype: np.dtype) -> str:
        """A tile of positions by rows, for each part."""
        return self.memory(name, self.tile.parts * positions * line_of(self.tile.rows), dtype)

    def element(self, panel: Panel, position: Size, element: Size) -> Size:
        """The place of a panel's element in its memory."""
        # All parts share the panels of rows, and each has its own panels of keys.
        first = 0 if panel in self.panels.rows else self.part * panel.alloc.size
        return panel.index(position, element) + first

    def peak_name(self, row: int) -> str:
        """The largest score of a row so far."""
        assert self.stream.peak is not None
        return f"{self.stream.peak.name}_{row}"

    def sum_names(self, total: Sum, row: int) -> list[str]:
        """The sums of a row of a thread: one for each of its columns."""
        if not total.columns:
            return [f"{total.name}_{row}"]
        return [f"{total.name}_{row}_{n}" for n in range(self.tile.thread_columns(columns_of(total)))]

    def parts(self) -> tuple[Part, ...]:
        """Everything at an inner point, in order."""
        return (*self.stream.scores, *self.stream.weights)

    def count(self) -> list[Stmt]:
        """The statement that counts the keys of the tile, if some tile may have fewer."""
        if self.is_even and dims.divides(self.tile.keys, self.key_axis.size) is True:
            return []
        length: Expr = Op(
            "min", (const(self.tile.keys, dtypes.i64), of_size(self.key_axis.size - self.first_key)), dtypes.i64
        )
        # A part beyond the last tile has no keys.
        if not self.is_even:
            inside = Op("lt", (of_size(self.tile_index), of_size(self.tiles)), dtypes.bool_)
            length = Op("select", (inside, length, const(0, dtypes.i64)), dtypes.i64)
        return [Let("keys_here", length)]

    @property
    def keys_here(self) -> Size:
        """The keys of a tile."""
        return dims.symbol("keys_here", 0, self.tile.keys) if self.count() else self.tile.keys

    @property
    def wide_sums(self) -> list[Sum]:
        """The sums of rows of columns."""
        return [s for s in self.stream.sums if s.columns]

    @property
    def scalar_sums(self) -> list[Sum]:
        """The sums of scalars."""
        return [s for s in self.stream.sums if not s.columns]

    def weight_tiles(self) -> dict[Expr, str]:
        """The tile in shared memory for each weight that threads of all columns read."""
        weights = dict.fromkeys(s.weight for s in self.wide_sums)
        return {w: self.by_rows(f"weights_{n}", self.tile.keys, w.dtype) for n, w in enumerate(weights)}


def base_of(peak: Expr) -> Expr:
    """The peak, or 0 where it is -inf: the shift of scores while more of them may follow."""
    return Op("select", (is_least(peak), const(0, peak.dtype), peak), peak.dtype)


def is_least(peak: Expr) -> Expr:
    """Whether a peak is that of no scores, or of nothing but -inf."""
    return equal(peak, COMBINE["max"].identity(peak.dtype))


def equal(a: Expr, b: Expr) -> Expr:
    """Whether two scalars are the same number."""
    return Op("eq", (a, b), dtypes.bool_)
