"""Hoist invariants: compute before a loop what does not change in it.

Before   for j in 8 serial { y[8*i + j] = e[j] * (1.0 / s) }
After    inverse: f32 = 1.0 / s
         for j in 8 serial { y[8*i + j] = e[j] * inverse }

Whole Lets move, and the largest invariant parts of other expressions get a Let. Inner loops come
first, so that a value moves as far as it can. Nothing leaves a branch; nothing leaves GRID or
WORKGROUP loops, whose iterations are separate points. A load moves only if it is executed anyway
(the loop runs at least once), or if it is within the bounds of a READ parameter.

Invariant: every value stays the same, bit for bit; no new read happens, except within bounds.
Cost:      linear in the code times the depth of its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from rune import dims
from rune.dims import Size
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, operands
from rune.lowering.kernel.nodes import Access, Barrier, For, KernelCode, Kind, Let, Stmt
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    buffers_written,
    fresh,
    loads,
    loads_in,
    map_bodies,
    map_parts,
    names_assigned,
    names_bound,
    names_in,
    unique_names,
    walk,
    with_bodies,
    with_operands,
)
from rune.lowering.passes import Pass
from rune.records import dataclass, replace


@dataclass(slots=True)
class _Hoister:
    used_names: set[str]
    read_only: dict[str, Size]  # READ parameters that nothing in the kernel writes

    def body(self, body: Body) -> Body:
        statements: list[Stmt] = []
        for stmt in body:
            stmt = map_bodies(stmt, self.body)
            if _runs_in_a_thread(stmt):
                statements += self.loop(stmt)
            else:
                statements.append(stmt)
        return tuple(statements)

    def loop(self, loop: For) -> list[Stmt]:
        """The statements that move in front of the loop, and the loop."""
        # Beyond a barrier, memory may hold what other threads wrote.
        waits = any(isinstance(s, Barrier) for s in walk(loop.body))
        # Must be True: None means that the bounds leave it open.
        runs = dims.at_most(1, loop.extent) is True and not waits
        varying = set(names_bound((loop,)) | names_assigned(loop.body))
        written_buffers = buffers_written(loop.body)
        front: list[Stmt] = []
        remaining: list[Stmt] = []

        def is_invariant(expr: Expr) -> bool:
            safe = runs or all(map(self.in_bounds, loads((expr,))))
            return safe and not names_in(expr) & varying and not loads_in(expr) & written_buffers

        for stmt in loop.body:
            if isinstance(stmt, Let) and is_invariant(stmt.value):
                front.append(stmt)
                # It now precedes the loop, so Lets that read it can follow.
                varying.discard(stmt.name)
            else:
                remaining.append(self.parts(stmt, is_invariant, front))
        return [*front, with_bodies(loop, tuple(remaining))]

    def in_bounds(self, load: Load) -> bool:
        if load.buffer not in self.read_only:
            return False
        index = load.indices[0]
        inside = dims.at_most(0, index) and dims.less(index, self.read_only[load.buffer])
        return bool(inside)

    def parts(self, stmt: Stmt, invariant: Callable[[Expr], bool], front: list[Stmt]) -> Stmt:
        """The statement with a local for each largest invariant part of its expressions."""

        def visit(expr: Expr) -> Expr:
            # A local does not make constants, names and indices cheaper.
            if not isinstance(expr, (Op, Cast, Load)):
                return expr
            # From the top down, so that the largest invariant part moves as one.
            if invariant(expr):
                name = fresh("invariant", self.used_names)
                self.used_names.add(name)
                front.append(Let(name, expr))
                return Local(name, expr.dtype)
            args = operands(expr)
            return with_operands(expr, tuple(visit(a) for a in args)) if args else expr

        return map_parts(stmt, visit, lambda size: size)


def _runs_in_a_thread(stmt: Stmt) -> TypeGuard[For]:
    """Whether a statement is a loop whose iterations are of one point."""
    return type(stmt) is For and stmt.kind is not Kind.GRID and stmt.kind is not Kind.WORKGROUP


def hoist_invariant(code: KernelCode) -> KernelCode:
    """The code with invariant values computed once."""
    if not any(map(_runs_in_a_thread, walk(code.body))):
        return code
    unique = unique_names(code)
    written_buffers = buffers_written(unique.body)
    alias_names = {name for pair in unique.aliases for name in pair}
    read_only = {
        p.name: p.size for p in unique.params if p.access is Access.READ and p.name not in written_buffers | alias_names
    }
    body = _Hoister(all_names(unique), read_only).body(unique.body)
    return code if body == code.body else replace(unique, body=body)


PASS = Pass("hoist-invariant", "compute before a loop what it does not change", hoist_invariant)
