"""How many registers a thread needs, estimated: scalars that are alive at the same time.

    var s = 0; for k { a = x[k]; b = y[k]; s += a * b }     s, a, b; and what addresses take

A Let is alive from where it is bound to its last use in the same body, or to the end of that body
where a loop inside uses it; a Var from its declaration to the end of its body.
Not done: what a compiler recomputes, or loads ahead of its use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import AddressSpace, Alloc, KernelCode, Let, Stmt, Var
from rune.lowering.kernel.rewrite import Body, bodies, names_used

# Beside the scalars: the counters of loops, and an address of 64 bits for each buffer.
BASE, OF_BUFFER = 10, 2


def registers(code: KernelCode) -> int:
    """Registers of 32 bits of one thread."""
    return BASE + OF_BUFFER * len(code.params) + _alive(code.body)


def _alive(body: Body) -> int:
    """Words of the scalars that are alive at the same time within a body."""
    ends = _last_uses(body)
    alive, most = 0, 0
    expiring: dict[int, int] = {}
    for place, stmt in enumerate(body):
        inside = max(map(_alive, bodies(stmt)), default=0)
        width = _words(stmt)
        alive += width
        most = max(most, alive + inside)
        last = len(body) if isinstance(stmt, Var | Alloc) else ends.get(getattr(stmt, "name", ""), place)
        expiring[last] = expiring.get(last, 0) + width
        alive -= expiring.pop(place, 0)
    return most


def _last_uses(body: Sequence[Stmt]) -> Mapping[str, int]:
    """Where in a body each name is read last."""
    ends: dict[str, int] = {}
    for place, stmt in enumerate(body):
        for name in names_used([stmt]):
            ends[name] = place
    return ends


def _words(stmt: Stmt) -> int:
    match stmt:
        case Let(value=value) | Var(init=value):
            return _of(value)
        case _:
            return 0


def _of(value: Expr) -> int:
    return max(1, value.dtype.itemsize // 4)


def stack_bytes(body: Sequence[Stmt]) -> int:
    """What a thread has in memory of its own. Units: B."""
    return sum(
        s.size * s.dtype.itemsize if isinstance(s, Alloc) and s.space is AddressSpace.LOCAL else 0 for s in body
    ) + sum(stack_bytes(inner) for s in body for inner in bodies(s))


__all__ = ["registers", "stack_bytes"]
