"""Transposing kernels: two axes of the grid in square tiles, through a copy on the stack.

Before   for i { for j in lanes { y[i, j] = x[j, i] } }         every lane reads another cache line
After    for i by W { for j by W { t = x[j.., i..] as rows;
           for r in W { y[i + r, j..] = t[.., r] } } }           each cache line is read once

Loads that are scattered along the lanes and contiguous along another axis (lanes/transposed.py)
are copied to a tile row by row, and gathered from there. Elements that do not fill a tile go
the ordinary way.

Invariant: the same elements are loaded and stored as before, in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.ir.memory import Alive, Memory
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.codegen.llvm.ir.types import memory_type
from rune.lowering.codegen.llvm.values import Lanes
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import For
from rune.lowering.lanes.transposed import Transposition


def tile_range(body: Body, grid: Sequence[For], transposition: Transposition, begin: Value, end: Value) -> None:
    """Write the grid over the range: rows of tiles."""
    width, others = body.lanes, transposition.others(grid)
    extent = body.index(transposition.axis.extent)
    per_axis = extent.ceil_div(width)

    def row_of_tiles(number: Value) -> None:
        first = number.binary("urem", per_axis) * width
        outer = number.binary("udiv", per_axis)
        with body.inside(body.at_row(others, outer)):
            _row(body, transposition, first, extent)

    body.writer.count_up(begin, end, 1, row_of_tiles)


def _row(body: Body, transposition: Transposition, first: Value, extent: Value) -> None:
    """Rows first.. of the axis, at most one tile high, over the whole last axis."""
    writer, width = body.writer, body.lanes
    length = body.index(transposition.last.extent)
    # The width is a power of two; the rest of each row is done without tiles.
    tiled_length = length.binary("and", -width)
    zero = writer.constant("i64", 0)
    height = (extent - first).call("smin", width)

    def rows(begin: Value) -> None:
        def row(number: Value) -> None:
            with body.inside(body.env.at({transposition.axis.var: first + number})):
                body.span(transposition.last, begin, length)

        writer.count_up(zero, height, 1, row)

    def tiles() -> None:
        _tiles(body, transposition, first, tiled_length)
        writer.either(length > tiled_length, lambda: rows(tiled_length))

    # A partial last row of tiles goes the ordinary way; a second kind of tile is not worth its
    # code.
    writer.either(height.equals(width), tiles, lambda: rows(zero))


def _tiles(body: Body, transposition: Transposition, first: Value, length: Value) -> None:
    """Whole tiles side by side."""
    writer, width, last = body.writer, body.lanes, transposition.last.var
    squares = [Memory(writer.allocate(memory_type(x.dtype), width * width), x.dtype) for x in transposition.loads]

    def tile(j: Value) -> None:
        with body.inside(body.env.at({transposition.axis.var: first, last: j})):
            for load, square in zip(transposition.loads, squares, strict=True):
                _fill(body, load, last, square)
            writer.count_up(zero, zero + width, 1, partial(_tile_row, body, transposition, squares))

    zero = writer.constant("i64", 0)
    with body.inside(body.env):
        body.body(transposition.constants)
        writer.count_up(zero, length, width, tile)


def _fill(body: Body, load: Load, var: str, square: Memory) -> None:
    """Copy a square: for each lane of the last axis a row of neighbours along the other one."""
    writer, width, source = body.writer, body.lanes, body.env.memory[load.buffer]

    def line(k: Value) -> None:
        with body.inside(body.env.at({var: body.env.symbols[var] + k})):
            row = source.read(source.address(body.first(load.indices[0])), Alive(width))
        square.write(row, square.address(k * width), None)

    writer.count_up(writer.constant("i64", 0), writer.constant("i64", width), 1, line)


def _tile_row(body: Body, transposition: Transposition, squares: Sequence[Memory], r: Value) -> None:
    """One row of the result: the body, with its scattered loads from the tiles' columns."""
    writer, width, axis, last = body.writer, body.lanes, transposition.axis.var, transposition.last
    # Row k of the tile holds lane k's neighbours, so lane k of row r lies at k * width + r.
    column = writer.iota(width, "i64") * width + writer.splat(r, width)
    tiles = {(x.buffer, x.indices[0]): s.address(column) for x, s in zip(transposition.loads, squares, strict=True)}
    lanes = Lanes(last.var, Alive(width), frozenset({last.var}))
    body.run(last.body, replace(body.env, lanes=lanes, tiles=tiles).at({axis: body.env.symbols[axis] + r}))
