"""Scan a long axis in three kernels, on a device whose threads work in groups.

    totals    of each tile of the axis: a reduction, into which what makes the elements is fused
    before    the running totals: one group walks them
    tiles     each scanned by a group, from the total before it

A group brings its tile into shared memory, so that threads side by side read and write neighbours
in memory. There every thread walks a few neighbours and adds them up; sums of the threads are
scanned over distances 1, 2, 4, …; then every thread walks its neighbours again, from the sum before
them. One element in 33 is empty, so that threads eight apart are in different banks.
The tiles depend on nothing but sizes, so the result is the same on every run.

Cost: every element is read twice and written once.
Source: reduce, then scan: Merrill and Grimshaw, "Parallel scan for stream architectures", 2009.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.notation import const_text
from rune.lowering.written import Loops

THREADS = 256  # of a group
ITEMS = 8  # neighbours that one thread walks
TILE = THREADS * ITEMS
BANKS = 32  # of shared memory, of one element each


def tiles(size: Size) -> Size:
    """How many tiles an axis has."""
    return -(-size // TILE)


def _scan_type(x: ArrayType, *before: ArrayType, axis: int, combine: str, reverse: bool) -> ArrayType:
    return x


def _scan_reference(x: np.ndarray, *before: np.ndarray, axis: int, combine: str, reverse: bool) -> np.ndarray:
    along = np.flip(x, axis) if reverse else x
    scanned = COMBINE[combine].function.accumulate(along, axis=axis, dtype=x.dtype)
    return np.flip(scanned, axis) if reverse else scanned


def _scan_loops(x: ArrayType, *before: ArrayType, axis: int, combine: str, reverse: bool) -> Loops:
    """Of each tile from what is before it; without that, of whole rows, tile by tile."""
    outer, size, inner = product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])
    neutral, dtype = const_text(COMBINE[combine].identity(x.dtype)), dtypes.short(x.dtype)
    if before:
        count = tiles(size)
        start = f"x1[((({count})*a + p) - 1)*({inner}) + c if index(p) > 0_i64]"
        start = f"select(index(p) > 0_i64, {start}, {neutral})"
        tile, rounds, parts = f"{TILE}*p", 1, count
    else:
        start, tile, rounds, parts = neutral, f"{TILE}*k", tiles(size), 1
    mine, beside = f"{ITEMS}*t + e", f"{THREADS}*e + t"
    along = f"{size} - 1 - ({tile} + {beside})" if reverse else f"{tile} + {beside}"
    at = f"(({size})*a + {along})*({inner}) + c"
    is_mine, is_there = (f"index({tile} + {element}) < index({size})" for element in (mine, beside))
    steps, last = _among_threads(combine, dtype)
    text = f"""{{
      for a in {outer} grid {{ for p in {parts} grid {{ for c in {inner} grid {{
        alloc area: {dtype}[{TILE + TILE // BANKS}] shared
        alloc part0: {dtype}[{THREADS}] shared
        alloc part1: {dtype}[{THREADS}] shared
        for t in {THREADS} workgroup {{
          var carry: {dtype} = {start}
          for k in {rounds} serial {{
            for e in {ITEMS} serial {{ if {is_there} {{ store {_place(beside)} = x0[{at}] }} }}
            barrier
            var total: {dtype} = {neutral}
            for e in {ITEMS} serial {{ if {is_mine} {{ total = {_joined(combine, "total", _place(mine))} }} }}
            store part0[t] = total
            barrier
            {steps}
            var run: {dtype} = carry
            if index(t) > 0_i64 {{ run = {_joined(combine, "carry", f"{last}[t - 1]")} }}
            for e in {ITEMS} serial {{
              if {is_mine} {{
                run = {_joined(combine, "run", _place(mine))}
                store {_place(mine)} = run
              }}
            }}
            barrier
            for e in {ITEMS} serial {{ if {is_there} {{ store y0[{at}] = {_place(beside)} }} }}
            carry = {_joined(combine, "carry", f"{last}[{THREADS - 1}]")}
          }}
        }}
      }} }} }} }}"""
    return Loops(text)


def _place(element: str) -> str:
    """Where an element of a tile lies in shared memory."""
    return f"area[{element} + ({element}) // {BANKS}]"


def _joined(combine: str, first: str, second: str) -> str:
    return f"{combine}({first}, {second})"


def _among_threads(combine: str, dtype: str) -> tuple[str, str]:
    """The steps by which the threads' totals are scanned, and where the last one leaves them."""
    steps: list[str] = []
    source, target, distance = "part0", "part1", 1
    while distance < THREADS:
        joined = _joined(combine, f"{source}[t - {distance}]", f"{source}[t]")
        steps.append(f"""
            if index(t) < {distance}_i64 {{ store {target}[t] = {source}[t] }} else {{ store {target}[t] = {joined} }}
            barrier""")
        source, target, distance = target, source, 2 * distance
    return "".join(steps), source


# Operand 0 scanned along an axis; operand 1, where it is, has the scanned totals of its tiles.
scan_by_groups = Primitive("scan_by_groups", "reduction", _scan_type, _scan_reference, lower=Written(_scan_loops))
