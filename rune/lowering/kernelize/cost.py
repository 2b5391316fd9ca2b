"""Costs and thresholds: every number by which kernelize decides, and the functions that use them.

The unit is one vectorised addition per element. Figures need not be exact: they separate "compute
it again" from "store it" by a wide margin in the cases that occur, and the tests pin which way each
well-known graph goes.

Sizes may be symbolic: `estimate` puts a typical number in place of each.
"""

from __future__ import annotations

import math
from functools import lru_cache

from rune.dims import Dim, Size, evaluate, symbols
from rune.lowering.codegen.target import Target
from rune.lowering.scalar.table import OPERATIONS
from rune.records import dataclass

LOAD = 2  # an element read from memory
STORE = 3  # an element written to memory
LAUNCH = 30000  # starting one kernel more, about a microsecond
CHEAP_OPERAND = 4  # a dot computes an operand this cheap again for every use

# Kernels of given loops (sorts, scatters) wait for memory: so much arithmetic takes no longer.
HIDDEN = 32

UNLIMITED = 1 << 20  # costs stop growing here, so that chains of 2,000 operations stay numbers

TYPICAL_SIZE = 1024  # stands for a symbolic size, within its bounds

# A kernel whose domain shrinks by fusion keeps this many parallel points for each processor, ...
ROWS_PER_CORE = 4
MOST_ROWS = 64  # ... but no more than this in all;
# where neighbouring points share cache lines (a reduction over leading axes), it keeps more;
PARALLEL_COLUMNS = 512
# unless the whole work is so small that starting a kernel costs more than idle processors.
SMALL_WORK = 1 << 13
# On a GPU the threads of a group share the rows of reductions; any other row is left to one slow
# thread, which does this much in the time that another kernel takes to start.
LONE_WORK = 1 << 8

# A reduction to fewer points than a device needs, over more elements than this, takes two steps.
SPLIT_WORK = 1 << 16
PART = 4096  # elements of one part of such a reduction
# On Mesa's processors a part is one subgroup's, written out (decision 0106): so many elements of
# sums, fewer of sums of exponentials, which take the driver long. Parts are whole lines of pairs.
LINE_PART, LINE_PEAK, LINE = 2048, 1024, 16
# A row this many times as long as what is reduced of it, its parts, has points of its own there.
FAR = 256
# The threads of a GPU's group share a column of so many: on an H100 one of 1,024 columns of 512
# elements is predicted to take 6.7 µs, in two steps 8.8; of 1,024 elements 11 and 9.2.
SHARED_COLUMN = 1 << 9
# So does one whose bounds allow more elements: a sum of ones in f32 stops at 2**24 in each lane.
LONGEST_SUM = 1 << 26
# And one over this many elements, however many rows there are: a row may be summed in one lane.
LONG_ROW = 1 << 22

# A scan of LONG_SCAN elements or more, with fewer than SCAN_POINTS rows for each processor, is
# done in parts of SCAN_PART. Along the last axis SCAN_ROWS are enough where rows are read by lines:
# writes are what is slowest there, and parts write every element twice.
LONG_SCAN = 1024
SCAN_POINTS = 1024
SCAN_ROWS = 64
SCAN_PART = 32  # a cache line of f32: neighbouring threads walk neighbouring lines
# Where parts are added up before they are scanned, rows of so many elements have such parts.
SUMMED_PART, LONG_SUMMED_SCAN = 512, 1 << 18

# On a device with many slow threads, a scatter of at least this many updates sorts them.
LONG_SCATTER = 1 << 9

# A scatter or an update of a window into at least this many elements changes them in place.
IN_PLACE = 1 << 14
WINDOW_SHARE = 4  # a window is written alone when it is smaller than the whole by this factor
# Smaller arrays, from these sizes on, are changed in place by a tiny part: by a window, and into an
# argument (which may be the carry of a loop, and then needs no copy) by a scatter, too.
SMALLEST_IN_PLACE, SMALLEST_ARGUMENT, TINY_SHARE = 1 << 12, 1 << 8, 16

# Languages of GPUs, whose groups of threads share what a stream reads.
STREAMING = frozenset({"cuda", "opencl", "spirv", "wgsl"})

FEW_ROWS = 8  # a dot of at most this many rows unpacks operands of fewer bits as it reads, ...
CHEAP_UNPACKING = 16  # ... if that costs no more than this
DOT_ROUTINE_WORK = 1 << 14  # m*n*k above which a library routine beats generated code
# Generated code beats it again for a matrix and one or two vectors, whose elements are read once,
# from m*n*k = VECTOR_WORK on: along rows in memory of VECTOR_ROW elements or more, down columns of
# at most VECTOR_COLUMN, as one core adds up a column and all cores share a routine. So it does
# where both matrices are a few elements wide.
VECTORS, VECTOR_WORK, VECTOR_ROW, VECTOR_COLUMN = 2, 1 << 15, 5, 1 << 16
THIN_ROW, THIN_COLUMNS, THIN_ELEMENTS = 8, 16, 64
# Scores of an attention are dots of at most SCORE_PRODUCTS, computed again at every use; sums of
# them have at most SUM_COLUMNS columns, which a group of threads holds in registers.
SCORE_PRODUCTS, SUM_COLUMNS = 256, 256
# Scores are stored where they are few compared with their operands: those of one position and all
# keys of a long cache, where there are too few rows to share the keys.
SCORE_SHARE = 4
MAX_BUFFERS = 24  # of one kernel: some drivers limit arguments
MAX_MEMBERS = 100  # stored values of one kernel
MAX_CELLS = 9  # ranges into which a concatenation or padding may split a write
MAX_JOINED_CUTS = 16  # of an axis whose shortest ranges are joined; of more, a kernel would be two
MAX_PLACES = 16  # places at which one value may be computed again before it is stored anyway
MAX_JOINS = 2  # concatenations, one inside the other, of a value that is computed again at several places
MAX_SCALAR_CODE = 1000  # cost of a scalar times its readers, before it is stored
MAX_AGAIN = 64  # cost of an element that is computed again, which keeps code in proportion
SLOW_SCRATCH = 1 << 11  # bytes of rows that a thread holds in its memory although it is slow


@lru_cache(maxsize=4096)
def estimate(size: Size) -> int:
    """A typical value of a size: itself, or with TYPICAL_SIZE, within bounds, for each symbol."""
    if not isinstance(size, Dim):
        return size
    values = {}
    for s in symbols(size):
        high = estimate(s.high) if s.high is not None else TYPICAL_SIZE
        values[s.name] = max(estimate(s.low), min(TYPICAL_SIZE, high))
    return evaluate(size, values)


def count(shape: tuple[Size, ...]) -> int:
    """Typical number of elements of a shape."""
    return math.prod(map(estimate, shape))


def operation(name: str) -> int:
    """Cost of a scalar operation."""
    return OPERATIONS[name].cost


def is_worth_storing(cost: int, loads: int, elements: int, evaluations: int) -> bool:
    """Whether a value is stored once rather than computed again at every use.

    cost: of one element, without the loads below;  loads: elements read for it;
    elements: of the value;  evaluations: points at which its consumers read it.

    >>> is_worth_storing(cost=1, loads=1, elements=1_000, evaluations=2_000)
    False
    """
    once = cost + LOAD * loads
    if evaluations > elements and once > MAX_AGAIN:
        return True
    recomputation = evaluations * once
    storage = LAUNCH + elements * (once + STORE) + evaluations * LOAD
    return storage < recomputation


def is_computed_by_loops(cost: int, loads: int, elements: int, reads: int) -> bool:
    """Whether kernels of given loops compute an operand as they read it, `reads` elements in all.

    Computed there, it moves loads * reads elements; stored, (loads + 1) * elements + reads.
    """
    return cost <= HIDDEN and loads * reads <= (loads + 1) * elements + reads


def parallel_rows(cores: int) -> int:
    """Parallel points that keep the processors of a device busy."""
    return min(ROWS_PER_CORE * cores, MOST_ROWS)


@dataclass(frozen=True, slots=True)
class Granularity:
    """How few parallel points a kernel may have.

    rows: the points that keep a device busy
    shared_work: the work that may have fewer points, where the threads of a group share a row
    lone_work:   the same where each row has one thread
    walks_near:  whether a point walks no row much longer than what it reduces, as neighbouring
                 threads read neighbours faster
    """

    rows: int
    shared_work: int = SMALL_WORK
    lone_work: int = SMALL_WORK
    walks_near: bool = False

    @classmethod
    def of(cls, target: Target) -> Granularity:
        """The granularity of a device."""
        lone_work = LONE_WORK if target.is_gpu else SMALL_WORK
        return cls(parallel_rows(target.cores), lone_work=lone_work, walks_near=target.has_lines)

    def small(self, is_reducing: bool) -> int:
        """The work that may be left to few points, in a kernel with reductions or without."""
        return self.shared_work if is_reducing else self.lone_work


def keeps_parallel(points: int, before: int, work: int, rows: int, small: int) -> bool:
    """Whether a kernel may run over `points` instead of `before` parallel points.

    rows: the parallel points that the device needs, or PARALLEL_COLUMNS. small: work that may have
    fewer.
    """
    return points >= min(before, rows) or work <= small


def computes_again(target: Target) -> bool:
    """Whether a device computes scores and exponentials again rather than storing them.

    A GPU does 60 products in the time of a store and a load; a processor, with its caches, six.
    """
    return target.language in STREAMING and not target.is_processor


def is_many_scores(scores: int, read: int) -> bool:
    """Whether there are too many scores, compared with elements of operands, to store them."""
    return SCORE_SHARE * scores >= read or read <= SPLIT_WORK


def is_routine_dot(m: Size, n: Size, k: Size) -> bool:
    """Whether a dot of these sizes is left to a library routine."""
    return count((m, n, k)) >= DOT_ROUTINE_WORK


def is_generated_dot(m: Size, n: Size, k: Size, is_along_rows: bool | None) -> bool:
    """Whether generated code computes a product faster than a routine although it is large.

    is_along_rows: whether elements to be added lie side by side in the larger operand; None if that
    is unknown
    """
    few, many = sorted((count((m,)), count((n,))))
    depth = count((k,))
    is_thin = few <= THIN_COLUMNS and depth <= THIN_ROW and few * depth <= THIN_ELEMENTS
    if is_thin and (few > 1 or depth <= THIN_ROW // 2):
        return True
    is_long = is_along_rows is False or depth >= VECTOR_ROW
    is_shared = is_along_rows is True or depth <= VECTOR_COLUMN
    return few <= VECTORS and few * many * depth >= VECTOR_WORK and is_long and is_shared
