"""Functions of matrices: roots, logarithms, powers, signs, and any function of numbers.

Results of sqrtm, logm, powers and funm are complex, since a real matrix need not have a real result
and types do not depend on values; where the principal one is real its imaginary part is zero.
Derivatives are written as equations that hold for degenerate eigenvalues too: a root's solves a
Sylvester equation, funm's uses divided differences.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.control import while_loop
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.linalg import inv, matrix_power, solve
from rune.numpy.linalg.arguments import computing, square
from rune.ops.complex_numbers import complex_dtype, is_complex
from rune.ops.family import broadcast, stretch
from rune.ops.linalg.schur import complex_schur
from rune.ops.linalg.sylvester import sylvester, triangular_sqrt
from rune.ops.matrix_helpers import (
    adjoint,
    columns,
    diagonal,
    eye,
    matmul,
    number,
    real_part,
    rows,
    scaled_columns,
    zeros,
)
from rune.scipy.linalg.exponentials import _expm
from rune.scipy.sequences import from_sequences
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.jvp import jvp_flat
from rune.typing import ArrayLike, Nested


def _prepared(name: str, A: ArrayLike) -> tuple[Any, Any]:
    """The matrices as complex numbers, and the function that narrows results."""
    (x,), narrow = computing(name, A)
    square(name, x)
    return ops.cast(x, complex_dtype(type_of(x).dtype)), narrow


# --- square roots -----------------------------------------------------------------------------


@custom_jvp
def _sqrtm(a: Array) -> Array:
    t, z = complex_schur(a)
    return matmul(matmul(z, triangular_sqrt(t)), adjoint(z))


def _sqrtm_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """X X' + X' X = A', by the Schur form of X, which is that of A with T's root."""
    (a,), (da,) = primals, tangents
    x = _sqrtm(a)
    t, z = complex_schur(a)
    root = triangular_sqrt(t)
    return x, sylvester(x, x, root, z, root, z, da, transposed=False)


_sqrtm.defjvp(_sqrtm_jvp)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of square matrices: X X = A, eigenvalues in the right half plane.

    blocksize:  accepted as in SciPy, without effect.

    Shapes: [*B, N, N] -> [*B, N, N], complex.
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square. A matrix without a root gives NaN.
    Source: by the Schur form, Björck & Hammarling 1983, Linear Algebra Appl. 52; derivative:
            Higham 2008, Functions of Matrices, §6.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.sqrtm(rnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], f32[2,2], cpu:0)
    """
    x, narrow = _prepared("sqrtm", A)
    return narrow(_sqrtm(x))


# --- logarithms and powers --------------------------------------------------------------------

NEAR = 0.264  # the norm up to which POINTS nodes suffice in double precision (Higham, table 11.1)
POINTS = 7
ROOTS = 60  # more than any finite matrix needs


def logm(A: ArrayLike) -> Array:
    """The principal logarithm of square matrices: exp(X) = A.

    Square roots are taken until the matrix is near 1, where log(1 + Y) = ∫ Y (1 + s Y)⁻¹ ds is a
    sum over a few points; the result is then doubled once for each root.

    Shapes: [*B, N, N] -> [*B, N, N], complex.
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square. A singular matrix gives NaN.
    Source: inverse scaling and squaring, Higham 2008, Functions of Matrices, §11.5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> abs(linalg.logm(rnp.eye(2)))
    Array([[0., 0.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    x, narrow = _prepared("logm", A)
    return narrow(_logm(x))


def _logm(a: Array) -> Array:
    shape = type_of(a).shape
    if 0 in shape:
        return a
    lead = shape[:-2]

    def near_one(x: Array) -> Array:
        rank = len(shape)
        size = ops.abs(ops.stop_gradient(ops.sub(x, eye(shape, type_of(x).dtype))))
        norm = ops.reduce_max(ops.reduce_sum(size, axes=(rank - 2,)), axes=(rank - 2,))
        return ops.logical_not(ops.gt(norm, number(NEAR, norm)))

    def more(state: tuple[Array, Array]) -> Array:
        x, count = state
        is_far = ops.logical_not(near_one(x))
        few = ops.lt(count, np.int32(ROOTS))
        return ops.reduce_or(ops.logical_and(is_far, few), axes=tuple(range(len(lead))))

    def rooted(state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, count = state
        is_near_one = near_one(x)
        is_done = stretch(is_near_one, shape)
        safe = ops.select(is_done, eye(shape, type_of(x).dtype), x)
        new_count = ops.add(count, ops.select(is_near_one, np.int32(0), np.int32(1)))
        return ops.select(is_done, x, _sqrtm(safe)), new_count

    start = a, ops.fit(np.int32(0), lead) if lead else ops.cast(np.int32(0), dtypes.i32)
    x, count = while_loop(more, rooted, start)
    real = np.dtype(np.float32 if type_of(a).dtype == dtypes.c64 else np.float64)
    factor = ops.cast(ops.exp2(ops.cast(count, real)), type_of(a).dtype)
    return ops.mul(stretch(factor, shape), _log_near_one(x))


def _log_near_one(x: Array) -> Array:
    """Gauss and Legendre's sum for the integral: the diagonal Padé approximant."""
    shape, dtype = (POINTS, *type_of(x).shape), type_of(x).dtype
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)

    def of_points(values: np.ndarray) -> Array:
        return ops.broadcast(values.astype(dtype), shape=shape, axes=(0,))

    y = ops.sub(x, eye(shape[1:], dtype))
    at_points = ops.broadcast(y, shape=shape, axes=tuple(range(1, len(shape))))
    # One solve for all points: a solve for each would compile to seven times the code.
    divisors = ops.add(eye(shape, dtype), ops.mul(at_points, of_points((nodes + 1) / 2)))
    terms = ops.mul(solve(divisors, at_points), of_points(weights / 2))
    return ops.reduce_sum(terms, axes=(0,))


def fractional_matrix_power(A: ArrayLike, t: float) -> Array:
    """The principal power of square matrices, t a Python number.

    A whole t multiplies (a negative one the inverse), and keeps the dtype; any other gives complex
    results, A^⌊t⌋ exp((t - ⌊t⌋) log A).

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square.
    Source: Higham 2008, Functions of Matrices, §1.7 and problem 1.34.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.fractional_matrix_power(rnp.array([[2.0, 0.0], [0.0, 3.0]]), 2)
    Array([[4., 0.],
           [0., 9.]], f32[2,2], cpu:0)
    """
    if not isinstance(t, numbers.Real) and getattr(t, "ndim", 1) != 0:
        raise ArgumentError(f"fractional_matrix_power: cannot raise to {type(t).__name__} (a real number required)")
    exponent = int(np.floor(t))
    if exponent == t:
        return matrix_power(A, exponent)
    x, narrow = _prepared("fractional_matrix_power", A)
    fractional = _expm(ops.mul(_logm(x), number(t - exponent, x)))
    return narrow(matmul(matrix_power(x, exponent), fractional) if exponent else fractional)


def signm(A: ArrayLike) -> Array:
    """The sign of square matrices: A (A²)^(-1/2), eigenvalues 1 and -1 by the half plane.

    Shapes: [*B, N, N] -> [*B, N, N]. Types: unchanged.
    Errors: ShapeError for matrices that are not square. Eigenvalues on the imaginary axis give
            infinities or NaN.
    Source: Higham 2008, Functions of Matrices, §5.1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.signm(rnp.array([[2.0, 0.0], [0.0, -3.0]]))
    Array([[ 1.,  0.],
           [ 0., -1.]], f32[2,2], cpu:0)
    """
    (matrix,), narrow = computing("signm", A)
    x, _ = _prepared("signm", matrix)
    sign = solve(_sqrtm(matmul(x, x)), x)
    return narrow(sign if is_complex(matrix) else real_part(sign))


# --- functions of numbers ---------------------------------------------------------------------


def funm(A: Nested, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of numbers, applied to square matrices through their eigenvalues.

    func:  maps an array of complex numbers elementwise; analytic at the eigenvalues.
    disp:  if False, the result is paired with an estimate of its relative error.
    Shapes: [*B, N, N] -> [*B, N, N], complex.
    Types:  c64, or c128 for 64-bit dtypes.
    Errors: ShapeError for matrices that are not square; ArgumentError if `func` changes shapes.

    A matrix that is not diagonalisable gives infinities, NaN or few correct digits, as the
    estimate shows. The derivative holds for equal eigenvalues too.
    Source: Higham 2008, Functions of Matrices, §1.2; derivative: Daleckii & Krein 1965.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.funm(rnp.array([[1.0, 0.0], [0.0, 3.0]]), lambda x: x * x).real
    Array([[1., 0.],
           [0., 9.]], f32[2,2], cpu:0)
    """
    x, narrow = _prepared("funm", *from_sequences(A))
    _check_function(func, x)
    value = narrow(_funm(func, x))
    return value if disp else (value, narrow(_error(x)))


def _check_function(func: Callable[[Array], Array], x: Array) -> None:
    values = diagonal(x)
    if type_of(func(values)).shape != type_of(values).shape:
        raise ArgumentError(
            f"funm: cannot use the function (of {type_of(values)} it makes "
            f"{type_of(func(values))}; one value for each is required)"
        )


def _funm_value(func: Callable[[Array], Array], a: Array) -> Array:
    w, v = ops.linalg.eig(a, left=False, right=True)
    values = ops.cast(func(w), type_of(v).dtype)
    return matmul(scaled_columns(v, values), inv(v))


_funm = custom_jvp(_funm_value, nondiff_argnums=(0,))


def _funm_jvp(
    func: Callable[[Array], Array], primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[Array, Array]:
    """V (f[w_i, w_j] ∘ (V⁻¹ A' V)) V⁻¹, with divided differences of f at the eigenvalues."""
    (a,), (da,) = primals, tangents
    w, v = ops.linalg.eig(a, left=False, right=True)
    inside = ops.mul(_divided(func, w), solve(v, matmul(da, v)))
    return _funm(func, a), matmul(matmul(v, inside), inv(v))


_funm.defjvp(_funm_jvp)


def _divided(func: Callable[[Array], Array], w: Array) -> Array:
    """(f(w_i) - f(w_j)) / (w_i - w_j), and f' where that is nearly 0 / 0. [*B, N] -> [*B, N, N]"""
    *lead, n = type_of(w).shape
    shape = (*lead, n, n)
    first, second = tuple(range(len(lead) + 1)), (*range(len(lead)), len(lead) + 1)
    values, slopes = _with_slopes(func, w)
    w1, f1, s1 = (broadcast(x, shape=shape, axes=first) for x in (w, values, slopes))
    w2, f2, s2 = (broadcast(x, shape=shape, axes=second) for x in (w, values, slopes))
    gap = ops.sub(w1, w2)
    size = ops.abs(ops.stop_gradient(gap))
    unit = float(np.finfo(type_of(size).dtype).eps) ** 0.5
    scale = ops.add(ops.abs(ops.stop_gradient(w1)), ops.abs(ops.stop_gradient(w2)))
    close = ops.logical_not(ops.gt(size, ops.mul(scale, number(unit, scale))))
    close = ops.logical_or(close, ops.eq(rows(shape), columns(shape)))
    safe = ops.select(close, number(1, gap), gap)
    mean = ops.mul(ops.add(s1, s2), number(0.5, s1))
    return ops.select(close, mean, ops.div(ops.sub(f1, f2), safe))


def _with_slopes(func: Callable[[Array], Array], w: Array) -> tuple[Array, Array]:
    """f(w) and f'(w), elementwise."""
    one = broadcast(number(1, w), shape=type_of(w).shape, axes=())
    (values,), (slopes,) = jvp_flat(lambda x: [func(x)], [w], [one])
    values = ops.cast(values, type_of(w).dtype)
    return values, zeros(values) if slopes is None else ops.cast(slopes, type_of(w).dtype)


def _error(a: Array) -> Any:
    """The rounding error of V f V⁻¹: eps times the condition of V."""
    v = ops.linalg.eig(a, left=False, right=True)[1]
    (s,) = ops.linalg.svd(v, full_matrices=False, vectors=False)
    last = len(type_of(s).shape) - 1
    condition = ops.div(ops.reduce_max(s, axes=(last,)), ops.reduce_min(s, axes=(last,)))
    unit = number(float(np.finfo(type_of(s).dtype).eps), s)
    return ops.mul(unit, condition)
