"""The choice of a stream's tile.

A tile has to fit the memory of a group twice, so that two groups hide each other's waits, and a
thread's registers. Of those that fit the largest is chosen that is not much larger than the rows
are many; it reads the keys least often. Where that leaves few groups, they have more threads.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rune.lowering.build.streams.panels import line_of, mentions, panels_of
from rune.lowering.build.streams.tile import Tile, columns_of
from rune.lowering.build.streams.units import UnitTile, unit_tile
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Kernel, Stream, expressions

# Rows, keys, and threads down and across.
SHAPES = ((64, 64, 16, 16), (32, 64, 8, 16), (32, 32, 8, 16), (16, 32, 4, 16), (8, 32, 4, 16), (4, 32, 2, 32))
SHAPES += ((1, 64, 1, 64), (1, 32, 1, 32))
MOST_SUMS = 96  # of a thread, in registers
PARTED_THREADS = 512  # of a group that has several tiles of keys at once


def choose_tile(kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile of a stream on a device; the smallest there is where none fits well."""
    axis = _row_axis(kernel, stream)
    rows = cost.estimate(kernel.domain[axis].size)
    shapes = [shape for shape in SHAPES if shape[2] * shape[3] <= target.threads_per_workgroup]
    tiles = [Tile(axis, *shape) for shape in shapes if shape[0] < 2 * rows]
    fitting = [_staged(t, kernel, stream) for t in tiles if _sums(t, stream) <= MOST_SUMS]
    for tile in fitting:
        if _bytes(tile, stream) * 2 <= target.shared_bytes:
            return _in_parts(unit_tile(tile, stream, target) or tile, kernel, stream, target)
    bare = [Tile(axis, *shape) for shape in shapes]
    return next((t for t in bare if t.rows < 2 * rows and _bytes(t, stream) <= target.shared_bytes), bare[-1])


def _staged(tile: Tile, kernel: Kernel, stream: Stream) -> Tile:
    """The tile with panels."""
    panels = panels_of(kernel, stream, kernel.domain[tile.axis], tile.rows, tile.keys)
    return replace(tile, panels=panels)


def _in_parts(tile: Tile, kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile with more threads, where there are too few groups for a device."""
    groups = math.prod(cost.estimate(a.size) for n, a in enumerate(kernel.domain) if n != tile.axis)
    groups *= -(-cost.estimate(kernel.domain[tile.axis].size) // tile.rows)
    tiles = math.prod(cost.estimate(a.size) for a in stream.axes[:-1])
    tiles *= -(-cost.estimate(stream.axes[-1].size) // tile.keys)
    most = min(PARTED_THREADS, target.threads_per_workgroup)
    while True:
        twice = replace(tile, parts=2 * tile.parts)
        busy = groups * tile.threads >= target.cores * most
        # Units have no tiles beyond the end.
        is_even = not isinstance(tile, UnitTile) or tiles % twice.parts == 0
        if (
            busy
            or not is_even
            or twice.threads > most
            or twice.parts > tiles
            or _bytes(twice, stream) > target.shared_bytes
        ):
            return tile
        tile = twice


def _row_axis(kernel: Kernel, stream: Stream) -> int:
    """The axis of the domain whose points read the same keys: of these the longest."""
    loads = [e for x in expressions(stream) for e in walk_expr(x) if isinstance(e, Load)]
    keyed = [x for x in loads if any(mentions(x.indices[0], axis) for axis in stream.axes)]

    def merit(number: int) -> tuple[int, int, int]:
        axis = kernel.domain[number]
        shared = sum(not mentions(x.indices[0], axis) for x in keyed)
        return shared, cost.estimate(axis.size), number

    return max(range(len(kernel.domain)), key=merit)


def _sums(tile: Tile, stream: Stream) -> int:
    """What a thread sums up at once."""
    columns = sum(tile.thread_columns(columns_of(s)) if s.columns else 1 for s in stream.sums)
    return tile.thread_rows * (columns + tile.thread_keys)


def _bytes(tile: Tile, stream: Stream) -> int:
    """Shared memory of a group."""
    line = line_of(tile.rows)
    tiles: dict[Expr, int] = {s.weight: s.weight.dtype.itemsize for s in stream.sums if s.columns}
    exchanged = [s.weight for s in stream.sums if not s.columns]
    exchanged += [] if stream.peak is None else [stream.peak.value]
    cells = tile.keys * sum(tiles.values()) + tile.across * sum(x.dtype.itemsize for x in exchanged)
    total = tile.parts * line * cells
    total += sum(p.alloc.size * p.alloc.dtype.itemsize for p in tile.panels.rows)
    total += tile.parts * sum(p.alloc.size * p.alloc.dtype.itemsize for p in tile.panels.of_keys)
    if tile.parts > 1:
        sums = sum(tile.thread_columns(columns_of(s)) * s.weight.dtype.itemsize for s in stream.sums if s.columns)
        total += (tile.parts - 1) * tile.lanes * tile.thread_rows * sums
        total += 0 if stream.peak is None else tile.parts * line * stream.peak.value.dtype.itemsize
    return total
