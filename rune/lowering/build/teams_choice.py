"""Which tiles of a dot of half types four subgroups compute together on units for matrices.

Units read both factors from shared memory and keep sums in registers, so registers are all that a
large tile costs; it saves traffic from the cache that all multiprocessors share. The cost of a
candidate is in the cycles of units_choice.py, with whose candidates it competes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import ceil, prod

from rune.lowering.build.merge import merged
from rune.lowering.build.schedule import Merge, Schedule, Stage, Tile, Units
from rune.lowering.build.stage_choice import Problem, problem_of
from rune.lowering.build.teams import LEAST_BUFFERS, LINE
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.matrices import COLUMNS, DEPTH, SUBGROUP, TEAM, TEAM_DEPTH, TEAM_ROWS
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce

TILES = ((64, 64), (64, 128), (64, 256), (128, 128))  # of four subgroups
GROUPS = ((2, 1), (1, 1), (1, 2), (2, 2))  # teams of a group, along rows and columns
ABREAST = 4  # most rows of groups walked side by side: with 8 or 16 it takes 4 % longer, with 1 6 %
# In a cycle of a multiprocessor: multiply-adds, bytes of shared memory, and bytes from beyond it.
PRODUCTS, SHARED, RATE = 2048.0, 128.0, 40.0
OVERLAP = 0.25  # the share of the shorter times that is added to the longest
WAIT = 32.0  # cycles of a round that only other groups can fill
REGISTERS = 65_536  # of a multiprocessor
BESIDE = 48  # registers of a thread besides its sums


def team_candidates(flat: Kernel, merge: Merge | None, target: Target) -> Iterator[tuple[float, Schedule]]:
    """Schedules with a merge, if one is given, and the cost of each."""
    kernel = merged(flat, merge) if merge else flat
    if len(kernel.domain) < 2:
        return
    (dot, *_), last = kernel.body, kernel.domain[-1].name
    assert isinstance(dot, Reduce)
    cut = _cut(dot)
    for row_axis in kernel.domain[:-1]:
        problem = problem_of(kernel, row_axis, TEAM_ROWS)
        if problem is None or cut is None:
            continue
        for (rows, columns), (down, along) in itertools.product(TILES, GROUPS):
            tile = Tile(row_axis.name, rows, last, columns)
            stage = Stage(row_axis.name, down, last, along, cut[0].name, cut[1])
            units = Units(TEAM_ROWS, COLUMNS, DEPTH, LEAST_BUFFERS, _abreast(row_axis, rows * down))
            yield _cost(problem, tile, stage, target), Schedule(merge=merge, tile=tile, stage=stage, units=units)


def _cut(dot: Reduce) -> tuple[Axis, int] | None:
    """The innermost axis of a sum that can be cut into lines, and the size of its part of one."""
    for number in reversed(range(len(dot.axes))):
        inner_elements = prod(cost.count((a.size,)) for a in dot.axes[number + 1 :])
        # Too short an axis would leave a part of every line empty, so the next one is tried.
        long = number == 0 or cost.count((dot.axes[number].size,)) * inner_elements >= LINE
        if long and LINE % inner_elements == 0:
            return dot.axes[number], LINE // inner_elements
    return None


def _abreast(axis: Axis, rows: int) -> int:
    """The most rows of groups up to ABREAST that divide their number."""
    if not isinstance(axis.size, int):
        return 1
    groups = -(-axis.size // rows)
    return next(n for n in range(ABREAST, 0, -1) if groups % n == 0)


def _cost(problem: Problem, tile: Tile, stage: Stage, target: Target) -> float:
    """Cycles for each DEPTH of the sum, on the multiprocessor with the most groups."""
    teams, down, along = stage.rows * stage.columns, tile.rows * stage.rows, tile.columns * stage.columns
    groups = problem.batch * ceil(problem.rows / down) * ceil(problem.columns / along)
    threads, item = teams * TEAM * SUBGROUP, 2
    sums = tile.rows * tile.columns // (TEAM * SUBGROUP)
    memory = LEAST_BUFFERS * (down + along) * TEAM_DEPTH * item
    resident = max(1, min(REGISTERS // (threads * (sums + BESIDE)), target.shared_bytes // memory))
    # A multiprocessor with one more group than the others decides how long all take.
    of_one = ceil(groups / target.cores)
    bytes_in, instructions = (down + along) * DEPTH * item, teams * tile.rows // TEAM_ROWS
    products = down * along * DEPTH / PRODUCTS
    shared_cycles = (instructions * (TEAM_ROWS + tile.columns) * DEPTH * item + bytes_in) / SHARED
    longest = max(products, shared_cycles, bytes_in / RATE)
    waiting = 1 + WAIT / (TEAM_DEPTH // DEPTH) / (longest * min(resident, of_one))
    return (longest + OVERLAP * (products + shared_cycles + bytes_in / RATE - longest)) * of_one * waiting


__all__ = ["team_candidates"]
