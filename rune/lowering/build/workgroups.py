"""Workgroups: the threads of one group share the point of a domain that has too few.

Before   for i in 8 grid: acc = 0; for j in 4096 vector: acc += x[i, j]; store y[i] = acc
After    for i in 8 grid: part: f32[128] shared
           for t in 128 workgroup
             acc = 0; for s in 32: acc += x[i, 128*s + t]     each thread takes every 128th element
             store part[t] = acc; part[t] += part[t + 64] for t < 64; ... + 32; ... + 1
             if t == 0: store y[i] = part[0]

Scratch rows become shared memory. Where threads must wait for each other is left to barriers.py.
A point with a scan or with ordered writes stays with one thread.

Invariant: every element is computed once, sums in one fixed order.
Source: M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.conditions import less
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import Share
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Accumulate, AddressSpace, Alloc, For, If, Kind, Let, Stmt, Store, Var
from rune.lowering.kernel.rewrite import expressions, fresh, names_bound, replace_symbols, walk, walk_expr
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis

Point = Sequence[Stmt]
MOST_SUMS = 4  # of a point that is shared for its reads alone
ROUNDS = 4  # elements for each thread of a group, at least; fewer are not worth the waiting


@dataclass(frozen=True, slots=True)
class Team:
    """The threads of a group: how many, and the symbol that numbers them."""

    count: int
    name: str

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol(self.name, 0, self.count - 1)

    def below(self, number: int) -> Expr:
        """Whether a thread's number is lower."""
        return less(self.thread, number)


@dataclass(frozen=True, slots=True)
class Shared:
    """A point shared by a group, and the statements of its threads that are divided loops.

    Each iteration of these writes its own elements, and so does each thread.
    """

    threads: int
    point: tuple[Stmt, ...]
    divided: tuple[Stmt, ...]


def choose_share(point: Point, domain: Sequence[Axis], target: Target) -> Share | None:
    """The threads for each point, where the device has too few points, or they are long."""
    choice = choices(target)
    few = cost.count(tuple(a.size for a in domain)) <= target.cores * choice.group_points
    # With enough points every processor is busy, and sharing one would only add waiting; but on a
    # GPU threads that each walk along a row of their own touch one element of every line, and so do
    # those that share a column.
    walk_of_gpu = _walk(point, domain[-1].name) if choice.shares_rows and domain else None
    along, across = walk_of_gpu is _Walk.ROWS, walk_of_gpu is _Walk.COLUMNS
    shared = None
    if along:
        shared = _share_among(point, choice.group_threads, target)
    elif few and not (across and cost.count((domain[-1].size,)) >= target.subgroup_threads):
        shared = _share_reduction(point, choice.group_threads, target)
    if are_few(shared.point if shared else point, target):
        return shared and Share(shared.threads)
    longer = _share_long(point, choice.group_threads, target)
    return longer and Share(longer.threads)


def _share_reduction(point: Point, wanted: int, target: Target) -> Shared | None:
    """A point with a reduction, shared by up to `wanted` threads; None where one does as well."""
    reduces = any(isinstance(s, Accumulate) for s in walk(point))
    return _share_among(point, wanted, target) if reduces else None


class _Walk(Enum):
    """Where neighbours in memory are touched: by one point, or by points that are neighbours."""

    ROWS = "rows"
    COLUMNS = "columns"


def _walk(point: Point, axis: str) -> _Walk | None:
    """How the innermost loops of points walk; None for both ways, or neither.

    axis: along which points are neighbours. A tile of a dot has other means: its sums are many.
    """
    if sum(isinstance(s, Accumulate) for s in walk(point)) > MOST_SUMS:
        return None
    steps = [
        (dims.coefficient(index, loop.var), dims.coefficient(index, axis))
        for loop in walk(point)
        if isinstance(loop, For) and loop.kind is Kind.VECTOR
        for index in _indices(loop.body)
    ]
    along = any(_is_next(inner) and not _is_near(outer) for inner, outer in steps)
    across = any(_is_next(outer) and not _is_near(inner) for inner, outer in steps)
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
    longest = max((_points(nest) for nest in point if _is_nest(nest)), default=0)
    # Halved, because sums combine pairs of threads: their number stays a power of two.
    while threads > longest // ROUNDS:
        threads //= 2
    return share_point(point, threads, target) if threads > 1 else None


def share_point(point: Point, threads: int, target: Target) -> Shared | None:
    """The point, shared by the threads of a group; None where that is not possible."""
    if not _can_share(point):
        return None
    team = Team(threads, fresh("thread", names_bound(point)))
    # Kept by nest: barriers.py has to recognise these very statements.
    divided = {nest: _divided(nest, team) for nest in point if isinstance(nest, For)}
    memory, inside = _split(point, team, divided)
    # More than the group's memory would not compile.
    if sum(s.size * s.dtype.itemsize for s in memory) > target.shared_bytes:
        return None
    loop = For(team.name, team.count, Kind.WORKGROUP, tuple(inside))
    return Shared(threads, (*memory, loop), tuple(divided.values()))


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


def _split(point: Point, team: Team, divided: Mapping[For, Stmt]) -> tuple[list[Alloc], list[Stmt]]:
    """The memory that is shared by the group, and what each thread does."""
    shared: list[Alloc] = []
    inside: list[Stmt] = []
    sums: dict[str, Var] = {}
    for stmt in point:
        match stmt:
            case Alloc():
                shared.append(replace(stmt, space=AddressSpace.SHARED))
            case For():
                inside.append(divided[stmt])
            # This Let reads a finished sum, so the threads' parts are combined here.
            case Let(value=Local(name=name)) if name in sums:
                part, steps = _combined(stmt, sums[name], _combine_of(point, name), team)
                shared.append(part)
                inside += steps
            case Let():
                inside.append(stmt)
            case Var(name=name):
                sums[name] = stmt
                inside.append(stmt)
            case _:
                # One thread does what is done once for the point, as storing its result.
                inside.append(If(team.below(1), (stmt,)))
    return shared, inside


def _combine_of(point: Point, name: str) -> str:
    """How values are combined into an accumulator."""
    return next(s.combine for s in walk(point) if isinstance(s, Accumulate) and s.name == name)


def _divided(nest: For, team: Team) -> For | If:
    """The nest with one of its loops divided between the threads."""
    loops = _nest(nest)
    if len(loops) > 1 and cost.count((loops[-1].extent,)) < team.count:
        loops = [_joined(loops)]
    chosen = _chosen(loops, team.count)
    body: tuple[Stmt, ...] = loops[-1].body
    for number in reversed(range(len(loops))):
        loop = replace(loops[number], body=body)
        # The threads take the place of the vector lanes.
        loop = replace(loop, kind=Kind.SERIAL)
        body = (_every_nth(loop, team) if number == chosen else loop,)
    (divided,) = body
    assert isinstance(divided, For | If)
    return divided


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


def _every_nth(loop: For, team: Team) -> For | If:
    """The iterations thread, thread + count, thread + 2*count, ... of a loop."""
    name = f"{loop.var}_round"
    rounds: Size = -(-loop.extent // team.count)
    one_round = isinstance(rounds, int) and rounds <= 1
    number: Size = 0 if one_round else dims.symbol(name, 0, rounds - 1)
    # Neighbouring threads read neighbouring elements, which the device loads at once.
    at = number * team.count + team.thread
    body = replace_symbols(loop.body, {loop.var: at})
    if not _divides(team.count, loop.extent):
        body = (If(less(at, loop.extent), body),)
    if one_round:
        # One statement is needed: this `if` always holds, and simplify_index removes it.
        return body[0] if isinstance(body[0], If) else If(team.below(team.count), body)
    return For(name, rounds, Kind.SERIAL, body)


def _divides(count: int, extent: Size) -> bool:
    return dims.divides(count, extent) is True


def _combined(result: Let, total: Var, combine: str, team: Team) -> tuple[Alloc, list[Stmt]]:
    """Shared memory for the parts of a sum, and the steps in which pairs of them are combined."""
    dtype = total.init.dtype
    part = Alloc(f"{result.name}_parts", dtype, team.count, AddressSpace.SHARED)
    # The Var holds the part of one thread until the parts are combined.
    steps: list[Stmt] = [Store(part.name, team.thread, result.value)]
    for half in _halves(team.count):
        other = Load(part.name, (team.thread + half,), dtype)
        steps.append(If(team.below(half), (Store(part.name, team.thread, other, combine),)))
    return part, [*steps, Let(result.name, Load(part.name, (0,), dtype))]


def _halves(count: int) -> Iterator[int]:
    """count/2, count/4, ..., 1."""
    for power in reversed(range(int(math.log2(count)))):
        yield 1 << power
