"""How many rows and columns of a dot one point computes, on a device.

A tile of R rows and C columns reads R + C values for R * C products, so a large one reads less. It
has to fit registers, to leave enough points for the processors, and to have few points beyond the
ends. The tile with the least estimated cost is chosen, so the choice is the same every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import Tile
from rune.lowering.build.tile import axis_of, depends, dot_loads, row_axes, shares, tiled_domain
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce, expressions

MOST_NODES = 2_000  # expression nodes of a tile: more take long to compile
SHORT = 4  # an inner loop of fewer rounds is short
SLOWNESS = 3  # the time of a point that is computed alone, relative to one in a tile


def choose_tile(kernel: Kernel, target: Target) -> Tile | None:
    """The tile of a dot, or None if one point computes a single row and column."""
    axes, choice = row_axes(kernel), choices(target)
    if not axes or choice.dot_rows == 1:
        return None
    # Larger tiles mean fewer points, and the device needs enough of them.
    shares = cost.count(tuple(a.size for a in kernel.domain)) // (choice.dot_points * target.cores)
    if choice.dot_columns == 1:
        rows = rows_dividing(axes[0].size, min(choice.dot_rows, shares))
        return Tile(axes[0].name, rows) if rows > 1 else None
    best = min(_tiles(kernel, axes, shares, target), key=lambda t: _cost(kernel, t, target))
    return best if best.rows * best.columns > 1 else None


def rows_dividing(size: Size, most: int) -> int:
    """The greatest number of rows, up to `most`, that leaves little or no remainder."""
    if most < 2:
        return 1
    if not isinstance(size, int):
        return most
    exact = [r for r in range(most, 1, -1) if size % r == 0]
    # A divisor needs no code for remaining rows, which is worth up to half the tile.
    if exact and exact[0] * 2 >= most:
        return exact[0]
    return most if size >= 2 * most else (exact[0] if exact else 1)


def _tiles(kernel: Kernel, axes: Sequence[Axis], most: int, target: Target) -> Iterator[Tile]:
    """The tiles of up to `most` points that a device may run; that of one row and column first."""
    choice = choices(target)
    nodes = sum(1 for s in kernel.body for e in expressions(s) for _ in walk_expr(e))
    last = kernel.domain[-1]
    columns = choice.dot_columns if shares(dot_loads(kernel), last) else 1
    if choice.short_sums and cost.count((_inner_sum(kernel),)) < SHORT:
        most = min(most, choice.short_sums)
    # Always a candidate, whatever the limits below are.
    yield Tile(axes[0].name, 1)
    for axis, r, c in itertools.product(axes, range(1, choice.dot_rows + 1), range(1, columns + 1)):
        # Registers hold r·c sums and the r + c values that they multiply.
        if 1 < r * c <= min(most, MOST_NODES // nodes, choice.dot_registers - r - c):
            yield tile_of(axis.name, r, last.name, c, apart=choice.columns_apart)


def _inner_sum(kernel: Kernel) -> Size:
    """The extent of a dot's innermost loop; 1 for a product without a sum."""
    (dot,) = (s for s in kernel.body if isinstance(s, Reduce) and s.contract)
    return dot.axes[-1].size if dot.axes else 1


def tile_of(row_axis: str, rows: int, column_axis: str, columns: int, *, apart: bool) -> Tile:
    """The tile, which names the axis of columns only if it has several."""
    return Tile(row_axis, rows, column_axis, columns, apart) if columns > 1 else Tile(row_axis, rows)


def _cost(kernel: Kernel, tile: Tile, target: Target) -> Fraction:
    """Operations for each result: products and loads, and the cost of points beyond the ends."""
    if choices(target).access_products:
        return _cost_by_lanes(kernel, tile, target)
    # Neighbouring columns are computed, and read, by one instruction.
    lanes = 1 if tile.apart else max(1, target.vector_bytes // 4)
    vectors = -(-tile.columns // lanes)
    row_axis, last = axis_of(kernel.domain, tile.row_axis), kernel.domain[-1]
    loads = 0
    for load in dot_loads(kernel):
        is_vector = load.guard is None and dims.coefficient(load.indices[0], last.name) == 1
        columns = vectors if is_vector else tile.columns
        loads += (tile.rows if depends(load, row_axis) else 1) * (columns if depends(load, last) else 1)
    return (tile.rows * vectors + loads) * _beyond(kernel, tile, target) / (tile.rows * tile.columns)


def _cost_by_lanes(kernel: Kernel, tile: Tile, target: Target) -> Fraction:
    """The same for a device on which an access of a subgroup takes as long as many products.

    Two neighbours are one access, and so are rows that threads read for each other, in a subgroup
    whose points are columns of one tile of rows.
    """
    width, row_axis, last = target.subgroup_threads, axis_of(kernel.domain, tile.row_axis), kernel.domain[-1]
    domain = tiled_domain(kernel, tile)
    inside = dims.product(a.size for a in domain[domain.index(axis_of(domain, tile.row_axis)) + 1 :])
    is_alike = target.has("shuffle", dtypes.f32) and dims.divides(width, inside) is True
    together = 2 * width if is_alike else 1
    accesses = Fraction(0)
    for load in dot_loads(kernel):
        elements = tile.rows if depends(load, row_axis) else 1
        if not depends(load, last):
            accesses += Fraction(elements, together)
            continue
        is_pair = tile.columns % 2 == 0 and dims.coefficient(load.indices[0], last.name) == 1
        accesses += Fraction(elements * tile.columns, 2 if is_pair else 1)
    products = tile.rows * tile.columns
    return (products + choices(target).access_products * accesses) * _beyond(kernel, tile, target) / products


def _beyond(kernel: Kernel, tile: Tile, target: Target) -> Fraction:
    """The time of all points relative to whole tiles: other points are computed one by one."""
    row_axis, last = axis_of(kernel.domain, tile.row_axis), kernel.domain[-1]
    # Where an access takes as long as 32 products, such points count sixteenfold (decision 0104).
    slowness = max(SLOWNESS, choices(target).access_products // 2)
    return _padding(row_axis.size, tile.rows, slowness) * _padding(last.size, tile.columns, slowness)


def _padding(size: Size, count: int, slowness: int) -> Fraction:
    """The relative time of an axis whose last tile may be cut off, and is done point by point."""
    if not isinstance(size, int) or size == 0:
        return Fraction(1)
    return Fraction(size + slowness * (size % count), size)
