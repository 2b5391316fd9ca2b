"""Units: subgroups of threads compute the tiles of a dot of half types on units for matrices.

Before   for m in 512, n in 512 grid { sum += a[m, k] * b[k, n] over k in 512 }
After    for m in 4, n in 4 grid       tile(m=64, n=32) stage(m=2, n=4, k=32) units(16, 8, 16)
           alloc two a_panel, two b_panel                128 rows and columns, 32 of k
           for thread in 256 workgroup                   8 subgroups, each of a tile of 64 x 32
             fetch the first of both panels
             for round in 16
               barrier; fetch the next of both panels
               for step in 2: multiply 64 rows of a_panel by 32 columns of b_panel
             store 8 x 8 of y

While a round is computed, the next one is fetched into the other half of the memory, which all
threads have read before the barrier. Rows, columns and depths beyond the ends are zeros.

Invariant: every sum adds up the same values, products rounded no more than in f32, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.buffers import BUFFERS, offset, rounds_in_turn
from rune.lowering.build.panels import Panel
from rune.lowering.build.schedule import Stage, Tile
from rune.lowering.build.stage import Group, panel_parts, results, sum_name, sums_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import matrices
from rune.lowering.kernel.expr import Cast, Expr, Load, Op
from rune.lowering.kernel.nodes import Factor, For, Kind, MatrixProduct, Stmt
from rune.lowering.kernels import Axis, Kernel, Reduce
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Subgroups(Group):
    """Subgroups that compute tiles; `stage` counts the tiles along rows and columns."""

    @property
    def together(self) -> int:
        """Subgroups that compute one tile."""
        return 1

    @property
    def threads(self) -> int:
        """Threads of the group."""
        return self.stage.rows * self.stage.columns * self.together * matrices.SUBGROUP

    @property
    def rows(self) -> int:
        """Rows of a thread."""
        # A thread has every 8th row, and two of every 8 columns (kernel/matrices.py).
        return self.tile.rows // (8 * self.together)

    @property
    def columns(self) -> int:
        """Columns of a thread."""
        return self.tile.columns // 4

    @property
    def run(self) -> int:
        """How many columns of a thread are neighbours."""
        return 2

    @property
    def numbers(self) -> tuple[Size, Size]:
        """The number of a thread's tile along the rows, and along the columns."""
        number = self.thread // (self.together * matrices.SUBGROUP)
        return number // self.stage.columns, number % self.stage.columns

    def firsts_inside(self) -> tuple[Size, Size]:
        """The first row and column of a thread's tile, within the group."""
        down, along = self.numbers
        return down * self.tile.rows, along * self.tile.columns

    def row(self, r: int) -> Size:
        """The position of a thread's r-th row among those of the group."""
        return self.firsts_inside()[0] + matrices.row(self.thread, r, self.together)

    def column(self, c: int) -> Size:
        """The position of a thread's c-th column among those of the group."""
        return self.firsts_inside()[1] + matrices.column(self.thread, c)


def factor_dtype(dot: Reduce) -> np.dtype | None:
    """The half type of both factors, if a dot is a sum in f32 of products of two elements of it."""
    # Exactly that, since units apply no operation to the factors that they read.
    if not isinstance(dot.value, Op) or dot.value.name != "mul" or dot.lets or dot.combine != "add":
        return None
    loads = [_element(factor) for factor in dot.value.args]
    kinds = {load.dtype for load in loads if load is not None}
    is_one = len(kinds) == 1 and None not in loads and kinds <= matrices.NARROW
    return kinds.pop() if is_one and dot.dtype == dtypes.f32 else None


def has_units(dot: Reduce, target: Target) -> bool:
    """Whether a target has units for the products of a dot."""
    return ("multiply", factor_dtype(dot)) in target.native


def _element(factor: Expr) -> Load | None:
    match factor:
        case Cast(arg=Load() as load, dtype=dtypes.f32):
            return load
        case _:
            return None


def unit_panels(group: Subgroups) -> list[Panel]:
    """The panels of a round, which may reach beyond the end of the sum."""
    _, cut, _ = group.sums
    parts_of_panels = panel_parts(group, group.stage.depth)
    return [Panel(*parts, end=cut.size, is_as_read=True, is_fetched=True) for parts in parts_of_panels]


def unit_bytes(group: Subgroups) -> int:
    """The bytes of shared memory of a group."""
    return sum(BUFFERS * p.alloc.size * p.alloc.dtype.itemsize for p in unit_panels(group))


def multiplied(
    kernel: Kernel, tile: Tile, stage: Stage, output_dtypes: Mapping[str, np.dtype]
) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what a group does at one of its points.

    output_dtypes: one for each output
    """
    group = Subgroups(kernel, tile, stage)
    memory = [replace(p.alloc, size=BUFFERS * p.alloc.size) for p in unit_panels(group)]
    inside = [
        *sums_of(group),
        *rounds_in_turn(group, unit_panels(group), lambda number: _products(group, number)),
        *results(group, output_dtypes),
    ]
    return group.domain, [*memory, For("thread", group.threads, Kind.WORKGROUP, tuple(inside))]


# --- what a thread does -------------------------------------------------------------------------


def _products(group: Subgroups, number: Size) -> list[Stmt]:
    """The products of one round, step by step."""
    panels = {p.axis.name: p for p in unit_panels(group)}
    slices = [panels[axis.name] for axis in group.axes]
    # A panel is several products deep.
    step = Axis("step", slices[0].depth // matrices.DEPTH)
    factors = (_factor(p, first, number, step) for p, first in zip(slices, group.firsts_inside()))
    return loops.nest([step], [Kind.SERIAL], [_product(group, *factors)])


def _factor(panel: Panel, first: Size, number: Size, step: Axis) -> Factor:
    index = panel.index(first, step.symbol * matrices.DEPTH) + offset(panel, number)
    return Factor(panel.name, index, *panel.strides, panel.load.dtype)


def _product(group: Subgroups, a: Factor, b: Factor) -> MatrixProduct:
    sums = (tuple(f"{sum_name(group, r, c)}_acc" for c in range(group.columns)) for r in range(group.rows))
    return MatrixProduct(a, b, tuple(sums))
