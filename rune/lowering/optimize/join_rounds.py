"""Join rounds: an inner loop along neighbours does several rounds in one.

Before   for j in 513 serial { s add= x[514*i + j] * t }
After    for j in 256 serial {
           x_element: f32 = x[514*i + 2*j]
           x_element_2: f32 = x[514*i + 2*j + 1]
           s add= x_element * t
           s add= x_element_2 * t
         }
         s add= x[514*i + 512] * t

This is for devices whose compiler joins neither rounds nor accesses. Mesa's compiler for processors
turns one access of a subgroup into eight, lane after lane, and copies what an inner loop changes,
for lanes that have left the loop. There, two neighbours that stand side by side are one access
(codegen/runs.py). Additions to one sum stand side by side, too: if there are more sums than
registers, each is loaded and stored once in such a round.

Invariant: the same statements run in the same order, but reads come earlier and writes later, and
           sums are added up one after another.
Cost:      linear in the code that comes out.
Not done:  loops of symbolic extent, and those with branches: accesses of different branches are
           never one, and the driver's time to compile grows faster than the number of branches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence, Set

from rune import dims
from rune.dims import Size
from rune.lowering.build.accesses import apart
from rune.lowering.build.heuristics import choices
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load, Local
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Barrier,
    Fetch,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Stmt,
    Store,
)
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    expressions,
    loads,
    loop_symbol,
    map_bodies,
    map_stmts,
    names_in,
    unique_names,
    walk,
)
from rune.lowering.kernel.work import called_instructions
from rune.lowering.optimize.unroll import round_at
from rune.lowering.passes import Pass
from rune.records import replace

APART = 4  # rounds in one where no neighbours are: what they change is kept apart less often
# Of the joined rounds of all loops of a kernel, as more take long to compile: statements, accesses,
# instructions in functions.
MOST = (768, 320, 256)


def join_rounds(target: Target) -> Pass[KernelCode]:
    """The pass for a target, which does nothing where compilers do better themselves."""
    most = choices(target).rounds

    def joined(code: KernelCode) -> KernelCode:
        # Between two barriers such a compiler keeps everything in memory, and gains nothing.
        if most < 2 or any(isinstance(s, Barrier) for s in walk(code.body)):
            return code
        unique = unique_names(code)
        names = all_names(unique)

        arrays = frozenset(p.name for p in unique.params)
        inner_loops = [s for s in walk(unique.body) if isinstance(s, For) and _is_joinable(s)]
        fitting = min(most, _fitting(inner_loops))

        def join(stmt: Stmt) -> Body:
            if not isinstance(stmt, For) or not _is_joinable(stmt):
                return (stmt,)
            return _joined(stmt, _rounds(stmt, fitting, arrays), names)

        result = replace(unique, body=_sum_by_sum(apart(map_stmts(join, unique.body), names)))
        return code if result == code else result

    return Pass("join-rounds", "do several rounds of a loop in one", joined)


def _is_joinable(loop: For) -> bool:
    """Whether a loop is an inner one, of at least two rounds."""
    is_inner = not any(isinstance(s, Alloc | Fetch | For | If | MatrixProduct) for s in walk(loop.body))
    is_serial = loop.kind in (Kind.SERIAL, Kind.VECTOR)
    return is_inner and is_serial and isinstance(loop.extent, int) and loop.extent >= 2


def _fitting(loops: Sequence[For]) -> int:
    """How many rounds of each of these loops may be joined."""
    sizes = [(sum(1 for _ in walk(s.body)), len(_places(s.body)), called_instructions(s.body)) for s in loops]
    return min((limit // max(1, sum(size)) for limit, size in zip(MOST, zip(*sizes))), default=1)


def _rounds(loop: For, most: int, arrays: Set[str]) -> int:
    """How many rounds to join: all of a short loop, or a power of two; 1: the loop stays.

    arrays: the kernel's parameters; two neighbours of a thread's own memory are never one access
    """
    assert isinstance(loop.extent, int), "a loop of symbolic extent is not joinable"
    neighbours = (place for place in _places(loop.body) if place[0] in arrays)
    # Where the loops within it have been written out, a loop is longer than it was.
    count = min(most if _has_pairs(neighbours, loop) else APART, most, _fitting((loop,)))
    return loop.extent if loop.extent <= count else 1 << max(0, count.bit_length() - 1)


def _places(body: Body) -> set[tuple[str, Size]]:
    """The places that some statements read or write."""
    read = loads(e for s in walk(body) for e in expressions(s))
    stores = (s for s in walk(body) if isinstance(s, Store))
    return {(e.buffer, e.indices[0]) for e in read} | {(s.buffer, s.index) for s in stores}


def _has_pairs(places: Iterable[tuple[str, Size]], loop: For) -> bool:
    """Whether two rounds access neighbours, the first of them aligned for a wide access."""
    step = loop_symbol(loop)
    return any(dims.coefficient(index, loop.var) == 1 and dims.divides(2, index - step) is True for _, index in places)


def _joined(loop: For, count: int, names: set[str]) -> Body:
    """A loop of fewer rounds, and the remaining rounds after it."""
    if count == 1:
        return (loop,)
    assert isinstance(loop.extent, int), "a loop of symbolic extent is not joined"
    extent, over = divmod(loop.extent, count)
    first = dims.symbol(loop.var, 0, extent - 1) * count if extent > 1 else 0
    rounds = _rounds_at(loop, [first + number for number in range(count)], names)
    wide = (replace(loop, extent=extent, body=rounds),) if extent > 1 else rounds
    return (*wide, *_rounds_at(loop, [extent * count + number for number in range(over)], names))


def _sum_by_sum(body: Body) -> Body:
    """The body with the additions to each sum side by side, wherever no sum is read in between."""
    sums = {s.name for s in body if isinstance(s, Accumulate)}
    result: list[Stmt] = []
    for is_straight, group in itertools.groupby(body, lambda stmt: _is_straight(stmt, sums)):
        statements = tuple(group)
        result += _in_order(statements) if is_straight else [map_bodies(stmt, _sum_by_sum) for stmt in statements]
    return tuple(result)


def _is_straight(stmt: Stmt, sums: Set[str]) -> bool:
    """Whether a statement only loads, renames or accumulates, and reads no sum."""
    is_plain = isinstance(stmt, Accumulate) or (isinstance(stmt, Let) and isinstance(stmt.value, Load | Local))
    return is_plain and not any(names_in(e) & sums for e in expressions(stmt))


def _in_order(body: Body) -> Sequence[Stmt]:
    """Reads first, then the additions to each sum, in the order of their first appearance."""
    places: dict[str, int] = {}
    for stmt in body:
        if isinstance(stmt, Accumulate):
            places.setdefault(stmt.name, len(places))
    return sorted(body, key=lambda stmt: places[stmt.name] if isinstance(stmt, Accumulate) else -1)


def _rounds_at(loop: For, places: Iterable[Size], names: set[str]) -> Body:
    """The statements of some rounds, one after another."""
    return tuple(statement for at in places for statement in round_at(loop, at, names))
