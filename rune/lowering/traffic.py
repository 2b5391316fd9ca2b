"""Traffic: how many elements of each parameter a kernel reads and writes, from its code.

    t: i32 = row[0]
    for i in 8 grid { for j in 4 serial { s add= x[i] * w[4*t + j] } }    1 of row, 8 of x, 4 of w

An access counts at most one element for each point of the loops on which its index depends, and all
accesses together count at most the whole parameter.
Invariant: never fewer elements than are accessed, except that symbolic sizes are compared at
typical values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rune.dims import Size, product
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Access, Fetch, For, KernelCode, Let, Stmt, Store
from rune.lowering.kernel.rewrite import bodies, expressions, loads, loads_in, names_in, size_names
from rune.lowering.kernelize.cost import estimate
from rune.records import dataclass

# For each name that an index may mention, the loops on which its value depends, with extents.
Scope = Mapping[str, Mapping[str, Size]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Numbers of elements of one parameter that are read and written."""

    reads: Size = 0
    writes: Size = 0


def traffic(code: KernelCode) -> dict[str, Traffic]:
    """The traffic of each parameter of a kernel."""
    reads: dict[str, Size] = {}
    writes: dict[str, Size] = {}
    # A value computed only from these depends on no loop.
    constant = [*code.sizes, *(p.name for p in code.params if p.access is Access.READ)]
    for stmt, scope in _statements(code.body, {name: {} for name in constant}, {}):
        for load in loads(expressions(stmt)):
            reads[load.buffer] = reads.get(load.buffer, 0) + _points(load.indices[0], scope)
        if isinstance(stmt, Store):
            points = _points(stmt.index, scope)
            writes[stmt.buffer] = writes.get(stmt.buffer, 0) + points
            # An update reads the element first.
            if stmt.combine is not None:
                reads[stmt.buffer] = reads.get(stmt.buffer, 0) + points
        if isinstance(stmt, Fetch):
            reads[stmt.source] = reads.get(stmt.source, 0) + stmt.count * _points(stmt.source_index, scope)
    return {
        # Caches are assumed to hold elements that are read again, so no element counts twice.
        p.name: Traffic(_least(reads.get(p.name, 0), p.size), _least(writes.get(p.name, 0), p.size))
        for p in code.params
    }


def _statements(body: Iterable[Stmt], scope: Scope, loops: Mapping[str, Size]) -> Iterator[tuple[Stmt, Scope]]:
    """All statements, each with the scope of its indices."""
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
    """The loops on which a value depends: all around it if it reads something that may change."""
    names = names_in(value) | loads_in(value)
    if names <= scope.keys():
        return {k: v for name in names for k, v in scope[name].items()}
    return loops


def _points(index: Size, scope: Scope) -> Size:
    """How many different values an index may take."""
    loops = {k: v for name in size_names(index) for k, v in scope[name].items()}
    return product(loops.values())


def _least(a: Size, b: Size) -> Size:
    # Symbolic sizes are compared at typical values, since there may be no proof.
    return a if estimate(a) < estimate(b) else b
