"""Join rounds: an inner loop that walks along neighbours does several rounds in one.

Before   for j in 513 serial { s add= x[514*i + j] * t }
After    for j in 256 serial {
           x_element: f32 = x[514*i + 2*j]
           x_element_2: f32 = x[514*i + 2*j + 1]
           s add= x_element * t
           s add= x_element_2 * t
         }
         s add= x[514*i + 512] * t

For devices whose compiler neither joins rounds nor accesses: Mesa's for processors makes eight
accesses of one by a subgroup, one lane after the other, and keeps what an inner loop changes apart
for lanes that have left it. Two neighbours that stand side by side are one access there
(codegen/runs.py).

Invariant: the same statements run in the same order; only reads come earlier, and writes later.
Cost:      linear in the code that comes out.
Not done:  loops of symbolic extent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rune import dims
from rune.dims import Size
from rune.lowering.build.accesses import apart
from rune.lowering.build.heuristics import choices
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Alloc, Barrier, Fetch, For, KernelCode, Kind, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    expressions,
    map_stmts,
    unique_names,
    walk,
    walk_expr,
)
from rune.lowering.optimize.unroll import round_at
from rune.lowering.passes import Pass

APART = 4  # rounds in one where no neighbours are: what they change is kept apart less often
MOST_STATEMENTS = 768  # of a joined round: more take long to compile


def join_rounds(target: Target) -> Pass[KernelCode]:
    """The pass for a target, which does nothing where compilers do better themselves."""
    most = choices(target).rounds

    def joined(code: KernelCode) -> KernelCode:
        if most < 2:
            return code
        unique = unique_names(code)
        names = all_names(unique)

        def join(stmt: Stmt) -> Body:
            return _joined(stmt, _rounds(stmt, most), names) if isinstance(stmt, For) else (stmt,)

        return replace(unique, body=apart(map_stmts(join, unique.body), names))

    return Pass("join-rounds", "do several rounds of a loop in one", joined)


def _rounds(loop: For, most: int) -> int:
    """How many rounds of a loop to do in one: a power of two, 1 where nothing is won."""
    inside = tuple(walk(loop.body))
    is_inner = not any(isinstance(s, Alloc | Barrier | Fetch | For | MatrixProduct) for s in inside)
    is_walk = loop.kind in (Kind.SERIAL, Kind.VECTOR) and isinstance(loop.extent, int)
    if not is_inner or not is_walk:
        return 1
    is_along = any(dims.coefficient(x, loop.var) == 1 for x in _places(loop.body))
    count = most if is_along else min(most, APART)
    while count > 1 and (count > loop.extent or count * len(inside) > MOST_STATEMENTS):
        count //= 2
    return count


def _places(body: Body) -> list[Size]:
    """Of what some statements read and write."""
    read = [e.indices[0] for s in walk(body) for x in expressions(s) for e in walk_expr(x) if isinstance(e, Load)]
    return [*read, *(s.index for s in walk(body) if isinstance(s, Store))]


def _joined(loop: For, count: int, names: set[str]) -> Body:
    """A loop of fewer rounds, and those that are left over."""
    if count == 1:
        return (loop,)
    assert isinstance(loop.extent, int), "a loop of symbolic extent is not joined"
    whole, over = divmod(loop.extent, count)
    first = dims.symbol(loop.var, 0, whole - 1) * count if whole > 1 else 0
    rounds = _rounds_at(loop, [first + number for number in range(count)], names)
    wide = (replace(loop, extent=whole, body=rounds),) if whole > 1 else rounds
    return (*wide, *_rounds_at(loop, [whole * count + number for number in range(over)], names))


def _rounds_at(loop: For, places: Iterable[Size], names: set[str]) -> Body:
    """The statements of some rounds, one after the other."""
    return tuple(statement for at in places for statement in round_at(loop, at, names))
