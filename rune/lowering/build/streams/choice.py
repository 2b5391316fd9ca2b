"""The choice of a stream's tile.

A tile has to fit the memory of a group twice, so that two groups hide each other's waits, and the
registers of its threads. The largest tile that fits, and is not much larger than the number of
rows, is chosen: it reads the keys least often. A group with several parts needs no second group
beside it. Measured on an H200, attention of f32[2,8,512,64]: 40 µs with 4 rows by 8 keys for a
thread in two parts, 50 with 4 by 4 in one.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rune.lowering.build.streams.panels import line_of, mentions, panels_of
from rune.lowering.build.streams.tile import Tile, columns_of
from rune.lowering.build.streams.units import UnitTile, unit_tile
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.rewrite import loads
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Kernel, Stream, expressions

# Rows, keys, and threads down and across.
SHAPES = ((64, 64, 16, 8), (32, 64, 8, 16), (32, 32, 8, 16), (16, 32, 4, 16), (8, 32, 4, 16), (4, 32, 2, 32))
SHAPES += ((1, 64, 1, 64), (1, 32, 1, 32))
MOST_SUMS = 96  # of a thread, in registers
UNIT_GROUPS = 2  # for each multiprocessor: two hide each other's waits as well as parts do
MOST_HELD = 3 << 13  # sums of a group with several tiles of keys at once
# If a group may have no more memory than this, a multiprocessor has room for several groups.
GROUP_BYTES = 64 << 10


def choose_tile(kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile of a stream on a device; the smallest one if no tile fits well."""
    axis = _row_axis(kernel, stream)
    rows = cost.estimate(kernel.domain[axis].size)
    shapes = [shape for shape in SHAPES if shape[2] * shape[3] <= target.threads_per_workgroup]
    tiles = [Tile(axis, *shape) for shape in shapes if shape[0] < 2 * rows]
    fitting = [_staged(t, kernel, stream) for t in tiles if _sums(t, stream) <= MOST_SUMS]
    # Half the memory where there is much of it: a second group then hides the waits of the first.
    room = target.shared_bytes // 2 if target.shared_bytes > GROUP_BYTES else target.shared_bytes
    for tile in fitting:
        if _bytes(tile, stream) <= room:
            # Units come before threads that multiply by themselves, if their panels fit as well.
            on_units = unit_tile(tile, stream, target)
            choice = on_units if on_units is not None and _bytes(on_units, stream) <= room else tile
            return _in_parts(choice, kernel, stream, target)
    # Without panels a tile needs less memory, and reads its operands from global memory.
    bare = [Tile(axis, *shape) for shape in shapes]
    return next((t for t in bare if t.rows < 2 * rows and _bytes(t, stream) <= target.shared_bytes), bare[-1])


def _staged(tile: Tile, kernel: Kernel, stream: Stream) -> Tile:
    """The tile with panels."""
    panels = panels_of(kernel, stream, kernel.domain[tile.axis], tile.rows, tile.keys)
    return replace(tile, panels=panels)


def _in_parts(tile: Tile, kernel: Kernel, stream: Stream, target: Target) -> Tile:
    """The tile with as many parts as fit into registers and memory of a multiprocessor."""
    tiles = math.prod(cost.estimate(a.size) for a in stream.axes[:-1])
    tiles *= -(-cost.estimate(stream.axes[-1].size) // tile.keys)
    if isinstance(tile, UnitTile) and _groups(tile, kernel) >= target.cores * UNIT_GROUPS:
        return tile

    def fits(candidate: Tile) -> bool:
        # Units have no tiles beyond the end.
        is_even = tiles % candidate.parts == 0 or not isinstance(tile, UnitTile)
        registers = candidate.threads * _sums(tile, stream)
        is_small = registers <= MOST_HELD and candidate.threads <= target.threads_per_workgroup
        return is_even and is_small and candidate.parts <= tiles and _bytes(candidate, stream) <= target.shared_bytes

    while fits(twice := replace(tile, parts=2 * tile.parts)):
        tile = twice
    return tile


def _groups(tile: Tile, kernel: Kernel) -> int:
    """The groups of a kernel."""
    others = (a.size for n, a in enumerate(kernel.domain) if n != tile.axis)
    return math.prod(map(cost.estimate, others)) * -(-cost.estimate(kernel.domain[tile.axis].size) // tile.rows)


def _row_axis(kernel: Kernel, stream: Stream) -> int:
    """The axis of the domain whose points read the same keys; the longest if there are several."""
    key_loads = [x for x in loads(expressions(stream)) if any(mentions(x.indices[0], axis) for axis in stream.axes)]

    def merit(number: int) -> tuple[int, int, int]:
        axis = kernel.domain[number]
        common_loads = sum(not mentions(x.indices[0], axis) for x in key_loads)
        # The last number decides between equal axes: its points are neighbours.
        return common_loads, cost.estimate(axis.size), number

    return max(range(len(kernel.domain)), key=merit)


def _sums(tile: Tile, stream: Stream) -> int:
    """The sums and scores that a thread has in registers at once."""
    columns = sum(tile.thread_columns(columns_of(s)) if s.columns else 1 for s in stream.sums)
    return tile.thread_rows * (columns + tile.thread_keys)


def _bytes(tile: Tile, stream: Stream) -> int:
    """The bytes of shared memory of a group."""
    line = line_of(tile.rows)
    tiles: dict[Expr, int] = {s.weight: s.weight.dtype.itemsize for s in stream.sums if s.columns}
    exchanges = [s.weight for s in stream.sums if not s.columns]
    exchanges += [] if stream.peak is None else [stream.peak.value]
    # Weights of every key for sums with columns; for scalars and the peak, one number of a thread.
    cells = tile.keys * sum(tiles.values()) + tile.across * sum(x.dtype.itemsize for x in exchanges)
    total = tile.parts * line * cells
    total += sum(p.alloc.size * p.alloc.dtype.itemsize for p in tile.panels.rows)
    total += tile.parts * sum(p.alloc.size * p.alloc.dtype.itemsize for p in tile.panels.of_keys)
    # At the end the other parts pass their sums, and all of them their peaks.
    if tile.parts > 1:
        # Scalars use the memory that is counted above.
        sums = sum(tile.thread_columns(columns_of(s)) * s.weight.dtype.itemsize for s in stream.sums if s.columns)
        total += (tile.parts - 1) * tile.lanes * tile.thread_rows * sums
        total += 0 if stream.peak is None else tile.parts * line * stream.peak.value.dtype.itemsize
    return total
