"""Tile dots: one point of the domain computes several rows and columns, which share their reads.

Before   for m in 64, n in 48: s = sum k: a[m, k] * b[k, n]
After    for m in 8, n in 48: s_0 = sum k: a[8*m, k] * b[k, n];  s_1 = sum k: a[8*m + 1, k] ...

The sums stand side by side and share one loop, in which b[k, n] is read once, and with several
columns a[m, k] as well. The columns of a point are neighbours, or interleaved with those of the
other points, so that neighbouring points read neighbours. If the tiles leave a remainder, the last
point takes its rows one by one.

Invariant: every row is computed as before, in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.flatten import map_sizes, map_statement
from rune.lowering.build.schedule import Tile
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import loads, map_expr, rename_size
from rune.lowering.kernels import Axis, Kernel, Reduce, Statement, Stream, Write, expressions


def dot_loads(kernel: Kernel) -> list[Load]:
    """The loads of a kernel's dot; an empty list unless it has one dot, which can be tiled."""
    dots = [s for s in kernel.body if isinstance(s, Reduce) and s.contract]
    simple = all(isinstance(s, Let | Reduce) or _is_plain_write(s) for s in kernel.body)
    if len(dots) != 1 or not simple:
        return []
    return list(loads(expressions(dots[0])))


def row_axes(kernel: Kernel) -> list[Axis]:
    """The domain axes whose points share loads of a dot, innermost first.

    The last axis is never among them, since its neighbours read neighbours.
    """
    loads = dot_loads(kernel)
    return [axis for axis in reversed(kernel.domain[:-1]) if shares(loads, axis)]


def shares(loads: Sequence[Load], axis: Axis) -> bool:
    """Whether points along an axis have some loads in common, and others of their own."""
    reads = [depends(x, axis) for x in loads]
    # A load that does not depend on the axis is the same for all its points: a tile reads it once.
    return any(reads) and not all(reads)


def depends(load: Load, axis: Axis) -> bool:
    """Whether points along an axis read different elements."""
    return _mentions(load.indices[0], axis.name)


def _is_plain_write(statement: Statement) -> bool:
    return isinstance(statement, Write) and not statement.axes and statement.condition is None


def _mentions(x: Size, name: str) -> bool:
    return isinstance(x, Dim) and any(s.name == name for s in dims.symbols(x))


def axis_of(axes: Sequence[Axis], name: str) -> Axis:
    """The axis of that name."""
    return next(a for a in axes if a.name == name)


def tiled_domain(kernel: Kernel, tile: Tile) -> list[Axis]:
    """The domain with axes of tiles in place of those of rows and columns."""
    counts = {tile.row_axis: tile.rows, kernel.domain[-1].name: tile.columns}
    return [Axis(a.name, -(-a.size // counts.get(a.name, 1))) for a in kernel.domain]


def row_at(kernel: Kernel, tile: Tile, row: Size) -> Size:
    """The position of a row of a tile."""
    return axis_of(tiled_domain(kernel, tile), tile.row_axis).symbol * tile.rows + row


def column_at(kernel: Kernel, tile: Tile, column: Size) -> Size:
    """The position of a column of a tile."""
    axis = tiled_domain(kernel, tile)[-1]
    # Apart, point p has columns p, p + points, p + 2·points, ...
    return axis.symbol + axis.size * column if tile.apart else axis.symbol * tile.columns + column


def tile_body(kernel: Kernel, tile: Tile) -> tuple[Statement, ...]:
    """The statements of a whole tile: the copies of each statement for all points together."""
    points = list(itertools.product(range(tile.rows), range(tile.columns)))
    copies = [point_body(kernel, tile, r, c, f"_{r}_{c}" if tile.columns > 1 else f"_{r}") for r, c in points]
    # Copies of a statement side by side, so that loops.py can put them into one nest.
    return tuple(statement for same in zip(*copies) for statement in same)


def point_body(kernel: Kernel, tile: Tile, row: Size, column: Size, suffix: str) -> tuple[Statement, ...]:
    """The statements of one row and column of a tile."""
    at = {tile.row_axis: row_at(kernel, tile, row)}
    if tile.columns > 1:
        at[kernel.domain[-1].name] = column_at(kernel, tile, column)
    return copy_body(kernel, at, suffix)


def copy_body(kernel: Kernel, at: Mapping[str, Size], suffix: str) -> tuple[Statement, ...]:
    """The statements with some axes at other positions, and a suffix on every local name."""
    # The copies of all points are in one scope.
    names = {name: name + suffix for s in kernel.body for name in _bound(s)}
    return place_body(kernel.body, at, names)


def _bound(statement: Statement) -> tuple[str, ...]:
    assert not isinstance(statement, Stream)
    names = (statement.name,) if isinstance(statement, Let | Reduce) else ()
    return names if isinstance(statement, Let) else (*names, *(let.name for let in statement.lets))


def place_body(
    body: tuple[Statement, ...], at: Mapping[str, Size], names: Mapping[str, str] | None = None
) -> tuple[Statement, ...]:
    """The statements with some axes at other positions, and locals renamed."""
    return tuple(_place(s, at, names or {}) for s in body)


def _place(statement: Statement, at: Mapping[str, Size], names: Mapping[str, str]) -> Statement:
    def on_node(expr: Expr) -> Expr:
        if not isinstance(expr, Local) or expr.name not in names:
            return expr
        return Local(names[expr.name], expr.dtype)

    def on_size(x: Size) -> Size:
        # Tested first, as most index expressions do not mention the axis.
        position = dims.substitute(x, at) if any(_mentions(x, name) for name in at) else x
        return rename_size(position, names) if names else position

    placed_statement = map_statement(map_sizes(statement, on_size), lambda e: map_expr(on_node, e))
    if isinstance(placed_statement, Let):
        return replace(placed_statement, name=names.get(placed_statement.name, placed_statement.name))
    assert not isinstance(placed_statement, Stream)
    lets = tuple(Let(names.get(let.name, let.name), let.value) for let in placed_statement.lets)
    placed_statement = replace(placed_statement, lets=lets)
    if isinstance(placed_statement, Reduce):
        return replace(placed_statement, name=names.get(placed_statement.name, placed_statement.name))
    return placed_statement
