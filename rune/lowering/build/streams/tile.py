"""The tile of a stream: how many rows and keys a group of threads has at once, and who has which.

Threads stand in `down` rows of `across`. Thread (y, x) has the rows y, y + down, ..., and the keys
and columns x, x + across, ...: neighbouring threads have neighbouring columns.

A tile has to fit the memory of a group twice, so that two groups hide each other's waits, and a
thread's registers. Of those that fit the largest is chosen that is not much larger than the rows
are many; it reads the keys least often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rune import dims
from rune.dims import Size, is_static
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import names_in, walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce, Stream, Sum, expressions, stream_parts

# Rows, keys, and threads down and across.
SHAPES = ((64, 64, 16, 16), (32, 64, 8, 16), (32, 32, 8, 16), (16, 32, 4, 16), (8, 32, 4, 16), (4, 32, 2, 32))
SHAPES += ((1, 64, 1, 64), (1, 32, 1, 32))
MOST_SUMS = 96  # of a thread, in registers

Staged = tuple[tuple[Reduce, Expr], ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """The rows, keys and threads of a group; `axis` of the domain has the rows.

    staged_rows, staged_keys: operands of dots that lie in shared memory
    """

    axis: int
    rows: int
    keys: int
    down: int
    across: int
    staged_rows: Staged = ()
    staged_keys: Staged = ()

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

    def thread_columns(self, total: Sum) -> int:
        """Columns of a thread, in a sum."""
        (axis,) = total.columns
        assert isinstance(axis.size, int)
        return -(-axis.size // self.across)


def choose_tile(kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile of a stream on a device; the smallest there is where none fits well."""
    axis = _row_axis(kernel, stream)
    rows = cost.estimate(kernel.domain[axis].size)
    tiles = [Tile(axis, *shape) for shape in SHAPES if shape[2] * shape[3] <= target.threads_per_workgroup]
    fitting = [t for t in tiles if t.rows < 2 * rows and _sums(t, stream) <= MOST_SUMS]
    for tile in fitting:
        staged = _staged(kernel, stream, tile)
        if _bytes(staged, stream) * 2 <= target.shared_bytes:
            return staged
    return next((t for t in fitting if _bytes(t, stream) <= target.shared_bytes), tiles[-1])


def _row_axis(kernel: Kernel, stream: Stream) -> int:
    """The axis of the domain whose points read the same keys: of these the longest."""
    loads = [e for x in expressions(stream) for e in walk_expr(x) if isinstance(e, Load)]
    keyed = [x for x in loads if any(_mentions(x.indices[0], axis) for axis in stream.axes)]

    def merit(number: int) -> tuple[int, int, int]:
        axis = kernel.domain[number]
        shared = sum(not _mentions(x.indices[0], axis) for x in keyed)
        return shared, cost.estimate(axis.size), number

    return max(range(len(kernel.domain)), key=merit)


def _mentions(index: Size, axis: Axis) -> bool:
    return isinstance(index, dims.Dim) and any(s.name == axis.name for s in dims.symbols(index))


def _sums(tile: Tile, stream: Stream) -> int:
    """What a thread sums up at once."""
    columns = sum(tile.thread_columns(s) if s.columns else 1 for s in stream.sums)
    return tile.thread_rows * (columns + tile.thread_keys)


def _bytes(tile: Tile, stream: Stream) -> int:
    """Shared memory of a group."""
    weights = {s.weight: s.weight.dtype.itemsize for s in stream.sums}
    cells = sum(weights.values()) + (0 if stream.peak is None else stream.peak.value.dtype.itemsize)
    total = tile.rows * (tile.keys + 1) * cells
    for staged, count in ((tile.staged_rows, tile.rows), (tile.staged_keys, tile.keys)):
        total += sum(int(str(dot.axes[0].size)) * (count + 1) * x.dtype.itemsize for dot, x in staged)
    return total


# --- what is put into shared memory -------------------------------------------------------------


def _staged(kernel: Kernel, stream: Stream, tile: Tile) -> Tile:
    """The tile with the operands of dots that change along rows alone, or keys alone."""
    before = [s for s in kernel.body[: kernel.body.index(stream)] if isinstance(s, Let)]
    parts = [p for p in (*stream.scores, *stream.weights)]
    lets = [p for p in parts if isinstance(p, Let)]
    row, keys = kernel.domain[tile.axis].name, {a.name for a in stream.axes}
    scores = {p.name for p in parts if isinstance(p, Reduce)} | ({stream.peak.name} if stream.peak else set())
    by_row: list[tuple[Reduce, Expr]] = []
    by_key: list[tuple[Reduce, Expr]] = []
    for dot in parts:
        if not isinstance(dot, Reduce) or len(dot.axes) != 1 or not is_static(dot.axes[0].size):
            continue
        assert isinstance(dot.value, Op)
        for operand in dict.fromkeys(dot.value.args):
            needed = names_needed(operand, (*before, *lets, *dot.lets))
            if dot.axes[0].name not in needed or needed & scores:
                continue
            if row in needed and not needed & keys:
                by_row.append((dot, operand))
            elif needed & keys and row not in needed:
                by_key.append((dot, operand))
    return Tile(tile.axis, tile.rows, tile.keys, tile.down, tile.across, tuple(by_row), tuple(by_key))


def slice_of(expr: Expr, lets: Sequence[Let]) -> list[Let]:
    """The lets that an expression needs, in order."""
    needed = set(names_in(expr))
    chosen: list[Let] = []
    for let in reversed(lets):
        if let.name in needed:
            chosen.append(let)
            needed |= names_in(let.value)
    return chosen[::-1]


def names_needed(expr: Expr, lets: Sequence[Let]) -> set[str]:
    """What an expression and the lets that it needs read."""
    return set(names_in(expr)).union(*(names_in(let.value) for let in slice_of(expr, lets)))


__all__ = ["Iterable", "Tile", "choose_tile", "names_needed", "slice_of", "stream_parts"]
