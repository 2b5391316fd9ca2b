"""cholesky by blocks of columns, on devices with groups of threads.

    for each block of columns
      panel = A's columns - L L's rows of the block       a product
      block = factor_block of the panel's own rows         one group
      columns of L = panel / blockᵀ                        a thread for each row

Loops would launch some kernels for each column, which take longer to start than to run; this
launches as many for each block. Complex dtypes and symbolic sizes keep the loops.

Invariant: the factor of ops/linalg/cholesky.py, up to rounding; NaN where that is NaN.
Source:    Golub & Van Loan 4e, §4.2.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.lowering.codegen.target import Target
from rune.lowering.factorisations.panels import block_of, factor_block, solve_rows
from rune.ops.arithmetic import add, ge, mul, sub
from rune.ops.linalg.cholesky import dense_cholesky, or_all_nan
from rune.ops.matrix_helpers import (
    adjoint,
    columns,
    corner,
    grown_by_identity,
    is_static,
    keep,
    matmul,
    next_multiple,
    put,
    rows,
    steps,
    window,
    zeros,
)


def by_blocks(target: Target, a: Value, **params: object) -> Value:
    """The factor of [*B, N, N]."""
    type = type_of(a)
    if type.dtype not in (dtypes.f32, dtypes.f64) or not is_static(type.shape) or not type.shape[-1]:
        assert dense_cholesky.expand is not None
        return dense_cholesky.expand(a, **params)
    n = type.shape[-1]
    block = block_of(n, type.dtype, target.shared_bytes)
    size = next_multiple(n, block)
    # An identity is its own factor, so the last block is as large as the others.
    matrix = grown_by_identity(a, size)

    def step(k: Value, out: Value) -> list[Value]:
        start = mul(k, np.int32(block))
        # Later columns of `out` are still 0, so this sums over the finished ones.
        product = matmul(out, adjoint(window(out, -2, start, block)))
        panel = sub(window(matrix, -1, start, block), product)
        factor_columns = solve_rows(panel, factor_block(window(panel, -2, start, block)))
        # All rows of the panel are divided; above the diagonal, the factor is 0.
        is_below = ge(rows(type_of(panel).shape), add(columns(type_of(panel).shape), start))
        return [put(out, -1, start, keep(is_below, factor_columns))]

    (out,) = steps(size // block, step, zeros(matrix))
    return or_all_nan(corner(out, n, n))
