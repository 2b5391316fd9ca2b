"""qr, and the reflections it is made of: geqrf and householder_product.

    qr(a, full_matrices)            Q with orthonormal columns, R upper triangular, A = Q R
    geqrf(a)                        R with the vectors of the reflections below it, and their taus
    householder_product(a, taus)    the first columns of the reflections' product

R's diagonal may have either sign (LAPACK's). Derivative of qr: for tall matrices (M >= N) directly,
for wide ones through their leading square; the columns that complete Q follow the reflections. That
of geqrf follows Q: the vectors V and T Vᴴ are the LU factors of 1 - Q. Both need the leading
min(M, N) columns to be independent, and are infinite or NaN otherwise. So are the reflections'
where one of them, except the last of a square matrix, is the identity (tau 0), since the next one
may then have either sign. There the columns that complete Q turn as little as they can.

Source: derivative, Walter & Lehmann 2010, arXiv:1009.6112; Liao et al. 2019, arXiv:1903.09650;
reflections from Q, Ballard et al. 2014, "Reconstructing Householder vectors from TSQR".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.arithmetic import add, ne, neg, select, sub
from rune.ops.family import broadcast
from rune.ops.linalg import householder, qr_numpy
from rune.ops.linalg.closed_form import product_jvp, reflections_jvp
from rune.ops.linalg.jax_forms import QR_NAMES, qr_form
from rune.ops.linalg.small import NARROW, fits_cache
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import (
    adjoint,
    as_dtype_of,
    batch_leading,
    corner,
    diagonal,
    from_diagonal,
    grown,
    lower_triangle,
    matmul,
    number,
    real_part,
    require_matrices,
    smaller,
    swapped,
    upper_triangle,
)
from rune.ops.movement import concatenate, part
from rune.ops.reduction import reduce_prod

if TYPE_CHECKING:
    from rune.array import Array

WIDEST = 256  # columns up to which compiled loops in f32 keep up with LAPACK (measured)


def _pays(a: ArrayType, *others: ArrayType, **params: object) -> bool:
    """Whether LAPACK is faster than the compiled expansion on the CPU.

    LAPACK computes in double precision. It is faster for complex numbers at any size, for f64
    unless matrices are narrow, and for f32 if they are wide or exceed the cache.
    """
    if householder.is_factored_by_routine(a):
        return False
    columns = min((d for d in a.shape[-2:] if isinstance(d, int)), default=WIDEST)
    if a.dtype in dtypes.COMPLEX or (a.dtype == dtypes.f64 and columns > NARROW):
        return True
    return columns > WIDEST or not fits_cache(a)


# --- reflections ------------------------------------------------------------------------------


def _geqrf_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    require_matrices("geqrf", a)
    *lead, m, n = a.shape
    return a.strong(), ArrayType((*lead, smaller(m, n)), a.dtype)


def _geqrf_jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    ((a,), (da,)) = primals, tangents
    reflectors, taus = geqrf(a)
    return [reflectors, taus], list(reflected_jvp(reflectors, taus, da))


def reflected_jvp(reflectors: Value, taus: Value, da: Value) -> tuple[Value, Value]:
    """The tangents of a factorisation by reflections, for the tangent of the reflected matrix."""
    m, n = type_of(reflectors).shape[-2:]
    k = type_of(taus).shape[-1]
    vectors, r = part(reflectors, -1, 0, k), part(upper_triangle(reflectors), -2, 0, k)
    dq, dr = _economic_jvp(householder_product(vectors, taus), r, da)
    dv, dtaus = reflections_jvp(vectors, taus, dq)
    return add(grown(dv, m, n), grown(dr, m, n)), dtaus


geqrf: Primitive = Primitive(
    "geqrf",
    "linalg",
    _geqrf_type,
    qr_numpy.geqrf,
    batch=batch_leading(lambda: geqrf),
    multiple_results=True,
    jvp_equation=_geqrf_jvp,
    lower=Library(lanes_of_matrices, _pays),
    expand=lambda a: householder.factorise(a, smaller(*type_of(a).shape[-2:])),
)


def _product_type(a: ArrayType, taus: ArrayType) -> ArrayType:
    require_matrices("householder_product", a)
    m, n, k = *a.shape[-2:], taus.shape[-1] if taus.ndim else 0
    if not taus.ndim or taus.dtype != a.dtype or taus.shape[:-1] != a.shape[:-2] or not k <= n <= m:
        raise ShapeError(
            f"householder_product: cannot multiply the reflections {a} with {taus} "
            f"(rows >= columns >= reflections required, of one dtype)"
        )
    return a.strong()


def _product_expand(a: Value, taus: Value) -> Array:
    n = type_of(a).shape[-1]
    return householder.product(part(a, -1, 0, type_of(taus).shape[-1]), taus, n)


def _product_jvp(tangents: Sequence[Value], primals: Sequence[Value], q: Value) -> Value:
    a, taus = primals
    k = type_of(taus).shape[-1]
    da = None if tangents[0] is None else part(tangents[0], -1, 0, k)
    width = type_of(q).shape[-1]
    return product_jvp(part(a, -1, 0, k), taus, da, tangents[1], width)


householder_product: Primitive = Primitive(
    "householder_product",
    "linalg",
    _product_type,
    qr_numpy.householder_product,
    jvp=Joint(_product_jvp),
    batch=batch_leading(lambda: householder_product),
    lower=Library(lanes_of_matrices, _pays),
    expand=_product_expand,
)


# --- qr ---------------------------------------------------------------------------------------


def _width(a: ArrayType, full_matrices: bool) -> Size:
    m, n = a.shape[-2:]
    return m if full_matrices else smaller(m, n)


def _type(a: ArrayType, *, full_matrices: bool) -> tuple[ArrayType, ArrayType]:
    require_matrices("qr", a)
    *lead, m, n = a.shape
    width = _width(a, full_matrices)
    return ArrayType((*lead, m, width), a.dtype), ArrayType((*lead, width, n), a.dtype)


def _expand(a: Value, *, full_matrices: bool) -> list[Array]:
    m, n = type_of(a).shape[-2:]
    count, width = smaller(m, n), _width(type_of(a), full_matrices)
    reflectors, taus = householder.factorise(a, count)
    q = householder.product(part(reflectors, -1, 0, count), taus, width)
    return [q, part(upper_triangle(reflectors), -2, 0, width)]


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Params) -> tuple[list[Value], list[Value]]:
    ((a,), (da,)) = primals, tangents
    m, n = type_of(a).shape[-2:]
    k = smaller(m, n)
    if _width(type_of(a), params["full_matrices"] is True) == k:
        q, r = qr(a, **params)
        return [q, r], [*_economic_jvp(q, r, da)]
    reflectors, taus = geqrf(a)
    vectors = part(reflectors, -1, 0, k)
    q, r = householder_product(grown(vectors, m, m), taus), upper_triangle(reflectors)
    dq, dr = _economic_jvp(part(q, -1, 0, k), part(r, -2, 0, k), da)
    dq = concatenate(dq, _complement_jvp(vectors, taus, q, dq), axis=type_of(a).ndim - 1)
    return [q, r], [dq, grown(dr, m, n)]


def _complement_jvp(vectors: Value, taus: Value, q: Value, dq: Value) -> Array:
    """The tangents of the columns of Q [*B, M, M] after the first K, whose tangents are `dq` [*B,
    M, K].

    They follow the reflections. Where one of these is the identity, and the next one may have
    either sign, they turn as little as they can.
    """
    m, k = type_of(vectors).shape[-2:]
    lead, complement = part(q, -1, 0, k), part(q, -1, k, m)
    least = neg(matmul(lead, matmul(adjoint(dq), complement)))
    is_moving = ne(reduce_prod(taus, axes=(type_of(taus).ndim - 1,)), number(0, taus))
    lanes = tuple(range(type_of(is_moving).ndim))
    safe = select(broadcast(is_moving, shape=type_of(taus).shape, axes=lanes), taus, number(1, taus))
    dv, dtaus = reflections_jvp(vectors, safe, dq)
    tangents = part(product_jvp(vectors, safe, dv, dtaus, m), -1, k, m)
    return select(broadcast(is_moving, shape=type_of(least).shape, axes=lanes), tangents, least)


def _economic_jvp(q: Value, r: Value, da: Value) -> tuple[Array, Array]:
    """The tangents of Q [*B, M, K] and R [*B, K, N]."""
    k, n = type_of(r).shape[-2:]
    dq, dr = _tall_jvp(q, corner(r, k, k), part(da, -1, 0, k))
    if k != n:  # R₂ = Qᴴ A₂
        change = sub(part(da, -1, k, n), matmul(dq, part(r, -1, k, n)))
        dr = concatenate(dr, matmul(adjoint(q), change), axis=type_of(da).ndim - 1)
    return dq, dr


def _tall_jvp(q: Value, r: Value, da: Value) -> tuple[Array, Array]:
    """The tangents for A = Q R with a square R: with C = Qᴴ Ȧ R⁻¹ and the skew W of C's lower
    triangle, Q̇ = Ȧ R⁻¹ - Q (C - W), Ṙ = (C - W) R.
    """
    over = swapped(triangular_solve(swapped(r), swapped(da), lower=True, unit_diagonal=False))
    inside = matmul(adjoint(q), over)
    below = lower_triangle(inside, -1)
    skew = sub(below, adjoint(below))
    on = diagonal(inside)
    skew = add(skew, from_diagonal(sub(on, as_dtype_of(real_part(on), on))))
    upper = sub(inside, skew)
    return sub(over, matmul(q, upper)), matmul(upper, r)


qr: Primitive = Primitive(
    "qr",
    "linalg",
    _type,
    lambda a, *, full_matrices: qr_numpy.qr(a, full_matrices),
    batch=batch_leading(lambda: qr),
    multiple_results=True,
    jvp_equation=_jvp,
    lower=Library(lanes_of_matrices, _pays),
    expand=_expand,
    jax_names=QR_NAMES,
    jax_form=qr_form(lambda: qr),
)

__all__ = ["geqrf", "householder_product", "qr"]
