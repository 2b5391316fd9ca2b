"""Tile columns: one point of the domain computes several vectors of neighbouring columns.

Before   for j in 512: s = sum i: x[512*i + j]
After    for j in 8, l in 16: s_0 = sum i: x[512*i + 64*j + l];  s_1 = ... x[512*i + 64*j + 16 + l]

Reductions over leading axes run with the last axis of the domain in vector lanes. With several
vectors every row is read in longer pieces. Done only where the vectors divide the axis. Dots are
tiled by rows instead (tile.py).

Invariant: every column is computed as before, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.schedule import Vectors
from rune.lowering.build.tile import copy_body
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Let, Reduce, Write, expressions


def choose_vectors(kernel: Kernel, lanes: int, wanted: int, points: int) -> Vectors | None:
    """Up to `wanted` vectors of `lanes` columns at each point, if more than one is worth it.

    At least `points` points are left for the processors.
    """
    if wanted < 2 or not _walks_columns(kernel):
        return None
    *outer, last = kernel.domain
    rows = cost.count(tuple(a.size for a in outer))
    for count in range(wanted, 1, -1):
        step = lanes * count
        if isinstance(last.size, int) and last.size % step == 0:
            if rows * (last.size // step) >= points:
                return Vectors(count, lanes)
    return None


def with_vectors(kernel: Kernel, vectors: Vectors) -> Kernel:
    """The kernel with several vectors of columns at each point."""
    count, lanes = vectors.count, vectors.lanes
    *outer, last = kernel.domain
    assert isinstance(last.size, int), "legal.py takes no symbolic axis"
    block = Axis(last.name, last.size // (lanes * count))
    lane = Axis(f"{last.name}_lane", lanes)
    first = block.symbol * (lanes * count) + lane.symbol
    copies = [copy_body(kernel, {last.name: first + lanes * c}, f"_c{c}") for c in range(count)]
    # The copies of a statement stand side by side, so that their sums share one loop.
    body = tuple(statement for same in zip(*copies) for statement in same)
    return replace(kernel, domain=(*outer, block, lane), body=body)


def copies_alone(kernel: Kernel) -> bool:
    """Whether the points of the kernel may be written side by side."""
    return all(isinstance(s, Let | Reduce | Write) for s in kernel.body)


def _walks_columns(kernel: Kernel) -> bool:
    """Whether a reduction reads neighbours along the last axis of the domain."""
    dot = any(isinstance(s, Reduce) and s.contract for s in kernel.body)
    if not copies_alone(kernel) or dot or not kernel.domain:
        return False
    name = kernel.domain[-1].name
    strides = [
        dims.coefficient(part.indices[0], name)
        for s in kernel.body
        if isinstance(s, Reduce)
        for expr in expressions(s)
        for part in walk_expr(expr)
        if isinstance(part, Load)
    ]
    return 1 in strides and all(_is_small(s) for s in strides)


def _is_small(stride: Size | None) -> bool:
    return not isinstance(stride, Dim | None) and stride in (0, 1)
