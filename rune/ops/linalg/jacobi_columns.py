"""The columns of a square matrix made orthogonal by rotations from the right: what svd expands to.

A pair is turned by what diagonalises its 2 × 2 matrix of inner products, which is never formed as a
whole, so that small singular values keep their digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.ops.arithmetic import abs, add, gt, logical_and, logical_or, lt, mul
from rune.ops.family import reduce_sum, size_value
from rune.ops.linalg import jacobi
from rune.ops.matrix_helpers import conjugate, corner, eye, grown, number, part
from rune.ops.reduction import reduce_or
from rune.ops.repeat import repeat, repeat_while
from rune.ops.transcendental import sqrt


def orthogonalised(a: Any, vectors: bool) -> tuple[Any, Any, Any]:
    """A P with orthogonal columns, their lengths, and the unitary P; without `vectors` no P.

    Shapes: [*B, N, N] -> [*B, N, N], [*B, N], [*B, N, N].
    """
    *lead, _, n = type_of(a).shape
    size = jacobi.even_size(n)
    dtype = type_of(a).dtype

    def more(number_: Any, unfinished: Any, *_: Any) -> Any:
        return logical_and(lt(number_, np.int32(jacobi.SWEEPS)), unfinished)

    def sweep(number_: Any, _: Any, *carry: Any) -> list[Any]:
        made = repeat(size - 1, lambda _, *xs: _step(*xs), np.bool_(False), *carry)
        return [add(number_, np.int32(1)), *made]

    basis = (eye((*lead, size, size), dtype),) if vectors else ()
    start = (np.int32(0), np.bool_(True), grown(a, n, size), *basis)
    _, _, work, *basis = repeat_while(more, sweep, *start)
    found = part(work, -1, 0, n)
    return found, jacobi.column_lengths(found), corner(basis[0], n, n) if vectors else None


def _step(unfinished: Any, work: Any, *basis: Any) -> list[Any]:
    """All pairs made orthogonal, and seated anew; whether one was not so before."""
    left, right = jacobi.halves(work)
    products = _inner(left, right)
    of_left, of_right = (jacobi.squared_column_lengths(x) for x in (left, right))
    lengths = mul(sqrt(of_left), sqrt(of_right))
    far = gt(abs(products), mul(_rounding(type_of(work).shape, of_left), lengths))
    turn = jacobi.rotations(of_left, of_right, products)
    found = [jacobi.moved_on(jacobi.turned(x, turn)) for x in (work, *basis)]
    return [logical_or(unfinished, reduce_or(far, axes=tuple(range(type_of(far).ndim)))), *found]


def _inner(left: Any, right: Any) -> Any:
    return reduce_sum(mul(conjugate(left), right), axes=(type_of(left).ndim - 2,))


def _rounding(shape: Shape, like: Any) -> Any:
    """What an inner product of unit columns may be wrong by."""
    unit = number(np.finfo(type_of(like).dtype).eps, like)
    return mul(unit, sqrt(size_value(shape[-2], type_of(like).dtype)))
