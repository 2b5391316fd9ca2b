"""Lowered limits, for sizes that random programs cannot reach because they would run for too long.

    with lowered(rng):
        rune.jit(f)(x)      # blocks, parts, tiles and chunks of a few elements

A limit is a constant of a module, and of those that import it by name. Some are written into
libraries that are compiled once (products, transforms): each choice of these has its own libraries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from rune.backends.cpu.fft import library as fft
from rune.backends.cpu.gemm import library as gemm
from rune.lowering.kernelize import cost
from rune.ops.fourier import lengths


@dataclass(frozen=True, slots=True)
class Limit:
    """A constant, the modules that hold it, and the values that may replace it."""

    name: str
    modules: tuple[str, ...]  # below rune
    values: tuple[Any, ...]


def _limits(module: str, **values: tuple[Any, ...]) -> tuple[Limit, ...]:
    """Constants of one module."""
    return tuple(Limit(name, (module,), choices) for name, choices in values.items())


KERNELS = (
    *_limits(
        "lowering.kernelize.cost",
        IN_PLACE=(1,),
        SMALLEST_IN_PLACE=(1,),
        SMALLEST_ARGUMENT=(1,),
        TINY_SHARE=(1,),
        WINDOW_SHARE=(1,),
        MAX_BUFFERS=(3, 6),
        MAX_MEMBERS=(1, 3),
        MAX_CELLS=(1, 2),
        MAX_PLACES=(1, 2),
        MAX_AGAIN=(1, 8),
        LAUNCH=(0, 1 << 40),
        ROWS_PER_CORE=(0, 64),
        PARALLEL_COLUMNS=(1, 8),
        LONE_WORK=(0, 1 << 20),
    ),
    *_limits("lowering.codegen.llvm.render", MOST_COPIES=(0, 1)),
    *_limits("lowering.lanes.layout", LONG_AXIS=(2, 16)),
    *_limits("lowering.lanes.width", MOST_REGISTERS=(1, 2), CHEAP=(0.0, 1000.0)),
    *_limits("lowering.lanes.rounds", UNROLL=(1, 3), UNROLL_COST=(0.0, 1000.0), HEAVY=(0.0, 1000.0)),
    *_limits("lowering.lanes.choose", LOOP_OVERHEAD=(0.0,), WIDEST=(1, 16)),
    *_limits("lowering.lanes.transposed", LEAST_EXTENT=(2, 8)),
    *_limits("lowering.simplify.hoist_loops", COSTLY=(0,)),
    *_limits("lowering.arena", MOST_COMPARED=(0,)),
    *_limits("backends.cpu.costs", MOST_WORK=(-1.0, 1e18)),
    *_limits("lowering.joins", MOST=(2, 3)),
    *_limits(
        "backends.cpu.steps",
        PARALLEL_COST=(0.0,),
        CHUNK_COST=(0.0,),
        CHUNKS_PER_CORE=(1, 7),
        PART_COST=(1.0, 100.0),
        HEARD_COST=(0.0,),
        MOST_STEPS=(1, 3),
    ),
)
SUMS = (
    *_limits("lowering.kernelize.cost", SPLIT_WORK=(4, 64), PART=(4, 32), LONG_ROW=(8,), LONGEST_SUM=(8, 100)),
    *_limits("lowering.optimize.sum_in_blocks", BLOCK=(2, 5), LONGEST=(3, 40), LONGEST_OF_MANY=(3, 40), LANES=(1, 4)),
    *_limits("ops.long_sums", BLOCK=(2, 5), LONGEST=(3, 40), LONG_PRODUCT=(3, 40), PRODUCT_BLOCK=(1, 7)),
    *_limits("lowering.extremes", LONG=(1,), TILE=(128,)),
)
SCANS = (
    *_limits(
        "lowering.kernelize.cost", LONG_SCAN=(6,), SCAN_POINTS=(1 << 20,), SCAN_PART=(2, 5), SCAN_ROWS=(1, 1 << 20)
    ),
    *_limits("lowering.kernelize.split_scans", ROUNDS=(0, 1)),
)
PRODUCTS = (
    *_limits("backends.cpu.gemm.small", MOST_COST=(0.0, 1e8)),
    *_limits("lowering.kernelize.cost", DOT_ROUTINE_WORK=(1, 1 << 30), FEW_ROWS=(0, 64), CHEAP_OPERAND=(0, 100)),
    *_limits("lowering.kernelize.cost", VECTOR_WORK=(1,), VECTOR_ROW=(1, 64), VECTOR_COLUMN=(3, 1 << 40)),
    *_limits(
        "lowering.kernelize.split_dots",
        SIDE=(1, 4),
        SHORTEST=(2, 7),
        SHORTEST_OF_HALVES=(2, 7),
        LONGEST=(4, 20),
        FULL=(1, 64),
        DIVISORS=(0,),
    ),
    *_limits("lowering.kernelize.feed_products", FEWEST=(1,)),
    *_limits("lowering.bands", LEAST_BYTES=(0,), LEAST_OPERATIONS=(0,), MOST_STEPS=(2, 3, 24)),
    *_limits("backends.cpu.band", UNEVEN=(100.0,)),
    *_limits("backends.cpu.bands", BLOCK_BYTES=(1, 64), PART_OPERATIONS=(1, 1 << 31)),
)
CONVOLUTIONS = (
    *_limits("ops.conv_expansion", FEW=(0, 64), PHASES=(1, 64)),
    *_limits("ops.convolution", PATCHES=(1, 50)),
)
SORTS = (
    *_limits("ops.sorting", FEW_COMPARISONS=(0, 1 << 40)),
    *_limits("ops.sorting.searching", BLOCK=(3,)),
    *_limits("lowering.sorting.sorts", SHORT=(0, 5)),
    *_limits(
        "lowering.sorting.radix", PROCESSOR_TILE=(3, 16), GROUPS=((32,), (64, 32)), ITEMS=((4, 8), (1, 2)), FEW=(0,)
    ),
)
SCATTERS = (
    *_limits("lowering.kernelize.cost", LONG_SCATTER=(1,)),
    *_limits("lowering.scatters", MANY_CORES=(1,), QUICK_ELEMENTS=(0,), FEW_ELEMENTS=(0, 1 << 30), MANY_CHANGES=(0,)),
    *_limits("lowering.scatters.by_sorting", CHUNK=(4, 7), LAST=(8,)),
)
TRANSFORMS = (
    *_limits("ops.fourier", GENERATED_FROM=(0,)),
    *_limits("ops.fourier.lines", ROUTINE_ELEMENTS=(0, 100), ROWS_ELEMENTS=(0, 100), LINE_ELEMENTS=(4,)),
    *_limits("ops.fourier.in_memory", LONGEST_ROW=(0, 40)),
    *_limits("ops.fourier.stages", WRITTEN_OUT=(2, 4, 64)),
    *_limits("ops.fourier.lengths", MOST=(2, 4, 7)),
)
STREAMS = (
    *_limits("lowering.kernelize.cost", SCORE_SHARE=(1 << 20,)),
    *_limits(
        "lowering.build.streams.choice",
        MOST_SUMS=(8, 1000),
        SHAPES=(((4, 32, 2, 32), (1, 32, 1, 32)), ((1, 32, 1, 32),)),
    ),
    *_limits("lowering.build.streams.staging", MOST_AHEAD=(1,)),
)
FAMILIES: Mapping[str, Sequence[Limit]] = {
    "kernels": KERNELS,
    "sums": SUMS,
    "scans": SCANS,
    "products": PRODUCTS,
    "convolutions": CONVOLUTIONS,
    "sorts": SORTS,
    "scatters": SCATTERS,
    "transforms": TRANSFORMS,
    "streams": STREAMS,
}
# By backend: what is submitted together.
QUEUES: Mapping[str, Sequence[Limit]] = {
    "vulkan": (
        *_limits("backends.vulkan.record", SUBMITTED=(1, 2), EXPANDED=(1, 8), _COMPARED=(1, 2)),
        *_limits("backends.vulkan.schedule", UNROLLED=(1, 4), GATED=(0, 2)),
        *_limits("backends.vulkan.memory", PIECE_BYTES=(64,)),
    ),
    "wgpu": (*_limits("backends.wgpu.run", _COMMANDS=(1, 3)), *_limits("backends.wgpu.script", LONGEST=(0, 3))),
    "cuda": (*_limits("backends.cuda.graph", UNROLLED=(0, 2)), *_limits("backends.cuda.edges", WINDOW=(1, 2))),
}


# --- what is written into libraries ---------------------------------------------------------------

_BLOCKED = tuple(f"backends.cpu.gemm.{name}" for name in ("blocks", "exchanged", "packing", "strided"))


def _choice(depth: int, height: int, width: int, few: int, others: int) -> tuple[Limit, ...]:
    """Blocks of a product: multiples of any vector's lanes, and of a panel's bytes."""
    return (
        Limit("DEPTH", (*_BLOCKED, "backends.cpu.gemm.small"), (depth,)),
        Limit("HEIGHT", _BLOCKED, (height,)),
        Limit("FEW", ("backends.cpu.gemm.blocks", "backends.cpu.gemm.product"), (few,)),
        *_limits("backends.cpu.gemm.shape", BLOCK_BYTES=(width,)),
        *_limits("backends.cpu.gemm.tile", FETCHING=(1,)),
        *_limits(
            "backends.cpu.gemm.blocks",
            FIRST_CACHE=(64 * others,),
            EVEN=(others,),
            FEW_PANELS=(others,),
            PARALLEL_OPERATIONS=(others,),
            WATCHED_OPERATIONS=(others,),
        ),
        *_limits("backends.cpu.gemm.exchanged", BLOCKS=(1 + others,)),
        *_limits("backends.cpu.fft.forms", LONG=(2 + 6 * others,)),
        *_limits("backends.cpu.fft.library", PARALLEL_ELEMENTS=(others,)),
    )


LIBRARIES = (_choice(16, 16, 256, 1, 0), _choice(32, 16, 512, 4, 1), _choice(16, 48, 256, 2, 1))


def fresh_libraries() -> Mapping[Any, Mapping[str, Any]]:
    """For each module, functions that find libraries in which nothing has been compiled."""
    return {
        gemm: {"_library_of": functools.cache(gemm._library_of.__wrapped__)},
        fft: {"_library_of": functools.cache(fft._library_of.__wrapped__)},
    }


_of_choice = functools.cache(lambda number: fresh_libraries())


SHARES = (0.0, 0.4, 0.9, 0.9)  # of a family's limits: some ways begin where several are low

# --- lowering -------------------------------------------------------------------------------------


def _lower(stack: ExitStack, limit: Limit, value: Any) -> None:
    for module in limit.modules:
        stack.enter_context(patch.object(import_module(f"rune.{module}"), limit.name, value))


def _lower_libraries(stack: ExitStack, number: int) -> None:
    for limit in LIBRARIES[number]:
        _lower(stack, limit, limit.values[0])
    for module, functions in _of_choice(number).items():
        stack.enter_context(patch.multiple(module, **functions))


def _stream_everywhere(stack: ExitStack) -> None:
    """Also on the reference executor, the only one with streams that has routines for products."""
    where = ("lowering.kernelize.cost",)
    _lower(stack, Limit("STREAMING", where, ()), cost.STREAMING | {"none"})
    _lower(stack, Limit("DOT_ROUTINE_WORK", where, ()), 1 << 60)


def _lower_scan_tiles(stack: ExitStack, threads: int, items: int) -> None:
    """Three constants that belong together."""
    where = "lowering.kernelize."
    _lower(stack, Limit("ITEMS", (f"{where}group_scans",), ()), items)
    for name, value in (("THREADS", threads), ("TILE", threads * items)):
        _lower(stack, Limit(name, (f"{where}group_scans", f"{where}split_scans"), ()), value)


@contextmanager
def lowered(rng: np.random.Generator, backend: str = "cpu") -> Iterator[None]:
    """Most limits of some families, few of others, and some of the libraries, with other values."""
    with ExitStack() as stack:
        for family in (*FAMILIES.values(), QUEUES.get(backend, ())):
            share = rng.choice(SHARES)
            for limit in family:
                if rng.random() < share:
                    _lower(stack, limit, limit.values[rng.integers(len(limit.values))])
        if rng.random() < 0.5:
            _lower_libraries(stack, int(rng.integers(len(LIBRARIES))))
        if rng.random() < 0.5:
            _lower_scan_tiles(stack, *((2, 1), (4, 3), (32, 2))[rng.integers(3)])
        if rng.random() < 0.5:
            _stream_everywhere(stack)
        lengths.radices.cache_clear()  # it depends on a limit
        stack.callback(lengths.radices.cache_clear)
        yield
