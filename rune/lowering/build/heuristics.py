"""Choices of loop structure, one small table for each kind of device. Numbers, and why.

The renderers choose by themselves which loop runs in vector lanes (llvm) or threads (opencl), so
what is left to decide here is how much of a dot one point computes, and who shares a point.
"""

from __future__ import annotations

from dataclasses import replace

from rune.lowering.codegen.target import Target
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Choices:
    """What build asks about a device."""

    dot_rows: int = 1  # rows of a dot at one point, which share what they read, at most
    dot_columns: int = 1  # and columns
    dot_registers: int = 0  # for sums and what they read, at most
    short_sums: int = 0  # of a dot whose inner loop is short, at most; 0: as many as of others
    columns_apart: bool = False  # columns of a dot's point lie where neighbouring points have theirs
    access_products: int = 0  # that take as long as an access of a subgroup; 0: reads are cheap
    dot_points: int = 1  # points that must remain for each processor, when a dot is tiled
    columns: int = 1  # vectors of neighbouring columns at one point
    column_points: int = 1  # points that must remain, for each processor
    column_lanes: int = 0  # neighbours in such a vector; 0: as many as a register of the device holds
    parts: int = 1  # of a reduction that reads neighbours, at most
    square_side: int = 0  # of the square in which a transposition walks [elements]
    square_lanes: int = 1  # side of the blocks of a square, which are turned in registers
    turned_side: int = 0  # side of the square that a group turns in shared memory [elements]
    group_threads: int = 0  # threads that share a point with reductions, where points are few
    group_points: int = 0  # fewer points than this for each processor are few
    row_threads: int = 0  # threads that share a row and take neighbours of it, at most
    row_lanes: int = 1  # neighbours that a thread takes at a time, of a row or of points
    access_bytes: int = 0  # of neighbours that a thread reads or writes at once
    rounds: int = 1  # of an inner loop that walks along neighbours, in one round, at most
    full_threads: int = 0  # threads that a processor holds, which hide each other's waits
    stages: bool = False  # groups of threads read operands of a dot into shared memory
    shares_rows: bool = False  # points that walk along rows are shared, however many there are

    @property
    def has_groups(self) -> bool:
        """Whether threads work in groups, through shared memory; native code has none."""
        return self.group_threads > 0


# A GPU hides latency by many threads; a tile of eight by eight reads a quarter of what it
# multiplies. Threads that run in step read neighbours together. Measured on CPU devices alone.
GPU = Choices(
    dot_rows=8,
    dot_columns=16,
    dot_registers=96,
    columns_apart=True,
    dot_points=128,
    turned_side=32,
    group_threads=128,
    group_points=16,
    shares_rows=True,
    full_threads=2048,
    stages=True,
)
# Processors behind a driver, which run the threads of a group in lanes, and pay for their waits.
LANES = replace(GPU, shares_rows=False, stages=False, turned_side=0)
# PoCL's compiler puts what a point does for neighbours into vectors: columns, and parts of a sum
# of floats, which it may not reorder itself. Measured on AVX-512: sums of rows take a tenth of the
# time, of columns an eighth. Blocks of eight by eight are turned by shuffles: transpositions take a
# quarter of the time, of powers of two as well as of odd sizes.
VECTORS = replace(
    LANES,
    dot_registers=160,
    columns_apart=False,
    square_side=16,
    square_lanes=8,
    columns=8,
    column_lanes=1,
    column_points=2,
    parts=8,
)
# Mesa's makes an access of a subgroup lane by lane: 32 cycles for one or two elements of each of
# eight threads, as long as 32 products take. What all threads need is read by them together
# (codegen/subgroups.py), 16 elements at once, columns each reads in pairs: so a tile of 32 rows
# and four columns needs one access for 32 products, one of 16 rows and two columns for 16. Its sums
# are in memory between rounds, which pays if a round adds four products to each. A thread's memory
# is no cheaper. Measured on Mesa 22.3, AVX-512.
LANE_BY_LANE = replace(
    LANES,
    dot_rows=32,
    dot_columns=4,
    dot_registers=164,
    short_sums=32,
    access_products=32,
    columns_apart=False,
    columns=16,
    column_lanes=1,
    column_points=16,
    square_side=8,
    access_bytes=16,
    full_threads=64,
    rounds=16,
)
LANGUAGES = {
    # 8 vector accumulators and what they share stay in 16 registers; more columns do not pay for
    # a dot (measured on AVX-512), but do for sums, which only read.
    # No squares: the renderer turns tiles of a vector's side in registers (codegen/llvm/tiles.py).
    "llvm": Choices(dot_rows=8, dot_points=32, columns=4, column_points=2),
    **dict.fromkeys(("opencl", "spirv", "wgsl"), GPU),
    # Accesses of 16 bytes, of which a thread has two or more on their way. Measured on an H200.
    "cuda": replace(GPU, row_threads=256, row_lanes=4, access_bytes=16),
}


def choices(target: Target) -> Choices:
    """The table of a device; one whose language is not listed gets plain loops."""
    table = LANGUAGES.get(target.language, Choices())
    if not table.shares_rows or not target.is_processor:
        return table
    if target.language == "spirv":
        return LANE_BY_LANE
    return VECTORS if target.subgroup_threads == 1 else LANES
