"""Reads of a subgroup: each thread reads one piece of the data that all of its threads need.

    a: f32 = x[16*k]            p = two elements at x[16*k + 2 * lane]
    b: f32 = x[16*k + 1]   ->   a = low half of p in lane 0;  b = its high half
    ...                         ...
    h: f32 = x[16*k + 15]       h = the high half of p in lane 7

Short rows at equal distances are one access, too, such as four rows of four elements. This is for
devices on which reading one address costs as much as reading many. Threads of a subgroup are
neighbours, and all of them must be active: not inside an If, nor in a loop whose number of rounds
differs between them. A thread takes a piece from its lane right before the first use, so that few
pieces are in registers. If an If needs the piece, the thread takes it before the If, while all
lanes are active.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.lowering.codegen.runs import LoadRun, Most, StoreRun, with_runs
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import For, Let, Stmt
from rune.lowering.kernel.rewrite import names_in, names_used
from rune.records import dataclass

LEAST = 3  # elements; every thread reads fewer than these itself


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows of f32 that all threads read, the first at `index`.

    size:   elements that a thread reads, one or two
    pieces: threads that read one row
    step:   distance from one row to the next; 0 if there is only one
    """

    lets: tuple[Let, ...]
    buffer: str
    index: Size
    size: int
    pieces: int
    step: int

    @property
    def threads(self) -> int:
        """The number of threads that read a piece."""
        return len(self.lets) // self.size

    @property
    def last(self) -> Size:
        """The index of the last element."""
        rows = self.threads // self.pieces
        return self.index + (rows - 1) * self.step + self.pieces * self.size - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A scalar that is the same for all threads, and the lane that has read it."""

    name: str
    lane: int


Statement = Stmt | LoadRun | StoreRun | Alike | Piece


@dataclass(frozen=True, slots=True)
class Subgroup:
    """Threads that are all active, and the names that have the same value in all of them."""

    threads: int
    names: frozenset[str]

    def within(self, loop: For) -> Subgroup | None:
        """The subgroup inside a loop; None if its threads may run different numbers of rounds."""
        return replace(self, names=self.names | {loop.var}) if is_alike(loop.extent, self.names) else None


def subgroup_of(grid: Sequence[For], sizes: Collection[str], threads: int, target: Target) -> Subgroup | None:
    """The subgroup in groups of this many threads; None if some may idle or there is no shuffle."""
    width, points = target.subgroup_threads, dims.product(loop.extent for loop in grid)
    is_full = threads % width == 0 and dims.divides(width, points) is True
    if not is_full or ("shuffle", dtypes.f32) not in target.native:
        return None
    return Subgroup(width, loops_alike(grid, width).union(sizes))


def accesses(
    body: Sequence[Stmt], most: Most, buffers: Collection[str], subgroup: Subgroup | None
) -> Iterator[Statement]:
    """The statements in order, with those that one access covers merged into one."""
    if subgroup is None:
        yield from with_runs(body, most, buffers)
        return
    unread: dict[str, Piece] = {}
    for item in with_alike(body, subgroup.names, buffers, subgroup.threads):
        if isinstance(item, Alike):
            yield item
            unread |= {let.name: Piece(let.name, number // item.size) for number, let in enumerate(item.lets)}
            continue
        for access in with_runs(item, most, buffers):
            names_read = _names(access)
            yield from [unread.pop(name) for name in tuple(unread) if name in names_read]
            yield access


def _names(access: Stmt | LoadRun | StoreRun) -> frozenset[str]:
    """The locals that an access reads."""
    match access:
        case LoadRun(guard=guard):
            return frozenset() if guard is None else names_in(guard)
        case StoreRun(values=values):
            return frozenset().union(*map(names_in, values))
        case _:
            return names_used((access,))


def loops_alike(grid: Sequence[For], threads: int) -> frozenset[str]:
    """The loop variables of a grid that are the same for all threads of a subgroup."""
    inside: Size = 1
    names = set[str]()
    for loop in reversed(grid):
        if dims.divides(threads, inside) is True:
            names.add(loop.var)
        inside = inside * loop.extent
    return frozenset(names)


def is_alike(size: Size, names: Collection[str]) -> bool:
    """Whether an index mentions only such names."""
    return not isinstance(size, Dim) or all(symbol.name in names for symbol in dims.symbols(size))


def with_alike(
    body: Sequence[Stmt], names: Collection[str], buffers: Collection[str], threads: int
) -> Iterator[Alike | tuple[Stmt, ...]]:
    """The statements in order: reads that all threads share merged into one, the rest in tuples."""
    plain: list[Stmt] = []
    position = 0
    while position < len(body):
        alike = _alike(body[position : position + 2 * threads], names, buffers, threads)
        if alike is None:
            plain.append(body[position])
            position += 1
            continue
        yield tuple(plain)
        yield alike
        plain, position = [], position + len(alike.lets)
    yield tuple(plain)


def _alike(body: Sequence[Stmt], names: Collection[str], buffers: Collection[str], threads: int) -> Alike | None:
    """The most rows, from the first statement on, that one access can read."""
    lets = list(_reads_alike(body, names, buffers))
    if len(lets) < LEAST:
        return None
    loads = [let.value for let in lets if isinstance(let.value, Load)]
    first = loads[0].indices[0]
    length, count, step = _rows([load.indices[0] - first for load in loads])
    is_even = dims.divides(2, first) is True and (count == 1 or length % 2 == step % 2 == 0)
    size = 2 if is_even and length * count > threads else 1
    pieces = min(length // size, threads)
    count = min(count, threads // pieces)
    read = tuple(lets[: count * pieces * size])
    return Alike(read, loads[0].buffer, first, size, pieces, step) if len(read) >= LEAST else None


def _reads_alike(body: Sequence[Stmt], names: Collection[str], buffers: Collection[str]) -> Iterator[Let]:
    """The leading statements that read one array, at indices that all threads share."""
    buffer = None
    for stmt in body:
        if not isinstance(stmt, Let) or not isinstance(stmt.value, Load):
            return
        load = stmt.value
        is_plain = load.guard is None and load.dtype == dtypes.f32 and load.buffer in buffers
        if not is_plain or not is_alike(load.indices[0], names) or buffer not in (None, load.buffer):
            return
        buffer = load.buffer
        yield stmt


def _rows(places: Sequence[Size]) -> tuple[int, int, int]:
    """The length of a row, the number of rows at the first places, and the step between rows."""
    length = next((n for n, place in enumerate(places) if place != n), len(places))
    step = places[length] if length < len(places) else 0
    if not isinstance(step, int) or step <= 0:
        return length, 1, 0
    grid_places = (row * step + k for row in range(len(places)) for k in range(length))
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(places, grid_places))
    return length, sum(1 for _ in alike) // length, step
