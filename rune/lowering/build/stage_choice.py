"""Which tile of a dot a group of threads computes from shared memory, on a GPU.

A large tile reads less; a small one leaves groups enough for all processors, and fewer of its
points beyond the ends. Where the last axis is short, it is merged with those before it. The choice
is that of the least cost by these numbers, and so the same every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from rune.lowering.build.heuristics import choices
from rune.lowering.build.legal import is_legal
from rune.lowering.build.merge import merged
from rune.lowering.build.schedule import Merge, Schedule, Stage, Tile
from rune.lowering.build.stage import operands
from rune.lowering.build.tile import dot_loads
from rune.lowering.build.tile_choice import tile_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce

FEWEST = 32  # rows, columns, and products of a sum that are worth shared memory
SIDES = (2, 4, 8)  # rows and columns of a thread
GROUPS = ((16, 16), (8, 16), (16, 8), (8, 8))  # threads along rows and columns
DEPTH = 16  # of a panel, about
LONG = 512  # products of a thread in a round, beside which the addresses of fetches are few
GROUPS_PER_CORE = 2  # that hide each other's waits
# In units of a multiply-add: a read of 4 neighbours in shared memory, and an element that is
# brought there. By the issue slots that they take on a multiprocessor.
SHARED_READ, TRANSFER = 1.0, 4.0


@dataclass(frozen=True, slots=True)
class Problem:
    """The sizes of a dot: points of its other axes, rows, columns; what it adds up."""

    batch: int
    rows: int
    columns: int


def choose_stage(flat: Kernel, target: Target) -> Schedule | None:
    """The tile and the group of a dot, if shared memory is worth it."""
    if not choices(target).stages or not isinstance(flat.body[0], Reduce) or not dot_loads(flat):
        return None
    merges = [None, *(Merge(a.name) for a in flat.domain[:-1])]
    candidates = [c for m in merges for c in _candidates(flat, m, target)]
    ranked = sorted(candidates, key=lambda c: c[0])
    return next((s for _, c in ranked for s in _ways(flat, c, target) if is_legal(flat, s, target)), None)


def has_fetches(flat: Kernel, target: Target) -> bool:
    """Whether the target copies what a dot reads into shared memory while it computes."""
    return all(("fetch", load.dtype) in target.native for load in dot_loads(flat))


def _ways(flat: Kernel, schedule: Schedule, target: Target) -> Iterator[Schedule]:
    """The schedule with panels twice, where they are fetched and rounds are long; then as it is."""
    (dot, *_), tile, stage = flat.body, schedule.tile, schedule.stage
    assert isinstance(dot, Reduce)
    assert tile is not None
    assert stage is not None
    axes = itertools.dropwhile(lambda a: a.name != stage.sum_axis, dot.axes)
    depth = stage.depth * cost.count(tuple(a.size for a in itertools.islice(axes, 1, None)))
    if has_fetches(flat, target) and tile.rows * tile.columns * depth >= LONG:
        yield replace(schedule, stage=replace(stage, twice=True))
    yield schedule


def _candidates(flat: Kernel, merge: Merge | None, target: Target) -> Iterator[tuple[float, Schedule]]:
    """Schedules with a merge, if any, and what each costs."""
    kernel = merged(flat, merge) if merge else flat
    for row_axis in kernel.domain[:-1]:
        problem = problem_of(kernel, row_axis)
        if problem is not None:
            for tile, stage in _groups(kernel, row_axis.name):
                yield _cost(problem, tile, stage, target), Schedule(merge=merge, tile=tile, stage=stage)


def problem_of(kernel: Kernel, row_axis: Axis, fewest: int = FEWEST) -> Problem | None:
    """The sizes of a dot, if each operand is one of rows or of columns, and used often enough."""
    (dot, *_), last = kernel.body, kernel.domain[-1]
    reads = operands(kernel, Tile(row_axis.name, 1))
    assert isinstance(dot, Reduce)
    if reads is None or {axis for _, axis in reads} != {row_axis, last}:
        return None
    others = tuple(a.size for a in kernel.domain if a not in (row_axis, last))
    rows, columns = cost.count((row_axis.size,)), cost.count((last.size,))
    sums = cost.count(tuple(a.size for a in dot.axes))
    return Problem(cost.count(others), rows, columns) if min(rows, columns, sums) >= fewest else None


def _groups(kernel: Kernel, row_axis: str) -> Iterator[tuple[Tile, Stage]]:
    (dot, *_), last = kernel.body, kernel.domain[-1].name
    assert isinstance(dot, Reduce)
    most = 64 // max(1, dot.dtype.itemsize // 4)
    cut, depth = _depth(dot)
    for rows, columns, (down, along) in itertools.product(SIDES, SIDES, GROUPS):
        if rows * columns <= most:
            tile = tile_of(row_axis, rows, last, columns, apart=False)
            yield tile, Stage(row_axis, down, last, along, cut.name, depth)


def _depth(dot: Reduce) -> tuple[Axis, int]:
    """How much of which axis of a sum makes a panel of about DEPTH: a divisor, if one is near."""
    behind, number = 1, len(dot.axes) - 1
    while number and behind * cost.count((dot.axes[number].size,)) < DEPTH:
        behind *= cost.count((dot.axes[number].size,))
        number -= 1
    cut, wanted = dot.axes[number], max(1, DEPTH // behind)
    fitting = (d for d in range(wanted, wanted // 2, -1) if isinstance(cut.size, int) and cut.size % d == 0)
    return cut, next(fitting, wanted)


def _cost(problem: Problem, tile: Tile, stage: Stage, target: Target) -> float:
    """Time for each product, in multiply-adds of a processor."""
    down, along = tile.rows * stage.rows, tile.columns * stage.columns
    groups = problem.batch * ceil(problem.rows / down) * ceil(problem.columns / along)
    beyond = groups * down * along / (problem.batch * problem.rows * problem.columns)
    slots = target.cores * GROUPS_PER_CORE
    idle = ceil(groups / slots) * slots / groups
    reads = SHARED_READ * (tile.rows + tile.columns) / (4 * tile.rows * tile.columns)
    transfers = TRANSFER * (1 / down + 1 / along)
    return (1 + reads + transfers) * beyond * idle
