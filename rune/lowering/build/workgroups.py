"""Workgroups: the threads of one group share a point, where there are too few points.

Before   for i in 8 grid: acc = 0; for j in 4096 vector: acc += x[i, j]; store y[i] = acc
After    for i in 8 grid                                    share(128)
           for t in 128 workgroup
             acc = 0; for s in 32: acc += x[i, 128*s + t]     each thread takes every 128th element
             the parts of all threads are added up (team.py)
             if t == 0: store y[i] = sum

With lanes, a thread takes several neighbours at a time. With several points, a group has that many
teams, whose threads follow one another, or alternate if `across`. With registers, every loop is
unrolled, and a thread does not read again for one loop what it has read for another. Scratch rows
become shared memory. barriers.py finds where threads must wait for each other. A point with a scan
or with ordered writes stays with one thread.

Invariant: every element is computed once, and sums have one fixed order.
Source: M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from rune import dims
from rune.dims import Size
from rune.lowering.build.accesses import Registers, apart, registered
from rune.lowering.build.conditions import less
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import Share
from rune.lowering.build.team import Team, combined
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Local
from rune.lowering.kernel.nodes import Accumulate, AddressSpace, Alloc, For, If, Kind, Let, Stmt, Var
from rune.lowering.kernel.rewrite import bodies, fresh, names_bound, rename, replace_symbols, reserve, walk
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, positions
from rune.records import dataclass

Point = Sequence[Stmt]


@dataclass(frozen=True, slots=True)
class SharedPoint:
    """A point shared by a group, and those statements of its threads that are divided loops.

    Each iteration of a divided loop writes its own elements, and so does each thread.
    """

    threads: int
    point: tuple[Stmt, ...]
    divided_loops: tuple[Stmt, ...]


def share_point(point: Point, share: Share, target: Target) -> SharedPoint | None:
    """The point, shared by the threads of a group; None if that is impossible."""
    # Tested before any code is written: most groups that a search tries cannot divide some nest.
    if not can_share(point, share, target):
        return None
    names = set(names_bound(point))
    team = Team(share.threads, reserve("thread", names), share.points, share.across)
    # By nest, since barriers.py has to recognise these very statements.
    divided_loops = _all_divided(point, team, share, names)
    memory, inside = _split(point, team, divided_loops)
    # A kernel that needs more than the group's memory would not compile.
    if sum(s.size * s.dtype.itemsize for s in memory) > target.shared_bytes:
        return None
    loop = For(team.name, team.threads, Kind.WORKGROUP, tuple(inside))
    # Indices that divide the number of a thread do not show that teams have different elements.
    apart = [s for s in inside if isinstance(s, If)] if team.points > 1 else []
    return SharedPoint(share.threads, (*memory, loop), (*(s for body in divided_loops.values() for s in body), *apart))


def can_share(point: Point, share: Share, target: Target) -> bool:
    """Whether a group can divide all loops of a point; its memory may still be too small."""
    # A scratch row belongs to one point.
    if not _has_nests(point) or (share.points > 1 and any(isinstance(s, Alloc) for s in point)):
        return False
    team, most = Team(share.threads, "thread", share.points, share.across), choices(target).row_elements
    return all(_can_divide(nest, team, share, most) for nest in point if isinstance(nest, For))


def placed(point: Point, domain: Sequence[Axis], share: Share) -> tuple[list[Axis], Point]:
    """The axes of the grid and the point of a thread; with several points, both of one team."""
    if share.points == 1:
        return list(domain), point
    *outer, last = domain
    team = Team(share.threads, fresh("thread", names_bound(point)), share.points, share.across)
    block = Axis(last.name, last.size // share.points)
    return [*outer, block], replace_symbols(tuple(point), {last.name: block.symbol * share.points + team.point})


def _has_nests(point: Point) -> bool:
    """Whether the point has loops, each of which may run in any order."""
    loops = [s for s in point if isinstance(s, For)]
    return bool(loops) and all(map(is_nest, loops))


def is_nest(stmt: Stmt) -> bool:
    """Whether a statement is a nest of loops whose iterations are all independent."""
    return isinstance(stmt, For) and nest_of(stmt)[-1].kind is Kind.VECTOR


def nest_of(loop: For) -> list[For]:
    """The loops of a perfect nest."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], For):
        loops.append(loops[-1].body[0])
    return loops


# --- statements ---------------------------------------------------------------------------------


def _split(point: Point, team: Team, divided_loops: Mapping[For, Point]) -> tuple[list[Alloc], list[Stmt]]:
    """The memory that the group shares, and the statements of each thread."""
    allocs: list[Alloc] = []
    inside: list[Stmt] = []
    sums = {s.name: _combine_of(point, s.name) for s in point if isinstance(s, Var)}
    # Sums that end together are combined together, and share their barriers.
    for role, together in itertools.groupby(point, lambda s: _role(s, sums)):
        match role:
            case _Role.SUM:
                # These read finished sums, so the threads' parts are combined here.
                memory, steps = combined([s for s in together if isinstance(s, Let)], sums, team)
                allocs += memory
                inside += steps
            case _Role.ONCE:
                # One thread does what is done once for the point, such as storing its result.
                inside.append(If(team.below(1), tuple(together)))
            case _Role.EACH:
                for stmt in together:
                    if isinstance(stmt, Alloc):
                        allocs.append(replace(stmt, space=AddressSpace.SHARED))
                    else:
                        inside += divided_loops[stmt] if isinstance(stmt, For) else (stmt,)
    return allocs, inside


class _Role(Enum):
    """What a statement of a point becomes: it combines parts, or one or each thread runs it."""

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


def _can_divide(nest: For, team: Team, share: Share, most: int) -> bool:
    """Whether a group can divide the nest and, with registers, unroll it.

    most: elements of a thread in a loop that is unrolled
    """
    loops, step = nest_of(nest), team.count * share.lanes
    extents = [loop.extent for loop in loops]
    if _is_joined(loops, step):
        # The nest will be one loop, as in `_divided`.
        extents = [dims.product(extents)]
    extent = extents[_chosen(extents, step)]
    if not share.registers:
        return _divides(share.lanes, extent)
    is_flat = len(extents) == 1 and not any(map(bodies, loops[-1].body))
    return is_flat and _divides(share.lanes, extent) and _is_short(extent, step, share.lanes, most)


def _all_divided(point: Point, team: Team, share: Share, names: set[str]) -> dict[For, Point]:
    """For every nest, the statements of each thread."""
    thread_loops: dict[For, Point] = {}
    registers: Registers = {}
    for nest in (s for s in point if isinstance(s, For)):
        body = _divided(nest, team, share, names)
        thread_loops[nest] = registered(body, names, registers) if share.registers else body
    return thread_loops


def _divided(nest: For, team: Team, share: Share, names: set[str]) -> Point:
    """The nest with one of its loops divided between the threads."""
    loops, step = nest_of(nest), team.count * share.lanes
    if _is_joined(loops, step):
        loops = [_joined(loops)]
    divided_number = _chosen([loop.extent for loop in loops], step)
    body: tuple[Stmt, ...] = loops[-1].body
    for number in reversed(range(len(loops))):
        loop = replace(loops[number], body=body)
        # Threads take the place of vector lanes.
        loop = replace(loop, kind=Kind.SERIAL)
        body = tuple(_every_nth(loop, team, share, names)) if number == divided_number else (loop,)
    return body


def _is_joined(loops: Sequence[For], threads: int) -> bool:
    """Whether the nest becomes one loop, since its innermost has no round for every thread."""
    return len(loops) > 1 and cost.count((loops[-1].extent,)) < threads


def _joined(loops: Sequence[For]) -> For:
    """The nest as one loop."""
    extent = dims.product(loop.extent for loop in loops)
    name = "_".join(loop.var for loop in loops)
    at, at_first = positions(dims.symbol(name, 0, extent - 1), [Axis(loop.var, loop.extent) for loop in loops[1:]])
    return For(name, extent, Kind.VECTOR, replace_symbols(loops[-1].body, {**at, loops[0].var: at_first}))


def _chosen(extents: Sequence[Size], threads: int) -> int:
    """The number of the loop to divide: the innermost if it is long enough, else the longest."""
    # In the innermost loop, neighbouring threads access neighbours.
    lengths = [cost.count((extent,)) for extent in extents]
    return len(lengths) - 1 if lengths[-1] >= threads else int(np.argmax(lengths))


def _every_nth(loop: For, team: Team, share: Share, names: set[str]) -> Point:
    """The iterations thread, thread + count, thread + 2*count, ... of a loop, or of its lanes."""
    lanes, step = share.lanes, team.count * share.lanes
    name = f"{loop.var}_round"
    rounds: Size = -(-loop.extent // step)
    one_round = isinstance(rounds, int) and rounds <= 1
    number: Size = 0 if one_round else dims.symbol(name, 0, rounds - 1)
    numbers = range(rounds) if share.registers and isinstance(rounds, int) else (number,)
    body: list[Stmt] = []
    for n, lane in itertools.product(numbers, range(lanes)):
        # Neighbouring threads read neighbouring elements, which the device loads together.
        one = replace_symbols(loop.body, {loop.var: n * step + lanes * team.member + lane})
        body += _renamed(one, names) if body or share.registers else one
    # Every thread has equally many elements (`_is_short`), so no round needs a condition.
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


def _is_short(extent: Size, step: int, lanes: int, most: int) -> bool:
    """Whether a loop may be unrolled: all threads have equally many elements, and not too many."""
    return isinstance(extent, int) and extent % step == 0 and extent // step * lanes <= most


def _renamed(body: Point, names: set[str]) -> Point:
    """One more copy of some statements, with fresh names."""
    return rename(tuple(body), {name: reserve(name, names) for name in sorted(names_bound(body))})


def _divides(count: int, extent: Size) -> bool:
    return dims.divides(count, extent) is True
