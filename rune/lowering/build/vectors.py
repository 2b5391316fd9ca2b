"""Tile columns: one point of the domain computes several vectors of neighbouring columns.

Before   for j in 512: s = sum i: x[512*i + j]
After    for j in 8, l in 16: s_0 = sum i: x[512*i + 64*j + l];  s_1 = ... x[512*i + 64*j + 16 + l]

Reductions over leading axes run with the last axis of the domain in vector lanes. With several
vectors, every row is read in longer pieces. The vectors have to divide the axis. Dots have tiles of
their own (tile.py).

Invariant: every column is computed as before, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.heuristics import choices
from rune.lowering.build.schedule import Vectors
from rune.lowering.build.squares import instructions, is_pointwise, is_regular
from rune.lowering.build.tile import copy_body
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rewrite import loads, names_in
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Let, Reduce, Statement, Write, expressions, inner_axes

MOST_NEIGHBOURS = 8  # most columns of a point
# Elements of a point that reads lines, of words. Addresses of lines cost as much as ten accesses,
# but 64 and 128 elements take hardly less time, and two and five times as long to compile.
LINE_ELEMENTS, PAIR, WORD_BYTES, LEAST_POINTS = 32, 2, 4, 1 << 20


def choose_vectors(kernel: Kernel, lanes: int, most: int, points: int) -> Vectors | None:
    """Up to `most` vectors of `lanes` columns at each point, if more than one pays.

    At least `points` points remain for the processors.
    """
    if most < 2 or not _walks_columns(kernel):
        return None
    *outer, last = kernel.domain
    rows = cost.count(tuple(a.size for a in outer))
    # The largest count that divides the axis and leaves enough points.
    for count in range(most, 1, -1):
        step = lanes * count
        if isinstance(last.size, int) and last.size % step == 0:
            if rows * (last.size // step) >= points:
                return Vectors(count, lanes)
    return None


def choose_neighbours(kernel: Kernel, access_bytes: int, points: int) -> Vectors | None:
    """Neighbouring columns at each point: as many of the widest elements as one access may have.

    There are at most MOST_NEIGHBOURS, and at least `points` points remain, counted by their reads.
    """
    is_sum = _walks_columns(kernel)
    if not kernel.domain or not (is_sum or is_pointwise(kernel)):
        return None
    last = kernel.domain[-1]
    item = max(b.type.dtype.itemsize for b in (*kernel.inputs, *kernel.outputs))
    count = min(MOST_NEIGHBOURS, access_bytes // item)
    # A point that adds up many elements is enough work by itself; a small one is not.
    reads = max((cost.count(tuple(a.size for a in inner_axes(s))) for s in kernel.body), default=1)
    if count < 2 or not isinstance(last.size, int) or last.size % count:
        return None
    if cost.count(tuple(a.size for a in kernel.domain)) * reads < points * count:
        return None
    # A wide access has to begin at a multiple of its length, in every array that it walks.
    runs = list(_runs(kernel, last, count))
    return Vectors(count, 1) if runs and all(runs) else None


def choose_lines(kernel: Kernel, target: Target) -> Vectors | None:
    """Lines of neighbours at each point, for a device whose subgroups read lines.

    A subgroup has a point for each lane, and each of them two elements of every line. Fewer than
    LEAST_POINTS elements are not worth the driver's time for so much code.
    """
    if not target.has_lines or not kernel.domain or not is_pointwise(kernel) or not is_regular(kernel):
        return None
    lanes, last = target.subgroup_threads, kernel.domain[-1]
    words = all(b.type.dtype.itemsize == WORD_BYTES for b in (*kernel.inputs, *kernel.outputs))
    elements = dims.product(a.size for a in kernel.domain)
    runs = list(_runs(kernel, last, PAIR))
    if not words or not isinstance(elements, int) or elements < LEAST_POINTS or not runs or not all(runs):
        return None
    line_elements = LINE_ELEMENTS * lanes
    is_short = LINE_ELEMENTS * instructions(kernel) <= choices(target).line_calls
    is_whole = last.size % line_elements == 0 and elements // line_elements <= target.launch_groups
    return Vectors(LINE_ELEMENTS, lanes, PAIR) if is_short and is_whole else None


def _runs(kernel: Kernel, last: Axis, count: int) -> Iterator[bool]:
    """For each access, whether a wide one may begin there; False if elements are far apart."""
    for statement in kernel.body:
        indices = [load.indices[0] for load in loads(expressions(statement))]
        for index in (*indices, *(statement.indices if isinstance(statement, Write) else ())):
            step = dims.coefficient(index, last.name)
            if step is None or not _is_small(step):
                yield False
            elif step == 1:
                yield dims.divides(count, index - last.symbol) is True


def with_vectors(kernel: Kernel, vectors: Vectors) -> Kernel:
    """The kernel with several vectors of columns at each point."""
    count, lanes, width = vectors.count, vectors.lanes, vectors.neighbours
    *outer, last = kernel.domain
    assert isinstance(last.size, int), "legal.py takes no symbolic axis"
    block = Axis(last.name, last.size // (lanes * count))
    lane = (Axis(f"{last.name}_lane", lanes),) if lanes > 1 else ()
    first = block.symbol * (lanes * count) + sum(width * a.symbol for a in lane)
    places = [c // width * lanes * width + c % width for c in range(count)]
    of_columns = _of_columns(kernel)
    # Statements that are the same for all columns are not copied.
    several = replace(kernel, body=of_columns)
    copies = zip(*(copy_body(several, {last.name: first + at}, f"_c{c}") for c, at in enumerate(places)), strict=True)
    # The copies of a statement stand side by side, so that their sums share one loop.
    body = tuple(x for s in kernel.body for x in (next(copies) if s in of_columns else (s,)))
    return replace(kernel, domain=(*outer, block, *lane), body=body)


def _of_columns(kernel: Kernel) -> tuple[Statement, ...]:
    """The statements that differ from column to column."""
    names, differing = {kernel.domain[-1].name}, []
    for statement in kernel.body:
        names_read = {name for x in expressions(statement) for name in names_in(x)}
        # A statement also differs if it reads one that does. Writes always do: their places differ.
        if isinstance(statement, Write) or names_read & names:
            differing.append(statement)
            names |= {statement.name} if isinstance(statement, Let | Reduce) else set()
    return tuple(differing)


def copies_alone(kernel: Kernel) -> bool:
    """Whether the statements of several points may stand side by side."""
    # A scratch row has one name, and a scan one order.
    return all(isinstance(s, Let | Reduce | Write) for s in kernel.body)


def _walks_columns(kernel: Kernel) -> bool:
    """Whether a reduction reads neighbours along the last axis of the domain."""
    dot = any(isinstance(s, Reduce) and s.contract for s in kernel.body)
    if not copies_alone(kernel) or dot or not kernel.domain:
        return False
    name = kernel.domain[-1].name
    read = (load for s in kernel.body if isinstance(s, Reduce) for load in loads(expressions(s)))
    strides = [dims.coefficient(load.indices[0], name) for load in read]
    return 1 in strides and all(_is_small(s) for s in strides)


def _is_small(stride: Size | None) -> bool:
    return not isinstance(stride, Dim | None) and stride in (0, 1)
