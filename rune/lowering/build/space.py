"""The schedules that a search may try for a kernel: all of them legal, few of them hopeless."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from rune.lowering.build import flat_kernel, rewritten
from rune.lowering.build.legal import is_legal
from rune.lowering.build.order import orders
from rune.lowering.build.parts import has_long_reduction
from rune.lowering.build.schedule import (
    INNER,
    PLAIN,
    Lanes,
    Merge,
    Parts,
    Rows,
    Schedule,
    Share,
    Squares,
    Stage,
    Tile,
    Turn,
    Units,
    Vectors,
)
from rune.lowering.build.stage_choice import has_fetches
from rune.lowering.build.teams import has_teams
from rune.lowering.build.teams_choice import team_candidates
from rune.lowering.build.tile import dot_loads
from rune.lowering.build.tile_choice import tile_of
from rune.lowering.build.units import factor_dtype, has_units
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import matrices
from rune.lowering.kernels import Kernel, Reduce

SIDES, SQUARE_LANES = (8, 16, 32, 64), (1, 8)
VECTORS = (2, 3, 4, 8, 16)
PARTS = (2, 4, 8, 16)
GROUPS = ((8, 8), (8, 16), (16, 8), (16, 16), (8, 32))  # threads by rows and columns
DEPTHS = (4, 8, 16, 32)
SUBGROUPS = ((1, 1), (1, 2), (2, 2), (2, 4), (4, 2))  # by rows and columns
UNIT_ROWS = (16, 32, 64)  # of a subgroup
UNIT_COLUMNS = (8, 16, 32, 64)
UNIT_DEPTHS = (16, 32, 64)
ROWS = (1, 2, 3, 4, 6, 8)
COLUMNS = (1, 2, 4, 8, 16)
FEWEST_THREADS, MOST_THREADS = 16, 1_024
NEIGHBOURS, TEAMS, COLUMNS_OF_GROUP = (1, 4), (2, 4, 8), (8, 32)


def candidates(kernel: Kernel, target: Target) -> Iterator[Schedule]:
    """Every schedule that a search may try for a kernel; `build` still refuses some shares."""
    flat = flat_kernel(kernel)
    # Panels and turned squares are for GPUs: a processor has caches.
    ways = [w for w in walks(flat, target) if target.is_gpu or not w.has_groups]
    yield from ways
    if target.threads_per_workgroup > 1:
        yield from shared(flat, ways, target)


def difference(a: Schedule, b: Schedule) -> str | None:
    """The only step in which two schedules differ, by one field or by having it; else None."""
    steps = [(f.name, getattr(a, f.name), getattr(b, f.name)) for f in fields(Schedule)]
    different = [step for step in steps if step[1] != step[2]]
    if len(different) != 1:
        return None
    ((name, x, y),) = different
    is_near = x is None or y is None or sum(getattr(x, f.name) != getattr(y, f.name) for f in fields(x)) == 1
    return name if is_near else None


def walks(flat: Kernel, target: Target) -> Iterator[Schedule]:
    """Every schedule of a kernel, flat and collapsed, without threads that share a point."""
    for schedule in _walks(flat, target):
        yield schedule
        # Legal only for native code; other languages choose their lanes themselves.
        for axis in (INNER, *(a.name for a in flat.domain)):
            variant = replace(schedule, lanes=Lanes(axis))
            if is_legal(flat, variant, target):
                yield variant
    yield from (s for s in _by_groups(flat, target) if is_legal(flat, s, target))


def _walks(flat: Kernel, target: Target) -> Iterator[Schedule]:
    candidates = (*_in_squares(flat), *_in_vectors(flat, target), *_in_rows(flat), *_in_tiles(flat))
    yield PLAIN
    yield from (s for s in candidates if is_legal(flat, s, target))
    # Tiles are tried without: they have an order and parallel sums of their own.
    for start in _starts(flat, target):
        kernel = rewritten(flat, start)
        for way in (PLAIN, *_in_squares(kernel), *_in_vectors(kernel, target), *_in_rows(kernel)):
            schedule = replace(way, order=start.order, parts=start.parts)
            if is_legal(flat, schedule, target):
                yield schedule


def _by_groups(flat: Kernel, target: Target) -> Iterator[Schedule]:
    """Schedules of groups that use shared memory: squares, tiles, and tiles along merged axes."""
    if target.threads_per_workgroup == 1:
        return
    yield from (Schedule(turn=Turn(axis.name, side)) for axis in flat.domain[:-1] for side in (16, 32))
    yield from (*_in_stages(flat, target), *_in_units(flat, target))
    for axis in flat.domain[:-1]:
        start = Schedule(merge=Merge(axis.name))
        kernel = rewritten(flat, start)
        schedules = (*_in_stages(kernel, target), *_in_units(kernel, target))
        yield from (replace(s, merge=start.merge) for s in schedules)


def _starts(flat: Kernel, target: Target) -> Iterator[Schedule]:
    """The first steps: another order of the axes, reductions in parts."""
    parts = [Parts(count, lanes) for lanes in _lanes(flat, target)[:2] for count in PARTS]
    longs = [p for p in parts if has_long_reduction(flat, p)]
    starts = itertools.product((None, *orders(flat)), (None, *longs))
    return (Schedule(order=order, parts=part) for order, part in starts if order or part)


def shared(flat: Kernel, ways: Sequence[Schedule], target: Target) -> Iterator[Schedule]:
    """Every schedule of a kernel with groups of threads that share its points."""
    for share, way in itertools.product(_shares(target), ways):
        # Threads that fill panels together are a group already; a tile has columns of its own.
        if way.has_groups or ((way.tile or way.squares) and share != Share(share.threads)):
            continue
        schedule = replace(way, share=share)
        if share.points == 1 or is_legal(flat, schedule, target):
            yield schedule


def _shares(target: Target) -> Sequence[Share]:
    """How many threads share points, which elements each takes, and of which points."""
    most = min(MOST_THREADS, target.threads_per_workgroup)
    powers = itertools.takewhile(lambda n: n <= most, (1 << k for k in itertools.count()))
    counts = [n for n in powers if n >= FEWEST_THREADS]
    ways = itertools.product(counts, NEIGHBOURS, (False, True))
    rows = [Share(n, lanes, registers=registers) for n, lanes, registers in ways]
    # Every point needs two threads at least.
    teams = [Share(n, lanes, points) for n in counts for lanes in NEIGHBOURS for points in TEAMS if 2 * points <= n]
    columns = [Share(n, points=p, across=True) for n in counts for p in COLUMNS_OF_GROUP if 2 * p <= n]
    return (*rows, *teams, *columns)


def _in_squares(flat: Kernel) -> Iterator[Schedule]:
    for axis, side in itertools.product(flat.domain[:-1], SIDES):
        yield from (Schedule(squares=Squares(axis.name, side, lanes)) for lanes in SQUARE_LANES if lanes <= side)


def _in_vectors(flat: Kernel, target: Target) -> Iterator[Schedule]:
    for count, width in itertools.product(VECTORS, _lanes(flat, target)):
        yield Schedule(vectors=Vectors(count, width))


def _lanes(flat: Kernel, target: Target) -> Sequence[int]:
    """One lane, and as many as one or two vectors of the widest elements have."""
    widest = max(b.type.dtype.itemsize for b in (*flat.inputs, *flat.outputs))
    lanes = max(1, target.vector_bytes // widest)
    return sorted({1, lanes, 2 * lanes})


def _in_rows(flat: Kernel) -> Iterator[Schedule]:
    for axis, count in itertools.product(flat.domain[:-1], VECTORS):
        yield Schedule(rows=Rows(axis.name, count))


def _in_tiles(flat: Kernel) -> Iterator[Schedule]:
    if not dot_loads(flat) or not flat.domain:
        return
    last = flat.domain[-1].name
    for axis, rows, columns in itertools.product(flat.domain[:-1], ROWS, COLUMNS):
        apart = (False, True) if columns > 1 else (False,)
        yield from (Schedule(tile=tile_of(axis.name, rows, last, columns, apart=a)) for a in apart)


def _in_stages(flat: Kernel, target: Target) -> Iterator[Schedule]:
    dot = next(iter(flat.body), None)  # a scatter of no updates does nothing
    if not isinstance(dot, Reduce) or not dot.axes:
        return
    last = flat.domain[-1].name if flat.domain else ""
    ways = (False, True) if has_fetches(flat, target) else (False,)
    for base, (rows, columns), axis, depth in itertools.product(_in_tiles(flat), GROUPS, dot.axes, DEPTHS):
        if base.tile is not None and not base.tile.apart:
            stage = Stage(base.tile.row_axis, rows, last, columns, axis.name, depth)
            yield from (replace(base, stage=replace(stage, twice=twice)) for twice in ways)


def _in_units(flat: Kernel, target: Target) -> Iterator[Schedule]:
    dot = next(iter(flat.body), None)  # a scatter of no updates does nothing
    if not isinstance(dot, Reduce) or not has_units(dot, target) or len(flat.domain) < 2:
        return
    units, last = Units(matrices.ROWS, matrices.COLUMNS, matrices.DEPTH), flat.domain[-1].name
    sides = itertools.product(UNIT_ROWS, UNIT_COLUMNS, SUBGROUPS, dot.axes, UNIT_DEPTHS)
    for axis, (rows, columns, (down, along), cut, depth) in itertools.product(flat.domain[:-1], sides):
        tile, stage = Tile(axis.name, rows, last, columns), Stage(axis.name, down, last, along, cut.name, depth)
        yield Schedule(tile=tile, stage=stage, units=units)
    if has_teams(factor_dtype(dot), target):
        yield from (schedule for _, schedule in team_candidates(flat, None, target))
