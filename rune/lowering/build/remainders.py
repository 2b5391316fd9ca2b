"""Whole tiles of a dot, and the remainder, whose points are computed one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rune.lowering.build import loops
from rune.lowering.build.conditions import every, less
from rune.lowering.build.schedule import Tile
from rune.lowering.build.tile import axis_of, column_at, point_body, row_at, tile_body, tiled_domain
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Kind, Stmt
from rune.lowering.kernels import Axis, Kernel

Stored = Mapping[str, np.dtype]


def tiled(kernel: Kernel, tile: Tile, output_dtypes: Stored) -> list[Stmt]:
    """A whole tile; if the tiles leave a remainder, its points are computed one by one.

    output_dtypes: one for each output
    """
    # No scratch rows: `dot_loads` accepts only Lets, reductions and plain writes.
    full_tile = loops.body(tile_body(kernel, tile), {}, output_dtypes)
    conditions = _full_tile_conditions(kernel, tile)
    if not conditions:
        return full_tile
    # Only the last tiles may be cut off, so all others need no test of their points.
    return [nodes.If(every(conditions), tuple(full_tile), (_remainder(kernel, tile, output_dtypes),))]


def _full_tile_conditions(kernel: Kernel, tile: Tile) -> list[Expr]:
    """Conditions under which no row or column of a tile is beyond its end."""
    rows, columns = axis_of(kernel.domain, tile.row_axis).size, kernel.domain[-1].size
    conditions: list[Expr] = []
    if rows % tile.rows != 0:
        tiles = axis_of(tiled_domain(kernel, tile), tile.row_axis)
        conditions.append(less(tiles.symbol, rows // tile.rows))
    if columns % tile.columns != 0:
        conditions.append(less(column_at(kernel, tile, tile.columns - 1), columns))
    return conditions


def _remainder(kernel: Kernel, tile: Tile, output_dtypes: Stored) -> nodes.For:
    """The points of a tile that is cut off, one by one."""
    axis, last = axis_of(kernel.domain, tile.row_axis), kernel.domain[-1]
    tiles = axis_of(tiled_domain(kernel, tile), tile.row_axis)
    # With several columns, a tile whose rows are whole may be cut off in its columns.
    rows = tile.rows if tile.columns > 1 else axis.size - tiles.symbol * tile.rows
    row, column = Axis(f"{axis.name}_row", rows), Axis(f"{last.name}_column", tile.columns)
    point = loops.body(point_body(kernel, tile, row.symbol, column.symbol, "_s"), {}, output_dtypes)
    # Then all rows of the last tile are within the axis, and only their number is smaller.
    if tile.columns == 1:
        return nodes.For(row.name, row.size, Kind.SERIAL, tuple(point))
    inside = every(
        [less(row_at(kernel, tile, row.symbol), axis.size), less(column_at(kernel, tile, column.symbol), last.size)]
    )
    columns = nodes.For(column.name, column.size, Kind.SERIAL, (nodes.If(inside, tuple(point)),))
    return nodes.For(row.name, row.size, Kind.SERIAL, (columns,))
