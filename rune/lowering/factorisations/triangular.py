"""triangular_solve with groups of threads: a thread for each right-hand side, or by blocks.

One kernel (panels.py) solves for a matrix of one block. For a larger one, the same kernel inverts
all diagonal blocks at once; the rest is products, block after block.
"""

from __future__ import annotations

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.lowering.codegen.target import Target
from rune.lowering.factorisations.panels import block_of, solve_rows
from rune.ops.arithmetic import add
from rune.ops.linalg.diagonal_blocks import in_blocks
from rune.ops.linalg.triangular import dense_solve, from_first
from rune.ops.matrix_helpers import corner, eye, grown, grown_by_identity, is_static, lower_triangle, swapped


def by_blocks(target: Target, a: Value, b: Value, *, lower: bool, unit_diagonal: bool, parts: int) -> Value:
    """The solution of [*B, N, N] for [*B, N, K]."""
    types = type_of(a), type_of(b)
    is_real = all(t.dtype in (dtypes.f32, dtypes.f64) and is_static(t.shape) for t in types)
    if not is_real or 0 in (*types[0].shape, *types[1].shape):
        assert dense_solve.expand is not None
        return dense_solve.expand(a, b, lower=lower, unit_diagonal=unit_diagonal, parts=parts)
    block = block_of(types[0].shape[-1], types[0].dtype, target.shared_bytes)

    def forward(a: Value, b: Value, unit: bool) -> Value:
        n, count = type_of(a).shape[-1], type_of(b).shape[-1]
        if n > block:
            return in_blocks(a, b, block, lambda blocks: _inverted(blocks, unit), unit)
        solution = solve_rows(swapped(grown(b, block, count)), _lower(grown_by_identity(a, block), unit))
        return corner(swapped(solution), n, count)

    return from_first(forward, a, b, lower=lower, unit_diagonal=unit_diagonal)


def _inverted(blocks: Value, unit: bool) -> Value:
    """The inverses of lower triangles."""
    type = type_of(blocks)
    return swapped(solve_rows(eye(type.shape, type.dtype), _lower(blocks, unit)))


def _lower(a: Value, unit: bool) -> Value:
    """The triangle that the solver reads, with its diagonal."""
    return add(lower_triangle(a, -1), eye(type_of(a).shape, type_of(a).dtype)) if unit else a
