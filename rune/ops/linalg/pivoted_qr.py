"""geqp3: Householder reflections of a matrix whose columns are exchanged, the longest first.

Results R with the vectors of the reflections below it and their taus, as in geqrf, and the i32
order of the columns: A[:, order] = Q R. Each step takes the column with the longest remainder, so
R's diagonal falls in absolute value, and A's rank ends where it drops to rounding errors. Among
equally long columns the first one is taken.

Derivative: that of geqrf for the columns in their order, which is held constant; where two
remainders are equally long, the order jumps.

NumPy does not have LAPACK's routine, so every device runs rune's own. Lengths are computed anew in
each step, which costs as much as the reflection does, and loses no digits.

Source: Businger & Golub 1965, Numer. Math. 7; Golub & Van Loan 4e, §5.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.ops.arithmetic import div, eq, ge, gt, mul, select, sub
from rune.ops.creation import iota
from rune.ops.family import reduce_sum, reshape, stretch
from rune.ops.linalg.hessenberg import reflector
from rune.ops.linalg.householder import reflection
from rune.ops.linalg.jacobi import squared_column_lengths, unit_scale
from rune.ops.linalg.qr import householder_product, reflected_jvp
from rune.ops.linalg.small import fits_cache
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    batch_leading,
    columns,
    conjugate,
    full,
    grown,
    keep,
    matmul,
    number,
    permuted_rows,
    put,
    require_matrices,
    rows,
    smaller,
    steps,
    swapped,
    upper_triangle,
    window,
)
from rune.ops.movement import part
from rune.ops.reduction import argmax

if TYPE_CHECKING:
    from rune.array import Array


def _type(a: ArrayType) -> tuple[ArrayType, ...]:
    require_matrices("geqp3", a)
    *lead, m, n = a.shape
    taus = ArrayType((*lead, smaller(m, n)), a.dtype)
    return a.strong(), taus, ArrayType((*lead, n), dtypes.i32)


# --- reference --------------------------------------------------------------------------------


def _reference(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All lanes at once, column by column."""
    *lead, m, n = a.shape
    count = min(m, n)
    reflectors, taus = np.array(a), np.zeros((*lead, count), a.dtype)
    order = np.broadcast_to(np.arange(n, dtype=np.int32), (*lead, n)).copy()
    for k in range(count):
        pivot = k + _longest(reflectors[..., k:, k:])[..., None]
        for x in (reflectors, order[..., None, :]):
            _exchange(x, k, pivot[..., None])
        v, taus[..., k], head = reflector(reflectors[..., k:, k])
        columns_right = reflectors[..., k:, k + 1 :]
        inner = np.matmul(v.conj()[..., None, :], columns_right) * taus[..., k, None, None].conj()
        columns_right -= v[..., :, None] * inner
        reflectors[..., k, k], reflectors[..., k + 1 :, k] = head, v[..., 1:]
    return reflectors, taus, order


def _longest(a: np.ndarray) -> np.ndarray:
    greatest = np.abs(a).max((-2, -1), keepdims=True)
    unit = np.abs(a / np.where(greatest == 0, 1, greatest))
    return np.sum(unit * unit, -2).argmax(-1)


def _exchange(a: np.ndarray, k: int, pivot: np.ndarray) -> None:
    """Columns k and `pivot` of every lane exchanged in place."""
    at = np.broadcast_to(pivot, (*a.shape[:-1], 1))
    other = np.take_along_axis(a, at, -1)
    np.put_along_axis(a, at, a[..., k : k + 1].copy(), -1)
    a[..., k : k + 1] = other


# --- expansion --------------------------------------------------------------------------------


def _expand(a: Value) -> list[Array]:
    shape = type_of(a).shape
    *lead, m, n = shape
    count, column, row = smaller(m, n), columns(shape), rows(shape)
    scale = as_dtype_of(stretch(unit_scale(a), shape), a)

    def step(k: Value, work: Value, taus: Value, order: Value) -> list[Array]:
        lengths = squared_column_lengths(keep(ge(row, k), div(work, scale)))
        places = iota(shape=(*lead, n), axis=len(lead), dtype=dtypes.i32)
        lengths = select(ge(places, k), lengths, number(-1, lengths))
        pivot = argmax(lengths, axis=len(lead), dtype=dtypes.i32)
        work, order = _exchanged(work, k, pivot), _exchanged(order, k, pivot)
        v, tau, reflectors = reflection(window(work, -1, k, 1), k)
        inner = matmul(adjoint(v), work)
        inner = mul(stretch(conjugate(tau), type_of(inner).shape), inner)
        change = mul(stretch(v, shape), stretch(inner, shape))
        work = select(gt(column, k), sub(work, change), work)
        return [put(work, -1, k, reflectors), put(taus, -2, k, tau), order]

    order = iota(shape=(*lead, 1, n), axis=len(lead) + 1, dtype=dtypes.i32)
    carry = a, full(number(0, a), (*lead, count, 1)), order
    reflectors, taus, order = steps(count, step, *carry)
    return [reflectors, reshape(taus, shape=(*lead, count)), reshape(order, shape=(*lead, n))]


def _exchanged(a: Value, k: Value, pivot: Value) -> Array:
    """Columns k and `pivot` exchanged. Shapes: [*B, M, N], i32[], i32[*B]."""
    shape, last = type_of(a).shape, type_of(a).ndim - 1
    column = columns(shape)
    is_chosen = eq(column, stretch(pivot, shape))
    other = reshape(reduce_sum(keep(is_chosen, a), axes=(last,)), shape=(*shape[:-1], 1))
    first = stretch(window(a, -1, k, 1), shape)
    return select(eq(column, k), stretch(other, shape), select(is_chosen, first, a))


def reflected(reflectors: Value, taus: Value, *, full_matrices: bool) -> tuple[Array, Array]:
    """Q and R from reflections, as `qr` returns them."""
    m = type_of(reflectors).shape[-2]
    k = type_of(taus).shape[-1]
    vectors, width = part(reflectors, -1, 0, k), m if full_matrices else k
    q = householder_product(grown(vectors, m, width), taus)
    return q, part(upper_triangle(reflectors), -2, 0, width)


# --- derivative -------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Array], list[Value | None]]:
    (a,), (da,) = primals, tangents
    reflectors, taus, order = geqp3(a)
    ordered_tangent = swapped(permuted_rows(swapped(da), order))
    return [reflectors, taus, order], [*reflected_jvp(reflectors, taus, ordered_tangent), None]


geqp3: Primitive = Primitive(
    "geqp3",
    "linalg",
    _type,
    _reference,
    multiple_results=True,
    jvp_equation=_jvp,
    batch=batch_leading(lambda: geqp3),
    lower=Library(lanes_of_matrices, lambda a: not fits_cache(a)),
    expand=_expand,
)
