"""Workgroups: the threads of one group share the point of a domain that has too few.

Before   for i in 8 grid: acc = 0; for j in 4096 vector: acc += x[i, j]; store y[i] = acc
After    for i in 8 grid                                    share(128)
           for t in 128 workgroup
             acc = 0; for s in 32: acc += x[i, 128*s + t]     each thread takes every 128th element
             the parts of all threads are added up (team.py)
             if t == 0: store y[i] = sum

With lanes a thread takes several neighbours at a time; with several points a group has that many
teams, one behind the other, or, across, one between the other. With registers every loop is
written out, and what a thread has read for one loop it does not read again for the next. Scratch
rows become shared memory. Where threads must wait for each other is left to barriers.py. A point
with a scan or with ordered writes stays with one thread.

Invariant: every element is computed once, sums in one fixed order.
Source: M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rune import dims
from rune.dims import Size
from rune.lowering.build.accesses import Held, apart, registered
from rune.lowering.build.conditions import less
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import Share
from rune.lowering.build.team import Team, combined
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load, Local
from rune.lowering.kernel.nodes import Accumulate, AddressSpace, Alloc, For, If, Kind, Let, Stmt, Store, Var
from rune.lowering.kernel.rewrite import (
    bodies,
    expressions,
    fresh,
    names_bound,
    rename,
    replace_symbols,
    walk,
    walk_expr,
)
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis

Point = Sequence[Stmt]
MOST_SUMS = 4  # of a point that is shared for its reads alone
ROUNDS = 4  # elements for each thread of a group, at least; fewer are not worth the waiting
MOST_ROUNDS = 8  # of a loop that is written out
MOST_THREADS = 512  # of a group that shares columns


@dataclass(frozen=True, slots=True)
class Shared:
    """A point shared by a group, and the statements of its threads that are divided loops.

    Each iteration of these writes its own elements, and so does each thread.
    """

    threads: int
    point: tuple[Stmt, ...]
    divided: tuple[Stmt, ...]


def choose_share(point: Point, domain: Sequence[Axis], target: Target, columns: int = 1) -> Share | None:
    """The threads for each point, where the device has too few points, or they are long.

    columns: neighbours of the last axis at a point
    """
    choice = choices(target)
    points = cost.count(tuple(a.size for a in domain))
    few = points <= target.cores * choice.group_points
    # With enough points every processor is busy, and sharing one would only add waiting; but on a
    # GPU threads that each walk along a row of their own touch one element of every line, and so do
    # those that share a column.
    walk_of_gpu = _walk(point, domain[-1].name, columns) if choice.shares_rows and domain else None
    along, across = walk_of_gpu is _Walk.ROWS, walk_of_gpu is _Walk.COLUMNS
    share = None
    if along:
        share = _share_of_rows(point, domain, target)
    elif across and cost.count((domain[-1].size,)) >= target.subgroup_threads:
        share = _share_of_columns(point, domain, target)
    elif few:
        share = _share_reduction(point, choice.group_threads, target)
    shared = share and _shared_point(point, domain, share, target)
    if are_few(shared.point if shared else point, target):
        return share
    longer = _share_long(point, choice.group_threads, target)
    return longer and Share(longer.threads)


def _shared_point(point: Point, domain: Sequence[Axis], share: Share, target: Target) -> Shared | None:
    return share_point(placed(point, domain, share)[1], share, target)


def _share_of_rows(point: Point, domain: Sequence[Axis], target: Target) -> Share | None:
    """Threads for a row, which take neighbours if they can, and hold what they have read."""
    choice = choices(target)
    longest = _longest(point)
    threads = min(choice.row_threads, target.threads_per_workgroup)
    while threads > longest // (2 * choice.row_lanes if choice.row_lanes > 1 else ROUNDS):
        threads //= 2
    if threads < 2:
        return None
    lanes = next(n for n in _halves(2 * choice.row_lanes) if n == 1 or _has_runs(point, n))
    plain = Share(min(threads, choice.group_threads) if lanes == 1 else threads, lanes)
    is_one = sum(isinstance(s, For) for s in point) < 2
    registers = () if is_one else (replace(plain, registers=True),)
    # Groups of less than a subgroup leave the others of its threads idle.
    is_narrow = plain.threads < 2 * target.subgroup_threads
    teams = tuple(_teams(plain, domain, target))
    candidates = (
        *(teams if is_narrow else registers),
        *(registers if is_narrow else teams),
        plain,
        Share(plain.threads),
    )
    return next((s for s in candidates if _shared_point(point, domain, s, target)), None)


def _teams(share: Share, domain: Sequence[Axis], target: Target) -> Iterator[Share]:
    """Several rows for a group, where few threads do for a row."""
    size = domain[-1].size
    points = choices(target).group_threads // share.threads
    while points > 1 and choices(target).row_lanes > 1:
        threads = points * share.threads
        if isinstance(size, int) and size % points == 0 and threads <= target.threads_per_workgroup:
            yield replace(share, threads=threads, points=points)
        points //= 2


def _share_of_columns(point: Point, domain: Sequence[Axis], target: Target) -> Share | None:
    """Subgroups whose threads are columns, as many as fill the device."""
    size, columns = domain[-1].size, target.subgroup_threads
    if not isinstance(size, int) or size % columns:
        return None
    wanted = choices(target).full_threads * target.cores // max(1, cost.count(tuple(a.size for a in domain)))
    most = min(wanted, _longest(point) // ROUNDS, MOST_THREADS // columns, target.threads_per_workgroup // columns)
    count = 1 << most.bit_length() - 1 if most > 1 else 1
    shares = (Share(n * columns, points=columns, across=True) for n in _halves(2 * count) if n > 1)
    return next((s for s in shares if _shared_point(point, domain, s, target)), None)


def _has_runs(point: Point, lanes: int) -> bool:
    """Whether so many neighbours of every row begin where one access may."""
    for nest in (s for s in point if isinstance(s, For)):
        (*_, inner) = _nest(nest)
        for index in _indices(inner.body):
            step = dims.coefficient(index, inner.var)
            if step == 1 and dims.divides(lanes, index - dims.symbol(inner.var, 0, inner.extent - 1)) is not True:
                return False
            if not (isinstance(step, int) and step in (0, 1)):
                return False
    return True


def _longest(point: Point) -> int:
    return max((_points(nest) for nest in point if _is_nest(nest)), default=0)


def _share_reduction(point: Point, wanted: int, target: Target) -> Share | None:
    """Up to `wanted` threads for a point with a reduction; None where one does as well."""
    reduces = any(isinstance(s, Accumulate) for s in walk(point))
    shared = _share_among(point, wanted, target) if reduces else None
    return shared and Share(shared.threads)


class _Walk(Enum):
    """Where neighbours in memory are touched: by one point, or by points that are neighbours."""

    ROWS = "rows"
    COLUMNS = "columns"


def _walk(point: Point, axis: str, columns: int) -> _Walk | None:
    """How the innermost loops of points walk; None for both ways, or neither.

    axis: along which points are neighbours. A tile of a dot has other means: its sums are many.
    """
    if sum(isinstance(s, Accumulate) for s in walk(point)) > MOST_SUMS * columns:
        return None
    steps = [
        (dims.coefficient(index, loop.var), dims.coefficient(index, axis))
        for loop in walk(point)
        if isinstance(loop, For) and loop.kind is Kind.VECTOR
        for index in _indices(loop.body)
    ]
    along = any(_is_next(inner) and not _is_near(outer) for inner, outer in steps)
    across = any(isinstance(outer, int) and outer == columns and not _is_near(inner) for inner, outer in steps)
    if along == across:
        return None
    return _Walk.ROWS if along else _Walk.COLUMNS


def _indices(body: Iterable[Stmt]) -> Iterator[Size]:
    """Of what some statements read and write."""
    for stmt in body:
        parts = (part for e in expressions(stmt) for part in walk_expr(e))
        yield from (part.indices[0] for part in parts if isinstance(part, Load))
        if isinstance(stmt, Store):
            yield stmt.index


def _is_next(step: Size | None) -> bool:
    return isinstance(step, int) and step == 1


def _is_near(step: Size | None) -> bool:
    return isinstance(step, int) and step in (0, 1)


def _share_long(point: Point, wanted: int, target: Target) -> Shared | None:
    """The point, shared by as many threads as the rounds of its loops ask for."""
    shared = None
    while wanted <= target.threads_per_workgroup:
        shared = _share_among(point, wanted, target) or shared
        if shared is not None and are_few(shared.point, target):
            break
        wanted *= 2
    return shared


def _share_among(point: Point, wanted: int, target: Target) -> Shared | None:
    """The point, shared by up to `wanted` threads; None where there are too few iterations."""
    threads = min(wanted, target.threads_per_workgroup)
    longest = _longest(point)
    # Halved, because sums combine pairs of threads: their number stays a power of two.
    while threads > longest // ROUNDS:
        threads //= 2
    return share_point(point, Share(threads), target) if threads > 1 else None


def share_point(point: Point, share: Share, target: Target) -> Shared | None:
    """The point, shared by the threads of a group; None where that is not possible."""
    # A scratch row is that of one point.
    if not _can_share(point) or (share.points > 1 and any(isinstance(s, Alloc) for s in point)):
        return None
    names = set(names_bound(point))
    team = Team(share.threads, _named("thread", names), share.points, share.across)
    # By nest: barriers.py has to recognise these very statements.
    divided = _all_divided(point, team, share, names)
    if divided is None:
        return None
    memory, inside = _split(point, team, divided)
    # More than the group's memory would not compile.
    if sum(s.size * s.dtype.itemsize for s in memory) > target.shared_bytes:
        return None
    loop = For(team.name, team.threads, Kind.WORKGROUP, tuple(inside))
    # A team's own elements do not show in indices that divide the number of a thread.
    apart = [s for s in inside if isinstance(s, If)] if team.points > 1 else []
    return Shared(share.threads, (*memory, loop), (*(s for body in divided.values() for s in body), *apart))


def placed(point: Point, domain: Sequence[Axis], share: Share) -> tuple[list[Axis], Point]:
    """The axes of the grid, and the point of a thread, where a group has several."""
    if share.points == 1:
        return list(domain), point
    *outer, last = domain
    team = Team(share.threads, fresh("thread", names_bound(point)), share.points, share.across)
    block = Axis(last.name, last.size // share.points)
    return [*outer, block], replace_symbols(tuple(point), {last.name: block.symbol * share.points + team.point})


def _named(name: str, names: set[str]) -> str:
    name = fresh(name, names)
    names.add(name)
    return name


def _can_share(point: Point) -> bool:
    """Whether the point has loops, and every one may run in any order."""
    loops = [s for s in point if isinstance(s, For)]
    return bool(loops) and all(map(_is_nest, loops))


def _is_nest(stmt: Stmt) -> bool:
    """A nest of loops, the innermost in vector lanes: all its iterations are independent."""
    return isinstance(stmt, For) and _nest(stmt)[-1].kind is Kind.VECTOR


def _nest(loop: For) -> list[For]:
    """The loops of a perfect nest."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], For):
        loops.append(loops[-1].body[0])
    return loops


def _points(nest: Stmt) -> int:
    assert isinstance(nest, For)
    return cost.count(tuple(loop.extent for loop in _nest(nest)))


# --- statements ---------------------------------------------------------------------------------


def _split(point: Point, team: Team, divided: Mapping[For, Point]) -> tuple[list[Alloc], list[Stmt]]:
    """The memory that is shared by the group, and what each thread does."""
    shared: list[Alloc] = []
    inside: list[Stmt] = []
    sums = {s.name: _combine_of(point, s.name) for s in point if isinstance(s, Var)}
    for role, together in itertools.groupby(point, lambda s: _role(s, sums)):
        match role:
            case _Role.SUM:
                # These read finished sums, so the threads' parts are combined here.
                memory, steps = combined([s for s in together if isinstance(s, Let)], sums, team)
                shared += memory
                inside += steps
            case _Role.ONCE:
                # One thread does what is done once for the point, as storing its result.
                inside.append(If(team.below(1), tuple(together)))
            case _Role.EACH:
                for stmt in together:
                    if isinstance(stmt, Alloc):
                        shared.append(replace(stmt, space=AddressSpace.SHARED))
                    else:
                        inside += divided[stmt] if isinstance(stmt, For) else (stmt,)
    return shared, inside


class _Role(Enum):
    """What becomes of a statement of a point: it combines parts, or one thread runs it, or each."""

    SUM = "sum"
    ONCE = "once"
    EACH = "each"


def _role(stmt: Stmt, sums: Mapping[str, str]) -> _Role:
    if isinstance(stmt, Let) and isinstance(stmt.value, Local) and stmt.value.name in sums:
        return _Role.SUM
    return _Role.EACH if isinstance(stmt, Alloc | For | Let | Var) else _Role.ONCE


def _combine_of(point: Point, name: str) -> str:
    """How values are combined into an accumulator."""
    return next(s.combine for s in walk(point) if isinstance(s, Accumulate) and s.name == name)


def _all_divided(point: Point, team: Team, share: Share, names: set[str]) -> dict[For, Point] | None:
    """What each thread does of every nest; None where one cannot be divided like that."""
    divided: dict[For, Point] = {}
    held: Held = {}
    for nest in (s for s in point if isinstance(s, For)):
        body = _divided(nest, team, share, names)
        if share.registers:
            if any(map(bodies, body)):
                return None
            body = registered(body, names, held)
        if not body:
            return None
        divided[nest] = body
    return divided


def _divided(nest: For, team: Team, share: Share, names: set[str]) -> Point:
    """The nest with one of its loops divided between the threads; nothing where it cannot be."""
    loops = _nest(nest)
    if len(loops) > 1 and cost.count((loops[-1].extent,)) < team.count * share.lanes:
        loops = [_joined(loops)]
    chosen = _chosen(loops, team.count * share.lanes)
    body: tuple[Stmt, ...] = loops[-1].body
    for number in reversed(range(len(loops))):
        loop = replace(loops[number], body=body)
        # The threads take the place of the vector lanes.
        loop = replace(loop, kind=Kind.SERIAL)
        body = tuple(_every_nth(loop, team, share, names)) if number == chosen else (loop,)
    return body


def _joined(loops: Sequence[For]) -> For:
    """The nest as one loop, since the innermost has no round for every thread."""
    extent = dims.product(loop.extent for loop in loops)
    name = "_".join(loop.var for loop in loops)
    at: dict[str, Size] = {}
    outer: Size = dims.symbol(name, 0, extent - 1)
    for loop in reversed(loops[1:]):
        at[loop.var], outer = outer % loop.extent, outer // loop.extent
    at[loops[0].var] = outer
    return For(name, extent, Kind.VECTOR, replace_symbols(loops[-1].body, at))


def _chosen(loops: Sequence[For], threads: int) -> int:
    """The innermost loop, in which neighbours read neighbours, if long enough; else the longest."""
    lengths = [cost.count((loop.extent,)) for loop in loops]
    return len(loops) - 1 if lengths[-1] >= threads else int(np.argmax(lengths))


def _every_nth(loop: For, team: Team, share: Share, names: set[str]) -> Point:
    """The iterations thread, thread + count, thread + 2*count, ... of a loop, or of its lanes."""
    lanes, step = share.lanes, team.count * share.lanes
    name = f"{loop.var}_round"
    rounds: Size = -(-loop.extent // step)
    one_round = isinstance(rounds, int) and rounds <= 1
    if not _divides(lanes, loop.extent) or (share.registers and not _is_short(rounds, step, loop)):
        return ()
    number: Size = 0 if one_round else dims.symbol(name, 0, rounds - 1)
    numbers = range(rounds) if share.registers and isinstance(rounds, int) else (number,)
    body: list[Stmt] = []
    for n, lane in itertools.product(numbers, range(lanes)):
        # Neighbouring threads read neighbouring elements, which the device loads at once.
        one = replace_symbols(loop.body, {loop.var: n * step + lanes * team.member + lane})
        body += _renamed(one, names) if body or share.registers else one
    if share.registers:
        return tuple(body)
    if lanes > 1:
        body = list(apart(body, names))
    if not _divides(step, loop.extent):
        body = [If(less(number * step + lanes * team.member, loop.extent), tuple(body))]
    if one_round:
        # One statement is needed: this `if` always holds, and simplify_index removes it.
        return tuple(body) if isinstance(body[0], If) else (If(less(team.thread, team.threads), tuple(body)),)
    return (For(name, rounds, Kind.SERIAL, tuple(body)),)


def _is_short(rounds: Size, step: int, loop: For) -> bool:
    """Whether a loop may be written out: every thread does the same, and not too much."""
    return isinstance(rounds, int) and rounds * step == loop.extent and rounds <= MOST_ROUNDS


def _renamed(body: Point, names: set[str]) -> Point:
    """One more copy of some statements."""
    return rename(tuple(body), {name: _named(name, names) for name in sorted(names_bound(body))})


def _divides(count: int, extent: Size) -> bool:
    return dims.divides(count, extent) is True


def _halves(count: int) -> Iterator[int]:
    """count/2, count/4, ..., 1."""
    for power in reversed(range(int(math.log2(count)))):
        yield 1 << power
