"""How long groups of threads take for a product from shared memory, on a GPU; by few numbers.

A multiprocessor issues instructions, reads shared memory, and gets what is beyond it, side by side:
what takes longest counts. A group also waits: in every round for what it reads of memory, unless
that was fetched a round before, and then for its own warps. Other groups fill the time, if there
are some. So a long sum of few results needs deep panels, fetched ahead, and many warps; a large
product needs large tiles alone.

    64 x 64 results, a sum of 4096:     16 groups of 64, 16 deep      256 rounds of 1,100 cycles
                                        16 groups of 64, 64 deep, fetched ahead    64 of 1,000

The order of candidates is what this is for: numbers are those of an H100, and differ little among
GPUs if counted in cycles.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

SIDES = (2, 4, 8)  # rows and columns of a thread
GROUPS = ((16, 16), (8, 16), (16, 8), (8, 8), (4, 8))  # threads along rows and columns
DEPTHS = (16, 8, 32, 64)  # of a panel, about; the first of those that take as long
SCHEDULERS = 4.0  # of a multiprocessor: instructions of warps in a cycle
WARP = 32
THREADS, REGISTERS, SHARED_BYTES = 2_048, 65_536, 227 << 10  # of a multiprocessor
BESIDE = 40  # registers of a thread beside its sums and what it multiplies
MOST_SUMS = 64  # registers of a thread for them
WAIT = 1_000.0  # cycles of a round for memory: to ask, to get, to store, and two barriers
WAIT_AHEAD = 700.0  # ... of what is fetched
BARRIER = 60.0
# Half of what a quarter of a warp reads is the same (build/stage.py).
SHARED_READ = 0.5  # cycles of a multiprocessor for an element that each thread of a warp reads
ELEMENT, SCATTERED = 2.0, 8.0  # instructions to bring an element to shared memory; if it is alone
CACHE, MEMORY = 24.0, 13.0  # bytes in a cycle, for each multiprocessor
LAUNCH = 6_000.0  # cycles of another kernel


@dataclass(frozen=True, slots=True)
class Product:
    """The sizes of a product: points of its other axes, rows, columns; what it adds up.

    scattered: operands, of the two, whose elements are brought one by one
    """

    batch: int
    rows: int
    columns: int
    sums: int
    itemsize: int = 4
    scattered: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Threads by rows and columns, the tile of each, and panels: how deep, how early fetched."""

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
        """How many of them a multiprocessor holds; 0: none."""
        words = max(1, itemsize // 4)
        registers = words * (self.rows * self.columns + self.rows + self.columns) + BESIDE
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
    of_core = ceil(groups / cores)
    waves, remainder = divmod(of_core, most)
    times = waves * _wave(product, group, most) + (_wave(product, group, remainder) if remainder else 0.0)
    beyond = groups * (down + along) * product.sums * product.itemsize / CACHE
    once = product.batch * (product.rows + product.columns) * product.sums * product.itemsize / MEMORY
    return max(times, beyond / cores, once / cores)


def _wave(product: Product, group: Group, resident: int) -> float:
    """Cycles of so many groups on one multiprocessor."""
    products, reads = group.rows * group.columns, group.rows + group.columns
    each = ELEMENT + (SCATTERED - ELEMENT) * product.scattered / 2
    brought = each * sum(group.lengths) / group.threads
    warps = resident * ceil(group.threads / WARP)
    issued = products + reads / 4 + brought
    busy = group.depth * warps * max(issued / SCHEDULERS, SHARED_READ * reads)
    # A warp by itself: of a tile of fewer products, each waits for the one before.
    alone = group.depth * (max(4.0, products) + reads / 2 + brought)
    rounds = ceil(product.sums / group.depth)
    of_group = max(busy / resident, alone)
    if group.is_ahead:
        return rounds * max(busy, of_group + BARRIER, WAIT_AHEAD) + WAIT
    return rounds * max(busy, of_group + WAIT) + WAIT


def parted(product: Product, parts: int) -> Product:
    """The product whose sum is in parts, which are points of another axis."""
    return Product(
        product.batch * parts,
        product.rows,
        product.columns,
        ceil(product.sums / parts),
        product.itemsize,
        product.scattered,
    )


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
