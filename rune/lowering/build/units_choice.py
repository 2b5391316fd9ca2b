"""Which tiles of a dot of half types subgroups compute on units for matrices.

A multiprocessor multiplies, reads shared memory and receives what is fetched at the same time; a
group takes as long as the longest of these, plus a share of the others. Large tiles read less,
small ones leave enough groups for all processors. The candidate with the least cost is chosen, so
the choice is the same every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, lcm, prod

from rune.lowering.build.legal import is_legal
from rune.lowering.build.merge import merged
from rune.lowering.build.schedule import Merge, Schedule, Stage, Tile, Units
from rune.lowering.build.stage_choice import Problem, problem_of
from rune.lowering.build.teams import Teams, has_teams, is_fetched
from rune.lowering.build.teams_choice import team_candidates
from rune.lowering.build.tile import dot_loads
from rune.lowering.build.units import factor_dtype, has_units
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.matrices import COLUMNS, DEPTH, ROWS, SUBGROUP, TEAM_ROWS
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce

FEWEST = 16  # rows, columns and products of a sum for which units pay
TILES = tuple(itertools.product((16, 32, 64), (16, 32, 64)))  # of a subgroup
GROUPS = ((2, 2), (2, 4), (4, 2), (1, 4), (4, 1), (1, 2), (2, 1))  # subgroups along rows and columns
DEPTHS = (32, 16)  # of a panel: the first that its axes allow
DEEPEST = 160  # of a panel, if the axes after the one that is cut do not divide these depths
# Cycles of a multiprocessor: for the smallest product (an A100 does 1024 multiply-adds in a cycle),
# and to read 512 bytes of shared memory. Bytes that it receives in a cycle from beyond that.
PRODUCT, READ, RATE = 2.0, 4.0, 64.0
OVERLAP = 0.25  # the share of the shorter times that is added to the longest
WAIT = 64.0  # cycles of a step that only other subgroups, or other products, can fill
REGISTERS = 65_536  # of a multiprocessor
BESIDE = 80  # registers of a thread besides its sums


def choose_units(flat: Kernel, target: Target) -> Schedule | None:
    """The tiles and groups of a dot, if units pay."""
    dot = flat.body[0] if dot_loads(flat) else None
    if not isinstance(dot, Reduce) or not has_units(dot, target):
        return None
    merges = [None, *(Merge(a.name) for a in flat.domain[:-1])]
    candidates = [c for m in merges for c in _candidates(flat, m, target)]
    if has_teams(factor_dtype(dot), target):
        candidates += [c for m in merges for c in team_candidates(flat, m, target)]
    # The check costs more than the estimate: candidates are checked best first, until one passes.
    by_cost = sorted(candidates, key=lambda c: c[0])
    return next((s for _, s in by_cost if is_legal(flat, s, target) and _is_fed(flat, s)), None)


def _is_fed(flat: Kernel, schedule: Schedule) -> bool:
    """Whether fetches alone fill the panels of four subgroups, which copies by registers slow down.

    For odd sizes, 4099 by 4099, four subgroups take 13 % longer than single ones.
    """
    tile, stage, units = schedule.tile, schedule.stage, schedule.units
    if tile is None or stage is None or units is None or units.rows != TEAM_ROWS:
        return True
    kernel = merged(flat, schedule.merge) if schedule.merge else flat
    return is_fetched(Teams(kernel, tile, stage, units))


def _candidates(flat: Kernel, merge: Merge | None, target: Target) -> Iterator[tuple[float, Schedule]]:
    """Schedules with a merge, if one is given, and the cost of each."""
    kernel = merged(flat, merge) if merge else flat
    (dot, *_) = kernel.body
    assert isinstance(dot, Reduce)
    plain, cut = Schedule(merge=merge, units=Units(ROWS, COLUMNS, DEPTH)), _cut(dot)
    for row_axis in kernel.domain[:-1]:
        problem, last = problem_of(kernel, row_axis, FEWEST), kernel.domain[-1].name
        if problem is not None and cut is not None:
            for (rows, columns), (down, along) in itertools.product(TILES, GROUPS):
                tile = Tile(row_axis.name, rows, last, columns)
                stage = Stage(row_axis.name, down, last, along, cut[0].name, cut[1])
                yield _cost(problem, tile, stage, target), replace(plain, tile=tile, stage=stage)


def _cut(dot: Reduce) -> tuple[Axis, int] | None:
    """The innermost axis of a sum that can be cut into panels, and the size of its part of one."""
    for number in reversed(range(len(dot.axes))):
        inner_elements = prod(cost.count((a.size,)) for a in dot.axes[number + 1 :])
        if number and cost.count((dot.axes[number].size,)) * inner_elements < min(DEPTHS):
            continue
        # The inner axes are whole in a panel: its depth is a multiple of theirs and of the units'.
        for depth in DEPTHS:
            if lcm(depth, inner_elements) <= DEEPEST:
                return dot.axes[number], lcm(depth, inner_elements) // inner_elements
    return None


def _cost(problem: Problem, tile: Tile, stage: Stage, target: Target) -> float:
    """Cycles for each DEPTH of the sum, on the multiprocessor with the most groups."""
    subgroups = stage.rows * stage.columns
    down, along = tile.rows * stage.rows, tile.columns * stage.columns
    groups = problem.batch * ceil(problem.rows / down) * ceil(problem.columns / along)
    sums = tile.rows * tile.columns // SUBGROUP
    resident = max(1, REGISTERS // (subgroups * SUBGROUP * (sums + BESIDE)))
    # A multiprocessor with one more group than the others decides how long all take.
    of_one = ceil(groups / target.cores)
    products = PRODUCT * subgroups * (tile.rows // ROWS) * (tile.columns // COLUMNS)
    reads = READ * subgroups * (tile.rows + tile.columns) / ROWS
    fetches = (down + along) * DEPTH * 2 / RATE
    longest = max(products, reads, fetches)
    waiting = 1 + WAIT / (longest * min(resident, of_one))
    return (longest + OVERLAP * (products + reads + fetches - longest)) * of_one * waiting
