"""Remove what nothing reads: Lets, Vars with all their changes, and scratch with its stores.

Before   a: f32 = x[i]          After    b: f32 = x[i] * 2.0_f32
         b: f32 = x[i] * 2.0             store y[i] = b
         var c: f32 = a
         store y[i] = b

Loops and branches without statements are removed, too. Stores to parameters always stay.

Invariant: what the kernel stores to its parameters stays the same, bit for bit. A read out of
           bounds whose value is not used may disappear.
Cost:      linear in the code per round; rounds repeat while whole Vars or allocations disappear.
"""

from __future__ import annotations

from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
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
    Var,
)
from rune.lowering.kernel.rewrite import (
    Body,
    buffers_read,
    expressions,
    names_bound,
    names_in,
    names_used,
    size_names,
    stmt_sizes,
    unique_names,
    walk,
    with_bodies,
)
from rune.lowering.passes import Pass
from rune.records import replace


def eliminate_dead(code: KernelCode) -> KernelCode:
    """The code without what nothing reads."""
    unique = unique_names(code)
    body = unique.body
    if not any(type(s) is Var or type(s) is Alloc for s in walk(body)):
        # Only Lets can be dead: the walk drops a chain of them at once.
        after = _Round(frozenset(), frozenset()).body(body)
        return code if after == body else replace(unique, body=after)
    while True:
        # This includes names of Lets, which does no harm: only Alloc and Store look here.
        scratch = names_bound(body) - buffers_read(body)
        # A Var that only removed statements read can go in the next round.
        after = _Round(names_used(body), scratch).body(body)
        if after == body:
            break
        body = after
    return code if body == code.body else replace(unique, body=body)


class _Round:
    """One pass from the end to the front, which removes a Let with the last statement to use it.

    Vars and memory carry values around loops, so `names_read` and `unread_buffers` are those of the
    whole code.
    """

    def __init__(self, names_read: frozenset[str], unread_buffers: frozenset[str]):
        self.names_read = names_read
        self.unread_buffers = unread_buffers
        self.live: set[str] = set()

    def body(self, body: Body) -> Body:
        live = [new for stmt in reversed(body) for new in self.stmt(stmt)]
        return tuple(reversed(live))

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not self.is_needed(stmt):
            return ()
        if isinstance(stmt, For):
            stmt = with_bodies(stmt, self.body(stmt.body))
            assert isinstance(stmt, For)
            # These loops define the launch, so they stay even when empty.
            if not stmt.body and stmt.kind not in (Kind.GRID, Kind.WORKGROUP):
                return ()
        elif isinstance(stmt, If):
            orelse = self.body(stmt.orelse)
            stmt = with_bodies(stmt, self.body(stmt.body), orelse)
            assert isinstance(stmt, If)
            if not stmt.body and not stmt.orelse:
                return ()
        # After the bodies, because the walk goes backwards.
        for expr in expressions(stmt):
            self.live |= names_in(expr)
        for size in stmt_sizes(stmt):
            self.live |= size_names(size)
        return (stmt,)

    def is_needed(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(name=name):
                return name in self.live
            case Var(name=name) | Assign(name=name) | Accumulate(name=name):
                # Not `live`: the next round of a loop may read the Var earlier in the text.
                return name in self.names_read
            case Alloc(name=name) | Store(buffer=name) | Fetch(target=name):
                return name not in self.unread_buffers
            # Its accumulators count as read (rewrite.py).
            case For() | If() | Barrier() | MatrixProduct():
                return True


PASS = Pass("eliminate-dead", "remove values and scratch that nothing reads", eliminate_dead)
