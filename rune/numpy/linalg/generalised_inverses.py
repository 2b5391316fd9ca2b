"""pinv and lstsq: the generalised inverse, and least-squares solutions.

Singular values up to a limit count as zero. The derivative is that of the truncated matrix: its
singular vectors rotate into those that were cut off, the more so the closer the singular values
are. So it is exact for the computed function wherever no singular value crosses the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.control import custom_linear_solve
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, value
from rune.numpy.linalg.arguments import computing, matrices
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import size_value
from rune.ops.matrix_helpers import adjoint, full, matmul, number, real_part, scaled_columns
from rune.ops.movement import part
from rune.ops.promote import apply
from rune.transforms.compile.tiers import tiered
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.directional import jvp
from rune.typing import ArrayLike

# The solution, residuals, rank and singular values: a tuple in JAX, whose leaves have no names.
Fit = tuple[Array, Array, Array, Any]


@tiered
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore–Penrose inverse: singular values up to rtol times the largest count as zero.

    rtol:   10 max(M, N) eps by default; an array has one for each matrix. rcond is its old name.
    hermitian:  ignored: the singular values are computed in the same way.

    Shapes: [*B, M, N] -> [*B, N, M]. Types: bools and integers become floats.
    Errors: ShapeError for a rank below 2; ArgumentError for both rtol and rcond.
    The derivative holds where no singular value crosses the limit.
    Source: Golub & Van Loan 4e, §5.5.2; derivative: Golub & Pereyra 1973, SIAM J. Numer. Anal. 10,
            with the rotation of the part that is cut off, a Stein equation.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.pinv(rnp.array([[2.0, 0.0], [0.0, 0.0]])) + 0.0
    Array([[0.5, 0. ],
           [0. , 0. ]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("pinv", a)
    x_type = matrices("pinv", x)
    if rtol is not None and rcond is not None:
        raise ArgumentError("pinv: cannot use both rtol and rcond")
    tolerance = rtol if rcond is None else rcond
    limit = cutoff("pinv", x, 10.0, tolerance, a)
    if 0 in x_type.shape:
        return narrow(adjoint(x))
    return narrow(_pinv(x, limit)[0])


def cutoff(name: str, x: ArrayLike, factor: float, tolerance: Any, of: ArrayLike) -> Array:
    """The relative size below which singular values count as zero, real.

    By default it follows the rounding of the array `of`, from which `x` was made: a half type
    rounds more coarsely than the f32 in which it is computed.
    """
    real = real_dtype(type_of(x).dtype)
    if tolerance is None:
        m, n = type_of(x).shape[-2:]
        size = max(m, n) if isinstance(m, int) and isinstance(n, int) else m + n
        scale = number(factor * _eps(value(name, of), real), np.zeros((), real))
        return ops.mul(scale, size_value(size, real))
    return c.astype(value(name, tolerance), real)


def _eps(of: ArrayLike, real: np.dtype) -> float:
    dtype = type_of(of).dtype
    return float(finfo(dtype if dtype in dtypes.FLOATING else real).eps)


def significant(s: ArrayLike, limit: ArrayLike) -> Array:
    """Which singular values [*B, K] are above `limit` [*B] times the greatest."""
    greatest = ops.reduce_max(s, axes=(rank(s) - 1,))
    bound = apply(ops.mul, greatest, limit)
    return apply(ops.gt, s, c.expand_dims(bound, -1))


class _Truncated(NamedTuple):
    """A tall matrix truncated at a limit for its singular values.

    inverse: P, its Moore–Penrose inverse, [*B, N, M]
    sizes:   all of its singular values, [*B, N]
    across:  the projector onto the part that was cut off, [*B, N, N]
    v:       the right singular vectors, [*B, N, N]
    weights: 1 / (1 - s_i² / s_j²) where s_i was cut off and s_j was not, else 1, [*B, N, N]

    The last two are only for `_turn`, and have no derivative.
    """

    inverse: Array
    sizes: Array
    across: Array
    v: Array
    weights: Array


def _pinv(a: Array, limit: ArrayLike) -> tuple[Array, Array]:
    """The inverse and the singular values."""
    m, n = type_of(a).shape[-2:]
    if isinstance(m, int) and isinstance(n, int) and m < n:
        inverse, sizes, *_ = _truncated(adjoint(a), limit)
        return adjoint(inverse), sizes
    inverse, sizes, *_ = _truncated(a, limit)
    return inverse, sizes


@custom_jvp
def _truncated(a: ArrayLike, limit: ArrayLike) -> _Truncated:
    dtype = type_of(a).dtype
    u, s, vh = ops.linalg.svd(a, full_matrices=False, vectors=True)
    is_significant = significant(s, limit)
    one, zero = number(1, s), number(0, s)
    reciprocal = ops.select(is_significant, ops.div(one, ops.select(is_significant, s, one)), zero)
    small = ops.select(is_significant, zero, s)
    ratio = apply(ops.mul, c.expand_dims(small, -1), c.expand_dims(reciprocal, -2))
    weights = ops.div(number(1, ratio), ops.sub(number(1, ratio), ops.mul(ratio, ratio)))
    v = adjoint(vh)
    cut_off = ops.cast(ops.select(is_significant, zero, one), dtype)
    return _Truncated(
        matmul(scaled_columns(v, ops.cast(reciprocal, dtype)), adjoint(u)),
        s,
        matmul(scaled_columns(v, cut_off), vh),
        v,
        ops.cast(weights, dtype),
    )


def _truncated_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[_Truncated, _Truncated]:
    """With B the part that was cut off and X its rotation into the remaining part:

    Ṗ = -P Ȧ P + X P + P Pᴴ (Ȧ + B X)ᴴ (1 - A P). Where B = 0 this is the rule of constant rank.
    """
    (a, limit), (da, _) = primals, tangents
    out = _truncated(a, limit)
    p, _, across, v, weights = out
    ph, cut_off = adjoint(p), matmul(a, across)
    # In this order no product is [M, M].
    pull = ops.add(adjoint(da), matmul(matmul(adjoint(cut_off), da), p))
    inverse_gram = matmul(p, ph)
    turn = _turn(matmul(adjoint(cut_off), cut_off), inverse_gram, v, weights, matmul(across, matmul(pull, ph)))
    outside = matmul(inverse_gram, adjoint(ops.add(da, matmul(cut_off, turn))))
    change = ops.sub(outside, matmul(matmul(outside, a), p))
    change = ops.add(change, matmul(ops.sub(turn, matmul(p, da)), p))
    turn_of_v = ops.neg(ops.add(turn, adjoint(turn)))
    still = (full(number(0, v), type_of(v).shape), full(number(0, weights), type_of(weights).shape))
    # Not through the vectors in `out`, which have no derivative, so there would be no second one.
    _, dsizes = jvp(_sizes, (a,), (da,))
    return out, _Truncated(change, dsizes, turn_of_v, *still)


def _sizes(a: Array) -> Array:
    return ops.linalg.svd(a, full_matrices=False, vectors=False)[0]


_truncated.defjvp(_truncated_jvp)


def _turn(small: Array, large: Array, v: Array, weights: Array, x: Array) -> Array:
    """T with T - small T large = x, in the basis `v`, in which both are diagonal."""

    def in_basis(v: Array) -> Callable[[object, Array], Array]:
        vh = adjoint(v)
        return lambda _, x: matmul(matmul(v, ops.mul(weights, matmul(vh, matmul(x, v)))), vh)

    def operator(turn: Array) -> Array:
        return ops.sub(turn, matmul(matmul(small, turn), large))

    return custom_linear_solve(operator, x, in_basis(v), in_basis(c.conj(v)))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: object = None, *, numpy_resid: bool = False) -> Fit:
    """The least-squares solution x of a x = b with the smallest |x|; also the residuals, the rank
    and the singular values of `a`.

    rcond:  singular values up to rcond times the largest count as zero; max(M, N) eps for None.
    numpy_resid:  whether residuals are left out as in NumPy: for a rank below N or M <= N. Their
            shape then depends on values, so not under jit.

    Shapes: a [M, N]; b [M] or [M, K] -> x [N] or [N, K], residuals [1] or [K], rank [], s [min].
    Types:  bools and integers become floats; rank the default integer, residuals and s real.
    Errors: ShapeError for other ranks or different numbers of rows.
    Source: Golub & Van Loan 4e, §5.5; derivative: as pinv's.

    >>> import rune.numpy as rnp
    >>> a = rnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> rnp.linalg.lstsq(a, rnp.array([1.0, 3.0, 5.0]))[0].round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    (x, y), narrow = computing("lstsq", a, b)
    is_vector = rank(y) == 1
    y = c.expand_dims(y, -1) if is_vector else y
    first, second = type_of(x), type_of(y)
    if first.ndim != 2 or second.ndim != 2 or first.shape[0] != second.shape[0]:
        raise ShapeError(
            f"lstsq: cannot fit {first} to {type_of(value('lstsq', b))} "
            "(one matrix and as many rows on the right required)"
        )
    limit = cutoff("lstsq", x, 1.0, rcond, a)
    if 0 in first.shape:
        return narrow(_of_nothing(x, y, _sizes(x), is_vector))
    inverse, s = _pinv(x, limit)
    count = ops.reduce_sum(ops.cast(significant(s, limit), dtypes.canonical(dtypes.i64)), axes=(0,))
    solution = matmul(inverse, y)
    off = ops.sub(y, matmul(x, solution))
    residuals = ops.reduce_sum(real_part(ops.mul(off, c.conj(off))), axes=(0,))
    if numpy_resid and (int(count) < first.shape[1] or first.shape[0] <= first.shape[1]):
        residuals = part(residuals, 0, 0, 0)
    return narrow((c.squeeze(solution, -1) if is_vector else solution, residuals, count, s))


def _of_nothing(x: ArrayLike, y: ArrayLike, s: ArrayLike, is_vector: bool) -> Fit:
    """For a matrix without elements: zeros fit best, and all of b is residual."""
    n, k = type_of(x).shape[1], type_of(y).shape[1]
    solution = ops.broadcast(number(0, x), shape=(n,) if is_vector else (n, k), axes=())
    residuals = ops.reduce_sum(real_part(ops.mul(y, c.conj(y))), axes=(0,))
    return solution, residuals, value("lstsq", np.zeros((), dtypes.canonical(dtypes.i64))), s
