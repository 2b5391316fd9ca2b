"""Squares: transpositions walk small squares of two axes instead of whole rows.

Before   for i in 2048, j in 2048: y[2048*i + j] = x[i + 2048*j]
After    for i in 128, j in 128: for i_in in 16, j_in in 16: y[...] = x[...]

Where one array is walked along rows and another along columns, a square of both stays in the
nearest cache. Squares at the edges test their points one by one.

Invariant: the same points, each once.
"""

from __future__ import annotations

from collections.abc import Iterator

from rune import dims
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import every, less
from rune.lowering.build.schedule import Squares
from rune.lowering.build.tile import axis_of, place_body
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Kind, Stmt
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernels import Axis, Kernel, Let, Statement, Write, expressions


def choose_squares(kernel: Kernel, side: int) -> Squares | None:
    """The squares to walk in, if some access walks another axis than the last one."""
    if side < 2 or not is_pointwise(kernel) or len(kernel.domain) < 2:
        return None
    last = kernel.domain[-1]
    accesses = [x for s in kernel.body for x in _accesses(s)]
    for axis in reversed(kernel.domain[:-1]):
        across = any(
            # Contiguous along this axis, and scattered along the last one.
            dims.coefficient(x, axis.name) == 1 and dims.coefficient(x, last.name) not in (0, 1)
            for x in accesses
        )
        if across and _is_long(axis.size, side) and _is_long(last.size, side):
            return Squares(axis.name, side)
    return None


def is_pointwise(kernel: Kernel) -> bool:
    """Whether each point writes single elements, and nothing else."""
    return all(isinstance(s, Let) or (isinstance(s, Write) and not s.axes) for s in kernel.body)


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


def squared(kernel: Kernel, squares: Squares) -> tuple[list[Axis], list[Stmt]]:
    """The domain of squares, and the loops of one square."""
    side = squares.side
    axes = [axis_of(kernel.domain, squares.axis), kernel.domain[-1]]
    outer = {a.name: Axis(a.name, -(-a.size // side)) for a in axes}
    inner = [Axis(f"{a.name}_in", side) for a in axes]
    at = {a.name: outer[a.name].symbol * side + i.symbol for a, i in zip(axes, inner)}
    domain = [outer.get(a.name, a) for a in kernel.domain]
    point = loops.body(place_body(kernel.body, at), {}, {})
    square = loops.nest(inner, [Kind.SERIAL, Kind.VECTOR], point)
    # A symbolic remainder is not known to be 0, so such an axis is tested as well.
    partial = [a for a in axes if a.size % side != 0]
    if not partial:
        return domain, square
    inside = every([less(at[a.name], a.size) for a in partial])
    tested = loops.nest(inner, [Kind.SERIAL, Kind.VECTOR], [nodes.If(inside, tuple(point))])
    # Tested once per square: only squares at an edge test their points.
    full = every([less(outer[a.name].symbol, a.size // side) for a in partial])
    return domain, [nodes.If(full, tuple(square), tuple(tested))]
