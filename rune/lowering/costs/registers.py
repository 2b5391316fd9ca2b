"""An estimate of the registers that a thread needs: scalars that are live at the same time.

    var s = 0; for k { a = x[k]; b = y[k]; s += a * b }     s, a, b; and those for addresses

A scalar is live from its declaration to its last use in the same body; a loop that uses it is one
use, because it is live in all rounds of the loop.
Not done: what a compiler recomputes, or loads ahead of its use.
"""

from __future__ import annotations

from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import KernelCode, Let, MatrixProduct, Stmt, Var
from rune.lowering.kernel.rewrite import Body, bodies, expressions, names_in, size_names, stmt_sizes, vars_changed

# In addition to the scalars: loop counters, and an address of 64 bits for each buffer.
BASE, OF_BUFFER = 10, 2


def registers(code: KernelCode) -> int:
    """The registers of 32 bits that one thread needs."""
    return BASE + OF_BUFFER * len(code.params) + _alive(code.body)[0]


def _alive(body: Body) -> tuple[int, set[str]]:
    """The words of the scalars that are live at the same time in a body, and the names it reads."""
    inside = [[_alive(part) for part in bodies(stmt)] for stmt in body]
    names = [_names(stmt).union(*(read for _, read in parts)) for stmt, parts in zip(body, inside, strict=True)]
    last = {name: place for place, read in enumerate(names) for name in read}
    ending: dict[int, int] = {}
    alive, most = 0, 0
    for place, stmt in enumerate(body):
        width = _words(stmt)
        alive += width
        most = max(most, alive + max((words for words, _ in inside[place]), default=0))
        end = last.get(stmt.name, place) if isinstance(stmt, Let | Var) else place
        ending[end] = ending.get(end, 0) + width
        alive -= ending.get(place, 0)
    return most, set().union(*names)


def _names(stmt: Stmt) -> set[str]:
    """The locals, loop variables and sizes that the statement itself reads or changes."""
    read = {name for e in expressions(stmt) for name in names_in(e)}
    read.update(vars_changed(stmt))
    return read.union(*map(size_names, stmt_sizes(stmt)))


def _words(stmt: Stmt) -> int:
    match stmt:
        case Let(value=value) | Var(init=value):
            return _of(value)
        case MatrixProduct(accumulators=rows, subgroups=1):
            # The factors of this product, and those loaded meanwhile for the next one.
            return 2 * (2 * len(rows) + len(rows[0]))
        case _:
            return 0


def _of(value: Expr) -> int:
    return max(1, value.dtype.itemsize // 4)


__all__ = ["registers"]
