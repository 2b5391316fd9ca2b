"""Unroll: an UNROLLED loop of static extent becomes copies of its body.

Before   for k in 2 unrolled { t: f32 = x[2*i + k]; s add= t }
After    t: f32 = x[2*i]
         s add= t
         t_2: f32 = x[2*i + 1]
         s add= t_2

A loop of symbolic extent, or whose copies would be more than LIMIT statements, becomes SERIAL. A
loop of at most SHORT rounds that compares its variable is unrolled, too: then each round knows
which piece of a concatenation or a padding it reads, and computes no other.

Invariant: the same statements run in the same order; names of the copies are new.
Cost:      linear in the code that comes out.
"""

from __future__ import annotations

from rune.dims import Size, symbols
from rune.lowering.kernel.expr import Index, Op
from rune.lowering.kernel.nodes import For, KernelCode, Kind, Stmt
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    expressions,
    fresh,
    map_stmts,
    names_bound,
    rename,
    replace_symbols,
    unique_names,
    walk,
    walk_expr,
)
from rune.lowering.passes import Pass
from rune.records import replace

LIMIT = 2048  # statements
SHORT = 4  # rounds
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


def unroll(code: KernelCode) -> KernelCode:
    """The code without UNROLLED loops."""
    if not any(isinstance(s, For) and _is_written_out(s) for s in walk(code.body)):
        return code
    unique = unique_names(code)
    used_names = all_names(unique)

    def expand(stmt: Stmt) -> Body:
        if not isinstance(stmt, For) or not _is_written_out(stmt):
            return (stmt,)
        extent = stmt.extent
        # map_stmts works bottom-up: inner loops are unrolled already, so this counts their copies.
        if not isinstance(extent, int) or extent * sum(1 for _ in walk(stmt.body)) > LIMIT:
            return (replace(stmt, kind=Kind.SERIAL),)
        copies = (copy_of_round(stmt, number, used_names) for number in range(extent))
        return tuple(new for copy in copies for new in copy)

    return replace(unique, body=map_stmts(expand, unique.body))


def _is_written_out(loop: For) -> bool:
    if loop.kind in (Kind.VECTOR, Kind.SERIAL) and isinstance(loop.extent, int) and loop.extent <= SHORT:
        parts = (part for s in walk(loop.body) for e in expressions(s) for part in walk_expr(e))
        return any(isinstance(x, Op) and x.name in _COMPARISONS and _reads(x, loop.var) for x in parts)
    return loop.kind is Kind.UNROLLED


def _reads(comparison: Op, name: str) -> bool:
    return any(isinstance(x, Index) and any(s.name == name for s in symbols(x.dim)) for x in comparison.args)


def copy_of_round(loop: For, number: int, used_names: set[str]) -> Body:
    """The body of a round, with new names, which are added to `used_names`."""
    # The first copy keeps the names, so unrolling one round renames nothing.
    return round_at(loop, number, used_names) if number else replace_symbols(loop.body, {loop.var: 0})


def round_at(loop: For, at: Size, used_names: set[str]) -> Body:
    """The body of the round at an index, with new names, which are added to `used_names`."""
    names = {}
    for name in sorted(names_bound(loop.body)):
        names[name] = fresh(name, used_names)
        used_names.add(names[name])
    return rename(loop.body, names, {loop.var: at})


PASS = Pass("unroll", "write UNROLLED loops out", unroll)
