"""The 2 × 2 blocks of real Schur forms, and the rotations that make them triangular.

Each block [[a, b], [c, d]] is turned by one rotation, whose first column is its eigenvector (x, c).
Blocks do not overlap, so all of them are turned at once. Source: Golub & Van Loan 4e, §7.4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.ops.arithmetic import abs, add, div, mul, ne, select, sub
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    conjugate,
    diagonal,
    from_diagonal,
    full,
    matmul,
    number,
    upper_triangle,
)
from rune.ops.movement import concatenate, pad, part
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array


def triangular_form(t: Value, z: Value) -> tuple[Any, Any]:
    """The triangular T, and its Z, of complex quasi-triangular matrices.

    Shapes: [*B, N, N] both -> [*B, N, N] both.
    """
    if type_of(t).shape[-1] == 0:
        return t, z
    turn = block_rotations(t)
    return upper_triangle(matmul(matmul(adjoint(turn), t), turn)), matmul(z, turn)


def block_rotations(t: Value) -> Array:
    """The unitary matrix that turns every block, and is 1 elsewhere. [*B, N, N] -> [*B, N, N]"""
    n, axis = type_of(t).shape[-1], type_of(t).ndim - 2
    below, above = beside_diagonal(t)
    on = diagonal(t)
    half = mul(sub(part(on, -1, 0, n - 1), part(on, -1, 1, n)), number(0.5, on))
    is_block = ne(below, number(0, below))
    inside = select(is_block, add(mul(half, half), mul(below, above)), number(1, half))
    x = select(is_block, add(half, sqrt(inside)), number(1, half))
    length = sqrt(add(_square(x), _square(below)))
    cos, sin = div(x, as_dtype_of(length, x)), div(below, as_dtype_of(length, x))
    one = full(number(1, t), (*type_of(t).shape[:-2], 1))
    # The first row of a block has its cosine, the second one the conjugate; all other rows have 1.
    first = concatenate(cos, one, axis=axis)
    second = concatenate(one, select(is_block, conjugate(cos), number(1, cos)), axis=axis)
    on = from_diagonal(mul(first, second))
    return sub(add(on, shifted(from_diagonal(sin), 1)), shifted(from_diagonal(conjugate(sin)), -1))


def beside_diagonal(t: Value) -> tuple[Array, Array]:
    """The diagonals below and above the main one. [*B, N, N] -> [*B, N-1] both"""
    n = type_of(t).shape[-1]
    below = part(part(t, -2, 1, n), -1, 0, n - 1)
    return diagonal(below), diagonal(part(part(t, -2, 0, n - 1), -1, 1, n))


def shifted(a: Value, down: int) -> Array:
    """One row and column more: zeros above and on the right, or (-1) below and on the left."""
    zeros = (0,) * (type_of(a).ndim - 2)
    row, column = (1, 0) if down > 0 else (0, 1)
    low, high = (*zeros, row, column), (*zeros, column, row)
    return pad(a, number(0, a), low=low, high=high, interior=(*zeros, 0, 0))


def _square(x: Value) -> Array:
    size = abs(x)
    return mul(size, size)
