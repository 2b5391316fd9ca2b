"""The columns of a square matrix made orthogonal by rotations from the right: what svd expands to.

A pair is rotated so that its 2 × 2 matrix of inner products becomes diagonal. The whole matrix of
inner products is never formed, so small singular values keep their digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.ops.arithmetic import abs, add, gt, logical_and, logical_or, lt, mul, ne
from rune.ops.creation import iota
from rune.ops.family import broadcast, reduce_sum, size_value
from rune.ops.linalg import jacobi
from rune.ops.matrix_helpers import conjugate, eye, number, steps
from rune.ops.reduction import reduce_or
from rune.ops.repeat import repeat_while
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array


def orthogonalised(a: Value, vectors: bool) -> tuple[Any, Any, Any]:
    """A P with orthogonal columns, their lengths, and the unitary P; no P without `vectors`.

    Shapes: [*B, N, N] -> [*B, N, N], [*B, N], [*B, N, N].
    """
    *lead, _, n = type_of(a).shape

    def more(sweeps: Value, is_far: Value, *_: Value) -> Array:
        return logical_and(lt(sweeps, np.int32(jacobi.SWEEPS)), is_far)

    def sweep(sweeps: Value, _: object, *carry: Value) -> list[Array]:
        state = steps(jacobi.rounds(n), _round, np.bool_(False), *carry)
        return [add(sweeps, np.int32(1)), *state]

    basis = (eye((*lead, n, n), type_of(a).dtype),) if vectors else ()
    _, _, work, *basis = repeat_while(more, sweep, np.int32(0), np.bool_(True), a, *basis)
    return work, jacobi.column_lengths(work), basis[0] if vectors else None


def _round(round: Value, was_far: Value, work: Value, *basis: Value) -> list[Array]:
    """All pairs made orthogonal, and whether any was not orthogonal before."""
    shape = type_of(work).shape
    partner = jacobi.partners(round, shape[-1])
    squares = jacobi.squared_column_lengths(work)
    product = reduce_sum(mul(conjugate(work), jacobi.elements_in_order(work, -1, partner)), axes=(len(shape) - 2,))
    turn = jacobi.rotations(squares, product, partner)
    matrices = [jacobi.turned(x, turn) for x in (work, *basis)]
    far = _is_far(squares, product, partner, shape[-2])
    return [logical_or(was_far, reduce_or(far, axes=tuple(range(type_of(far).ndim)))), *matrices]


def _is_far(squares: Value, product: Value, partner: Value, m: Size) -> Array:
    """Where the product of two columns is above the rounding error of such a product. bool[*B,
    N]
    """
    lengths = sqrt(squares)
    unit = number(np.finfo(type_of(squares).dtype).eps, squares)
    limit = mul(unit, sqrt(size_value(m, type_of(squares).dtype)))
    far = gt(abs(product), mul(limit, mul(lengths, jacobi.elements_in_order(lengths, -1, partner))))
    place = iota(shape=type_of(far).shape, axis=type_of(far).ndim - 1, dtype=dtypes.i32)
    partners = broadcast(partner, shape=type_of(far).shape, axes=(type_of(far).ndim - 1,))
    return logical_and(far, ne(place, partners))
