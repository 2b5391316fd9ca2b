"""Which schedules a kernel may have, and the reasons against all others.

A schedule is legal if it keeps all values and compiles; whether it is fast is another question.
Whether the threads of a group may share a point is decided when it is built (workgroups.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import NoReturn

from rune.dims import Size
from rune.errors import ArgumentError
from rune.lowering.build.buffers import BUFFERS
from rune.lowering.build.merge import merged
from rune.lowering.build.order import reordered
from rune.lowering.build.parts import LEAST_ROUNDS, has_long_reduction, parted
from rune.lowering.build.schedule import (
    INNER,
    Lanes,
    Merge,
    Parts,
    Rows,
    Schedule,
    Share,
    Squares,
    Stage,
    Step,
    Tile,
    Turn,
    Units,
    Vectors,
)
from rune.lowering.build.squares import is_pointwise
from rune.lowering.build.stage import Group, operands, shared_bytes
from rune.lowering.build.teams import LEAST_BUFFERS, Teams, team_bytes
from rune.lowering.build.tile import dot_loads
from rune.lowering.build.turn import THREADS, turned_loads
from rune.lowering.build.turn import shared_bytes as turn_bytes
from rune.lowering.build.units import Subgroups, factor_dtype, unit_bytes
from rune.lowering.build.vectors import copies_alone
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.matrices import COLUMNS, DEPTH, ROWS, SUBGROUP, TEAM, TEAM_DEPTH, TEAM_ROWS
from rune.lowering.kernels import Kernel, Let, Reduce, Write

MOST_BLOCK = 16  # side of a block, whose points are all written out
MOST_POINTS = 1_024  # side of a square, points of a tile, columns of a point: more take ages to compile

TEAM_COLUMNS = (64, 128, 192, 256)  # of a tile of four subgroups
TEAMS = Units(TEAM_ROWS, COLUMNS, DEPTH, LEAST_BUFFERS)
Objections = Iterator[tuple[Step, str]]


def require_legal(kernel: Kernel, schedule: Schedule, target: Target) -> None:
    """Raise ArgumentError unless the kernel, flat and collapsed, may have the schedule."""
    for step, why in objections(kernel, schedule, target):
        refuse(kernel, step, why)


def is_legal(kernel: Kernel, schedule: Schedule, target: Target) -> bool:
    """Whether the kernel, flat and collapsed, may have the schedule."""
    return next(objections(kernel, schedule, target), None) is None


def refuse(kernel: Kernel, step: Step, why: str) -> NoReturn:
    """Raise the error of a step that a kernel cannot have."""
    raise ArgumentError(f"schedule: cannot apply {step} to {kernel.name} ({why})")


def objections(kernel: Kernel, schedule: Schedule, target: Target) -> Objections:
    """The steps that the kernel cannot have, each with the reason.

    The first wrong axis ends the list, as later steps would refer to a kernel that does not exist.
    """
    if schedule.order is not None:
        if sorted(schedule.order.axes) != sorted(a.name for a in kernel.domain):
            yield schedule.order, f"its axes are {', '.join(a.name for a in kernel.domain) or 'none'}"
            return
        # Later steps refer to the kernel as earlier ones leave it.
        kernel = reordered(kernel, schedule.order)
    if schedule.merge is not None:
        unmergeable = list(_to_axis(kernel, schedule.merge, schedule.merge.axis))
        yield from unmergeable
        if unmergeable:
            return
        kernel = merged(kernel, schedule.merge)
    if schedule.parts is not None:
        wrong = list(_to_parts(kernel, schedule.parts))
        yield from wrong
        # Only tiles look into reductions, and a search tries many steps after the same parts.
        kernel = parted(kernel, schedule.parts) if schedule.has_tiles and not wrong else kernel
    if schedule.squares is not None:
        yield from _to_squares(kernel, schedule.squares, schedule)
    if schedule.turn is not None:
        yield from _to_turn(kernel, schedule.turn, schedule, target)
    if schedule.vectors is not None:
        yield from _to_vectors(kernel, schedule.vectors, schedule)
    if schedule.rows is not None:
        yield from _to_rows(kernel, schedule.rows, schedule)
    if schedule.tile is not None:
        yield from _to_tile(kernel, schedule.tile, _threads(schedule.units))
    if schedule.stage is not None:
        yield from _to_stage(kernel, schedule.stage, schedule, target)
    if schedule.units is not None:
        yield from _to_units(kernel, schedule.units, schedule)
    if schedule.share is not None:
        yield from _to_share(kernel, schedule.share, schedule, target)
    if schedule.lanes is not None:
        yield from _to_lanes(kernel, schedule.lanes, target)


def _to_parts(kernel: Kernel, parts: Parts) -> Objections:
    yield from _to_count(parts, parts.count, least=2)
    yield from _to_count(parts, parts.lanes)
    if not has_long_reduction(kernel, parts):
        yield parts, f"it has no reduction whose last axis has {LEAST_ROUNDS} rounds for each"


def _to_several(kernel: Kernel, step: Rows | Vectors) -> Objections:
    """To one point in the place of several."""
    if not copies_alone(kernel):
        yield step, "it has scratch rows or scans"
    yield from _to_count(step, step.count, least=2)


def _to_rows(kernel: Kernel, rows: Rows, schedule: Schedule) -> Objections:
    if any(s is not None for s in (schedule.squares, schedule.tile)):
        yield rows, "it has squares or a tile already"
    if schedule.vectors is not None and rows.axis == kernel.domain[-1].name:
        yield rows, "its vectors are along the same axis"
    yield from _to_several(kernel, rows)
    sizes = {a.name: a.size for a in kernel.domain}
    size = sizes.get(rows.axis)
    if not isinstance(size, int) or rows.count < 1 or size % rows.count:
        yield rows, f"it has no axis {rows.axis} of known size that {rows.count} rows divide ({_domain(kernel)})"


def _domain(kernel: Kernel) -> str:
    return ", ".join(f"{a.name} in {a.size}" for a in kernel.domain) or "no axis"


def _to_squares(kernel: Kernel, squares: Squares, schedule: Schedule) -> Objections:
    if schedule.vectors is not None or schedule.tile is not None:
        yield squares, "squares have no tiles and no vectors of columns"
    if not is_pointwise(kernel):
        yield squares, "its points do more than write single elements"
    yield from _to_axis(kernel, squares, squares.axis)
    yield from _to_count(squares, squares.side, least=2)
    if not (1 <= squares.lanes <= MOST_BLOCK and squares.side % squares.lanes == 0):
        yield squares, f"blocks have sides of 1 to {MOST_BLOCK} that divide {squares.side}, not {squares.lanes}"


def _to_turn(kernel: Kernel, turn: Turn, schedule: Schedule, target: Target) -> Objections:
    others = (schedule.squares, schedule.vectors, schedule.rows, schedule.tile, schedule.share)
    if any(s is not None for s in others):
        yield turn, "it has squares, vectors, rows or a tile already, or points that threads share"
    if not is_pointwise(kernel):
        yield turn, "its points do more than write single elements"
    # The tests after these look the axis up.
    wrong = [*_to_axis(kernel, turn, turn.axis), *_to_count(turn, turn.side, least=2)]
    yield from wrong
    if wrong:
        return
    if not turned_loads(kernel, turn.axis):
        yield turn, f"it reads nothing along {turn.axis} that it writes across"
    elif THREADS > target.threads_per_workgroup:
        yield turn, f"{THREADS} threads are more than {target.threads_per_workgroup}, as on {target.name}"
    elif turn_bytes(kernel, turn) > target.shared_bytes:
        size_bytes = turn_bytes(kernel, turn)
        yield turn, f"it needs {size_bytes} bytes of shared memory, of {target.shared_bytes} on {target.name}"
    elif any(x.dtype not in target.dtypes for x in turned_loads(kernel, turn.axis)):
        yield turn, f"an operand has a dtype that {target.name} keeps as bits of another"


def _to_vectors(kernel: Kernel, vectors: Vectors, schedule: Schedule) -> Objections:
    if schedule.tile is not None:
        yield vectors, "a tile has columns of its own"
    yield from _to_several(kernel, vectors)
    yield from _to_count(vectors, vectors.lanes)
    yield from _to_count(vectors, vectors.neighbours)
    if vectors.count % max(1, vectors.neighbours):
        yield vectors, f"{vectors.neighbours} neighbours do not divide {vectors.count}"
    if not kernel.domain:
        yield vectors, "it has no axis"
        return
    last, step = kernel.domain[-1], vectors.count * vectors.lanes
    if not isinstance(last.size, int) or step < 1 or last.size % step:
        yield vectors, f"{step} columns do not divide axis {last.name} of {last.size}"


def _to_tile(kernel: Kernel, tile: Tile, threads: int = 1) -> Objections:
    """threads: the number of threads among which the points of the tile are divided"""
    if not dot_loads(kernel):
        yield tile, "it is not one dot with scalars and plain writes around it"
    yield from _to_axis(kernel, tile, tile.row_axis)
    yield from _to_count(tile, tile.rows)
    yield from _to_count(tile, tile.columns)
    yield from _to_count(tile, tile.rows * tile.columns // threads)
    if tile.columns > 1 and kernel.domain and tile.column_axis != kernel.domain[-1].name:
        yield tile, f"columns lie along the last axis, {kernel.domain[-1].name}"


def _to_stage(kernel: Kernel, stage: Stage, schedule: Schedule, target: Target) -> Objections:
    tile, most = schedule.tile, target.threads_per_workgroup
    # A staged tile spreads its columns over the threads itself (stage.Group.column).
    if tile is None or tile.apart or schedule.share is not None:
        yield stage, "it needs a tile that is not apart, and points that threads do not share"
        return
    # Objections to the tile itself are reported once, for the tile.
    subgroup = _threads(schedule.units)
    if next(_to_tile(kernel, tile, subgroup), None) is not None:
        return
    # Staged code has the dot first, and everything else after its last round.
    dot, *others = kernel.body
    if not isinstance(dot, Reduce) or any(not isinstance(s, Let | Write) for s in others):
        yield stage, "its dot is not the first statement, or not the only sum"
        return
    names, sums = (tile.row_axis, kernel.domain[-1].name), [a.name for a in dot.axes]
    if (stage.row_axis, stage.column_axis) != names or stage.sum_axis not in sums:
        yield stage, f"rows and columns of the tile are axes {', '.join(names)}, its sum's {', '.join(sums) or 'none'}"
        return
    # The last round is shorter by a remainder, which has to be known.
    if not all(isinstance(a.size, int) for a in dot.axes):
        yield stage, "its sum is of open size"
        return
    for count in (stage.rows, stage.columns, stage.depth):
        yield from _to_count(stage, count)
    (cut,) = (a.size for a in dot.axes if a.name == stage.sum_axis)
    if stage.twice and (schedule.units or cut % stage.depth != 0):
        yield stage, f"units have two panels anyway, and other rounds are whole, not {stage.depth} of {cut}"
        return
    # A group has stage.rows x stage.columns tiles, each multiplied by a thread or by a subgroup.
    threads = stage.rows * stage.columns * subgroup
    if not 2 <= threads <= most:
        yield stage, f"{threads} threads are not within 2 to {most}, as on {target.name}"
    reads = operands(kernel, tile)
    if reads is None:
        yield stage, "an operand of its dot depends on rows and columns"
    elif any(load.dtype not in target.dtypes for load, _ in reads):
        yield stage, f"an operand has a dtype that {target.name} keeps as bits of another"
    elif (size_bytes := _shared_bytes(kernel, tile, stage, schedule.units)) > target.shared_bytes:
        yield stage, f"it needs {size_bytes} bytes of shared memory, of {target.shared_bytes} on {target.name}"


def _threads(units: Units | None) -> int:
    """The number of threads among which the points of a tile are divided."""
    if units is None:
        return 1
    return SUBGROUP * TEAM if units.rows == TEAM_ROWS else SUBGROUP


def _shared_bytes(kernel: Kernel, tile: Tile, stage: Stage, units: Units | None) -> int:
    if units is not None and units.rows == TEAM_ROWS:
        return team_bytes(Teams(kernel, tile, stage, units))
    if units is not None:
        return unit_bytes(Subgroups(kernel, tile, stage))
    return shared_bytes(Group(kernel, tile, stage)) * (BUFFERS if stage.twice else 1)


def _to_units(kernel: Kernel, units: Units, schedule: Schedule) -> Objections:
    tile, stage = schedule.tile, schedule.stage
    if tile is None or stage is None:
        yield units, "it goes with a tile and a stage"
        return
    is_of_team = units.rows == TEAM_ROWS
    known = replace(units, columns=COLUMNS, depth=DEPTH) if is_of_team else Units(ROWS, COLUMNS, DEPTH)
    if units != known:
        yield units, f"the only ones are {Units(ROWS, COLUMNS, DEPTH)} and {TEAMS}"
    if next(_to_tile(kernel, tile, _threads(units)), None) is not None:
        return
    dot, *_ = kernel.body
    reads = operands(kernel, tile)
    if (
        not isinstance(dot, Reduce)
        or factor_dtype(dot) is None
        or len({axis for _, axis in reads or ()}) < len(reads or "..")
    ):
        yield units, "its dot is not a sum of products of an element of rows and one of columns, both of one half type"
        return
    if is_of_team:
        yield from _to_teams(kernel, units, tile, stage, dot)
        return
    if not 0 < tile.rows * tile.columns or tile.rows % ROWS or tile.columns % COLUMNS:
        yield units, f"they do not divide a tile of {tile.rows} x {tile.columns}"
    depth = _depth(stage, dot)
    if depth % DEPTH != 0:
        yield units, f"they do not divide a depth of {depth}"


def _depth(stage: Stage, dot: Reduce) -> Size:
    # Each panel has the axes of the sum after the staged one in full, which multiplies its depth.
    inner_axes = itertools.dropwhile(lambda a: a.name != stage.sum_axis, dot.axes)
    return prod((stage.depth, *(a.size for a in itertools.islice(inner_axes, 1, None))))


def _to_teams(kernel: Kernel, units: Units, tile: Tile, stage: Stage, dot: Reduce) -> Objections:
    """Objections to four subgroups that multiply together."""
    if tile.rows < 1 or tile.rows % TEAM_ROWS or tile.columns not in TEAM_COLUMNS:
        yield units, f"a tile has 64, 128, ... rows and 64, 128, 192 or 256 columns, not {tile.rows} x {tile.columns}"
    if (depth := _depth(stage, dot)) != TEAM_DEPTH:
        yield units, f"a depth is {TEAM_DEPTH}, not {depth}"
    if units.buffers < LEAST_BUFFERS:
        yield units, f"there are {LEAST_BUFFERS} buffers at least"
    rows = next(a.size for a in kernel.domain if a.name == tile.row_axis)
    # Groups abreast walk the same columns, so their number has to divide the rows of groups.
    groups = -(-rows // max(1, tile.rows * stage.rows))
    if units.abreast < 1 or (units.abreast > 1 and not (isinstance(groups, int) and groups % units.abreast == 0)):
        yield units, f"{units.abreast} do not divide {groups} rows of groups"
    if units.groups and not all(isinstance(a.size, int) for a in kernel.domain):
        yield units, "groups take tiles in turn where their number is known"


def _to_share(kernel: Kernel, share: Share, schedule: Schedule, target: Target) -> Objections:
    most = target.threads_per_workgroup
    # Parts of a sum are combined in pairs of threads (team.py).
    if not 2 <= share.threads <= most or share.threads & (share.threads - 1):
        yield share, f"not a power of two from 2 to {most}, the threads of a group of {target.name}"
        return
    yield from _to_count(share, share.lanes)
    if share.points == 1 and not share.across:
        return
    if not 2 <= share.points <= share.threads // 2 or share.points & (share.points - 1):
        yield share, f"not a power of two from 2 to {share.threads // 2} points, each with two threads at least"
    elif not kernel.domain or share.registers or schedule.has_tiles:
        yield share, "without an axis, with rows in registers, squares or a tile there is one point in a group"
    elif (size := _points_along(kernel, schedule)) is None or size % share.points:
        yield share, f"{share.points} points do not divide axis {kernel.domain[-1].name} of {kernel.domain[-1].size}"


def _points_along(kernel: Kernel, schedule: Schedule) -> int | None:
    """Points along the last axis, each of several columns or rows; None for open size."""
    last, vectors, rows = kernel.domain[-1], schedule.vectors, schedule.rows
    # Lanes of vectors are an axis of their own, the last one (vectors.py).
    if vectors is not None and vectors.lanes > 1:
        return vectors.lanes
    columns = vectors.count if vectors is not None else 1
    lines = rows.count if rows is not None and rows.axis == last.name else 1
    return last.size // max(1, columns * lines) if isinstance(last.size, int) else None


def _to_lanes(kernel: Kernel, lanes: Lanes, target: Target) -> Objections:
    if target.language != "llvm":
        yield lanes, f"{target.name} chooses its lanes itself"
    if lanes.axis not in (INNER, *(a.name for a in kernel.domain)):
        yield lanes, f"it is not one of {_domain(kernel)}, or {INNER}"


def _to_axis(kernel: Kernel, step: Merge | Squares | Turn | Tile, name: str) -> Objections:
    names = [a.name for a in kernel.domain[:-1]]
    if name not in names:
        yield step, f"axis {name} is not one of those before the last: {', '.join(names) or 'none'}"


def _to_count(step: Step, count: int, least: int = 1) -> Objections:
    if not least <= count <= MOST_POINTS:
        yield step, f"{count} is not within {least} to {MOST_POINTS}"
