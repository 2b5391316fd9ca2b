"""Build: from a kernel to loops.

Accesses become flat (flatten); axes that are walked as one become one (collapse); dots take
several rows at a time (tile); the domain becomes GRID loops, statements become loops inside
(loops); the threads of a group share a point where there are few (workgroups, barriers). Which
choices are made for which language stands in heuristics.

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
from rune.lowering.build.flatten import flatten
from rune.lowering.build.heuristics import choices
from rune.lowering.build.tile import Tile, copy_body, dot_axis, rows_dividing, tile_body, tiled_axis
from rune.lowering.build.workgroups import Shared, share_few, share_long
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Expr, Index, Op, const, of_size
from rune.lowering.kernel.nodes import Access, KernelCode, Kind, Param, Stmt
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel
from rune.lowering.kernels_text import kernel_sizes


def build(kernel: Kernel, target: Target) -> KernelCode:
    """The loops of a kernel for a target."""
    flat = collapse_domain(flatten(kernel))
    domain, inner = _loops(flat, target)
    shared = _shared(inner, domain, target)
    body = loops.nest(domain, [Kind.GRID] * len(domain), shared.point if shared else inner)
    sizes = tuple(kernel_sizes(kernel))
    code = KernelCode(kernel.name, _params(kernel), sizes, tuple(body), alias_pairs(flat))
    return insert_barriers(code, shared.divided if shared else ())


def _shared(point: list[Stmt], domain: list[Axis], target: Target) -> Shared | None:
    """The point shared by a workgroup, where the device has too few points, or they are long."""
    choice = choices(target.language)
    few = cost.count(tuple(a.size for a in domain)) <= target.cores * choice.group_points
    # With enough points every processor is busy, and sharing one would only add waiting.
    shared = share_few(point, choice.group_threads, target) if few else None
    if are_few(shared.point if shared else point, target):
        return shared
    return share_long(point, choice.group_threads, target)


def _loops(flat: Kernel, target: Target) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what one of its points does."""
    choice, item = choices(target.language), _widest(flat)
    # The side of a square in elements, so that one row of it fills `block_bytes`.
    blocks = find_blocks(flat, choice.block_bytes // item)
    if blocks is not None:
        return blocked(flat, blocks)
    points = target.cores * choice.column_points
    flat = tile_columns(flat, max(1, target.vector_bytes // item), choice.columns, points)
    domain, tile = list(flat.domain), _tile(flat, target)
    if tile is None:
        return domain, loops.body(flat.body, loops.row_sizes(flat.body), _stored(flat))
    domain[tile.axis] = tiled_axis(flat, tile)
    return domain, _tiled(flat, tile)


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


def _tile(kernel: Kernel, target: Target) -> Tile | None:
    """How many rows of a dot one point computes, if several."""
    axis, choice = dot_axis(kernel), choices(target.language)
    if axis is None or choice.dot_rows == 1:
        return None
    points = cost.count(tuple(a.size for a in kernel.domain))
    # Larger tiles mean fewer points, and the device needs enough of them.
    wanted = min(choice.dot_rows, points // choice.dot_points)
    rows = rows_dividing(kernel.domain[axis].size, wanted) if wanted > 1 else 1
    return Tile(axis, rows) if rows > 1 else None


def _tiled(kernel: Kernel, tile: Tile) -> list[Stmt]:
    """A whole tile; where rows are left over, the last point takes them one by one."""
    # No scratch rows: `dot_axis` accepts only Lets, reductions and plain writes.
    full_tile = loops.body(tile_body(kernel, tile), {}, _stored(kernel))
    axis, outer = kernel.domain[tile.axis], tiled_axis(kernel, tile)
    if axis.size % tile.rows == 0:
        return full_tile
    leftover = Axis(f"{axis.name}_row", axis.size - outer.symbol * tile.rows)
    row = outer.symbol * tile.rows + leftover.symbol
    single = loops.body(copy_body(kernel, axis.name, row, "_s"), {}, _stored(kernel))
    remainder = nodes.For(leftover.name, leftover.size, Kind.SERIAL, tuple(single))
    # Only the last tile may be cut off, so all others need no test of their rows.
    is_whole = Op("lt", (Index(outer.symbol), of_size(axis.size // tile.rows)), dtypes.bool_)
    return [nodes.If(is_whole, tuple(full_tile), (remainder,))]
