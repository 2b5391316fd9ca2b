"""Block transpositions: small squares of two axes instead of whole rows.

Before   for i in 2048, j in 2048: y[2048*i + j] = x[i + 2048*j]
After    for i in 128, j in 128: for i_in in 16, j_in in 16: y[...] = x[...]

Where one array is walked along rows and another along columns, a square of both stays in the
nearest cache. Squares at the edges test their points one by one.

Invariant: the same points, each once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rune import dims
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import every, less
from rune.lowering.build.tile import place_body
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Kind, Stmt
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernels import Axis, Kernel, Let, Statement, Write, expressions


@dataclass(frozen=True, slots=True)
class Blocks:
    """Two axes of the domain, the last one and another, and the side of the squares."""

    axis: int
    side: int


def find_blocks(kernel: Kernel, side: int) -> Blocks | None:
    """The axes to block, if some access walks another axis than the last one."""
    pointwise = all(isinstance(s, Let) or _is_pointwise(s) for s in kernel.body)
    if side < 2 or not pointwise or len(kernel.domain) < 2:
        return None
    last = kernel.domain[-1]
    accesses = [x for s in kernel.body for x in _accesses(s)]
    for k in range(len(kernel.domain) - 2, -1, -1):
        axis = kernel.domain[k]
        across = any(
            # Contiguous along this axis, and scattered along the last one.
            dims.coefficient(x, axis.name) == 1 and dims.coefficient(x, last.name) not in (0, 1)
            for x in accesses
        )
        if across and _is_long(axis.size, side) and _is_long(last.size, side):
            return Blocks(k, side)
    return None


def _is_pointwise(statement: Statement) -> bool:
    return isinstance(statement, Write) and not statement.axes


def _is_long(size: Size, side: int) -> bool:
    # A symbolic size is assumed to be long.
    return not isinstance(size, int) or size >= 2 * side


def _accesses(statement: Statement) -> Iterator[Size]:
    if isinstance(statement, Write):
        yield from statement.indices
    for expr in expressions(statement):
        for part in walk_expr(expr):
            if isinstance(part, Load):
                yield from part.indices


def blocked(kernel: Kernel, blocks: Blocks) -> tuple[list[Axis], list[Stmt]]:
    """The domain of squares, and the loops of one square."""
    side, domain = blocks.side, list(kernel.domain)
    axes = [domain[blocks.axis], domain[-1]]
    outer = [Axis(a.name, -(-a.size // side)) for a in axes]
    inner = [Axis(f"{a.name}_in", side) for a in axes]
    domain[blocks.axis], domain[-1] = outer
    at = {a.name: o.symbol * side + i.symbol for a, o, i in zip(axes, outer, inner)}
    point = loops.body(place_body(kernel.body, at), {}, {})
    square = loops.nest(inner, [Kind.SERIAL, Kind.VECTOR], point)
    # A symbolic remainder is not known to be 0, so such an axis is tested as well.
    partial = [(a, o) for a, o in zip(axes, outer) if a.size % side != 0]
    if not partial:
        return domain, square
    inside = every([less(at[a.name], a.size) for a, _ in partial])
    tested = loops.nest(inner, [Kind.SERIAL, Kind.VECTOR], [nodes.If(inside, tuple(point))])
    # Tested once per square: only squares at an edge test their points.
    full = every([less(o.symbol, a.size // side) for a, o in partial])
    return domain, [nodes.If(full, tuple(square), tuple(tested))]
