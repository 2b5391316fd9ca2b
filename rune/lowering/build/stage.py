"""Stage: a group of threads computes a large tile of a dot from panels in shared memory.

Before   for m in 512, n in 512 grid { sum += a[m, k] * b[k, n] over k in 512 }
After    for m in 4, n in 4 grid                         tile(m=8, n=8) stage(m=16, n=16, k=8)
           alloc a_panel, b_panel                        128 rows and columns, 8 of k
           for thread in 256 workgroup                   each has 8 x 8 sums
             for round in 64
               barrier; fill both panels; barrier
               for k in 8: 8 of a_panel, 8 of b_panel, 64 products
             store 8 x 8 of y

The dot then reads an element of memory once for 128 products, and 16 elements of shared memory for
64 products. The columns of a thread are in runs of RUN neighbours, with those of the other threads
between the runs, so that threads in step read different banks and store next to each other. Rows
and columns beyond the ends are computed from zeros, and not stored; if the depth does not divide
the sum, the last round is shorter.

Invariant: every sum adds up the same values in the same order.
Source: V. Volkov and J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", 2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import every, less
from rune.lowering.build.flatten import map_statement
from rune.lowering.build.panels import Panel, fill, placed
from rune.lowering.build.schedule import Stage, Tile
from rune.lowering.build.tile import axis_of, place_body
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Accumulate, Barrier, For, If, Kind, Let, Stmt, Var
from rune.lowering.kernel.rewrite import loads, map_expr, names_in
from rune.lowering.kernels import Axis, Kernel, Reduce, expressions, row_major
from rune.records import dataclass

RUN = 4  # most columns of a thread that are neighbours: one access of 16 bytes in f32
LANES = (4, 8)  # threads that run in step, by rows and columns


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that compute a tile of a dot together, and the points of each thread."""

    kernel: Kernel
    tile: Tile
    stage: Stage

    @property
    def dot(self) -> Reduce:
        """The sum of products: the first statement, as legal.py requires."""
        return dot_of(self.kernel)

    @property
    def sums(self) -> tuple[Sequence[Axis], Axis, Sequence[Axis]]:
        """The axes of the sum: those before the one that is cut, that one, and those after it."""
        axes = self.dot.axes
        cut = next(k for k, a in enumerate(axes) if a.name == self.stage.sum_axis)
        return axes[:cut], axes[cut], axes[cut + 1 :]

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The axis of the rows, and that of the columns."""
        return axis_of(self.kernel.domain, self.tile.row_axis), self.kernel.domain[-1]

    @property
    def lengths(self) -> tuple[int, int]:
        """Rows and columns of the whole group."""
        return self.stage.rows * self.tile.rows, self.stage.columns * self.tile.columns

    @property
    def threads(self) -> int:
        """Threads of the group."""
        return self.stage.rows * self.stage.columns

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol("thread", 0, self.threads - 1)

    @property
    def domain(self) -> list[Axis]:
        """The axes of the grid: a point is a group."""
        return grid(self)

    def firsts(self) -> tuple[Size, Size]:
        """The first row and column of the group."""
        return firsts_in(self.domain, self)

    @property
    def rows(self) -> int:
        """Rows of a thread."""
        return self.tile.rows

    @property
    def columns(self) -> int:
        """Columns of a thread."""
        return self.tile.columns

    @property
    def place(self) -> tuple[Size, Size]:
        """Which of the group's tiles a thread computes: its number along rows, and along columns.

        Threads that run in step take LANES tiles, so that together they read few values. Every
        second one has the next row: half of what a quarter of them reads is the same.
        """
        (rows, columns), thread = LANES, self.thread
        if self.stage.rows % rows or self.stage.columns % columns:
            return thread // self.stage.columns, thread % self.stage.columns
        lane, subgroup = thread % (rows * columns), thread // (rows * columns)
        across = self.stage.columns // columns
        row, column = lane // (2 * columns) * 2 + lane % 2, lane // 2 % columns
        return subgroup // across * rows + row, subgroup % across * columns + column

    def row(self, r: int) -> Size:
        """The position of a thread's r-th row among those of the group."""
        return self.place[0] * self.tile.rows + r

    @property
    def run(self) -> int:
        """How many columns of a thread are neighbours."""
        return math.gcd(RUN, self.tile.columns)

    def column(self, c: int) -> Size:
        """The position of a thread's c-th column among those of the group."""
        run = self.run
        # The runs of a thread are as far apart as the runs of all threads are long.
        return self.place[1] * run + c % run + c // run * (run * self.stage.columns)

    def points(self) -> Iterator[tuple[int, int]]:
        """The rows and columns of a thread."""
        return itertools.product(range(self.rows), range(self.columns))

    def at(self, r: int, c: int) -> dict[str, Size]:
        """The axes of the domain at a point of a thread."""
        (row_axis, column_axis), (row, column) = self.axes, self.firsts()
        return {row_axis.name: row + self.row(r), column_axis.name: column + self.column(c)}


def grid(group: Group) -> list[Axis]:
    """The axes of a kernel; those of rows and columns count groups."""
    # Rounded up: the last groups may reach beyond the ends.
    counts = dict(zip((a.name for a in group.axes), group.lengths))
    return [Axis(a.name, -(-a.size // counts.get(a.name, 1))) for a in group.kernel.domain]


def firsts_in(domain: Sequence[Axis], group: Group) -> tuple[Size, Size]:
    """The first row and column of the group at a point of a grid."""
    row, column = (axis_of(domain, a.name).symbol * n for a, n in zip(group.axes, group.lengths))
    return row, column


def dot_of(kernel: Kernel) -> Reduce:
    """The sum of products, with the values of its lets in place of their names in guards of loads.

    A panel is filled before these lets are computed, so it needs complete guards.
    """
    (dot, *_) = kernel.body
    assert isinstance(dot, Reduce)
    lets = {let.name: let.value for let in dot.lets}

    def on_guard(part: Expr) -> Expr:
        return map_expr(on_guard, lets[part.name]) if isinstance(part, Local) and part.name in lets else part

    def on_node(part: Expr) -> Expr:
        if not isinstance(part, Load) or part.guard is None:
            return part
        return replace(part, guard=map_expr(on_guard, part.guard))

    result = map_statement(dot, lambda e: map_expr(on_node, e)) if lets else dot
    assert isinstance(result, Reduce)
    return result


def operands(kernel: Kernel, tile: Tile) -> list[tuple[Load, Axis]] | None:
    """The loads of the dot, each with the axis of its panel: rows or columns.

    None if a load depends on both axes, or if its index depends on a let of the dot.
    """
    dot, row, column = dot_of(kernel), axis_of(kernel.domain, tile.row_axis), kernel.domain[-1]
    reads = dict.fromkeys(loads(expressions(dot)))
    bound = {let.name for let in dot.lets}
    names = {load: names_in(load) for load in reads}
    if any(axis_names & bound or {row.name, column.name} <= axis_names for axis_names in names.values()):
        return None
    # A load that depends on neither axis has no panel: every thread reads it from memory.
    return [(x, a) for x, axis_names in names.items() for a in (row, column) if a.name in axis_names]


PanelParts = tuple[str, Load, Axis, int, tuple[Axis, ...]]


def panel_parts(group: Group, depth: int) -> list[PanelParts]:
    """Name, load, axis, length and sums of each panel of a round that takes `depth` of the sum."""
    _, cut, inner_axes = group.sums
    sums = (Axis(cut.name, depth), *inner_axes)
    lengths = dict(zip((a.name for a in group.axes), group.lengths))
    loads = operands(group.kernel, group.tile) or ()
    return [(f"{x.buffer}_panel_{k}", x, axis, lengths[axis.name], sums) for k, (x, axis) in enumerate(loads)]


def panels(group: Group, depth: int) -> list[Panel]:
    """The panels of a round that takes `depth` of an axis of the sum."""
    return [Panel(*parts) for parts in panel_parts(group, depth)]


def shared_bytes(group: Group) -> int:
    """The bytes of shared memory of a group."""
    return sum(p.alloc.size * p.alloc.dtype.itemsize for p in panels(group, group.stage.depth))


def staged(
    kernel: Kernel, tile: Tile, stage: Stage, output_dtypes: Mapping[str, np.dtype]
) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what a group does at one of its points.

    output_dtypes: one for each output
    """
    group = Group(kernel, tile, stage)
    memory = [p.alloc for p in panels(group, stage.depth)]
    inside = [*sums_of(group), *_rounds(group), *results(group, output_dtypes)]
    return group.domain, [*memory, For("thread", group.threads, Kind.WORKGROUP, tuple(inside))]


# --- what a thread does -------------------------------------------------------------------------


def sum_name(group: Group, r: int, c: int) -> str:
    """The name of the sum at one point of a thread; its Var has `_acc` appended."""
    return f"{group.dot.name}_{r}_{c}"


def sums_of(group: Group) -> Iterator[Stmt]:
    """The sums of a thread, initialised with the identity."""
    for r, c in group.points():
        yield Var(f"{sum_name(group, r, c)}_acc", COMBINE[group.dot.combine].identity(group.dot.dtype))


def _rounds(group: Group) -> Iterator[Stmt]:
    """The rounds along the axis that is cut, for each point of the axes before it."""
    before, _, _ = group.sums
    yield from loops.nest(before, [Kind.SERIAL] * len(before), _along_cut(group))


def _along_cut(group: Group) -> Iterator[Stmt]:
    """The whole rounds in a loop, then a shorter one for the remainder of the axis."""
    (_, cut, _), depth = group.sums, group.stage.depth
    size = cut.size
    assert isinstance(size, int), "legal.py takes no open sums"
    number = Axis(f"{cut.name}_round", size // depth)
    if size >= depth:
        body = _round(group, depth, number.symbol * depth)
        yield For(number.name, number.size, Kind.SERIAL, tuple(body))
    if size % depth:
        # Its panels are shallower, and fit the same memory.
        yield from _round(group, size % depth, size - size % depth)


def _round(group: Group, depth: int, begin: Size) -> list[Stmt]:
    """One filling of the panels, and the products of its elements."""
    (_, cut, inner_axes), slices = group.sums, panels(group, depth)
    firsts = dict(zip((a.name for a in group.axes), group.firsts()))
    origin = {**firsts, group.stage.sum_axis: begin}
    filling = [s for p in slices for s in fill(p, group.thread, group.threads, origin)]
    axes = (Axis(cut.name, depth), *inner_axes)
    kinds = [Kind.SERIAL] * len(axes)
    # No thread fills before all have read the last round, nor reads before all have filled.
    return [
        Barrier(),
        *filling,
        Barrier(),
        *loops.nest(axes, kinds, products(group, slices, axes, {cut.name: begin}, {})),
    ]


def products(
    group: Group, slices: Sequence[Panel], axes: Sequence[Axis], origin: Mapping[str, Size], offsets: Mapping[str, Size]
) -> Iterator[Stmt]:
    """The statements of a thread at one depth: it reads rows and columns, and adds their products.

    origin:  where the round is along the axes of the sum
    offsets: where panels begin in their memory, by name
    """
    # Each element is read into a register once, for a whole row or column of products.
    depth, (row_axis, _) = row_major(axes), group.axes
    for panel in slices:
        is_of_rows = panel.axis == row_axis
        for n in range(group.tile.rows if is_of_rows else group.tile.columns):
            position = group.row(n) if is_of_rows else group.column(n)
            index = panel.index(position, depth) + offsets.get(panel.name, 0)
            yield Let(f"{panel.name}_{n}", Load(panel.name, (index,), panel.load.dtype))
    for r, c in group.points():
        yield from _product(group, slices, r, c, {**origin, axes[0].name: axes[0].symbol + origin[axes[0].name]})


def _product(group: Group, slices: Sequence[Panel], r: int, c: int, at: Mapping[str, Size]) -> Iterator[Stmt]:
    dot, (row_axis, _) = group.dot, group.axes
    elements = {p.load: Local(f"{p.name}_{r if p.axis == row_axis else c}", p.load.dtype) for p in slices}
    # The lets of a dot have other values at every point, so each has copies.
    names = {let.name: f"{let.name}_{r}_{c}" for let in dot.lets}

    def on_node(part: Expr) -> Expr:
        if isinstance(part, Local) and part.name in names:
            return replace(part, name=names[part.name])
        return elements.get(part, part) if isinstance(part, Load) else part

    def at_point(expr: Expr) -> Expr:
        return placed(map_expr(on_node, expr), {**at, **group.at(r, c)})

    yield from (Let(names[let.name], at_point(let.value)) for let in dot.lets)
    yield Accumulate(f"{sum_name(group, r, c)}_acc", dot.combine, at_point(dot.value), dot.contract)


def results(group: Group, output_dtypes: Mapping[str, np.dtype]) -> Iterator[Stmt]:
    """The statements after the dot, at those points of the thread that are not beyond an end."""
    # Neighbours are inside or outside together where their number divides the axis: one condition.
    together = group.run if group.axes[1].size % group.run == 0 else 1
    for r, c in itertools.product(range(group.rows), range(0, group.columns, together)):
        points = [_result(group, r, c + n, output_dtypes) for n in range(together)]
        # The copies of a statement stand side by side, and so do stores to neighbours.
        body = tuple(statement for same in zip(*points) for statement in same)
        conditions = _inside(group, group.at(r, c))
        yield from (If(every(conditions), body),) if conditions else body


def _result(group: Group, r: int, c: int, output_dtypes: Mapping[str, np.dtype]) -> list[Stmt]:
    """The statements after the dot at one point."""
    names = {group.dot.name: sum_name(group, r, c)}
    names |= {s.name: f"{s.name}_{r}_{c}" for s in group.kernel.body if isinstance(s, Let)}
    result = Let(sum_name(group, r, c), Local(f"{sum_name(group, r, c)}_acc", group.dot.dtype))
    return [result, *loops.body(place_body(group.kernel.body[1:], group.at(r, c), names), {}, output_dtypes)]


def _inside(group: Group, at: Mapping[str, Size]) -> list[Expr]:
    """Conditions for a point not to be beyond an end; none if tiles divide the axes."""
    return [less(at[a.name], a.size) for a, n in zip(group.axes, group.lengths) if a.size % n != 0]
