"""How a kernel runs in vector lanes: loops, the width of vectors, tiles; and what cores share.

Before   for i in 512 { for j in 64 { y[i, j] = x[j, i] } }       code for a processor
After    j in 16 lanes, and x[j, i] by tiles along i              what the renderer writes

Cores share a kernel's grid by points, rows of points, or tiles:

for i in 64 { for j in 100 { ... } }     64 rows: the last axis is short
for i in 3 { for j in 10**6 { ... } }    points, divided at multiples of the lanes

Invariant: what a kernel computes does not depend on where its range is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from rune import dtypes
from rune.dims import Size, product
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import perfect_nest, walk
from rune.lowering.lanes.choose import choose, sums_lanes, trip_count
from rune.lowering.lanes.transposed import Transposition, find_transposed
from rune.lowering.lanes.width import lanes_filled, lanes_of_register, registers_of_vector
from rune.records import dataclass, replace

LONG_AXIS = 2048  # points of the last axis from which cores may share it


class Unit(Enum):
    """What a range counts."""

    GRID = "the whole grid, which has one point"
    LINE = "the points of the only axis"
    ROW = "rows: the points of all axes but the last"
    POINT = "the points of all axes"
    TILES = "rows of tiles along the last axis"


@dataclass(frozen=True, slots=True)
class Division:
    """A range of units; borders between cores should be multiples of `grain`.

    outer: points of the leading axes whose order the range keeps
    """

    unit: Unit
    range: Size
    outer: Size
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Loops in lanes, by identity; the lanes of a vector; tiles, if any.

    division: what cores share
    cost: all instructions
    """

    loops: frozenset[int]
    lanes: int
    transposition: Transposition | None
    division: Division
    cost: float

    @property
    def range(self) -> Size:
        """How many units cores share."""
        return self.division.range

    @property
    def unit_cost(self) -> float:
        """Instructions of one unit."""
        # The cost is that of the whole grid.
        return self.cost / trip_count(self.range)


def layout(code: KernelCode, vector_bytes: int) -> Layout:
    """The layout of a kernel for registers of so many bytes."""
    lanes = lanes_of_register(code, vector_bytes)
    aliases = frozenset(name for pair in code.aliases for name in pair)
    choice = choose(code.body, lanes, aliases, frozenset(code.scalar_loops))
    grid, inner = perfect_nest(code.body, Kind.GRID)
    loops, transposition = choice.loops, find_transposed(code, grid, inner)
    if transposition is not None and transposition.last.var in code.scalar_loops:
        transposition = None
    # Tiles need their last axis in lanes, so they override the choice by cost.
    if transposition is not None:
        loops = frozenset({id(transposition.last)})
    # After the choice of loops, whose costs are those of single registers.
    lanes = lanes_filled(code, loops, lanes)
    lanes *= registers_of_vector(code, loops, lanes)
    return Layout(loops, lanes, transposition, division(grid, transposition, lanes), choice.cost)


def one_by_one(code: KernelCode, lanes: Layout) -> Layout:
    """The layout with only those loops in lanes whose sums they order; others run one by one.

    The results are the same, bit for bit, from half as much code, which takes up to as many times
    as long as a vector has lanes.
    """
    # LLVM's fast selection converts every f16 element alone, which changes the bits of some NaN.
    if lanes.transposition is not None or any(param.dtype == dtypes.f16 for param in code.params):
        return lanes
    loops = frozenset(id(s) for s in walk(code.body) if isinstance(s, For) and id(s) in lanes.loops and sums_lanes(s))
    if loops == lanes.loops:
        return lanes
    return replace(lanes, loops=loops, cost=lanes.cost * lanes.lanes)


def division(grid: Sequence[For], transposition: Transposition | None, lanes: int) -> Division:
    """How cores divide a grid, whose last axis may be transposed by tiles."""
    if not grid:
        return Division(Unit.GRID, 1, 1)
    rows, last = [loop.extent for loop in grid[:-1]], grid[-1].extent
    if not rows:
        return Division(Unit.LINE, last, last, lanes)
    if transposition is not None:
        # A row of tiles is as wide as the last axis, so only the other axis counts tiles.
        tiles = (transposition.axis.extent + (lanes - 1)) // lanes
        others = product(loop.extent for loop in transposition.others(grid))
        outer = product(loop.extent for loop in grid[: grid.index(transposition.axis)])
        return Division(Unit.TILES, others * tiles, outer)
    if isinstance(last, int) and last < LONG_AXIS:
        return Division(Unit.ROW, product(rows), product(rows))
    points = product((*rows, last))
    return Division(Unit.POINT, points, points, lanes)


__all__ = ["Division", "Layout", "Unit", "division", "layout", "one_by_one"]
