"""Build: from a kernel to loops.

Accesses become flat (flatten); axes that are walked as one become one (collapse); dots take
several rows and columns at a time (tile); the domain becomes GRID loops, statements become loops
inside (loops); the threads of a group share a point where there are few (workgroups, barriers).
Which choices are made for which language stands in heuristics and tile_choice.

Invariant: the code computes what the kernel does, with sums in any order.
Cost: linear in the size of the kernel.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.dims import Size, product
from rune.lowering.build import loops
from rune.lowering.build.aliases import alias_pairs
from rune.lowering.build.barriers import insert_barriers
from rune.lowering.build.blocks import blocked, find_blocks
from rune.lowering.build.collapse import collapse_domain
from rune.lowering.build.columns import tile_columns
from rune.lowering.build.conditions import every, less
from rune.lowering.build.flatten import flatten
from rune.lowering.build.heuristics import choices
from rune.lowering.build.streams import build_stream
from rune.lowering.build.tile import Tile, column_at, point_body, row_at, tile_body, tiled_domain
from rune.lowering.build.tile_choice import choose_tile
from rune.lowering.build.workgroups import Shared, reads_rows, share_few, share_long
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Expr, Op, of_size
from rune.lowering.kernel.nodes import Access, KernelCode, Kind, Param, Stmt
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Stream
from rune.lowering.kernels_text import kernel_sizes


def build(kernel: Kernel, target: Target) -> KernelCode:
    """The loops of a kernel for a target."""
    if any(isinstance(s, Stream) for s in kernel.body):
        return _streamed(kernel, target)
    flat = collapse_domain(flatten(kernel))
    domain, inner = _loops(flat, target)
    shared = _shared(inner, domain, target)
    body = loops.nest(domain, [Kind.GRID] * len(domain), shared.point if shared else inner)
    sizes = tuple(kernel_sizes(kernel))
    code = KernelCode(kernel.name, _params(kernel), sizes, tuple(body), alias_pairs(flat))
    return insert_barriers(code, shared.divided if shared else ())


def _streamed(kernel: Kernel, target: Target) -> KernelCode:
    """A kernel that makes sums while their peak is not known, with barriers of its own."""
    flat = flatten(kernel)
    body = build_stream(flat, target)
    return KernelCode(kernel.name, _params(kernel), tuple(kernel_sizes(kernel)), body, alias_pairs(flat))


def _shared(point: list[Stmt], domain: list[Axis], target: Target) -> Shared | None:
    """The point shared by a workgroup, where the device has too few points, or they are long."""
    choice = choices(target)
    few = cost.count(tuple(a.size for a in domain)) <= target.cores * choice.group_points
    # With enough points every processor is busy, and sharing one would only add waiting; but on a
    # GPU threads that each walk along a row of their own read one element of every line.
    along = choice.shares_rows and bool(domain) and reads_rows(point, domain[-1].name)
    shared = share_few(point, choice.group_threads, target) if few or along else None
    if are_few(shared.point if shared else point, target):
        return shared
    return share_long(point, choice.group_threads, target)


def _loops(flat: Kernel, target: Target) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what one of its points does."""
    choice, item = choices(target), _widest(flat)
    # The side of a square in elements, so that one row of it fills `block_bytes`.
    blocks = find_blocks(flat, choice.block_bytes // item)
    if blocks is not None:
        return blocked(flat, blocks)
    points = target.cores * choice.column_points
    flat = tile_columns(flat, max(1, target.vector_bytes // item), choice.columns, points)
    tile = choose_tile(flat, target)
    if tile is None:
        return list(flat.domain), loops.body(flat.body, loops.row_sizes(flat.body), _stored(flat))
    return tiled_domain(flat, tile), _tiled(flat, tile)


def _widest(kernel: Kernel) -> int:
    """Bytes of the widest element that the kernel reads or writes."""
    return max(b.type.dtype.itemsize for b in (*kernel.inputs, *kernel.outputs))


def _stored(kernel: Kernel) -> dict[str, np.dtype]:
    """The dtype in which each output is kept."""
    return {b.name: b.type.dtype for b in kernel.outputs}


def _params(kernel: Kernel) -> tuple[Param, ...]:
    """Inputs are read; outputs are new values: what a kernel reads of them it wrote itself."""
    sides = ((kernel.inputs, Access.READ), (kernel.outputs, Access.WRITE))
    return tuple(
        Param(b.name, b.type.dtype, product(b.type.shape), access) for buffers, access in sides for b in buffers
    )


def _tiled(kernel: Kernel, tile: Tile) -> list[Stmt]:
    """A whole tile; where the tiles leave a remainder, the last points are taken one by one."""
    # No scratch rows: `dot_loads` accepts only Lets, reductions and plain writes.
    full_tile = loops.body(tile_body(kernel, tile), {}, _stored(kernel))
    conditions = _whole(kernel, tile)
    if not conditions:
        return full_tile
    # Only the last tiles may be cut off, so all others need no test of their points.
    return [nodes.If(every(conditions), tuple(full_tile), (_remainder(kernel, tile),))]


def _whole(kernel: Kernel, tile: Tile) -> list[Expr]:
    """Conditions under which no row or column of a tile is beyond its end."""
    rows, columns = kernel.domain[tile.axis].size, kernel.domain[-1].size
    conditions: list[Expr] = []
    if rows % tile.rows != 0:
        conditions.append(less(tiled_domain(kernel, tile)[tile.axis].symbol, rows // tile.rows))
    if columns % tile.columns != 0:
        conditions.append(less(column_at(kernel, tile, tile.columns - 1), columns))
    return conditions


def _remainder(kernel: Kernel, tile: Tile) -> nodes.For:
    """The points of a tile that is cut off, one by one."""
    axis, last = kernel.domain[tile.axis], kernel.domain[-1]
    outer = tiled_domain(kernel, tile)[tile.axis]
    # A tile of rows that is whole may lack columns.
    rows = tile.rows if tile.columns > 1 else axis.size - outer.symbol * tile.rows
    row, column = Axis(f"{axis.name}_row", rows), Axis(f"{last.name}_column", tile.columns)
    point = loops.body(point_body(kernel, tile, row.symbol, column.symbol, "_s"), {}, _stored(kernel))
    if tile.columns == 1:
        return nodes.For(row.name, row.size, Kind.SERIAL, tuple(point))
    inside = every(
        [less(row_at(kernel, tile, row.symbol), axis.size), less(column_at(kernel, tile, column.symbol), last.size)]
    )
    columns = nodes.For(column.name, column.size, Kind.SERIAL, (nodes.If(inside, tuple(point)),))
    return nodes.For(row.name, row.size, Kind.SERIAL, (columns,))
