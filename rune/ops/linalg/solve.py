"""linear_solve: X with A X = B, given factors of A; linear in B.

The operands are a, its lu and permutation, and b. The factors are determined by `a`, so they carry
no derivative: the rule is the implicit one, X' = A⁻¹ (B' - A' X), through the same factors. A
singular A gives infinities and NaN; nothing is raised.

`transposed` solves Aᵀ X = B by the same factors, as reverse mode needs.
Source: implicit differentiation, Giles 2008, §2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import ZERO, Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import DtypeError
from rune.ops.arithmetic import eq, neg, select
from rune.ops.family import Batched, reduce_sum, reshape, stretch
from rune.ops.linalg.small import is_small
from rune.ops.linalg.triangular import require_right_side, right_side_rows, solve_in_numpy, triangular_solve
from rune.ops.matrix_helpers import (
    batch_leading,
    columns,
    keep,
    matmul,
    permuted_rows,
    require_matrices,
    require_square,
    swapped,
)
from rune.ops.matrix_helpers import rows as row_numbers
from rune.ops.movement import concatenate, part

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType, factors: ArrayType, order: ArrayType, b: ArrayType, *, transposed: bool) -> ArrayType:
    require_matrices("linear_solve", a, factors, b)
    require_square("linear_solve", factors)
    require_right_side("linear_solve", a, b)
    if order.dtype != dtypes.i32:
        raise DtypeError(f"linear_solve: cannot permute by {order} (i32 required)")
    return b.strong()


# --- reference --------------------------------------------------------------------------------


def _reference(a: np.ndarray, factors: np.ndarray, order: np.ndarray, b: np.ndarray, *, transposed: bool) -> np.ndarray:
    if not transposed:
        right_sides = np.take_along_axis(b, order[..., None], axis=-2)
        return _through(factors, right_sides, False)
    solution = _through(np.swapaxes(factors, -1, -2), b, True)
    return np.take_along_axis(solution, np.argsort(order, axis=-1)[..., None], axis=-2)


def _through(factors: np.ndarray, b: np.ndarray, upper_first: bool) -> np.ndarray:
    """Both triangles, the lower one first. In transposed factors, the upper one has the unit
    diagonal.
    """
    below = solve_in_numpy(factors, b, lower=True, unit_diagonal=not upper_first)
    return solve_in_numpy(factors, below, lower=False, unit_diagonal=upper_first)


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value, factors: Value, order: Value, b: Value, *, transposed: bool) -> Array:
    if not transposed:
        return _both(factors, _permuted(b, order), False)
    return _permuted_back(_both(swapped(factors), b, True), order)


def _both(factors: Value, b: Value, upper_first: bool) -> Array:
    below = triangular_solve(factors, b, lower=True, unit_diagonal=not upper_first)
    return triangular_solve(factors, below, lower=False, unit_diagonal=upper_first)


def _permuted(b: Value, order: Value) -> Any:
    """Row order[i] of `b` as row i; for tiny matrices by selection, which needs no array."""
    if not is_small(_as_matrix(order)):
        return permuted_rows(b, order)
    rows, numbers = right_side_rows(b), _numbers(order)
    if not rows:
        return b
    return concatenate(*(_chosen(rows, n) for n in numbers), axis=type_of(b).ndim - 2)


def _permuted_back(x: Value, order: Value) -> Any:
    """Row i of `x` as row order[i]."""
    shape = type_of(order).shape
    if is_small(_as_matrix(order)):
        rows, numbers = right_side_rows(x), _numbers(order)
        if not rows:
            return x
        rows_of_x = [_chosen(rows, _place(numbers, i)) for i in range(len(rows))]
        return concatenate(*rows_of_x, axis=type_of(x).ndim - 2)
    pairs = (*shape, shape[-1])
    at = eq(stretch(order, pairs), columns(pairs))
    return permuted_rows(x, reduce_sum(keep(at, row_numbers(pairs)), axes=(len(shape) - 1,)))


def _as_matrix(order: Value) -> ArrayType:
    shape = type_of(order).shape
    return ArrayType((*shape, shape[-1]), dtypes.i32)


def _numbers(order: Value) -> list[Array]:
    *lead, n = type_of(order).shape
    cut = [part(order, -1, i, i + 1) for i in range(n)]
    return [reshape(x, shape=tuple(lead)) for x in cut]


def _place(numbers: Sequence[Value], i: int) -> Value:
    """The position of number i."""
    place = np.asarray(0, np.int32)
    for k, number in enumerate(numbers[1:], 1):
        place = select(eq(number, np.int32(i)), np.asarray(k, np.int32), place)
    return place


def _chosen(rows: list[Array], number: Value) -> Array:
    """Row `number`, in each lane. Shapes: K rows [*B, 1, N], i32[*B] -> [*B, 1, N]."""
    number = stretch(number, type_of(rows[0]).shape)
    row_of_number = rows[0]
    for k, row in enumerate(rows[1:], 1):
        row_of_number = select(eq(number, np.int32(k)), row, row_of_number)
    return row_of_number


# --- derivative -------------------------------------------------------------------------------


def _jvp_a(da: Value, a: Value, factors: Value, order: Value, b: Value, x: Value, *, transposed: bool) -> Value:
    change = matmul(swapped(da) if transposed else da, x)
    return neg(linear_solve(a, factors, order, change, transposed=transposed))


def _jvp_b(db: Value, a: Value, factors: Value, order: Value, b: Value, x: Value, *, transposed: bool) -> Value:
    return linear_solve(a, factors, order, db, transposed=transposed)


def _transpose(
    ct: Value, linear: Batched, a: Value, factors: Value, order: Value, b: ArrayType, *, transposed: bool
) -> list[Array | None]:
    cotangent = linear_solve(a, factors, order, ct, transposed=not transposed)
    return [None, None, None, cotangent]


linear_solve: Primitive = Primitive(
    "linear_solve",
    "linalg",
    _type,
    _reference,
    jvp=(_jvp_a, ZERO, ZERO, _jvp_b),
    transpose=_transpose,
    linear_in=((3,),),
    solves=True,
    batch=batch_leading(lambda: linear_solve),
    lower=Library(lanes_of_matrices, lambda *types, transposed: False, columns=3),
    expand=_expand,
)
