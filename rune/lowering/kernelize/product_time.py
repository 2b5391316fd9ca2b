"""Estimate how long groups of threads take for a product from shared memory, on a GPU.

A multiprocessor issues instructions, reads shared memory, and reads global memory, all at the same
time: whatever takes longest counts. A group also waits: in every round for what it reads from
memory, unless that was fetched a round before, and then for its own warps. Other groups, if there
are any, fill that time. So a long sum of few results needs deep panels, fetched ahead, and many
warps, while a large product needs nothing but large tiles.

    64 x 64 results, a sum of 4096:     16 groups of 64, 16 deep      256 rounds of 1,100 cycles
                                        16 groups of 64, 64 deep, fetched ahead    64 of 1,000

The estimate serves to rank candidates. Its figures are those of an H100; counted in cycles, they
differ little between GPUs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import ceil

from rune.records import dataclass

SIDES = (2, 4, 8)  # rows and columns of a thread
GROUPS = ((16, 16), (8, 16), (16, 8), (8, 8), (4, 8))  # threads along rows and columns
DEPTHS = (16, 8, 32, 64)  # of a panel, about; of depths that take equally long, the first counts
SCHEDULERS = 4.0  # of a multiprocessor: instructions of warps in a cycle
WARP = 32
THREADS, REGISTERS, SHARED_BYTES = 2_048, 65_536, 227 << 10  # of a multiprocessor
BESIDE = 30  # registers of a thread besides its sums, its factors, and the elements that it copies
MOST_SUMS = 64  # registers of a thread for sums
WAIT = 500.0  # cycles of a round for memory
BARRIER = 60.0  # cycles in which the warps of a group wait for one another, at each end of a round
WRITTEN_OUT = 16  # rounds of a panel that are unrolled, at most (codegen/ahead.py)
# Half of the elements that a quarter of a warp reads are the same (build/stage.py).
SHARED_READ = 0.5  # cycles of a multiprocessor for an element that each thread of a warp reads
# Cycles of a warp alone: for its reads of shared memory, and for each product. Compilers move the
# reads of some rounds ahead, but not all, and the next product goes to another pipe.
SHARED_WAIT, PRODUCT_WAIT = 22.0, 1.75
# Instructions that copy an element to shared memory: in pieces of 16 bytes, in pieces that are
# stored apart because neighbours in memory are none in the panel, and one by one. Single fetches
# cost more than loads.
PIECE, APART, ALONE, SCATTERED = 0.5, 2.0, 3.5, 8.0
CONFLICTS = 1.6  # factor for elements stored apart in panels deeper than 8: two to a bank
SHALLOW = 8  # the depth up to which elements stored apart lie in different banks
CACHE, MEMORY = 24.0, 13.0  # bytes in a cycle, for each multiprocessor
SHARPNESS = 8.0  # warps that are busy nearly all the time still wait for one another
LAUNCH = 6_000.0  # cycles of another kernel
# Groups neither start nor run in step: with fewer than two for each multiprocessor, all others wait
# for a late one.
FULL, LATE = 2, 1.07


@dataclass(frozen=True, slots=True)
class Product:
    """The sizes of a product: points of its other axes, rows, columns; what it adds up.

    across: how many of both operands have their neighbours along the sum, and so across a panel
    scattered_operands: how many have no neighbours in memory: elements are copied one by one
    """

    batch: int
    rows: int
    columns: int
    sums: int
    itemsize: int = 4
    across: int = 1
    scattered_operands: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Threads by rows and columns, the tile of each, and the panels: their depth, when fetched."""

    down: int
    along: int
    rows: int
    columns: int
    depth: int
    is_ahead: bool = False

    @property
    def threads(self) -> int:
        """Threads of the group."""
        return self.down * self.along

    @property
    def lengths(self) -> tuple[int, int]:
        """Rows and columns of the group."""
        return self.down * self.rows, self.along * self.columns

    def resident(self, itemsize: int) -> int:
        """How many such groups a multiprocessor holds."""
        words = max(1, itemsize // 4)
        panel_elements = 0 if self.is_ahead else sum(self.lengths) * self.depth // self.threads
        registers = words * (self.rows * self.columns + self.rows + self.columns + panel_elements) + BESIDE
        panels = (1 + self.is_ahead) * sum(self.lengths) * self.depth * itemsize
        if words * self.rows * self.columns > MOST_SUMS:
            return 0
        return min(THREADS // self.threads, REGISTERS // (registers * self.threads), SHARED_BYTES // panels)


def cycles(product: Product, group: Group, cores: int) -> float:
    """The time of a product; infinite for a group that no multiprocessor holds."""
    (down, along), most = group.lengths, group.resident(product.itemsize)
    if not most:
        return float("inf")
    groups = product.batch * ceil(product.rows / down) * ceil(product.columns / along)
    # The multiprocessor with the most groups decides; those that do not fit wait for another wave.
    of_core = ceil(groups / cores)
    waves, remainder = divmod(of_core, most)
    times = waves * _wave(product, group, most) + (_wave(product, group, remainder) if remainder else 0.0)
    beyond = groups * (down + along) * product.sums * product.itemsize / CACHE
    once = product.batch * (product.rows + product.columns) * product.sums * product.itemsize / MEMORY
    late = LATE if groups < FULL * cores else 1.0
    return late * max(times, beyond / cores, once / cores)


def _wave(product: Product, group: Group, resident: int) -> float:
    """Cycles of `resident` groups on one multiprocessor."""
    products, reads = group.rows * group.columns, group.rows + group.columns
    copies = _each(product, group) * sum(group.lengths) / group.threads
    warps = resident * ceil(group.threads / WARP)
    instructions = products + reads / 4 + copies
    busy = group.depth * warps * max(instructions / SCHEDULERS, SHARED_READ * reads)
    alone = group.depth * (SHARED_WAIT + PRODUCT_WAIT * products + copies)
    rounds = ceil(product.sums / group.depth)
    # Rounds that are unrolled together begin and end with waits, as a single round does.
    ends = BARRIER * max(1.0, group.depth / WRITTEN_OUT)
    if group.is_ahead:
        return rounds * max(_beside(busy, alone) + ends, WAIT) + WAIT
    return rounds * _beside(busy + 2 * ends, max(busy / resident, alone) + WAIT) + WAIT


def _beside(a: float, b: float) -> float:
    """The time of two things that happen side by side: the longer, or more if they are close."""
    return (a**SHARPNESS + b**SHARPNESS) ** (1 / SHARPNESS)


def _each(product: Product, group: Group) -> float:
    """Instructions that copy an element, on average over both panels."""
    apart = ALONE if group.is_ahead else APART * (CONFLICTS if group.depth > SHALLOW else 1.0)
    across = min(product.across, 2 - product.scattered_operands)
    pieces = 2 - across - product.scattered_operands
    return (pieces * PIECE + across * apart + product.scattered_operands * SCATTERED) / 2


def parted(product: Product, parts: int) -> Product:
    """The product with its sum in parts, which are points of another batch axis."""
    return replace(product, batch=product.batch * parts, sums=ceil(product.sums / parts))


def candidates(*, ahead: bool) -> Iterator[Group]:
    """Groups of all kinds."""
    ways = (True, False) if ahead else (False,)
    for sides in itertools.product(SIDES, SIDES, GROUPS, DEPTHS, ways):
        rows, columns, (down, along), depth, is_ahead = sides
        yield Group(down, along, rows, columns, depth, is_ahead)


@lru_cache(maxsize=1024)
def shortest(product: Product, cores: int, *, ahead: bool) -> float:
    """The time of the best group."""
    return min(cycles(product, group, cores) for group in candidates(ahead=ahead))


__all__ = ["DEPTHS", "GROUPS", "LAUNCH", "MEMORY", "SIDES", "Group", "Product", "cycles", "parted", "shortest"]
