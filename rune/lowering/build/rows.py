"""Rows: one point computes what several points along an axis of the domain do.

Before   for i in 512, j in 64: s = max k: x[i, k] - y[j, k]
After    for i in 128, j in 64: s_r0 = max k: x[4*i, k] - y[j, k]; s_r1 = max k: x[4*i + 1, k] ...

The rows share their loops, and what they read alike; one does not wait for another. Dots have tiles
of their own (tile.py).

Invariant: every row is computed as before, in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from rune.lowering.build.schedule import Rows
from rune.lowering.build.tile import axis_of, copy_body
from rune.lowering.kernels import Axis, Kernel


def in_rows(kernel: Kernel, rows: Rows) -> Kernel:
    """The kernel with several rows at each point."""
    axis = axis_of(kernel.domain, rows.axis)
    assert isinstance(axis.size, int), "legal.py takes no symbolic axis"
    block = Axis(axis.name, axis.size // rows.count)
    first = block.symbol * rows.count
    copies = [copy_body(kernel, {axis.name: first + r}, f"_r{r}") for r in range(rows.count)]
    # The copies of a statement stand side by side, so that their loops are one.
    body = tuple(statement for same in zip(*copies) for statement in same)
    return replace(kernel, domain=tuple(block if a is axis else a for a in kernel.domain), body=body)
