"""The frame of a stream's code: its tile, positions in it, names, and memory that a group shares.

A Place says where a copy of some statements stands: which row, key and column, and how locals are
named there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.lowering.build.streams.tile import Tile
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Expr, Op, const, of_size
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Let, Stmt, Store
from rune.lowering.kernel.rewrite import rename, replace_symbols
from rune.lowering.kernels import Axis, Kernel, Reduce, Stream, Sum

THREAD = "thread"
Part = Let | Reduce


@dataclass(frozen=True, slots=True)
class Place:
    """Where a copy of some statements stands: index symbols, and the names of locals."""

    sizes: Mapping[str, Size]
    names: Mapping[str, str]

    def lets(self, lets: Iterable[Let]) -> list[Stmt]:
        """The lets there."""
        return list(replace_symbols(rename(tuple(lets), self.names), self.sizes))

    def expr(self, expr: Expr) -> Expr:
        """The expression there."""
        (let,) = self.lets((Let("_", expr),))
        assert isinstance(let, Let)
        return let.value

    def index(self, index: Size) -> Size:
        """The index there."""
        (store,) = replace_symbols(rename((Store("_", index, const(0, dtypes.i32)),), self.names), self.sizes)
        assert isinstance(store, Store)
        return store.index


@dataclass(slots=True)
class Frame:
    """The code of one stream kernel."""

    kernel: Kernel  # flat
    stream: Stream
    tile: Tile
    before: tuple[Let, ...]  # scalars of a row, in front of the stream
    shared: dict[str, Alloc] = field(default_factory=dict)

    # --- positions ---------------------------------------------------------------------------

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol(THREAD, 0, self.tile.threads - 1)

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
    def first_key(self) -> Size:
        """The first key of a tile."""
        count = -(-self.key_axis.size // self.tile.keys)
        return Axis(self.tile_name, count).symbol * self.tile.keys

    @property
    def tile_name(self) -> str:
        """The loop variable of tiles of keys."""
        return f"{self.key_axis.name}_tile"

    def row_of(self, number: int) -> Size:
        """A row of a thread, within the tile."""
        return self.thread // self.tile.across + number * self.tile.down

    def column_of(self, number: int) -> Size:
        """A key or column of a thread, within the tile."""
        return self.thread % self.tile.across + number * self.tile.across

    def inside(self, name: str, index: Size, axis: Axis, count: int) -> tuple[list[Stmt], Size]:
        """An index of an axis that is cut into `count`, or the last one where it is beyond that."""
        if dims.divides(count, axis.size) is True:
            return [], index
        least = Op("min", (of_size(index), of_size(axis.size - 1)), dtypes.i64)
        return [Let(name, least)], dims.symbol(name, 0, axis.size - 1)

    def memory(self, name: str, size: int, dtype: np.dtype) -> str:
        """An array that the group shares."""
        self.shared.setdefault(name, Alloc(name, dtype, size, AddressSpace.SHARED))
        return name

    def cell(self, row: Size, key: Size) -> Size:
        """The place of a row and key in a tile; one more than its width keeps banks apart."""
        return row * (self.tile.keys + 1) + key

    def scores(self, name: str, dtype: np.dtype) -> str:
        """A tile of rows by keys."""
        return self.memory(name, self.tile.rows * (self.tile.keys + 1), dtype)

    def peak_name(self, row: int) -> str:
        """The largest score of a row so far."""
        assert self.stream.peak is not None
        return f"{self.stream.peak.name}_{row}"

    def sum_names(self, total: Sum, row: int) -> list[str]:
        """The sums of a row of a thread: one for each of its columns."""
        if not total.columns:
            return [f"{total.name}_{row}"]
        return [f"{total.name}_{row}_{n}" for n in range(self.tile.thread_columns(total))]

    def parts(self) -> tuple[Part, ...]:
        """Everything at an inner point, in order."""
        return (*self.stream.scores, *self.stream.weights)

    def count(self) -> list[Stmt]:
        """How many keys the tile has, where the last one may have fewer."""
        if dims.divides(self.tile.keys, self.key_axis.size) is True:
            return []
        length = Op(
            "min", (const(self.tile.keys, dtypes.i64), of_size(self.key_axis.size - self.first_key)), dtypes.i64
        )
        return [Let("keys_here", length)]

    @property
    def keys_here(self) -> Size:
        """The keys of a tile."""
        return dims.symbol("keys_here", 1, self.tile.keys) if self.count() else self.tile.keys

    def weight_tiles(self) -> dict[Expr, str]:
        """The tile in shared memory for each weight."""
        weights = dict.fromkeys(s.weight for s in self.stream.sums)
        return {w: self.scores(f"weights_{n}", w.dtype) for n, w in enumerate(weights)}


def base_of(peak: Expr) -> Expr:
    """The peak, or 0 where it is -inf: what is subtracted from scores while more of them come."""
    return Op("select", (is_least(peak), const(0, peak.dtype), peak), peak.dtype)


def is_least(peak: Expr) -> Expr:
    """Whether a peak is that of no scores, or of -inf alone."""
    return equal(peak, COMBINE["max"].identity(peak.dtype))


def equal(a: Expr, b: Expr) -> Expr:
    """Whether two scalars are the same number."""
    return Op("eq", (a, b), dtypes.bool_)
