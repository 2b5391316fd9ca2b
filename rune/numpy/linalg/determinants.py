"""Determinants, and what is told by singular values: condition and rank.

Both determinants read an LU factorisation, and have derivatives of their own: that of `slogdet` is
a trace with the inverse; that of `det` multiplies by the adjugate, which exists for singular
matrices too and is built without a division.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rune import dtypes, ops
from rune.control import fori_loop
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.arguments import rank, value
from rune.numpy.linalg.arguments import computing, matrices, square
from rune.numpy.linalg.norms import norm
from rune.numpy.linalg.solves import cutoff, inv, significant
from rune.ops import conventions as c
from rune.ops.matrix_helpers import (
    diagonal,
    eye,
    from_diagonal,
    full,
    matmul,
    number,
    part,
    permuted_rows,
    real_part,
    spread,
    swapped,
    upper_triangle,
)
from rune.ops.promote import apply
from rune.transforms.custom_jvp import custom_jvp


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Any
    logabsdet: Any


def _sign_of(pivots: Any, dtype: np.dtype) -> Any:
    """1 for an even number of exchanges, -1 for an odd one. i32[*B, K] -> [*B]."""
    shape = type_of(pivots).shape
    own = ops.iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)
    moved = ops.cast(ops.ne(pivots, own), dtypes.i32)
    count = ops.reduce_sum(moved, axes=(len(shape) - 1,))
    odd = ops.rem(count, np.int32(2))
    return ops.cast(ops.sub(np.int32(1), ops.mul(np.int32(2), odd)), dtype)


def det(a: Any) -> Any:
    """The determinant of square matrices.

    Shapes: [*B, N, N] -> [*B].
    Types:  f32, f64, c64, c128 kept; half types by way of f32; integers become f32.
    Errors: ShapeError for matrices that are not square.
    The derivative, det' = tr(adj(a) a'), holds for singular matrices of every rank.
    Source: LU, Golub & Van Loan 4e, §3.2; derivative: Giles 2008, §2.2.4 (Jacobi's formula).

    >>> import rune.numpy as rnp
    >>> rnp.linalg.det(rnp.array([[1.0, 2.0], [4.0, 4.0]]))
    Array(-4., f32[], cpu:0)
    """
    (x,), narrowed = computing("det", a)
    square("det", x)
    return narrowed(_det(x))


@custom_jvp
def _det(a: Any) -> Any:
    factors, pivots, _ = ops.linalg.lu(a)
    pivot_product = ops.reduce_prod(diagonal(factors), axes=(rank(a) - 2,))
    return ops.mul(_sign_of(pivots, type_of(a).dtype), pivot_product)


def _det_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (da,) = primals, tangents
    terms = ops.mul(swapped(adjugate(a)), da)
    return _det(a), ops.reduce_sum(terms, axes=(rank(a) - 2, rank(a) - 1))


_det.defjvp(_det_jvp)


def adjugate(a: Any) -> Any:
    """The transposed cofactors: adj(A) A = det(A) 1, for singular matrices as well.

    With P A = L U it is det(P) adj(U) L⁻¹ P.
    Shapes: [*B, N, N] -> [*B, N, N].
    """
    shape, dtype = type_of(a).shape, type_of(a).dtype
    factors, pivots, order = ops.linalg.lu(a)
    permuted = permuted_rows(eye(shape, dtype), order)
    below = ops.linalg.triangular_solve(factors, permuted, lower=True, unit_diagonal=True)
    sign = _sign_of(pivots, dtype)
    scaled = ops.mul(ops.broadcast(sign, shape=shape, axes=tuple(range(len(shape) - 2))), below)
    return matmul(_adjugate_of_upper(upper_triangle(factors)), scaled)


def _adjugate_of_upper(u: Any) -> Any:
    """Element (i, j) is d_0 … d_(i-1) g_ij d_(j+1) … d_(n-1), d the diagonal, with g_ii = 1 and
    g_ij = -Σ_k g_ik u_kj d_(k+1) … d_(j-1): a Hessenberg determinant, expanded by its last column.
    """
    *lead, n, _ = type_of(u).shape
    if n == 0:
        return u
    d = diagonal(u)
    column = ops.iota(shape=(*lead, n), axis=len(lead), dtype=dtypes.i32)

    def step(j: Any, carry: Any) -> Any:
        g, between = carry  # between [*B, N]: d_(k+1) … d_(j-1) for k < j, else 0
        j = c.astype(j, dtypes.i32)  # the counter has 64 bits under x64
        before = ops.sub(j, np.int32(1))
        last = _picked(d, column, before)
        between = ops.mul(between, _over_last(last, between))
        between = ops.select(ops.eq(column, before), number(1, u), between)
        weights = ops.mul(between, _column_of(u, j))
        new = ops.neg(matmul(g, c.expand_dims(weights, -1)))
        here = ops.select(_is_column(j, u), spread(new, type_of(u).shape), number(0, u))
        return ops.add(g, here), between

    start = (eye(type_of(u).shape, type_of(u).dtype), full(number(0, u), (*lead, n)))
    g, _ = fori_loop(1, n, step, start)
    before, after = _exclusive_products(d)
    return matmul(matmul(from_diagonal(before), upper_triangle(g)), from_diagonal(after))


def _picked(d: Any, column: Any, j: Any) -> Any:
    """Element j of the last axis. [*B, N] -> [*B]."""
    here = ops.select(ops.eq(column, j), d, number(0, d))
    return ops.reduce_sum(here, axes=(rank(d) - 1,))


def _over_last(x: Any, like: Any) -> Any:
    return ops.broadcast(x, shape=type_of(like).shape, axes=tuple(range(rank(like) - 1)))


def _column_of(u: Any, j: Any) -> Any:
    here = ops.select(_is_column(j, u), u, number(0, u))
    return ops.reduce_sum(here, axes=(rank(u) - 1,))


def _is_column(j: Any, u: Any) -> Any:
    shape = type_of(u).shape
    return ops.eq(ops.iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32), j)


def _exclusive_products(d: Any) -> tuple[Any, Any]:
    """Of what stands before each element, and of what stands after it. [*B, N] each."""
    axis = rank(d) - 1
    none = (0,) * axis
    one = number(1, d)
    shifted = [
        ops.pad(d, one, low=(*none, low), high=(*none, -low), interior=(*none, 0))
        for low in (1, -1)
    ]
    before = ops.cumprod(shifted[0], axis=axis, reverse=False)
    return before, ops.cumprod(shifted[1], axis=axis, reverse=True)


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its size: det = sign exp(logabsdet).

    method: None or "lu"; other ways of JAX are refused.

    Shapes: [*B, N, N] -> [*B], [*B]; logabsdet is real. A singular matrix has sign 0, log -inf.
    Errors: ShapeError for matrices that are not square; ArgumentError for another method.
    The derivative, tr(a⁻¹ a'), is infinite or NaN for a singular matrix.
    Source: LU, Golub & Van Loan 4e, §3.2; derivative: Giles 2008, §2.2.4.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.slogdet(rnp.array([[-1.0, 0.0], [0.0, 1.0]]))
    SlogdetResult(sign=Array(-1., f32[], cpu:0), logabsdet=Array(0., f32[], cpu:0))
    """
    if method not in (None, "lu"):
        raise ArgumentError(f"slogdet: cannot use method {method!r} (None or 'lu' required)")
    (x,), narrowed = computing("slogdet", a)
    square("slogdet", x)
    return narrowed(SlogdetResult(*_slogdet(x)))


@custom_jvp
def _slogdet(a: Any) -> tuple[Any, Any]:
    factors, pivots, _ = ops.linalg.lu(a)
    d = diagonal(factors)
    axes = (rank(a) - 2,)
    sign = ops.mul(_sign_of(pivots, type_of(a).dtype), ops.reduce_prod(ops.sign(d), axes=axes))
    return sign, ops.reduce_sum(ops.log(ops.abs(d)), axes=axes)


def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (da,) = primals, tangents
    sign, log = _slogdet(a)
    factors, _, order = ops.linalg.lu(a)
    moved = ops.linalg.linear_solve(a, factors, order, da, transposed=False)
    change = ops.reduce_sum(diagonal(moved), axes=(rank(a) - 2,))
    turn = ops.sub(change, ops.cast(real_part(change), type_of(change).dtype))
    return (sign, log), (ops.mul(sign, turn), real_part(change))


_slogdet.defjvp(_slogdet_jvp)


# --- what singular values tell ----------------------------------------------------------------


def cond(x: Any, p: Any = None) -> Any:
    """The condition number: how much a matrix may magnify a relative error.

    p:      None or 2: the greatest singular value over the smallest; -2: its reciprocal; "fro",
            inf, -inf, 1, -1: the norm of x times that of its inverse.

    Shapes: [*B, M, N] -> [*B]; square matrices but for None, 2 and -2.
    Errors: ShapeError, also for a matrix without elements.
    Source: Golub & Van Loan 4e, §2.6.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.cond(rnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., f32[], cpu:0)
    """
    (a,), narrowed = computing("cond", x)
    found = matrices("cond", a)
    if 0 in found.shape[-2:]:
        raise ArgumentError(f"cond: cannot take {found} (no elements)")
    if p not in (None, 2, -2):
        square("cond", a)
        product = ops.mul(norm(a, p, axis=(-2, -1)), norm(inv(a), p, axis=(-2, -1)))
        return narrowed(_or_infinite(product, a))
    (s,) = ops.linalg.svd(a, full_matrices=False, vectors=False)
    count = type_of(s).shape[-1]
    first, last = (c.squeeze(part(s, -1, i, i + 1), -1) for i in (0, count - 1))
    return narrowed(_or_infinite(ops.div(*((last, first) if p == -2 else (first, last))), a))


def _or_infinite(x: Any, a: Any) -> Any:
    """Infinity for NaN, unless the matrix itself holds a NaN."""
    is_nan = ops.reduce_or(ops.ne(a, a), axes=(rank(a) - 2, rank(a) - 1))
    unknown = ops.logical_and(ops.ne(x, x), ops.logical_not(is_nan))
    return ops.select(unknown, number(np.inf, x), x)


def matrix_rank(M: Any, rtol: Any = None, *, tol: Any = None, hermitian: bool = False) -> Any:
    """The number of singular values above a tolerance.

    rtol:   relative to the greatest, max(M, N) eps by default; tol: absolute, in its place.
    hermitian:  a promise, of which nothing is made: the same singular values serve.

    Shapes: [*B, M, N] -> i32[*B]; of a vector, whether it is not zero.
    Errors: ArgumentError for both tolerances.
    Source: Golub & Van Loan 4e, §5.4.1.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.matrix_rank(rnp.ones((3, 3)))
    Array(1, i32[], cpu:0)
    """
    if rtol is not None and tol is not None:
        raise ArgumentError("matrix_rank: cannot use both rtol and tol")
    (a,), _ = computing("matrix_rank", M)
    if rank(a) < 2:
        any_ = ops.reduce_or(ops.ne(a, number(0, a)), axes=tuple(range(rank(a))))
        return ops.cast(any_, dtypes.i32)
    (s,) = ops.linalg.svd(a, full_matrices=False, vectors=False)
    if 0 in type_of(a).shape[-2:]:
        return full(np.int32(0), type_of(a).shape[:-2])
    if tol is not None:
        bound = c.astype(value("matrix_rank", tol), type_of(s).dtype)
        kept = apply(ops.gt, s, c.expand_dims(bound, -1))
    else:
        kept = significant(s, cutoff("matrix_rank", a, 1.0, rtol, M))
    return ops.reduce_sum(ops.cast(kept, dtypes.i32), axes=(rank(s) - 1,))
