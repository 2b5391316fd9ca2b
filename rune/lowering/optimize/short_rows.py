"""Short rows: scratch of a few elements becomes as many scalars.

Before   alloc row: f32[2] local
         for j in 2 vector { store row[j] = x[2*i + j] * t }
         for j in 2 vector { s add= row[j] }
After    row_0: f32 = x[2*i] * t
         row_1: f32 = x[2*i + 1] * t
         s add= row_0
         s add= row_1

The loops over such a row are unrolled. Then the points around it may become lanes of a vector,
which a row of memory for each of them would prevent.

Invariant: every value stays the same, bit for bit, except for the order of Accumulate.
Cost:      linear in the code; a loop becomes at most SHORT copies.
"""

from __future__ import annotations

from collections.abc import Iterable

from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import AddressSpace, Alloc, For, KernelCode, Kind, Let, Stmt, Store
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    bodies,
    buffers_read,
    buffers_written,
    expressions,
    loads,
    map_bodies,
    map_expr,
    map_parts,
    map_stmts,
    reserve,
    unique_names,
    walk,
)
from rune.lowering.optimize.unroll import copy_of_round
from rune.lowering.passes import Pass
from rune.records import replace

SHORT = 4  # elements


def _is_short_row(stmt: Stmt) -> bool:
    return isinstance(stmt, Alloc) and stmt.space is AddressSpace.LOCAL and stmt.size <= SHORT


def short_rows(code: KernelCode) -> KernelCode:
    """The code with scalars for short rows whose elements are written once before they are read."""
    if not any(map(_is_short_row, walk(code.body))):
        return code
    unique = unique_names(code)
    names = all_names(unique)

    def visit(body: Body) -> Body:
        body = tuple(map_bodies(stmt, visit) for stmt in body)
        for row in filter(_is_short_row, body):
            assert isinstance(row, Alloc)
            body = _in_registers(row, body, names)
        return body

    body = visit(unique.body)
    return code if body == unique.body else replace(unique, body=body)


def _in_registers(row: Alloc, body: Body, names: set[str]) -> Body:
    """The body without the row that it allocates, or the body itself if that is impossible."""
    written_out = tuple(new for stmt in body for new in _rounds(stmt, row, names))
    if not _is_written_once(row, written_out):
        return body
    locals_ = [Local(reserve(f"{row.name}_{k}", names), row.dtype) for k in range(row.size)]

    def read(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer == row.name:
            (index,) = expr.indices
            assert isinstance(index, int)
            return locals_[index]
        return expr

    def scalar(stmt: Stmt) -> Iterable[Stmt]:
        if stmt is row:
            return ()
        stmt = map_parts(stmt, lambda x: map_expr(read, x), lambda size: size)
        if isinstance(stmt, Store) and stmt.buffer == row.name:
            assert isinstance(stmt.index, int)
            return (Let(locals_[stmt.index].name, stmt.value),)
        return (stmt,)

    return map_stmts(scalar, written_out)


def _rounds(stmt: Stmt, row: Alloc, names: set[str]) -> Body:
    """The rounds of a loop over the row; any other statement unchanged."""
    if not isinstance(stmt, For) or not _touches(stmt, row) or any(map(bodies, stmt.body)):
        return (stmt,)
    is_short = isinstance(stmt.extent, int) and stmt.extent <= SHORT
    if not is_short or stmt.kind not in (Kind.SERIAL, Kind.VECTOR, Kind.UNROLLED):
        return (stmt,)
    assert isinstance(stmt.extent, int)
    return tuple(new for number in range(stmt.extent) for new in copy_of_round(stmt, number, names))


def _touches(stmt: Stmt, row: Alloc) -> bool:
    return row.name in buffers_read((stmt,)) | buffers_written((stmt,))


def _is_written_once(row: Alloc, body: Body) -> bool:
    """Whether each element is written once, directly in this body, before it is read."""
    elements: set[int] = set()
    for stmt in body:
        if not all(_is_known(x, row, elements) for inner in walk((stmt,)) for x in expressions(inner)):
            return False
        if row.name not in buffers_written((stmt,)):
            continue
        if not isinstance(stmt, Store) or stmt.combine is not None or not isinstance(stmt.index, int):
            return False
        if stmt.index in elements:
            return False
        elements.add(stmt.index)
    return len(elements) == row.size


def _is_known(expr: Expr, row: Alloc, elements: set[int]) -> bool:
    """Whether the expression reads only elements of the row that were written."""
    return all(x.guard is None and x.indices[0] in elements for x in loads((expr,)) if x.buffer == row.name)


PASS = Pass("short_rows", "keep scratch of a few elements in registers", short_rows)
