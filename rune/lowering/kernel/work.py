"""How much work a launch is, so that no single launch keeps a device busy for too long.

The unit is an instruction of one thread; an element read or written counts as a few. Every branch
counts as taken, and every loop as long as its bounds allow.

    for i in 4 grid { for j in 9 serial { store y[9*i + j] = x[j] + 1.0_f32 } }     4 * 9 * 10
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rune import dims
from rune.dims import Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.matrices import depth
from rune.lowering.kernel.nodes import Fetch, For, If, KernelCode, Kind, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import expressions, walk, walk_expr
from rune.lowering.scalar.table import ROWS

_ELEMENT = 4  # read or written: memory serves only some of the threads at a time
_ROUND = 1  # of a loop: to count, and to test for the end


def work(body: Iterable[Stmt]) -> Size:
    """The work of all threads.

    >>> from rune.lowering.kernel.text import parse
    >>> loop = "for j in 9 serial { store y[9*i + j] = x[j] + 1.0_f32 }"
    >>> text = f"code f(x: read f32[9], y: write f32[36]) {{ for i in 4 grid {{ {loop} }} }}"
    >>> work(parse(text).body)
    360
    """
    total: Size = 0
    for stmt in body:
        total = total + sum(map(_of_expression, expressions(stmt)))
        match stmt:
            case Store():
                total = total + _ELEMENT
            case Fetch():
                total = total + 2 * _ELEMENT
            case MatrixProduct():
                total = total + depth(stmt) * len(stmt.names)
            case For(extent=extent, kind=kind, body=inner):
                # Iterations of these loops are threads, which have no loop to count.
                of_round = 0 if kind in (Kind.GRID, Kind.WORKGROUP) else _ROUND
                total = total + extent * (of_round + work(inner))
            case If(body=inner, orelse=orelse):
                total = total + work(inner) + work(orelse)
    return total


def _of_expression(expr: Expr) -> int:
    return sum(map(_of_part, walk_expr(expr)))


def _of_part(part: Expr) -> int:
    match part:
        case Load():
            return _ELEMENT
        case Op(name=name):
            return ROWS[name].instructions
        case _:
            return 0


def called_instructions(body: Iterable[Stmt]) -> int:
    """The instructions of the functions that one run of each statement calls."""
    parts = (part for stmt in walk(body) for e in expressions(stmt) for part in walk_expr(e))
    operations = (ROWS[x.name] for x in parts if isinstance(x, Op))
    return sum(operation.instructions for operation in operations if operation.expansions)


def counted_work(code: KernelCode, target: Target) -> Size:
    """The work of a launch, where the target bounds what is submitted at once; else 0."""
    return 0 if target.submission_work is None else work(code.body)


def most_work(launch: Size, sizes: Mapping[str, int]) -> int:
    """The work at these sizes; a loop whose length depends on another counts at its longest."""
    most = dims.bounds(dims.substitute(launch, sizes))[1]
    assert most is not None, launch  # sizes bound the length of every loop
    return most


__all__ = ["called_instructions", "counted_work", "most_work", "work"]
