"""hessenberg_commutator: L with L H - H L = C below the first subdiagonal, H upper Hessenberg.

L is strictly lower triangular with a first column of zeros, so that it has as many unknowns as
there are equations, (N - 1)(N - 2) / 2. Column j + 1 follows from those before it, divided by H's
subdiagonal element (j + 1, j); so L is infinite or NaN where one is zero. The rotation of the basis
is such an L when a matrix in Hessenberg form changes (hessenberg.py).

`transposed` selects the transposed map, for reverse mode: Y, zero except below the first
subdiagonal, with Y Hᵀ - Hᵀ Y = C strictly below the diagonal, outside the first column, which is
not read. There column j - 1 follows from those after it. H and C are read only where these
equations use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.arithmetic import add, div, gt, neg, sub
from rune.ops.family import size_value, stretch
from rune.ops.matrix_helpers import (
    batch_leading,
    keep,
    matmul,
    put,
    require_matrices,
    require_square,
    rows,
    steps,
    swapped,
    upper_triangle,
    window,
    zeros,
)

if TYPE_CHECKING:
    from rune.array import Array


def _type(h: ArrayType, c: ArrayType, *, transposed: bool) -> ArrayType:
    require_matrices("hessenberg_commutator", h, c)
    require_square("hessenberg_commutator", h)
    require_square("hessenberg_commutator", c)
    return c.strong()


# --- reference --------------------------------------------------------------------------------


def _reference(h: np.ndarray, c: np.ndarray, *, transposed: bool) -> np.ndarray:
    h, n = np.triu(h, -1), h.shape[-1]
    out = np.zeros_like(c)
    order = reversed(range(1, n - 1)) if transposed else range(n - 2)
    outer = np.swapaxes(h, -1, -2) if transposed else h
    for j in order:
        to = j - 1 if transposed else j + 1
        pivot = h[..., max(j, to), min(j, to), None]
        right_side = c[..., j] + times_column(outer, out[..., j]) - times_column(out, outer[..., j])
        out[..., j + 1 + (not transposed) :, to] = (right_side / pivot)[..., j + 1 + (not transposed) :]
    return out


def times_column(a: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Products of matrices [*B, M, N] and columns [*B, N]."""
    return np.matmul(a, column[..., None])[..., 0]


# --- expansion --------------------------------------------------------------------------------


def _expand(h: Value, c: Value, *, transposed: bool) -> Array:
    """The reference's algorithm, one column in each step."""
    n = type_of(h).shape[-1]
    if isinstance(n, int) and n < 3:
        return zeros(c)
    h = upper_triangle(h, -1)
    outer = swapped(h) if transposed else h
    column_shape = (*type_of(c).shape[:-1], 1)

    def step(k: Value, out: Value) -> list[Array]:
        j = sub(size_value(n - 2, dtypes.i32), k) if transposed else k
        to = sub(j, np.int32(1)) if transposed else add(j, np.int32(1))
        row, column = (j, to) if transposed else (to, j)
        pivot = stretch(window(window(h, -2, row, 1), -1, column, 1), column_shape)
        commutator = sub(matmul(outer, window(out, -1, j, 1)), matmul(out, window(outer, -1, j, 1)))
        quotient = div(add(window(c, -1, j, 1), commutator), pivot)
        # Below the subdiagonal of column `to`, in whichever direction the columns are visited.
        return [put(out, -1, to, keep(gt(rows(column_shape), row), quotient))]

    (solution,) = steps(n - 2, step, zeros(c))
    return solution


# --- derivative -------------------------------------------------------------------------------


def _wrt_h(dh: Value, h: Value, c: Value, out: Value, *, transposed: bool) -> Value:
    """The derivative of the equation itself: L Ḣ - Ḣ L moves to the other side."""
    dh = upper_triangle(dh, -1)
    dh = swapped(dh) if transposed else dh
    change = neg(sub(matmul(out, dh), matmul(dh, out)))
    return hessenberg_commutator(h, change, transposed=transposed)


hessenberg_commutator: Primitive = Primitive(
    "hessenberg_commutator",
    "linalg",
    _type,
    _reference,
    jvp=(_wrt_h, lambda dc, h, c, out, *, transposed: hessenberg_commutator(h, dc, transposed=transposed)),
    transpose=lambda ct, linear, h, c, *, transposed: [None, hessenberg_commutator(h, ct, transposed=not transposed)],
    linear_in=((1,),),
    solves=True,
    batch=batch_leading(lambda: hessenberg_commutator),
    lower=Library(lanes_of_matrices, lambda *types, **params: False),
    expand=_expand,
)
