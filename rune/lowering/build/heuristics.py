"""Choices of loop structure: a small table of figures, with reasons, for each kind of device.

The renderers themselves choose which loop runs in vector lanes (llvm) or threads (opencl), so what
remains to be decided here is how much of a dot one point computes, and which threads share a point.
"""

from __future__ import annotations

from dataclasses import replace

from rune.lowering.codegen.target import Target
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Choices:
    """The figures by which build decides for a device. "Most" values are upper limits."""

    dot_rows: int = 1  # most rows of a dot at one point, which share what they read
    dot_columns: int = 1  # most columns of a dot at one point
    dot_registers: int = 0  # most registers for sums and what they read
    short_sums: int = 0  # most sums of a dot whose inner loop is short; 0: no other limit
    columns_apart: bool = False  # columns of a point are interleaved with those of other points
    access_products: int = 0  # products that take as long as a subgroup's access; 0: reads are cheap
    dot_points: int = 1  # points that must remain for each processor when a dot is tiled
    columns: int = 1  # vectors of neighbouring columns at one point
    column_points: int = 1  # points that must remain for each processor with such vectors
    column_lanes: int = 0  # neighbours in such a vector; 0: as many as a register of the device holds
    parts: int = 1  # most parts of a reduction that reads neighbours
    square_side: int = 0  # side of the square in which a transposition walks [elements]
    square_lanes: int = 1  # side of the blocks of a square, which are turned in registers
    turned_side: int = 0  # side of the square that a group turns in shared memory [elements]
    group_threads: int = 0  # threads that share a point with reductions if there are few points
    group_points: int = 0  # points for each processor up to which they count as few
    row_threads: int = 0  # most threads that share a row and take neighbours of it
    row_elements: int = 32  # most elements of a row that a thread holds, whose loops are written out
    row_lanes: int = 1  # neighbours that a thread takes at a time, of a row or of points
    line_row: int = 0  # fewest elements of a row that one subgroup reads by lines; 0: it has no lines
    line_code: int = 0  # most statements of a thread that does so, ...
    short_line_code: int = 0  # more statements than these are for line_rows and more
    line_rows: int = 0
    line_calls: int = 0  # ... and most instructions in the functions that it calls
    access_bytes: int = 0  # bytes of neighbours that a thread reads or writes at once
    sums: int = 1  # variables over which a long sum of straight code is spread
    rounds: int = 1  # most rounds of an inner loop along neighbours that are joined to one
    full_threads: int = 0  # threads that a processor holds, which hide each other's waits
    stages: bool = False  # groups of threads read operands of a dot into shared memory
    shares_rows: bool = False  # points that walk along rows are shared, however many there are

    @property
    def has_groups(self) -> bool:
        """Whether threads work in groups, through shared memory; native code has none."""
        return self.group_threads > 0


# A GPU hides latency by many threads; a tile of eight by eight reads one value for four products.
# Threads that run in step read neighbours together. Measured only on CPU devices.
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
# Processors behind a driver run the threads of a group in vector lanes, and pay for barriers.
LANES = replace(GPU, shares_rows=False, stages=False, turned_side=0)
# PoCL's compiler vectorises what a point does for neighbours: columns, and parts of a sum of
# floats, which it may not reorder itself. Measured on AVX-512: sums of rows take a tenth of the
# time, sums of columns an eighth. Blocks of eight by eight are turned by shuffles: transpositions
# take a quarter of the time, at powers of two as well as at odd sizes.
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
# Mesa's compiler makes an access of a subgroup lane by lane: 32 cycles for one or two elements of
# each of eight threads, the time of 32 products. Threads read together what all of them need
# (codegen/subgroups.py), 16 elements at once, and columns in pairs: so a tile of 32 rows and four
# columns needs one access for 32 products, a tile of 16 rows and two columns one for 16. Its sums
# are in memory between rounds, which pays if a round adds four products to each. A thread's own
# memory is not cheaper. Rows that a subgroup reads by lines (codegen/mesa/lines.py) cost a tenth,
# but 0.1 µs more for each array: so they have 256 elements or more, and loops are written out.
# A statement of such a row takes 0.5 ms to compile, and saves some 20 ns of the time of the row in
# loops: with 32 rows it is repaid after 800 calls. Code of 192 statements and loops compile alike.
# Measured with Mesa 22.3 on AVX-512.
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
    row_elements=512,
    line_row=256,
    line_code=1024,
    short_line_code=192,
    line_rows=32,
    line_calls=6000,
    access_bytes=16,
    full_threads=64,
    rounds=16,
    sums=8,
)
PLAIN = Choices()
LANGUAGES = {
    # 8 vector accumulators and what they share fit 16 registers; more columns do not pay for a dot
    # (measured on AVX-512), but they do for sums, which only read.
    # No squares: the renderer turns tiles of a vector's side in registers (codegen/llvm/tiles.py).
    "llvm": Choices(dot_rows=8, dot_points=32, columns=4, column_points=2),
    **dict.fromkeys(("opencl", "spirv", "wgsl"), GPU),
    # A thread has two or more accesses of 16 bytes in flight. Measured on an H200.
    "cuda": replace(GPU, row_threads=256, row_lanes=4, access_bytes=16),
}


def choices(target: Target) -> Choices:
    """The table of a device; a device whose language is not listed gets plain loops."""
    table = LANGUAGES.get(target.language, PLAIN)
    if not table.shares_rows or not target.is_processor:
        return table
    if target.language == "spirv":
        return LANE_BY_LANE
    return VECTORS if target.subgroup_threads == 1 else LANES
