"""Traffic: how many elements of each parameter a kernel reads and writes, from its code.

    t: i32 = row[0]
    for i in 8 grid { for j in 4 serial { s add= x[i] * w[4*t + j] } }    1 of row, 8 of x, 4 of w

An access touches at most one element for each point of the loops on which its index depends; and a
parameter is touched at most whole, by all accesses together.
Invariant: never less than what is touched, but for the bounds of symbolic sizes, which are typical.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rune.dims import Size, product
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.nodes import Access, Fetch, For, KernelCode, Let, Stmt, Store
from rune.lowering.kernel.rewrite import bodies, expressions, loads_in, names_in, size_names, walk_expr
from rune.lowering.kernelize.cost import estimate
from rune.records import dataclass

# What an index may mention -> the loops on which its value depends, with their extents.
Scope = Mapping[str, Mapping[str, Size]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Elements of one parameter."""

    read: Size = 0
    written: Size = 0


def traffic(code: KernelCode) -> dict[str, Traffic]:
    """What the kernel touches of each parameter."""
    read: dict[str, Size] = {}
    written: dict[str, Size] = {}
    # A value computed only from these depends on no loop.
    constant = [*code.sizes, *(p.name for p in code.params if p.access is Access.READ)]
    for stmt, scope in _statements(code.body, {name: {} for name in constant}, {}):
        for load in _loads(stmt):
            read[load.buffer] = read.get(load.buffer, 0) + _points(load.indices[0], scope)
        if isinstance(stmt, Store):
            points = _points(stmt.index, scope)
            written[stmt.buffer] = written.get(stmt.buffer, 0) + points
            # An update reads the element first.
            if stmt.combine is not None:
                read[stmt.buffer] = read.get(stmt.buffer, 0) + points
        if isinstance(stmt, Fetch):
            read[stmt.source] = read.get(stmt.source, 0) + stmt.count * _points(stmt.source_index, scope)
    return {
        # Caches are assumed to hold what is read again, so no element counts twice.
        p.name: Traffic(_least(read.get(p.name, 0), p.size), _least(written.get(p.name, 0), p.size))
        for p in code.params
    }


def _statements(body: Iterable[Stmt], scope: Scope, loops: Mapping[str, Size]) -> Iterator[tuple[Stmt, Scope]]:
    """All statements, each with the names that its indices may mention."""
    for stmt in body:
        yield stmt, scope
        inside, around = scope, loops
        if isinstance(stmt, Let):
            scope = {**scope, stmt.name: _depends(stmt.value, scope, loops)}
        if isinstance(stmt, For):
            around = {**loops, stmt.var: stmt.extent}
            inside = {**scope, stmt.var: {stmt.var: stmt.extent}}
        for inner in bodies(stmt):
            yield from _statements(inner, inside, around)


def _depends(value: Expr, scope: Scope, loops: Mapping[str, Size]) -> Mapping[str, Size]:
    """The loops on which a value depends: all around it, where it reads what may be changed."""
    names = names_in(value) | loads_in(value)
    if names <= scope.keys():
        return {k: v for name in names for k, v in scope[name].items()}
    return loops


def _loads(stmt: Stmt) -> Iterator[Load]:
    parts = (part for e in expressions(stmt) for part in walk_expr(e))
    return (part for part in parts if isinstance(part, Load))


def _points(index: Size, scope: Scope) -> Size:
    """How many different values an index may take."""
    loops = {k: v for name in size_names(index) for k, v in scope[name].items()}
    return product(loops.values())


def _least(a: Size, b: Size) -> Size:
    # Symbolic sizes are compared at typical values, since there may be no proof.
    return a if estimate(a) < estimate(b) else b
