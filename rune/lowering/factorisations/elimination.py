"""eliminate_columns: one group factors a panel [M, K] of a matrix, with row exchanges by pivots.

The panel stays in global memory, and in cache; any of its rows may be a pivot. For each column

    search      a thread for each row: the largest element, or the first of equal ones
    exchange    a thread for each column: the row of the pivot and the row that it replaces
    divide      a thread for each row: its multiplier
    subtract    neighbouring threads for neighbouring columns of a row

NaN counts as largest, and a column of zeros stays as it is, as in ops/linalg/lu_expand.py.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.extremes import best_of
from rune.lowering.written import Loops
from rune.records import dataclass


def _types(a: ArrayType, start: ArrayType, *, threads: int) -> tuple[ArrayType, ArrayType, ArrayType]:
    *lead, m, k = a.shape
    numbers = ArrayType((*lead, k), dtypes.i32)
    return a.strong(), numbers, numbers.with_shape((*lead, m))


def _reference(a: np.ndarray, start: np.ndarray, *, threads: int) -> tuple[np.ndarray, ...]:
    *lead, m, k = a.shape
    lu, pivots = a.copy(), np.zeros((*lead, k), np.int32)
    order = np.broadcast_to(np.arange(m, dtype=np.int32), (*lead, m)).copy()
    for lane in np.ndindex(*lead):
        work, rows = lu[lane], order[lane]
        for j in range(k):
            first = int(start) + j
            pivot = first + int(np.argmax(np.abs(work[first:, j])))
            work[[first, pivot]], rows[[first, pivot]] = work[[pivot, first]], rows[[pivot, first]]
            pivots[(*lane, j)] = pivot
            work[first + 1 :, j] /= work[first, j] or 1
            work[first + 1 :, j + 1 :] -= work[first + 1 :, j, None] * work[first, j + 1 :]
    return lu, pivots, order


@dataclass(frozen=True, slots=True)
class _Panel:
    """Expressions that the loops share: `a` is a lane, `j` a column, `t` a thread."""

    rows: int
    columns: int
    threads: int
    dtype: str

    @property
    def row(self) -> str:
        """The row of a thread in its q-th round."""
        return f"{self.threads}*q + t"

    @property
    def row_beside(self) -> str:
        """The row that neighbouring threads share in their q-th round."""
        return f"{self.threads // self.columns}*q + t // {self.columns}"

    def rounds(self, count: int) -> int:
        """The rounds in which the threads process this many elements."""
        return -(-count // self.threads)

    def at(self, row: str, column: str) -> str:
        """The index of an element of the panel."""
        return f"{self.rows * self.columns}*a + {self.columns}*({row}) + {column}"

    def is_row(self, row: str, sign: str) -> str:
        """Whether a row is in the panel and compares by `sign` to the row of the pivot."""
        return f"(index({row}) < {self.rows}_i64) & (i32(index({row})) {sign} here)"


def _loops(a: ArrayType, start: ArrayType, *, threads: int) -> Loops:
    lanes, m, k, dtype = product(a.shape[:-2]), a.shape[-2], a.shape[-1], dtypes.short(a.dtype)
    panel = _Panel(_known(m), _known(k), threads, dtype)
    return Loops(f"""{{
      for a in {lanes} grid {{
        alloc values: {dtype}[{threads}] shared
        alloc places: i32[{threads}] shared
        alloc top: {dtype}[{k}] shared
        for t in {threads} workgroup {{
          {_copied(panel)}
          barrier
          for j in {k} serial {{
            here: i32 in 0..{panel.rows - 1} = x1[0] + i32(index(j))
            {_search(panel)}
            {_exchange(panel)}
            barrier
            {_divide_and_subtract(panel)}
            barrier
          }}
        }}
      }} }}""")


def _known(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _copied(panel: _Panel) -> str:
    elements = panel.rows * panel.columns
    return f"""
          for q in {panel.rounds(elements)} serial {{
            if index({panel.row}) < {elements}_i64 {{
              store y0[{elements}*a + {panel.row}] = x0[{elements}*a + {panel.row}]
            }}
          }}
          for q in {panel.rounds(panel.rows)} serial {{
            if index({panel.row}) < {panel.rows}_i64 {{
              store y2[{panel.rows}*a + {panel.row}] = i32(index({panel.row}))
            }}
          }}"""


def _search(panel: _Panel) -> str:
    return f"""
            var best: {panel.dtype} = {panel.dtype}(0_i32)
            var where: i32 = -1_i32
            for q in {panel.rounds(panel.rows)} serial {{
              if {panel.is_row(panel.row, ">=")} {{
                v: {panel.dtype} = abs(y0[{panel.at(panel.row, "j")}])
                if (where < 0_i32) | ((v > best) | ((v != v) & (best == best))) {{
                  best = v
                  where = i32(index({panel.row}))
                }}
              }}
            }}
            store values[t] = best
            store places[t] = where
            barrier
            {best_of(panel.threads, panel.dtype, "(v > u) | ((v != v) & (u == u))")}
            chosen: i32 in 0..{panel.rows - 1} = places[0]"""


def _exchange(panel: _Panel) -> str:
    upper, lower = panel.at("here", "t"), panel.at("chosen", "t")
    return f"""
            if index(t) < {panel.columns}_i64 {{
              first: {panel.dtype} = y0[{upper}]
              second: {panel.dtype} = y0[{lower}]
              store y0[{upper}] = second
              store y0[{lower}] = first
              store top[t] = second
            }}
            if index(t) < 1_i64 {{
              earlier: i32 = y2[{panel.rows}*a + here]
              later: i32 = y2[{panel.rows}*a + chosen]
              store y2[{panel.rows}*a + here] = later
              store y2[{panel.rows}*a + chosen] = earlier
              store y1[{panel.columns}*a + j] = chosen
            }}"""


def _divide_and_subtract(panel: _Panel) -> str:
    dtype, row, column = panel.dtype, panel.row_beside, f"t % {panel.columns}"
    return f"""
            pivot: {dtype} = top[j]
            safe: {dtype} = select(pivot == {dtype}(0_i32), {dtype}(1_i32), pivot)
            for q in {panel.rounds(panel.rows)} serial {{
              if {panel.is_row(panel.row, ">")} {{
                store y0[{panel.at(panel.row, "j")}] = y0[{panel.at(panel.row, "j")}] / safe
              }}
            }}
            barrier
            for q in {panel.rounds(panel.rows * panel.columns)} serial {{
              if ({panel.is_row(row, ">")}) & (index({column}) > index(j)) {{
                less: {dtype} = {dtype}(0_i32) - y0[{panel.at(row, "j")}]
                update y0[{panel.at(row, column)}] add= (less * top[{column}])
              }}
            }}"""


eliminate_columns = Primitive(
    "eliminate_columns", "linalg", _types, _reference, lower=Written(_loops), multiple_results=True
)
