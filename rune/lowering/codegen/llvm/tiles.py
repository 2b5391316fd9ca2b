"""Transposing kernels: two axes of the grid in square tiles, through a copy on the stack.

Before   for i { for j in lanes { y[i, j] = x[j, i] } }         every lane reads another cache line
After    for i by W { for j by W { t = x[j.., i..] as rows;
           for r in W { y[i + r, j..] = t[.., r] } } }           each cache line is read once

Loads that are scattered along the lanes and contiguous along another axis (lanes/transposed.py)
are copied to a tile row by row, and
gathered from there. What does not fill a tile takes the ordinary way.

Invariant: the same elements are loaded and stored as before, in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.text import Value
from rune.lowering.codegen.llvm.types import memory_type
from rune.lowering.codegen.llvm.values import Env, Lanes
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import For
from rune.lowering.lanes.transposed import Transposed


def unfold(body: Body, loops: Sequence[For], number: Value, env: Env, symbols: dict[str, Value]) -> Value:
    """Give the variables of a nest their values by a number; the result is what is left of it."""
    for loop in reversed(loops):
        extent = body.index(loop.extent, env)
        symbols[loop.var] = number.binary("urem", number, extent)
        number = number.binary("udiv", number, extent)
    return number


def tile_range(
    body: Body, grid: Sequence[For], transposed: Transposed, span: tuple[Value, Value], env: Env
) -> list[For]:
    """Write the grid over the range: rows of tiles. The result is the loops around such a row."""
    others = [g for g in grid[:-1] if g is not transposed.axis]
    writer, width = body.writer, body.lanes
    extent = body.index(transposed.axis.extent, env)
    per_axis = (extent + (width - 1)).binary("udiv", extent + (width - 1), width)

    def row_of_tiles(number: Value) -> None:
        at = env
        symbols = dict(env.symbols)
        first = number.binary("urem", number, per_axis) * width
        outer_number = number.binary("udiv", number, per_axis)
        unfold(body, others, outer_number, env, symbols)
        at = replace(env, symbols=symbols)
        _row(body, transposed, first, extent, at)

    writer.count_up(*span, 1, row_of_tiles)
    return others


def _row(body: Body, transposed: Transposed, first: Value, extent: Value, env: Env) -> None:
    """Rows first.. of the axis, at most one tile high, over the whole last axis."""
    writer, width = body.writer, body.lanes
    length = body.index(transposed.last.extent, env)
    # The width is a power of two; the rest of each row is done without tiles.
    tiled_length = length.binary("and", length, -width)
    zero = writer.constant("i64", 0)
    height = (extent - first).call("smin", width)
    axis, last = transposed.axis.var, transposed.last

    def row(number: Value, begin: Value) -> None:
        symbols = {**env.symbols, axis: first + number}
        body.span(last, begin, length, replace(env, symbols=symbols))

    def rows(begin: Value) -> None:
        writer.count_up(zero, height, 1, lambda r: row(r, begin))

    def tiles() -> None:
        held = [writer.allocate(memory_type(x.dtype), width * width) for x in transposed.loads]
        constant = env
        for let in transposed.constants:
            constant = body.statement(let, constant)

        def tile(j: Value) -> None:
            at = replace(constant, symbols={**constant.symbols, axis: first, last.var: j})
            for load, memory in zip(transposed.loads, held, strict=True):
                _fill(body, load, last.var, memory, at)
            write = partial(_tile_row, body, transposed, held, at)
            writer.count_up(zero, zero + width, 1, write)

        writer.count_up(zero, tiled_length, width, tile)
        writer.either(length > tiled_length, lambda: rows(tiled_length))

    # A partial last row of tiles goes the ordinary way; a second kind of tile is not worth its
    # code.
    writer.either(height.equals(width), tiles, lambda: rows(zero))


def _fill(body: Body, load: Load, var: str, memory: Value, env: Env) -> None:
    """Copy a square: for each lane of the last axis a row of neighbours along the other one."""
    writer, width = body.writer, body.lanes
    source = env.memory[load.buffer]

    def line(k: Value) -> None:
        symbols = {**env.symbols, var: env.symbols[var] + k}
        at = body.address(source, llvm_index.render(writer, load.indices[0], symbols))
        values = body.load_neighbours(source, at, Lanes("", width))
        type = memory_type(load.dtype)
        place = f"getelementptr {type}, ptr {memory.text}, i64 {(k * width).text}"
        writer.store(values, writer.emit("ptr", place), load.dtype.itemsize)

    writer.count_up(writer.constant("i64", 0), writer.constant("i64", width), 1, line)


def _tile_row(body: Body, transposed: Transposed, held: Sequence[Value], env: Env, r: Value) -> None:
    """One row of the result: the body, with its scattered loads from the tiles' columns."""
    writer, width, axis, last = body.writer, body.lanes, transposed.axis.var, transposed.last
    # Row k of the tile holds lane k's neighbours, so lane k of row r lies at k * width + r.
    column = writer.iota(width, "i64") * width + writer.splat(r, width)
    tiles = {}
    for load, memory in zip(transposed.loads, held, strict=True):
        text = f"getelementptr {memory_type(load.dtype)}, ptr {memory.text}, {column.type} "
        at = writer.emit(f"<{width} x ptr>", text + column.text)
        tiles[load.buffer, load.indices[0]] = at
    symbols = {**env.symbols, axis: env.symbols[axis] + r}
    lanes = Lanes(last.var, width, varying=frozenset({last.var}))
    body.run(last.body, replace(env, symbols=symbols, lanes=lanes, tiles=tiles))
