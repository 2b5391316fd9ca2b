"""Kernels for a block of columns, with matrices in the shared memory of a group.

    factor_block      the Cholesky factor of [K, K], by one group
    solve_rows        rows x of [N, K] with x Lᵀ = a, for a factor L [K, K]: a thread for each row

A group stores a block as lines of K + 1 elements, so that neighbouring threads read different
banks. Everything is computed in the order of the columns, and is therefore the same in every run.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.factorisations import THREADS
from rune.lowering.written import Loops

BLOCKS = (64, 32)  # columns
ROWS = 64  # of a group of `solve_rows`, one for each thread


def block_of(columns: Size, dtype: np.dtype, shared_bytes: int) -> int:
    """The columns of a block, for a matrix of this many columns, and this much shared memory."""
    fitting = [k for k in BLOCKS if (k + ROWS) * (k + 1) * dtype.itemsize <= shared_bytes]
    assert isinstance(columns, int)
    # The large block gains nothing for a matrix that is no wider than the small one.
    return fitting[0] if fitting and columns > BLOCKS[-1] else BLOCKS[-1]


# --- the factor of a block ----------------------------------------------------------------------


def _factor_type(a: ArrayType) -> ArrayType:
    return a.strong()


def _factor_reference(a: np.ndarray) -> np.ndarray:
    out = np.zeros_like(a)
    for j in range(a.shape[-1]):
        before = out[..., j, None, :j]
        column = a[..., j:, j] - np.sum(out[..., j:, :j] * before, axis=-1)
        pivot = column[..., :1]
        with np.errstate(invalid="ignore"):
            root = np.sqrt(np.where(pivot > 0, pivot, np.nan).astype(a.dtype))
        out[..., j:, j] = column / root
        out[..., j, j] = root[..., 0]
    return out


def _factor_loops(a: ArrayType) -> Loops:
    lanes, k, short = product(a.shape[:-2]), a.shape[-1], dtypes.short(a.dtype)
    assert isinstance(k, int)
    line, across = k + 1, THREADS // k
    row, column = f"t % {k}", f"{across}*q + t // {k}"
    cell = f"{line}*({column}) + {row}"
    return Loops(f"""{{
      for a in {lanes} grid {{
        alloc block: {short}[{k * line}] shared
        alloc pivots: {short}[{k}] shared
        for t in {THREADS} workgroup {{
          for q in {k // across} serial {{
            store block[{cell}] = x0[{k * k}*a + {k}*({row}) + {column}]
          }}
          barrier
          for j in {k} serial {{
            pivot: {short} = block[{line}*j + j]
            root: {short} = sqrt(select(pivot > {short}(0_i32), pivot, nan_{short}))
            if index(t) < {k}_i64 {{
              v: {short} = select(index(t) == index(j), root, block[{line}*j + t] / root)
              store pivots[t] = select(index(t) < index(j), {short}(0_i32), v)
              store y0[{k * k}*a + {k}*t + j] = pivots[t]
            }}
            barrier
            less: {short} = {short}(0_i32) - pivots[{row}]
            for q in {k // across} serial {{
              if (index({column}) > index(j)) & (index({row}) >= index({column})) {{
                update block[{cell}] add= (less * pivots[{column}])
              }}
            }}
            barrier
          }}
        }}
      }} }}""")


factor_block = Primitive("factor_block", "linalg", _factor_type, _factor_reference, lower=Written(_factor_loops))


# --- rows that a factor divides -----------------------------------------------------------------


def _solve_type(a: ArrayType, factor: ArrayType) -> ArrayType:
    return a.strong()


def _solve_reference(a: np.ndarray, factor: np.ndarray) -> np.ndarray:
    out = np.zeros_like(a)
    for j in range(a.shape[-1]):
        partial_sum = np.sum(out[..., :j] * factor[..., None, j, :j], axis=-1)
        out[..., j] = (a[..., j] - partial_sum) / factor[..., None, j, j]
    return out


def _solve_loops(a: ArrayType, factor: ArrayType) -> Loops:
    lanes, n, k, short = product(a.shape[:-2]), a.shape[-2], a.shape[-1], dtypes.short(a.dtype)
    line, element = k + 1, f"{ROWS}*q + t"
    cell = f"{line}*(({element}) // {k}) + ({element}) % {k}"
    is_row, place = f"index({ROWS}*g + ({element}) // {k}) < index({n})", f"({n})*{k}*a + {ROWS * k}*g + {element}"
    return Loops(f"""{{
      for a in {lanes} grid {{ for g in {-(-n // ROWS)} grid {{
        alloc factor: {short}[{k * line}] shared
        alloc rows: {short}[{ROWS * line}] shared
        for t in {ROWS} workgroup {{
          for q in {k * k // ROWS} serial {{
            store factor[{cell}] = x1[{k * k}*a + {element}]
          }}
          for q in {k} serial {{
            if {is_row} {{
              store rows[{cell}] = x0[{place}]
            }}
          }}
          barrier
          if index({ROWS}*g + t) < index({n}) {{
            for j in {k} serial {{
              var x: {short} = rows[{line}*t + j]
              for l in j serial {{
                x = x - (rows[{line}*t + l] * factor[{line}*j + l])
              }}
              store rows[{line}*t + j] = x / factor[{line}*j + j]
            }}
          }}
          barrier
          for q in {k} serial {{
            if {is_row} {{
              store y0[{place}] = rows[{cell}]
            }}
          }}
        }}
      }} }} }}""")


solve_rows = Primitive("solve_rows", "linalg", _solve_type, _solve_reference, lower=Written(_solve_loops))
