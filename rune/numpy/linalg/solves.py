"""Linear systems: solve, inv, lstsq, pinv, and their tensor forms.

`solve` and `inv` go through an LU factorisation, whose derivative is never taken: they have the
implicit one, one more solution with the same factors. A singular matrix gives infinities or NaN;
nothing is raised, so that a program does the same under jit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, static_int, value
from rune.numpy.linalg.arguments import computing, matrices, same_batch, square
from rune.numpy.shapes import moveaxis
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import size_value
from rune.ops.linalg.direct import solve as solve_matrices
from rune.ops.matrix_helpers import adjoint, eye, matmul, number, part, real_part, scaled_columns
from rune.ops.promote import apply
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike


class LstsqResult(NamedTuple):
    """What `lstsq` gives."""

    x: Array
    residuals: Array
    rank: Array
    s: Any


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b.

    Shapes: a [*B, N, N]; b [N] -> [*B, N], b [*B, N, K] -> [*B, N, K]; leading axes broadcast.
    Types:  f32, f64, c64, c128 kept; half types by way of f32; integers become f32.
    Errors: ShapeError unless `a` is square and `b` has as many rows. A singular `a` gives
            infinities or NaN.
    Source: LU with partial pivoting, Golub & Van Loan 4e, §3.4; derivative: Giles 2008, §2.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.solve(rnp.array([[2.0, 0.0], [1.0, 4.0]]), rnp.array([2.0, 9.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (x, y), narrowed = computing("solve", a, b)
    x_type = square("solve", x)
    is_vector = rank(y) == 1
    y = c.expand_dims(y, -1) if is_vector else y
    matrices("solve", y)
    if type_of(y).shape[-2] != x_type.shape[-1]:
        raise ShapeError(
            f"solve: cannot solve {x_type} for {type_of(value('solve', b))} "
            f"({x_type.shape[-1]} unknowns, {type_of(y).shape[-2]} rows)"
        )
    out = solve_matrices(*same_batch("solve", x, y))
    return narrowed(c.squeeze(out, -1) if is_vector else out)


def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  f32, f64, c64, c128 kept; half types by way of f32; integers become f32.
    Errors: ShapeError for matrices that are not square. A singular matrix gives infinities or NaN.
    Source: LU with partial pivoting, Golub & Van Loan 4e, §3.4.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.inv(rnp.array([[2.0, 0.0], [1.0, 4.0]]))
    Array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]], f32[2,2], cpu:0)
    """
    (x,), narrowed = computing("inv", a)
    x_type = square("inv", x)
    return narrowed(solve_matrices(x, eye(x_type.shape, x_type.dtype)))


# --- generalised inverses ---------------------------------------------------------------------


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore–Penrose inverse: singular values up to rtol times the greatest count as zero.

    rtol:   10 max(M, N) eps by default; an array has one for each matrix. rcond is its old name.
    hermitian:  a promise that is not used: the same singular values serve.

    Shapes: [*B, M, N] -> [*B, N, M]. Types: bools and integers become floats.
    Errors: ShapeError below rank 2; ArgumentError for both rtol and rcond.
    The derivative is that of matrices of constant rank.
    Source: Golub & Van Loan 4e, §5.5.2; derivative: Golub & Pereyra 1973, SIAM J. Numer. Anal. 10.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.pinv(rnp.array([[2.0, 0.0], [0.0, 0.0]])) + 0.0
    Array([[0.5, 0. ],
           [0. , 0. ]], f32[2,2], cpu:0)
    """
    (x,), narrowed = computing("pinv", a)
    x_type = matrices("pinv", x)
    if rtol is not None and rcond is not None:
        raise ArgumentError("pinv: cannot use both rtol and rcond")
    tolerance = rtol if rcond is None else rcond
    limit = cutoff("pinv", x, 10.0, tolerance, a)
    if 0 in x_type.shape:
        return narrowed(adjoint(x))
    return narrowed(_pinv(x, limit))


def cutoff(name: str, x: ArrayLike, factor: float, tolerance: Any, of: ArrayLike) -> Array:
    """The relative size below which singular values count as zero, real.

    By default the rounding of the array `of`, from which `x` was made: that of a half type is
    coarser than that of the f32 in which it is computed.
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


@custom_jvp
def _pinv(a: ArrayLike, limit: ArrayLike) -> Array:
    u, s, vh = ops.linalg.svd(a, full_matrices=False, vectors=True)
    is_significant = significant(s, limit)
    safe = ops.select(is_significant, s, number(1, s))
    inverse = ops.select(is_significant, ops.div(number(1, s), safe), number(0, s))
    return matmul(scaled_columns(adjoint(vh), ops.cast(inverse, type_of(a).dtype)), adjoint(u))


def _pinv_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    """-P Ȧ P + P Pᴴ Ȧᴴ (1 - A P) + (1 - P A) Ȧᴴ Pᴴ P."""
    (a, limit), (da, _) = primals, tangents
    p = _pinv(a, limit)
    ph, dah = adjoint(p), adjoint(da)
    first = matmul(matmul(p, da), p)
    second = matmul(matmul(p, ph), dah)
    third = matmul(matmul(dah, ph), p)
    change = ops.sub(second, matmul(matmul(second, a), p))
    change = ops.add(change, ops.sub(third, matmul(p, matmul(a, third))))
    return p, ops.sub(change, first)


_pinv.defjvp(_pinv_jvp)


def lstsq(a: ArrayLike, b: ArrayLike, rcond: object = None, *, numpy_resid: bool = False) -> LstsqResult:
    """x of least |x| among those of least |a x - b|; with the residuals, the rank and the
    singular values of `a`.

    rcond:  singular values up to rcond times the greatest count as zero; max(M, N) eps for None.
    numpy_resid:  whether there are no residuals where NumPy has none: for a rank below N or
            M <= N. That is a shape that depends on values, so not under jit.

    Shapes: a [M, N]; b [M] or [M, K] -> x [N] or [N, K], residuals [1] or [K], rank [], s [min].
    Types:  bools and integers become floats; rank i32, residuals and s real.
    Errors: ShapeError for other ranks or different numbers of rows.
    Source: Golub & Van Loan 4e, §5.5; derivative: as pinv's.

    >>> import rune.numpy as rnp
    >>> a = rnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> rnp.linalg.lstsq(a, rnp.array([1.0, 3.0, 5.0])).x.round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    (x, y), narrowed = computing("lstsq", a, b)
    is_vector = rank(y) == 1
    y = c.expand_dims(y, -1) if is_vector else y
    first, second = type_of(x), type_of(y)
    if first.ndim != 2 or second.ndim != 2 or first.shape[0] != second.shape[0]:
        raise ShapeError(
            f"lstsq: cannot fit {first} to {type_of(value('lstsq', b))} "
            "(one matrix and as many rows on the right required)"
        )
    limit = cutoff("lstsq", x, 1.0, rcond, a)
    (s,) = ops.linalg.svd(x, full_matrices=False, vectors=False)
    if 0 in first.shape:
        return _of_nothing(x, y, s, is_vector)
    count = ops.reduce_sum(ops.cast(significant(s, limit), dtypes.i32), axes=(0,))
    solution = matmul(_pinv(x, limit), y)
    off = ops.sub(y, matmul(x, solution))
    residuals = ops.reduce_sum(real_part(ops.mul(off, c.conj(off))), axes=(0,))
    if numpy_resid and (int(count) < first.shape[1] or first.shape[0] <= first.shape[1]):
        residuals = part(residuals, 0, 0, 0)
    return narrowed(LstsqResult(c.squeeze(solution, -1) if is_vector else solution, residuals, count, s))


def _of_nothing(x: ArrayLike, y: ArrayLike, s: ArrayLike, is_vector: bool) -> LstsqResult:
    """Of a matrix without elements: zeros fit best, and all of b is residual."""
    n, k = type_of(x).shape[1], type_of(y).shape[1]
    solution = ops.broadcast(number(0, x), shape=(n,) if is_vector else (n, k), axes=())
    residuals = ops.reduce_sum(real_part(ops.mul(y, c.conj(y))), axes=(0,))
    return LstsqResult(solution, residuals, value("lstsq", np.int32(0)), s)


# --- tensors ----------------------------------------------------------------------------------


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of `a` as a map from its last axes to its first `ind`.

    Shapes: [*P, *Q] -> [*Q, *P] with `ind` axes P, and as many elements in P as in Q.
    Types:  bools and integers become floats.
    Errors: ArgumentError for ind < 1; ShapeError where the two sides differ in size.
    Source: one `solve` of the reshaped system.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.tensorinv(rnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    x = value("tensorinv", a)
    shape, count = type_of(x).shape, static_int("tensorinv", "a number of axes", ind)
    if count < 1:
        raise ArgumentError(f"tensorinv: cannot split off {count} axes (at least 1 required)")
    rows, columns = math.prod(shape[:count]), math.prod(shape[count:])
    if rows != columns:
        raise ShapeError(
            f"tensorinv: cannot invert {type_of(x)} ({rows} elements in the first {count} axes, "
            f"{columns} in the others)"
        )
    flat = inv(c.reshape(x, (rows, columns)))
    return c.reshape(flat, (*shape[count:], *shape[:count]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b. `axes` of `a` are moved to the end first.

    Shapes: a [*B, *Q], b [*B] -> [*Q], and as many elements in B as in Q.
    Types:  bools and integers become floats.
    Errors: ShapeError where the two sides differ in size.
    Source: one `solve` of the reshaped system.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.tensorsolve(rnp.eye(4).reshape(2, 2, 4), rnp.ones((2, 2)))
    Array([1., 1., 1., 1.], f32[4], cpu:0)
    """
    x, y = value("tensorsolve", a), value("tensorsolve", b)
    if axes is not None:
        chosen = c.normalised_axes("tensorsolve", tuple(axes), type_of(x))
        x = moveaxis(x, chosen, tuple(range(rank(x) - len(chosen), rank(x))))
    unknowns = type_of(x).shape[rank(y) :]
    count, rows = math.prod(unknowns), math.prod(type_of(x).shape[: rank(y)])
    if count != rows:
        raise ShapeError(
            f"tensorsolve: cannot solve {type_of(x)} for {type_of(y)} ({count} unknowns, {rows} equations)"
        )
    solution = solve(c.reshape(x, (rows, count)), c.reshape(y, (-1,)))
    return c.reshape(solution, unknowns)
