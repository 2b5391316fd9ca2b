"""Factorisations for which a device may have routines, and the matrices that these take.

The expansions of cholesky, lu and others write dense_cholesky, dense_lu and their relatives while a
program is lowered, so these have no derivative and no batch rule. Where a device has no routine, or
the routine does not take the matrices, they are loops over blocks in rune's own primitives.

A routine for complex matrices takes them as they lie in memory: a real array whose last axis has
the two parts. When a program is split into parts (lowering/legalize/parts.py), `parts` becomes 2.
"""

from __future__ import annotations

from rune import dtypes
from rune.core.lower import Routine
from rune.core.primitive import Direct, Rule
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.ops.complex_numbers import PART, WHOLE

NUMBERS = frozenset({dtypes.f32, dtypes.f64, dtypes.c64, dtypes.c128})
# Rows for which a routine has scratch memory; for complex numbers half as many.
MOST_ROWS = {"cholesky": 1 << 14, "triangular_solve": 1024, "lu": 2048, "geqrf": 2048, "reflections_product": 2048}
MOST_SMALL = 32  # rows and columns of matrices that occupy the lanes of vectors


def is_dense(routine: str, *types: ArrayType) -> bool:
    """Whether a routine takes the matrices: their sizes are numbers, not 0, and not too large."""
    sizes = [d for t in types for d in t.shape]
    if types[0].dtype not in NUMBERS or not all(isinstance(d, int) and d > 0 for d in sizes):
        return False
    parts = 2 if types[0].dtype in dtypes.COMPLEX else 1
    return types[0].shape[-2] * parts <= MOST_ROWS[routine]  # type: ignore[operator]


def dense(
    name: str,
    routine: str,
    type_rule: Rule,
    by_loops: Rule,
    sizes: Rule | None = None,
    pays: Rule | None = None,
    multiple_results: bool = False,
) -> Direct:
    """The operation for which a device may have a routine; its rules are those for matrices.

    sizes: rule(*types, **params) -> {name: size}, parameters of a call besides batch, rows, columns
    pays:  rule(*types, **params) -> bool; by default whether the matrices are dense
    """

    def of_matrices(rule: Rule) -> Rule:
        return lambda *types, parts, **params: rule(*(_matrices(t, parts) for t in types), **params)

    def result_type(*types: ArrayType, parts: int, **params: object) -> ArrayType | tuple[ArrayType, ...]:
        results = of_matrices(type_rule)(*types, parts=parts, **params)
        several = isinstance(results, tuple)
        return tuple(_stored(t, parts) for t in results) if several else _stored(results, parts)

    def call(*types: ArrayType, parts: int, **params: object) -> dict[str, Size]:
        a, *others = (_matrices(t, parts) for t in types)
        return {**matrix_sizes(a), **(sizes(a, *others, **params) if sizes else {}), "parts": parts}

    def loops(*arrays: object, parts: int, **params: object) -> object:
        assert parts == 1, "only routines take matrices by parts"
        return by_loops(*arrays, **params)

    pays = pays or (lambda *types, **params: is_dense(routine, *types))
    lower = Routine(routine, call, of_matrices(pays))
    return Direct(name, "linalg", result_type, multiple_results=multiple_results, run=loops, lower=lower, expand=loops)


def _matrices(type: ArrayType, parts: int) -> ArrayType:
    """The type of the matrices that an array in memory holds."""
    if parts == 1:
        return type
    return ArrayType(type.shape[:-1], WHOLE[type.dtype])


def _stored(type: ArrayType, parts: int) -> ArrayType:
    """The type of the array in memory that holds the matrices."""
    if parts == 1 or type.dtype not in PART:
        return type
    return ArrayType((*type.shape, parts), PART[type.dtype])


def matrix_sizes(a: ArrayType) -> dict[str, Size]:
    """The parameters of a routine's call that all matrices have."""
    return {"batch": product(a.shape[:-2]), "rows": a.shape[-2], "columns": a.shape[-1]}
