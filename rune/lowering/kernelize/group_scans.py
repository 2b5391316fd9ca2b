"""Scan a long axis in three kernels, on a device whose threads work in groups.

    totals    of each tile of the axis: a reduction, fused with what computes the elements
    before    the running totals: one group walks them
    tiles     each scanned by a group, beginning with the total before it

A group copies its tile to shared memory, so that threads side by side read and write neighbours in
memory. There every thread walks a few neighbours and adds them up; the sums of the threads are
scanned over distances 1, 2, 4, …; then every thread walks its neighbours again, from the sum before
them. Every 33rd element is unused, so that threads four apart begin in different banks.
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
    result = COMBINE[combine].function.accumulate(along, axis=axis, dtype=x.dtype)
    return np.flip(result, axis) if reverse else result


def _scan_loops(x: ArrayType, *before: ArrayType, axis: int, combine: str, reverse: bool) -> Loops:
    """Each tile by a group, from the total before it; without totals, each row tile by tile."""
    outer, size, inner = product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])
    neutral, dtype = const_text(COMBINE[combine].identity(x.dtype)), dtypes.short(x.dtype)
    # Without totals a group takes the tiles of its row in turn, and carries the total itself.
    if before:
        count = tiles(size)
        # Tile p begins with the scanned total of tile p - 1, and the first tile with the identity.
        start = f"x1[((({count})*a + p) - 1)*({inner}) + c if index(p) > 0_i64]"
        start = f"select(index(p) > 0_i64, {start}, {neutral})"
        tile, rounds, parts = f"{TILE}*p", 1, count
    else:
        start, tile, rounds, parts = neutral, f"{TILE}*k", tiles(size), 1
    run_element, row_element = f"{ITEMS}*t + e", f"{THREADS}*e + t"
    # A reverse scan is the same walk over indices that count down from the last.
    along = f"{size} - 1 - ({tile} + {row_element})" if reverse else f"{tile} + {row_element}"
    at = f"(({size})*a + {along})*({inner}) + c"
    has_run, has_row = (f"index({tile} + {element}) < index({size})" for element in (run_element, row_element))
    steps, last = _among_threads(combine, dtype)
    text = f"""{{
      for a in {outer} grid {{ for p in {parts} grid {{ for c in {inner} grid {{
        alloc area: {dtype}[{TILE + TILE // BANKS}] shared
        alloc part0: {dtype}[{THREADS}] shared
        alloc part1: {dtype}[{THREADS}] shared
        for t in {THREADS} workgroup {{
          var carry: {dtype} = {start}
          for k in {rounds} serial {{
            for e in {ITEMS} serial {{ if {has_row} {{ store {_place(row_element)} = x0[{at}] }} }}
            barrier
            var total: {dtype} = {neutral}
            for e in {ITEMS} serial {{ if {has_run} {{ total = {_joined(combine, "total", _place(run_element))} }} }}
            store part0[t] = total
            barrier
            {steps}
            var run: {dtype} = carry
            if index(t) > 0_i64 {{ run = {_joined(combine, "carry", f"{last}[t - 1]")} }}
            for e in {ITEMS} serial {{
              if {has_run} {{
                run = {_joined(combine, "run", _place(run_element))}
                store {_place(run_element)} = run
              }}
            }}
            barrier
            for e in {ITEMS} serial {{ if {has_row} {{ store y0[{at}] = {_place(row_element)} }} }}
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
    # Two arrays in turn: in one, a thread could read what another has already written.
    source, target, distance = "part0", "part1", 1
    while distance < THREADS:
        both = _joined(combine, f"{source}[t - {distance}]", f"{source}[t]")
        steps.append(f"""
            if index(t) < {distance}_i64 {{ store {target}[t] = {source}[t] }} else {{ store {target}[t] = {both} }}
            barrier""")
        source, target, distance = target, source, 2 * distance
    return "".join(steps), source


# Operand 0 scanned along an axis; operand 1, if given, has the scanned totals of its tiles.
scan_by_groups = Primitive("scan_by_groups", "reduction", _scan_type, _scan_reference, lower=Written(_scan_loops))
