"""Determinants, and properties read from singular values: condition and rank.

Both functions have their own derivative rule: that of `slogdet` is a trace with the inverse; that
of `det` multiplies by the adjugate, which exists for singular matrices too and is computed without
division.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.arguments import rank, value
from rune.numpy.linalg.adjugates import determinant
from rune.numpy.linalg.arguments import computing, matrices, square
from rune.numpy.linalg.generalised_inverses import cutoff, significant
from rune.numpy.linalg.norms import norm
from rune.numpy.linalg.solves import inv
from rune.ops import conventions as c
from rune.ops.matrix_helpers import full, number
from rune.ops.movement import part
from rune.ops.promote import apply
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


@tiered
def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    Shapes: [*B, N, N] -> [*B].
    Types:  f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ShapeError for matrices that are not square.
    The derivative, det' = tr(adj(a) a'), holds for singular matrices of every rank.
    Source: LU, Golub & Van Loan 4e, §3.2; derivative: Giles 2008, §2.2.4 (Jacobi's formula).

    >>> import rune.numpy as rnp
    >>> rnp.linalg.det(rnp.array([[1.0, 2.0], [4.0, 4.0]]))
    Array(-4., f32[], cpu:0)
    """
    (x,), narrow = computing("det", a)
    square("det", x)
    return narrow(determinant(x))


@tiered
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its magnitude: det = sign exp(logabsdet).

    method: None, "lu" or "qr", as in JAX; LU is used in any case.

    Shapes: [*B, N, N] -> [*B], [*B]; logabsdet is real. A singular matrix has sign 0, log -inf.
    Types:  bools and integers become floats.
    Errors: ShapeError for matrices that are not square; ArgumentError for an unknown method.
    The derivative, tr(a⁻¹ a'), is infinite or NaN for a singular matrix.
    Source: LU, Golub & Van Loan 4e, §3.2; derivative: Giles 2008, §2.2.4.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.slogdet(rnp.array([[-1.0, 0.0], [0.0, 1.0]]))
    SlogdetResult(sign=Array(-1., f32[], cpu:0), logabsdet=Array(0., f32[], cpu:0))
    """
    if method not in (None, "lu", "qr"):
        raise ArgumentError(f"slogdet: cannot use method {method!r} (None, 'lu' or 'qr' required)")
    (x,), narrow = computing("slogdet", a)
    square("slogdet", x)
    return narrow(SlogdetResult(*ops.linalg.slogdet(x)))


# --- from singular values ----------------------------------------------------------------


@tiered
def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition number: how much a matrix may magnify a relative error.

    p:      None or 2: the largest singular value over the smallest; -2: its reciprocal; "fro",
            inf, -inf, 1, -1: the norm of x times that of its inverse.

    Shapes: [*B, M, N] -> [*B]; square matrices except for None, 2 and -2.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ShapeError for other shapes, and for a matrix without elements.
    Source: Golub & Van Loan 4e, §2.6.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.cond(rnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., f32[], cpu:0)
    """
    (a,), narrow = computing("cond", x)
    a_type = matrices("cond", a)
    if 0 in a_type.shape[-2:]:
        raise ArgumentError(f"cond: cannot take {a_type} (no elements)")
    if p not in (None, 2, -2):
        square("cond", a)
        product = ops.mul(norm(a, p, axis=(-2, -1)), norm(inv(a), p, axis=(-2, -1)))
        return narrow(_or_infinite(product, a))
    (s,) = ops.linalg.svd(a, full_matrices=False, vectors=False)
    count = type_of(s).shape[-1]
    first, last = (c.squeeze(part(s, -1, i, i + 1), -1) for i in (0, count - 1))
    return narrow(_or_infinite(ops.div(*((last, first) if p == -2 else (first, last))), a))


def _or_infinite(x: ArrayLike, a: ArrayLike) -> Array:
    """Infinity for NaN, unless the matrix itself holds a NaN."""
    is_nan = ops.reduce_or(ops.ne(a, a), axes=(rank(a) - 2, rank(a) - 1))
    unknown = ops.logical_and(ops.ne(x, x), ops.logical_not(is_nan))
    return ops.select(unknown, number(np.inf, x), x)


@tiered
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, tol: ArrayLike | None = None, hermitian: bool = False
) -> Array:
    """The number of singular values above a tolerance.

    rtol:   relative to the greatest, max(M, N) eps by default; tol: absolute, in its place.
    hermitian:  ignored: the singular values are computed in the same way.

    Shapes: [*B, M, N] -> [*B]; of a vector, whether it is not zero.
    Types:  i32; i64 with `rune.enable_x64`.
    Errors: ArgumentError for both tolerances.
    Source: Golub & Van Loan 4e, §5.4.1.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.matrix_rank(rnp.ones((3, 3)))
    Array(1, i32[], cpu:0)
    """
    if rtol is not None and tol is not None:
        raise ArgumentError("matrix_rank: cannot use both rtol and tol")
    (a,), _ = computing("matrix_rank", M)
    counts = dtypes.canonical(dtypes.i64)
    if rank(a) < 2:
        any_ = ops.reduce_or(ops.ne(a, number(0, a)), axes=tuple(range(rank(a))))
        return ops.cast(any_, counts)
    (s,) = ops.linalg.svd(a, full_matrices=False, vectors=False)
    if 0 in type_of(a).shape[-2:]:
        return full(counts.type(0), type_of(a).shape[:-2])
    if tol is not None:
        bound = c.astype(value("matrix_rank", tol), type_of(s).dtype)
        is_significant = apply(ops.gt, s, c.expand_dims(bound, -1))
    else:
        is_significant = significant(s, cutoff("matrix_rank", a, 1.0, rtol, M))
    return ops.reduce_sum(ops.cast(is_significant, counts), axes=(rank(s) - 1,))
