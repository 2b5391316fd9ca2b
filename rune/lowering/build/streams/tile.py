"""The tile of a stream: how many rows and keys a group of threads has at once, and who has which.

Threads stand in `down` rows of `across`. Rows and columns of a thread are in runs of neighbours,
with those of the other threads between them, so that it reads several at once; its keys are single.

A tile has to fit the memory of a group twice, so that two groups hide each other's waits, and a
thread's registers. Of those that fit the largest is chosen that is not much larger than the rows
are many; it reads the keys least often.
"""

from __future__ import annotations

from dataclasses import dataclass

from rune.lowering.build.streams.panels import Panels, line_of, mentions, panels_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Kernel, Stream, Sum, expressions

# Rows, keys, and threads down and across.
SHAPES = ((64, 64, 16, 16), (32, 64, 8, 16), (32, 32, 8, 16), (16, 32, 4, 16), (8, 32, 4, 16), (4, 32, 2, 32))
SHAPES += ((1, 64, 1, 64), (1, 32, 1, 32))
MOST_SUMS = 96  # of a thread, in registers
NO_PANELS = Panels()


@dataclass(frozen=True, slots=True)
class Tile:
    """The rows, keys and threads of a group; `axis` of the domain has the rows."""

    axis: int
    rows: int
    keys: int
    down: int
    across: int
    panels: Panels = NO_PANELS

    @property
    def threads(self) -> int:
        """The threads of a group."""
        return self.down * self.across

    @property
    def thread_rows(self) -> int:
        """Rows of a thread."""
        return self.rows // self.down

    @property
    def thread_keys(self) -> int:
        """Keys of a thread."""
        return self.keys // self.across

    def column_run(self, columns: int) -> int:
        """How many columns of a thread are neighbours, of so many in all."""
        return next((n for n in (4, 2) if columns % n == 0 and columns >= n * self.across), 1)

    def thread_columns(self, columns: int) -> int:
        """Columns of a thread, of so many in all."""
        run = self.column_run(columns)
        return -(-columns // (run * self.across)) * run


def choose_tile(kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile of a stream on a device; the smallest there is where none fits well."""
    axis = _row_axis(kernel, stream)
    rows = cost.estimate(kernel.domain[axis].size)
    shapes = [shape for shape in SHAPES if shape[2] * shape[3] <= target.threads_per_workgroup]
    tiles = [Tile(axis, *shape) for shape in shapes if shape[0] < 2 * rows]
    fitting = [_staged(t, kernel, stream) for t in tiles if _sums(t, stream) <= MOST_SUMS]
    for tile in fitting:
        if _bytes(tile, stream) * 2 <= target.shared_bytes:
            return tile
    bare = [Tile(axis, *shape) for shape in shapes]
    return next((t for t in bare if t.rows < 2 * rows and _bytes(t, stream) <= target.shared_bytes), bare[-1])


def _staged(tile: Tile, kernel: Kernel, stream: Stream) -> Tile:
    """The tile with panels."""
    panels = panels_of(kernel, stream, kernel.domain[tile.axis], tile.rows, tile.keys)
    return Tile(tile.axis, tile.rows, tile.keys, tile.down, tile.across, panels)


def _row_axis(kernel: Kernel, stream: Stream) -> int:
    """The axis of the domain whose points read the same keys: of these the longest."""
    loads = [e for x in expressions(stream) for e in walk_expr(x) if isinstance(e, Load)]
    keyed = [x for x in loads if any(mentions(x.indices[0], axis) for axis in stream.axes)]

    def merit(number: int) -> tuple[int, int, int]:
        axis = kernel.domain[number]
        shared = sum(not mentions(x.indices[0], axis) for x in keyed)
        return shared, cost.estimate(axis.size), number

    return max(range(len(kernel.domain)), key=merit)


def columns_of(total: Sum) -> int:
    """How many columns a sum has."""
    (axis,) = total.columns
    assert isinstance(axis.size, int)
    return axis.size


def _sums(tile: Tile, stream: Stream) -> int:
    """What a thread sums up at once."""
    columns = sum(tile.thread_columns(columns_of(s)) if s.columns else 1 for s in stream.sums)
    return tile.thread_rows * (columns + tile.thread_keys)


def _bytes(tile: Tile, stream: Stream) -> int:
    """Shared memory of a group."""
    line = line_of(tile.rows)
    tiles: dict[Expr, int] = {s.weight: s.weight.dtype.itemsize for s in stream.sums if s.columns}
    exchanged = [s.weight for s in stream.sums if not s.columns]
    exchanged += [] if stream.peak is None else [stream.peak.value]
    cells = tile.keys * sum(tiles.values()) + tile.across * sum(x.dtype.itemsize for x in exchanged)
    return line * cells + sum(p.alloc.size * p.alloc.dtype.itemsize for p in tile.panels.all)


__all__ = ["Tile", "choose_tile", "columns_of"]
