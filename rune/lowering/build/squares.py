"""Squares: transpositions walk small squares of two axes instead of whole rows.

Before   for i in 2048, j in 2048: y[2048*i + j] = x[i + 2048*j]
After    for i in 128, j in 128: for i_in in 16, j_in in 16: y[...] = x[...]
Lanes    for i in 128, j in 128: for i_in in 2, j_in in 2: a = x[...]; ...; y[...] = a; ...

Where one array is walked along rows and another along columns, a square of both stays in the
nearest cache, unless their rows are a power of two apart: then these fall into few of its sets, and
evict each other. A block of a square is read completely, row by row, before it is written, row by
row: a compiler transposes it in registers, and no cache line is needed twice. Squares at the edges
test their points one by one.

Invariant: the same points, each once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from rune import dims
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.accesses import apart
from rune.lowering.build.conditions import every, less
from rune.lowering.build.schedule import Rows, Schedule, Squares, Vectors
from rune.lowering.build.tile import axis_of, copy_body, place_body
from rune.lowering.codegen.target import Target
from rune.lowering.kernel import nodes
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import Kind, Stmt
from rune.lowering.kernel.rewrite import loads, names_bound, size_names, walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Let, Statement, Write, expressions
from rune.lowering.scalar.table import ROWS

# Blocks are unrolled, which takes PoCL's compiler 0.02 to 0.2 s: what 20 transpositions of 2,048 by
# 2,048 save. For narrow elements it takes longer and gains less: 8 s for several arrays of f16.
# With two results, blocks take a fifth longer than no blocks.
BLOCKS = 4  # of a square, along a side
LEAST_POINTS = 1 << 20
LEAST_BYTES = 4  # of an element
MOST_INSTRUCTIONS = 16  # of a point
# Rows and columns of a point where threads read columns, whose address costs as much as ten
# accesses. With four columns each, a subgroup writes entire cache lines, and to fewer rows.
_TILES = ((16, 4), (64, 1), (32, 1), (16, 1))
_KINDS = [Kind.SERIAL, Kind.VECTOR]


def choose_squares(kernel: Kernel, side: int, lanes: int = 1) -> Squares | None:
    """The squares to walk in, if some access runs along an axis other than the last one.

    lanes: the side of the blocks into which a square of a large array is divided; on short axes a
           square is one block
    """
    # Several blocks for a square if the axes are long enough, else a single one.
    if lanes > 1 and _is_worth_blocks(kernel):
        return _squares_of(kernel, BLOCKS * lanes, lanes) or _squares_of(kernel, lanes, lanes)
    return _squares_of(kernel, side, 1)


def choose_lines(kernel: Kernel, squares: Squares, target: Target) -> Schedule | None:
    """In place of squares: neighbouring threads read columns, and write lines of rows.

    None if the threads of a subgroup cannot read at addresses that all share, or have too few.
    """
    axis, last = axis_of(kernel.domain, squares.axis), kernel.domain[-1]
    reads = [x for s in kernel.body for x in loads(expressions(s))]
    words = all(b.type.dtype.itemsize == LEAST_BYTES for b in (*kernel.inputs, *kernel.outputs))
    is_turned = any(dims.coefficient(x.indices[0], axis.name) == 1 for x in reads)
    is_known = all(isinstance(dims.coefficient(x.indices[0], last.name), int) for x in reads)
    if not target.has_lines or not words or not is_turned or not is_known or not is_regular(kernel):
        return None
    points = dims.product(a.size for a in kernel.domain)
    for rows, columns in _TILES:
        group = columns * target.subgroup_threads
        is_whole = dims.divides(rows, axis.size) and dims.divides(group, last.size)
        is_few = dims.at_most(points // (rows * group), target.launch_groups)
        if is_whole is True and is_few and isinstance(axis.size, int):
            vectors = Vectors(columns, lanes=1) if columns > 1 else None
            return Schedule(rows=Rows(axis.name, rows), vectors=vectors)
    return None


def _is_worth_blocks(kernel: Kernel) -> bool:
    """Whether there are enough points to pay for compiling unrolled blocks."""
    is_wide = all(b.type.dtype.itemsize >= LEAST_BYTES for b in (*kernel.inputs, *kernel.outputs))
    is_small = len(kernel.outputs) == 1 and instructions(kernel) <= MOST_INSTRUCTIONS
    points = cost.count(tuple(a.size for a in kernel.domain))
    return is_wide and is_small and points >= LEAST_POINTS and is_regular(kernel)


def _squares_of(kernel: Kernel, side: int, lanes: int) -> Squares | None:
    """Squares of this side, if some access runs along an axis other than the last one."""
    if side < 2 or not is_pointwise(kernel) or len(kernel.domain) < 2:
        return None
    last = kernel.domain[-1]
    accesses = [x for s in kernel.body for x in _accesses(s)]
    for axis in reversed(kernel.domain[:-1]):
        across = any(
            # Contiguous along this axis, and far apart along the last one.
            dims.coefficient(x, axis.name) == 1 and dims.coefficient(x, last.name) not in (0, 1)
            for x in accesses
        )
        if across and _is_long(axis.size, side) and _is_long(last.size, side):
            return Squares(axis.name, side, lanes)
    return None


def is_regular(kernel: Kernel) -> bool:
    """Whether every point reads unconditionally, at places that are linear in all axes."""
    lets = {s.name for s in kernel.body if isinstance(s, Let)}
    if any(x.guard is not None or size_names(x.indices[0]) & lets for s in kernel.body for x in loads(expressions(s))):
        return False
    accesses = [x for s in kernel.body for x in _accesses(s)]
    return all(dims.coefficient(x, axis.name) is not None for x in accesses for axis in kernel.domain)


def is_pointwise(kernel: Kernel) -> bool:
    """Whether each point writes single elements, and nothing else."""
    return all(isinstance(s, Let) or (isinstance(s, Write) and not s.axes) for s in kernel.body)


def _is_long(size: Size, side: int) -> bool:
    # A symbolic size is assumed to be long.
    return not isinstance(size, int) or size >= 2 * side


def instructions(kernel: Kernel) -> int:
    """The instructions of a point, apart from loads and stores."""
    parts = (e for s in kernel.body for x in expressions(s) for e in walk_expr(x))
    return sum(ROWS[e.name].instructions for e in parts if isinstance(e, Op))


def _accesses(statement: Statement) -> Iterator[Size]:
    if isinstance(statement, Write):
        yield from statement.indices
    for load in loads(expressions(statement)):
        yield from load.indices


def squared(kernel: Kernel, squares: Squares) -> tuple[list[Axis], list[Stmt]]:
    """The domain of squares, and the loops of one square."""
    side = squares.side
    axes = [axis_of(kernel.domain, squares.axis), kernel.domain[-1]]
    outer = {a.name: Axis(a.name, -(-a.size // side)) for a in axes}
    inner = [Axis(f"{a.name}_in", side) for a in axes]
    at = {a.name: outer[a.name].symbol * side + i.symbol for a, i in zip(axes, inner)}
    domain = [outer.get(a.name, a) for a in kernel.domain]
    point = loops.body(place_body(kernel.body, at), {}, {})
    square = _in_blocks(kernel, squares, outer) if squares.lanes > 1 else loops.nest(inner, _KINDS, point)
    # A symbolic remainder is not known to be 0, so such an axis is tested as well.
    partial = [a for a in axes if a.size % side != 0]
    if not partial:
        return domain, square
    inside = every([less(at[a.name], a.size) for a in partial])
    edge_square = loops.nest(inner, _KINDS, [nodes.If(inside, tuple(point))])
    # One test for the square: only squares at an edge test every point.
    full = every([less(outer[a.name].symbol, a.size // side) for a in partial])
    return domain, [nodes.If(full, tuple(square), tuple(edge_square))]


def _in_blocks(kernel: Kernel, squares: Squares, outer: Mapping[str, Axis]) -> list[Stmt]:
    """The loops of one square over its blocks, each with all its points."""
    lanes = squares.lanes
    blocks = [Axis(f"{name}_in", squares.side // lanes) for name in outer]
    first = [axis.symbol * squares.side + block.symbol * lanes for axis, block in zip(outer.values(), blocks)]
    points: list[Stmt] = []
    for row, column in itertools.product(range(lanes), repeat=2):
        at = dict(zip(outer, (first[0] + row, first[1] + column)))
        # Every point has names of its own, as all of them are in one scope.
        points += loops.body(copy_body(kernel, at, f"_{row}_{column}"), {}, {})
    names = {a.name for a in (*kernel.domain, *blocks)} | names_bound(points)
    return loops.nest(blocks, [Kind.SERIAL, Kind.SERIAL], list(apart(points, names)))
