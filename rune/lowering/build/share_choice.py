"""Which threads share the points of a kernel, on a device whose threads work in groups.

A group, or a part of one, takes a row, and its threads take neighbours in turn; a subgroup takes
columns, and several subgroups share long ones. So neighbouring threads access neighbours, and few
points fill a device all the same. The choice depends only on these figures, and so is the same
every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from rune import dims
from rune.dims import Size
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import PLAIN, Schedule, Share
from rune.lowering.build.workgroups import Point, SharedPoint, can_share, is_nest, nest_of, placed, share_point
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import Accumulate, Alloc, For, Kind, Stmt, Store
from rune.lowering.kernel.rewrite import expressions, loads, walk
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernel.work import called_instructions
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis

MOST_SUMS = 4  # of a point that is shared for its reads alone
ROUNDS = 4  # fewest elements for each thread of a group; fewer are not worth the barriers
MOST_THREADS = 512  # of a group that shares columns
WORD_BYTES = 4  # of elements that are read by lines
GROUPS = 2  # fewest groups for each processor when a group takes several rows


def choose_share(point: Point, domain: Sequence[Axis], schedule: Schedule, target: Target) -> Share | None:
    """The threads for each point, if the device has too few points or points have long loops."""
    if (lines := _share_of_lines(point, domain, schedule, target)) is not None:
        return lines
    choice = choices(target)
    points = cost.count(tuple(a.size for a in domain))
    few = points <= target.cores * choice.group_points
    # With enough points every processor is busy, and sharing a point would only add barriers. But
    # on a GPU, threads that each walk a row of their own access one element of every line of
    # memory, and so do threads that share a column.
    columns = schedule.vectors.count if schedule.vectors and schedule.vectors.lanes == 1 else 1
    walk_of_gpu = _walk(point, domain[-1].name, columns) if choice.shares_rows and domain else None
    along, across = walk_of_gpu is _Walk.ROWS, walk_of_gpu is _Walk.COLUMNS
    share = None
    if along:
        share = _share_of_rows(point, domain, schedule, target)
    elif across and not schedule.has_tiles and cost.count((domain[-1].size,)) >= target.subgroup_threads:
        share = _share_of_columns(point, domain, target)
    elif few:
        share = _share_reduction(point, choice.group_threads, target)
    shared_point = share and _shared_point(point, domain, share, target)
    # Some drivers silently end loops of too many rounds (Target.loop_rounds).
    if are_few(shared_point.point if shared_point else point, target):
        return share
    longer = _share_long(point, choice.group_threads, target)
    return longer and Share(longer.threads)


def _shared_point(point: Point, domain: Sequence[Axis], share: Share, target: Target) -> SharedPoint | None:
    return share_point(placed(point, domain, share)[1], share, target)


def _share_of_rows(point: Point, domain: Sequence[Axis], schedule: Schedule, target: Target) -> Share | None:
    """Threads for a row, which take neighbours if they can, and hold their reads in registers."""
    choice, longest = choices(target), _longest(point)
    most = choice.row_lanes if longest >= 2 * target.subgroup_threads else 1
    # The longest run that is aligned in every loop; single elements always are.
    lanes = next(n for n in _halves(2 * most) if n == 1 or _has_runs(point, n))
    most_threads, thread_elements = (choice.row_threads, 2 * lanes) if lanes > 1 else (choice.group_threads, ROUNDS)
    # A power of two, since parts are combined in pairs.
    threads = 1 << min(most_threads, target.threads_per_workgroup, max(1, longest // thread_elements)).bit_length() - 1
    if threads < 2:
        return None
    plain = Share(threads, lanes)
    # With a single loop nothing is read twice, so registers would save nothing.
    is_one = sum(isinstance(s, For) for s in point) < 2
    registers = () if is_one else (replace(plain, registers=True),)
    # A group smaller than a subgroup leaves the other threads of the subgroup idle.
    is_narrow = plain.threads < 2 * target.subgroup_threads
    teams = () if schedule.has_tiles else tuple(_teams(plain, domain, target))
    candidates = (
        *(teams if is_narrow else registers),
        *(registers if is_narrow else teams),
        plain,
        Share(plain.threads),
    )
    # The first that can be built: a loop may not divide, or the group's memory may be too small.
    return next((s for s in candidates if _shared_point(point, domain, s, target)), None)


def _share_of_lines(point: Point, domain: Sequence[Axis], schedule: Schedule, target: Target) -> Share | None:
    """A subgroup for each row, which reads it once, by lines, and holds it in registers."""
    choice, rows = choices(target), dims.product(a.size for a in domain)
    has_lines = choice.line_row and target.has_lines
    if not has_lines or schedule != PLAIN or not dims.at_most(rows, target.launch_groups):
        return None
    # Scratch rows would be shared memory, which is no faster than the row itself.
    reduces = any(isinstance(s, Accumulate) for s in walk(point)) and not any(isinstance(s, Alloc) for s in point)
    if not reduces or _longest(point) < choice.line_row or not _reads_words(point):
        return None
    # Each element is written out, and Mesa's time for functions grows faster than their number.
    statements, instructions = _written_out(point)
    threads = target.subgroup_threads
    if statements > choice.line_code * threads or instructions > choice.line_calls * threads:
        return None
    # Loops take a third of the time to compile, so few rows do not repay long code.
    if statements > choice.short_line_code * threads and cost.count((rows,)) < choice.line_rows:
        return None
    # Pairs, if rows that are written are whole lines of them: two neighbours are written at once.
    writes = any(isinstance(s, Store) for nest in point if isinstance(nest, For) for s in walk((nest,)))
    widths = (n for n in ((2, 1) if writes else (1,)) if _has_runs(point, n))
    shares = (Share(target.subgroup_threads, n, registers=True) for n in widths)
    return next((s for s in shares if can_share(point, s, target)), None)


def _written_out(point: Point) -> tuple[int, int]:
    """The statements of all elements, and the instructions of the functions that they call."""
    statements = instructions = 0
    for nest in (s for s in point if isinstance(s, For)):
        body = tuple(walk(nest_of(nest)[-1].body))
        statements += _points(nest) * len(body)
        instructions += _points(nest) * called_instructions(nest_of(nest)[-1].body)
    return statements, instructions


def _reads_words(point: Point) -> bool:
    """Whether all loads are of 32 bits, and unconditional."""
    read = loads(e for s in walk(point) for e in expressions(s))
    return all(x.dtype.itemsize == WORD_BYTES and x.guard is None for x in read)


def _teams(share: Share, domain: Sequence[Axis], target: Target) -> Iterator[Share]:
    """Several rows for a group, if a row needs few threads and enough groups remain."""
    size, rows = domain[-1].size, cost.count(tuple(a.size for a in domain))
    points = choices(target).group_threads // share.threads
    while points > 1:
        threads = points * share.threads
        fits = threads <= target.threads_per_workgroup and rows >= points * GROUPS * target.cores
        if fits and isinstance(size, int) and size % points == 0:
            yield replace(share, threads=threads, points=points)
        points //= 2


def _share_of_columns(point: Point, domain: Sequence[Axis], target: Target) -> Share | None:
    """Subgroups with a column for each thread, as many as fill the device."""
    size, columns = domain[-1].size, target.subgroup_threads
    if not isinstance(size, int) or size % columns:
        return None
    full_count = choices(target).full_threads * target.cores // max(1, cost.count(tuple(a.size for a in domain)))
    most = min(full_count, _longest(point) // ROUNDS, MOST_THREADS // columns, target.threads_per_workgroup // columns)
    count = 1 << most.bit_length() - 1 if most > 1 else 1
    shares = (Share(n * columns, points=columns, across=True) for n in _halves(2 * count) if n > 1)
    return next((s for s in shares if _shared_point(point, domain, s, target)), None)


def _has_runs(point: Point, lanes: int) -> bool:
    """Whether `lanes` neighbours of every row begin where a single access may begin."""
    for nest in (s for s in point if isinstance(s, For)):
        (*_, inner) = nest_of(nest)
        for index in _indices(inner.body):
            step = dims.coefficient(index, inner.var)
            if step == 1 and dims.divides(lanes, index - dims.symbol(inner.var, 0, inner.extent - 1)) is not True:
                return False
            if not (isinstance(step, int) and step in (0, 1)):
                return False
    return True


def _longest(point: Point) -> int:
    return max((_points(nest) for nest in point if is_nest(nest)), default=0)


def _share_reduction(point: Point, most_threads: int, target: Target) -> Share | None:
    """Up to `most_threads` threads for a point with a reduction; None if one does as well."""
    reduces = any(isinstance(s, Accumulate) for s in walk(point))
    shared_point = _share_among(point, most_threads, target) if reduces else None
    return shared_point and Share(shared_point.threads)


class _Walk(Enum):
    """What accesses neighbours in memory: the loop of one point, or neighbouring points."""

    ROWS = "rows"
    COLUMNS = "columns"


def _walk(point: Point, axis: str, columns: int) -> _Walk | None:
    """How the innermost loops of points walk; None for both ways, or neither.

    axis: the axis along which points are neighbours
    """
    # A point with this many sums is a tile of a dot, which shares its reads in another way.
    if sum(isinstance(s, Accumulate) for s in walk(point)) > MOST_SUMS * columns:
        return None
    steps = [
        (dims.coefficient(index, loop.var), dims.coefficient(index, axis))
        for loop in walk(point)
        if isinstance(loop, For) and loop.kind is Kind.VECTOR
        for index in _indices(loop.body)
    ]
    # Rows: the loop takes neighbouring elements. Columns: neighbouring points do.
    along = any(_is_next(inner) and not _is_near(outer) for inner, outer in steps)
    across = any(isinstance(outer, int) and outer == columns and not _is_near(inner) for inner, outer in steps)
    # If both are so, sharing would mend one access and spoil the other.
    if along == across:
        return None
    return _Walk.ROWS if along else _Walk.COLUMNS


def _indices(body: Iterable[Stmt]) -> Iterator[Size]:
    """The indices at which some statements read and write."""
    for stmt in body:
        yield from (load.indices[0] for load in loads(expressions(stmt)))
        if isinstance(stmt, Store):
            yield stmt.index


def _is_next(step: Size | None) -> bool:
    return isinstance(step, int) and step == 1


def _is_near(step: Size | None) -> bool:
    return isinstance(step, int) and step in (0, 1)


def _share_long(point: Point, most_threads: int, target: Target) -> SharedPoint | None:
    """The point, shared by enough threads for the driver to allow the rounds of its loops."""
    shared_point = None
    while most_threads <= target.threads_per_workgroup:
        shared_point = _share_among(point, most_threads, target) or shared_point
        if shared_point is not None and are_few(shared_point.point, target):
            break
        # More threads leave fewer rounds to each.
        most_threads *= 2
    return shared_point


def _share_among(point: Point, most_threads: int, target: Target) -> SharedPoint | None:
    """The point, shared by up to `most_threads` threads; None if it has too few iterations."""
    threads = min(most_threads, target.threads_per_workgroup)
    longest = _longest(point)
    # Halved, because sums combine pairs of threads: their number stays a power of two.
    while threads > longest // ROUNDS:
        threads //= 2
    # Fewer, if the group's memory is too small for the parts of all threads.
    counts = (threads >> k for k in range(threads.bit_length() - 1))
    return next(filter(None, (share_point(point, Share(n), target) for n in counts)), None)


def _points(nest: Stmt) -> int:
    assert isinstance(nest, For)
    return cost.count(tuple(loop.extent for loop in nest_of(nest)))


def _halves(count: int) -> Iterator[int]:
    """count/2, count/4, ..., 1."""
    for power in reversed(range(int(math.log2(count)))):
        yield 1 << power
