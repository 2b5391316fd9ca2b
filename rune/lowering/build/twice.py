"""Twice: the tiles of a group from double-buffered panels (buffers.py).

Before   fill both panels; barrier; for k in 8 { ... }; barrier      stage(m=16, n=16, k=8)
After    fetch both; barrier; fetch the next; for k in 8 { ... }     stage(m=16, n=16, k=8, twice)

Panels have the layout of stage.py. Where neighbours in memory are not neighbours there, and where
pieces may be unaligned, elements are fetched one by one.

Invariant: every sum adds up the same values in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.buffers import BUFFERS, offset, rounds_in_turn, sums_at
from rune.lowering.build.panels import Panel
from rune.lowering.build.schedule import Stage, Tile
from rune.lowering.build.stage import Group, panels, products, results, sums_of
from rune.lowering.kernel.nodes import For, Kind, Stmt
from rune.lowering.kernels import Axis, Kernel


def staged_twice(
    kernel: Kernel, tile: Tile, stage: Stage, output_dtypes: Mapping[str, np.dtype]
) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what a group does at one of its points.

    output_dtypes: one for each output
    """
    group = Group(kernel, tile, stage)
    slices = [replace(p, is_fetched=True) for p in panels(group, stage.depth)]
    memory = [replace(p.alloc, size=BUFFERS * p.alloc.size) for p in slices]
    rounds = rounds_in_turn(group, slices, lambda number: _round(group, slices, number))
    inside = [*sums_of(group), *rounds, *results(group, output_dtypes)]
    return group.domain, [*memory, For("thread", group.threads, Kind.WORKGROUP, tuple(inside))]


def _round(group: Group, slices: Sequence[Panel], number: Size) -> list[Stmt]:
    """The products of one round."""
    _, cut, inner_axes = group.sums
    axes = (Axis(cut.name, group.stage.depth), *inner_axes)
    halves = {p.name: offset(p, number) for p in slices}
    body = products(group, slices, axes, sums_at(group, number), halves)
    return loops.nest(axes, [Kind.SERIAL] * len(axes), body)
