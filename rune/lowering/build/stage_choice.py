"""Which tile of a dot a group of threads computes from shared memory, on a GPU.

A large tile reads less; small tiles leave enough groups for all processors, and fewer points beyond
the ends. If the last axis is short, it is merged with those before it. The choice with the least
estimated cost wins, so it is the same every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from rune.dims import Size, Symbol
from rune.dims.factors import terms_of
from rune.lowering.build.heuristics import choices
from rune.lowering.build.legal import is_legal
from rune.lowering.build.merge import merged
from rune.lowering.build.order import reordered
from rune.lowering.build.panels import step
from rune.lowering.build.schedule import Merge, Order, Schedule, Stage, Tile
from rune.lowering.build.stage import operands
from rune.lowering.build.tile import dot_loads
from rune.lowering.build.tile_choice import tile_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.rewrite import names_in
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.product_time import DEPTHS, GROUPS, SIDES, Group, Product, cycles
from rune.lowering.kernels import Axes, Axis, Kernel, Reduce
from rune.records import dataclass

FEWEST = 32  # rows, columns and products of a sum for which shared memory pays


@dataclass(frozen=True, slots=True)
class Problem:
    """The sizes of a dot: points of its other axes, rows, columns; what it adds up."""

    batch: int
    rows: int
    columns: int


def choose_stage(flat: Kernel, target: Target) -> Schedule | None:
    """The tile and the group of a dot, if shared memory pays."""
    if not choices(target).stages or not dot_loads(flat) or not isinstance(flat.body[0], Reduce):
        return None
    starts = [Schedule(), *(Schedule(merge=Merge(a.name)) for a in flat.domain[:-1]), *_images_together(flat)]
    candidates = [c for s in starts for c in _candidates(flat, s, target)]
    # The check is slower than the estimate, so candidates are checked in order of cost.
    by_cost = sorted(candidates, key=lambda c: c[0])
    return next((s for _, s in by_cost if is_legal(flat, s, target)), None)


def has_fetches(flat: Kernel, target: Target) -> bool:
    """Whether the target copies a dot's operands into shared memory while it computes."""
    return all(("fetch", load.dtype) in target.native for load in dot_loads(flat))


def _images_together(flat: Kernel) -> Iterator[Schedule]:
    """Schedules that move an axis (of filters) to the front, and merge all others to columns."""
    names = [a.name for a in flat.domain]
    for k in range(1, len(names) - 1):
        yield Schedule(order=Order((names[k], *names[:k], *names[k + 1 :])), merge=Merge(names[0]))


def _candidates(flat: Kernel, start: Schedule, target: Target) -> Iterator[tuple[float, Schedule]]:
    """Schedules that begin with these steps, and the cost of each."""
    kernel = flat if start.order is None else reordered(flat, start.order)
    kernel = kernel if start.merge is None else merged(kernel, start.merge)
    for row_axis in kernel.domain[:-1]:
        problem = problem_of(kernel, row_axis)
        if problem is not None:
            products: dict[Axes, Product] = {}
            for group, tile, stage in _groups(kernel, row_axis.name, target):
                panel = _panel_axes(kernel, stage)
                # How operands are read depends only on the panel's axes, and is slow to derive.
                product = products.get(panel) or products.setdefault(panel, _product(kernel, problem, panel))
                time = cycles(product, group, target.cores)
                # An infinite time means that no multiprocessor holds such a group.
                if time < inf:
                    yield time, replace(start, tile=tile, stage=stage)


def _panel_axes(kernel: Kernel, stage: Stage) -> Axes:
    """The axes of the sum along which a panel has several elements."""
    (dot, *_) = kernel.body
    assert isinstance(dot, Reduce)
    cut = [a.name for a in dot.axes].index(stage.sum_axis)
    return dot.axes[cut + (stage.depth == 1 and cut + 1 < len(dot.axes)) :]


def _product(kernel: Kernel, problem: Problem, panel: Axes) -> Product:
    """The sizes of the dot, and how its operands are read."""
    (dot, *_) = kernel.body
    assert isinstance(dot, Reduce)
    sums = cost.count(tuple(a.size for a in dot.axes))
    loads = dot_loads(kernel)
    scattered_operands = sum(_is_scattered(load, panel) for load in loads)
    across = sum(step(load.indices[0], dot.axes[-1].name) == 1 for load in loads)
    itemsize = dot.dtype.itemsize
    return Product(
        problem.batch, problem.rows, problem.columns, sums, itemsize, min(2, across), min(2, scattered_operands)
    )


def _is_scattered(load: Load, panel: Axes) -> bool:
    """Whether neighbours in a panel are not neighbours in memory, so it is read one by one."""
    index = load.indices[0]
    divides = any(not isinstance(f, Symbol) for term in terms_of(index) for f in term.factors)
    return divides or (len(panel) > 1 and panel[-1].name in names_in(load) and _has_gaps(index, panel))


def _has_gaps(index: Size, panel: Axes) -> bool:
    """Whether the axes of a panel are not contiguous with each other in memory."""
    stride = 1
    for axis in reversed(panel):
        if step(index, axis.name) != stride:
            return True
        stride *= cost.count((axis.size,))
    return False


def problem_of(kernel: Kernel, row_axis: Axis, fewest: int = FEWEST) -> Problem | None:
    """The sizes of a dot, if each operand depends on rows or columns, and is used often enough."""
    (dot, *_), last = kernel.body, kernel.domain[-1]
    reads = operands(kernel, Tile(row_axis.name, 1))
    assert isinstance(dot, Reduce)
    if reads is None or {axis for _, axis in reads} != {row_axis, last}:
        return None
    others = tuple(a.size for a in kernel.domain if a not in (row_axis, last))
    rows, columns = cost.count((row_axis.size,)), cost.count((last.size,))
    sums = cost.count(tuple(a.size for a in dot.axes))
    return Problem(cost.count(others), rows, columns) if min(rows, columns, sums) >= fewest else None


def _groups(kernel: Kernel, row_axis: str, target: Target) -> Iterator[tuple[Group, Tile, Stage]]:
    """Groups of threads, each for the estimate and as steps of a schedule."""
    (dot, *_), last = kernel.body, kernel.domain[-1].name
    assert isinstance(dot, Reduce)
    ways = (True, False) if has_fetches(kernel, target) else (False,)
    panels = dict.fromkeys(panel for goal in DEPTHS for panel in _panels(dot, goal))
    for rows, columns, (down, along) in itertools.product(SIDES, SIDES, GROUPS):
        tile = tile_of(row_axis, rows, last, columns, apart=False)
        for (cut, depth, elements), twice in itertools.product(panels, ways):
            stage = Stage(row_axis, down, last, along, cut, depth, twice)
            yield Group(down, along, rows, columns, elements, twice), tile, stage


def _panels(dot: Reduce, goal: int) -> Iterator[tuple[str, int, int]]:
    """The axis of a sum that a panel of about `goal` elements cuts, its depth, and its elements.

    The depth is a divisor of the axis if one is near.
    """
    # Whole axes from the innermost outwards, then a part of the next one.
    inner_elements, number = 1, len(dot.axes) - 1
    while number and inner_elements * cost.count((dot.axes[number].size,)) < goal:
        inner_elements *= cost.count((dot.axes[number].size,))
        number -= 1
    cut, most = dot.axes[number], max(1, goal // inner_elements)
    fitting = (d for d in range(most, most // 2, -1) if isinstance(cut.size, int) and cut.size % d == 0)
    depth = next(fitting, most)
    yield cut.name, depth, depth * inner_elements
