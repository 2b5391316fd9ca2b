"""The position of the largest or the least element of a long row, found by groups of threads.

    tiles   a group walks each tile once: its extremum, and the position of that
    row     the extrema of its tiles, in the same way

Of equal elements the first counts, and the first NaN comes before all numbers.

Cost: every element is read once; two kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Rule, Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import product
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.written import Loops
from rune.ops.arithmetic import cast
from rune.ops.family import reshape
from rune.ops.reduction import argmax, argmin

THREADS = 128
TILE = 1 << 14  # elements that a group walks
LANES = 4  # neighbours that a thread reads together, where they are aligned
LONG = 1 << 16  # fewest elements of a row that is walked in tiles
_SIGNS = {"max": ">", "min": "<"}


def expansions(target: Target) -> Mapping[Primitive, Rule]:
    """The rules of a device in place of the primitives' own expansions."""
    if target.is_processor or target.threads_per_workgroup < THREADS:
        return {}
    rows = cost.parallel_rows(target.cores)
    # Along the last axis, four accesses of neighbours are one on CUDA.
    lanes = LANES if target.language == "cuda" else 1
    return {p: functools.partial(_position, p, c, rows, lanes) for p, c in ((argmax, "max"), (argmin, "min"))}


def _position(
    primitive: Primitive, combine: str, rows: int, lanes: int, x: Value, *, axis: int, dtype: np.dtype
) -> Value:
    type = type_of(x)
    if axis != type.ndim - 1 or dims.divides(lanes, type.shape[axis]) is not True:
        lanes = 1
    size = cost.estimate(type.shape[axis])
    if size < LONG or cost.count(type.shape) >= rows * size or type.dtype in dtypes.COMPLEX | {dtypes.bool_}:
        assert primitive.expand is not None
        return primitive.expand(x, axis=axis, dtype=dtype)
    of_tiles = extreme_of_tiles(x, axis=axis, combine=combine, tile=TILE, lanes=lanes)
    _, positions = extreme_of_tiles(*of_tiles, axis=axis, combine=combine, tile=0, lanes=1)
    shape = tuple(d for a, d in enumerate(type.shape) if a != axis)
    return cast(reshape(positions, shape=shape), dtype)


def _type(
    x: ArrayType, *positions: ArrayType, axis: int, combine: str, tile: int, lanes: int
) -> tuple[ArrayType, ArrayType]:
    count = -(-x.shape[axis] // tile) if tile else 1
    values = x.with_shape((*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return values, values.with_dtype(dtypes.i32)


def _reference(
    x: np.ndarray, *positions: np.ndarray, axis: int, combine: str, tile: int, lanes: int
) -> tuple[np.ndarray, np.ndarray]:
    choose = np.argmax if combine == "max" else np.argmin
    starts = range(0, x.shape[axis], tile or x.shape[axis])
    at = [s + choose(x.take(range(s, min(s + (tile or s + x.shape[axis]), x.shape[axis])), axis), axis) for s in starts]
    best = np.stack(at, axis).astype(np.int32)
    places = np.take_along_axis(positions[0], best, axis) if positions else best
    return np.take_along_axis(x, best, axis), places


def _loops(x: ArrayType, *positions: ArrayType, axis: int, combine: str, tile: int, lanes: int) -> Loops:
    outer, size, inner = product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])
    count, dtype = (-(-size // tile) if tile else 1), dtypes.short(x.dtype)
    element = f"{tile}*p + {THREADS * lanes}*k + {lanes}*t"
    at = f"(({size})*a + {element})*({inner}) + c"
    reads = "\n".join(f"v_{n}: {dtype} = x0[{at} + {n}]" for n in range(lanes))
    place = f"x1[{at}]" if positions else f"i32(index({element} + {{}}))"
    result = f"(({count})*a + p)*({inner}) + c"
    is_after = f"(v {_SIGNS[combine]} u) | ((v != v) & (u == u))"
    return Loops(f"""{{
      for a in {outer} grid {{ for p in {count} grid {{ for c in {inner} grid {{
        alloc values: {dtype}[{THREADS}] shared
        alloc places: i32[{THREADS}] shared
        for t in {THREADS} workgroup {{
          var best: {dtype} = {dtype}(0_i32)
          var where: i32 = -1_i32
          for k in {-(-(tile or size) // (THREADS * lanes))} serial {{
            if index({element}) < index({size}) {{
              {reads}
              {"".join(_element(n, dtype, is_after, place.format(n)) for n in range(lanes))}
            }}
          }}
          store values[t] = best
          store places[t] = where
          barrier
          {best_of(THREADS, dtype, is_after)}
          if index(t) < 1_i64 {{
            store y0[{result}] = values[0]
            store y1[{result}] = places[0]
          }}
        }}
      }} }} }} }}""")


def _element(number: int, dtype: str, is_after: str, place: str) -> str:
    """The code by which a thread takes an element that it has read, if that is better."""
    is_better = is_after.replace("v", f"v_{number}").replace("u", f"u_{number}")
    return f"""
              u_{number}: {dtype} = best
              if (where < 0_i32) | ({is_better}) {{
                best = v_{number}
                where = {place}
              }}"""


def best_of(threads: int, dtype: str, is_after: str) -> str:
    """Code that leaves the best value of all threads in `values[0]`, and its place in `places[0]`.

    It ends with a barrier.
    is_after: whether v beats u; if neither beats the other, the first place does
    """
    steps = []
    while threads := threads // 2:
        steps.append(_step(threads, dtype, is_after))
    return "".join(steps)


def _step(threads: int, dtype: str, is_after: str) -> str:
    """One step: each of these threads takes the better of its value and another thread's."""
    return f"""
          if index(t) < {threads}_i64 {{
            u: {dtype} = values[t]
            v: {dtype} = values[t + {threads}]
            m: i32 = places[t]
            n: i32 = places[t + {threads}]
            is_alike: bool = (u == v) | ((u != u) & (v != v))
            is_better: bool = (m < 0_i32) | (({is_after}) | (is_alike & (n < m)))
            if (n >= 0_i32) & is_better {{
              store values[t] = v
              store places[t] = n
            }}
          }}
          barrier"""


# The extremum of each tile of an axis (the whole axis for tile 0), and its position, or the element
# of operand 1 at that position.
extreme_of_tiles = Primitive(
    "extreme_of_tiles", "reduction", _type, _reference, lower=Written(_loops), multiple_results=True
)
