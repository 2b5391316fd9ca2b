"""Rows: one point computes what several points along an axis of the domain do.

Before   for i in 512, j in 64: s = max k: x[i, k] - y[j, k]
After    for i in 128, j in 64: s_r0 = max k: x[4*i, k] - y[j, k]; s_r1 = max k: x[4*i + 1, k] ...

The rows share their loops and common reads, and do not wait for each other. Dots have tiles of
their own (tile.py).

Invariant: every row is computed as before, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from rune import dims
from rune.lowering.build.schedule import Rows
from rune.lowering.build.tile import axis_of, copy_body
from rune.lowering.build.vectors import copies_alone
from rune.lowering.kernel.rewrite import loads
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Axis, Kernel, Reduce, expressions, inner_axes

ROWS, MOST_COLUMNS = 4, 512  # rows of a point, and columns of each


def choose_rows(kernel: Kernel, elements: int) -> Rows | None:
    """Several rows for each point, if a row has MOST_COLUMNS or fewer and there are many.

    elements: how many must remain for each row of a point, so that there are enough points
    """
    reduces = [s for s in kernel.body if isinstance(s, Reduce)]
    if len(reduces) != 1 or not kernel.domain or any(inner_axes(s) for s in kernel.body if s not in reduces):
        return None
    (reduce,), axis = reduces, kernel.domain[-1]
    columns = cost.count(tuple(a.size for a in reduce.axes))
    # A long row keeps its lanes busy alone, and a dot has tiles for this.
    is_long = columns > MOST_COLUMNS or reduce.contract or not copies_alone(kernel)
    if is_long or not isinstance(axis.size, int) or axis.size % ROWS:
        return None
    # Fewer points, each with more rows, must still fill the device.
    if cost.count(tuple(a.size for a in kernel.domain)) * columns < ROWS * elements:
        return None
    return Rows(axis.name, ROWS) if _walks_rows(reduce, axis) else None


def _walks_rows(reduce: Reduce, axis: Axis) -> bool:
    """Whether neighbours lie along the reduction, and not along the axis of the rows."""
    indices = [load.indices[0] for load in loads(expressions(reduce))]
    steps = [(dims.coefficient(x, reduce.axes[-1].name), dims.coefficient(x, axis.name)) for x in indices]
    # Rows that are neighbours in memory share their accesses anyway.
    return any(along == 1 and across not in (0, 1) for along, across in steps)


def in_rows(kernel: Kernel, rows: Rows) -> Kernel:
    """The kernel with several rows at each point."""
    axis = axis_of(kernel.domain, rows.axis)
    assert isinstance(axis.size, int), "legal.py takes no symbolic axis"
    block = Axis(axis.name, axis.size // rows.count)
    first = block.symbol * rows.count
    copies = [copy_body(kernel, {axis.name: first + r}, f"_r{r}") for r in range(rows.count)]
    # The copies of a statement stand side by side, so that they share one loop.
    body = tuple(statement for same in zip(*copies) for statement in same)
    return replace(kernel, domain=tuple(block if a is axis else a for a in kernel.domain), body=body)
