"""How cores share a kernel's grid: by points, rows of points, or tiles.

for i in 64 { for j in 100 { ... } }     64 rows: the last axis is short
for i in 3 { for j in 10**6 { ... } }    points, in multiples of the lanes, where borders should be

Invariant: what a kernel computes does not depend on where its range is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from rune.dims import Size, product
from rune.lowering.kernel.nodes import For
from rune.lowering.lanes.transposed import Transposed
from rune.records import dataclass

LONG_AXIS = 2048  # points of the last axis from which it may be split between cores


class Unit(Enum):
    """What a range counts."""

    GRID = "the whole grid, which has one point"
    LINE = "the points of the only axis"
    ROW = "rows: the points of all axes but the last"
    POINT = "the points of all axes"
    TILES = "rows of tiles along the last axis"


@dataclass(frozen=True, slots=True)
class Division:
    """A range of units; borders between cores should be multiples of `grain`."""

    unit: Unit
    range: Size
    grain: int = 1


def division(grid: Sequence[For], transposed: Transposed | None, lanes: int) -> Division:
    """How a grid is divided whose last axis may be transposed by tiles."""
    if not grid:
        return Division(Unit.GRID, 1)
    rows, last = [loop.extent for loop in grid[:-1]], grid[-1].extent
    if not rows:
        return Division(Unit.LINE, last, lanes)
    if transposed is not None:
        # A row of tiles is as wide as the last axis, so only the other axis counts tiles.
        tiles = (transposed.axis.extent + (lanes - 1)) // lanes
        return Division(Unit.TILES, product(loop.extent for loop in transposed.others(grid)) * tiles)
    if isinstance(last, int) and last < LONG_AXIS:
        return Division(Unit.ROW, product(rows))
    return Division(Unit.POINT, product((*rows, last)), lanes)


__all__ = ["Division", "Unit", "division"]
