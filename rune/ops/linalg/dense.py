"""Factorisations that a device may have routines for: which matrices these take.

dense_cholesky, dense_solve and dense_lu are written by the expansions of cholesky,
triangular_solve and lu, while a program is lowered: so they have no derivative and no lanes. Where
a device has no routine, or it does not take the matrices, they are loops over blocks in rune's own
primitives.
"""

from __future__ import annotations

from rune import dtypes
from rune.core.types import ArrayType
from rune.dims import Size, product

FLOATS = frozenset({dtypes.f32, dtypes.f64})
# For which they have scratch memory.
MOST_ROWS = {"cholesky": 1 << 14, "triangular_solve": 1024, "lu": 2048, "geqrf": 2048, "reflections_product": 2048}


def is_dense(routine: str, *types: ArrayType) -> bool:
    """Whether a routine takes the matrices: real numbers, some of them, and not too many rows."""
    sizes = [d for t in types for d in t.shape]
    if types[0].dtype not in FLOATS or not all(isinstance(d, int) and d > 0 for d in sizes):
        return False
    rows = types[0].shape[-2]
    return isinstance(rows, int) and rows <= MOST_ROWS[routine]


def matrix_sizes(a: ArrayType) -> dict[str, Size]:
    """The parameters of a routine's call that every matrix has."""
    return {"batch": product(a.shape[:-2]), "rows": a.shape[-2], "columns": a.shape[-1]}
