"""Transposing kernels: two axes of the grid in square tiles, through a copy on the stack.

Before   for i { for j in lanes { y[i, j] = x[j, i] } }         every lane reads another cache line
After    for i by W { for j by W { t = x[j.., i..] as rows;
           for r in W { y[i + r, j..] = t[.., r] } } }           each cache line is read once

Applies where the last axis of the grid runs in lanes, and a load that is scattered along it is
contiguous along another axis of the grid. Loads of that kind are copied to a tile row by row, and
gathered from there. What does not fill a tile takes the ordinary way.

Invariant: the same elements are loaded and stored as before, in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

from rune import dims
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.lanes import is_vectorisable
from rune.lowering.codegen.llvm.text import Value
from rune.lowering.codegen.llvm.types import memory_type
from rune.lowering.codegen.llvm.values import Env, Lanes
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import For, KernelCode, Let, Stmt, Store
from rune.lowering.kernel.rewrite import expressions, loads_in, names_in, size_names, walk, walk_expr
from rune.records import dataclass

LEAST_EXTENT = 32  # of both axes, for tiles to be worth their code


@dataclass(frozen=True, slots=True)
class Transposed:
    """The last axis, the one along which loads scattered there are contiguous, those loads.

    constants: values that are one for the whole grid, in which the loads' indices may be written
    """

    last: For
    axis: For
    loads: tuple[Load, ...]
    constants: tuple[Let, ...]


def find_transposed(code: KernelCode, grid: Sequence[For], inner: tuple[Stmt, ...]) -> Transposed | None:
    """The loads to copy by tiles, or None if none gain by it."""
    if len(grid) < 2 or not all(isinstance(s, (Let, Store)) for s in inner):
        return None
    if not is_vectorisable(grid[-1]):
        return None
    shared = {name for pair in code.aliases for name in pair}
    constants = _constants(inner, grid, shared)
    varying = {s.name for s in inner if isinstance(s, Let)} - {let.name for let in constants}
    along: Counter[str] = Counter()
    candidates: list[tuple[str, Load]] = []
    for load in _loads(inner):
        axis = None if size_names(load.indices[0]) & varying else _contiguous_axis(load, grid)
        if axis is not None and load.buffer not in shared:
            along[axis] += 1
            candidates.append((axis, load))
    if not along:
        return None
    # Only one axis is tiled; loads contiguous along others stay scattered.
    chosen = along.most_common(1)[0][0]
    loop = next(g for g in grid if g.var == chosen)
    if any(isinstance(g.extent, int) and g.extent < LEAST_EXTENT for g in (loop, grid[-1])):
        return None
    distinct = {(load.buffer, load.indices): load for axis, load in candidates if axis == chosen}
    return Transposed(grid[-1], loop, tuple(distinct.values()), constants)


def _constants(inner: Sequence[Stmt], grid: Sequence[For], shared: Set[str]) -> tuple[Let, ...]:
    """The values that depend on no axis, as the number of a step, and that no store changes."""
    varying, constants = {g.var for g in grid}, list[Let]()
    for stmt in inner:
        if not isinstance(stmt, Let):
            continue
        if names_in(stmt.value) & varying or loads_in(stmt.value) & shared:
            varying.add(stmt.name)
        else:
            constants.append(stmt)
    return tuple(constants)


def _loads(body: Sequence[Stmt]) -> Iterator[Load]:
    for stmt in walk(body):
        for expr in expressions(stmt):
            yield from (part for part in walk_expr(expr) if isinstance(part, Load))


def _contiguous_axis(load: Load, grid: Sequence[For]) -> str | None:
    """The axis along which a load scattered along the last one is contiguous."""
    index, names = load.indices[0], {g.var for g in grid}
    step = dims.coefficient(index, grid[-1].var)
    # A tile is copied whole, but a guarded element may not exist.
    plain = load.guard is None and size_names(index) & names
    if not plain or step is None or step in (0, 1):
        return None
    for loop in grid[:-1]:
        if dims.coefficient(index, loop.var) == 1:
            return loop.var
    return None


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
