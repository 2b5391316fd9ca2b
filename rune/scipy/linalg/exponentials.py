"""Exponentials of matrices, and functions built on them: cosines, sines, tangents.

exp(A) = r(A / 2^s)^(2^s), r the diagonal Padé approximant whose error is below rounding where the
scaled norm is: of degree 7 in single precision, 13 in double. Every lane of a batch has its own s,
and is squared s times. Derivatives are those of the algorithm itself.
"""

from __future__ import annotations

from math import factorial
from typing import Any, Literal, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.control import fori_loop
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.linalg import solve
from rune.numpy.linalg.arguments import computing, same_batch, square
from rune.ops.complex_numbers import complex, imag, is_complex, real, real_dtype
from rune.ops.family import stretch
from rune.ops.linalg.triangular import triangular_solve
from rune.ops.matrix_helpers import eye, matmul, nan_like, number, upper_triangle, zeros
from rune.scipy.sequences import from_sequences
from rune.transforms.derivatives.jvp import jvp_flat
from rune.typing import ArrayLike, Nested

# The degree, and the norm up to which it serves (Higham 2005, table 2.3).
DEGREES = {dtypes.f32: (7, 3.925724783138660), dtypes.f64: (13, 5.371920351148152)}


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices.

    upper_triangular:  a promise that A is so: systems are then solved by substitution alone.
    max_squarings:     a matrix that needs more gives NaN.

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  f32, f64, c64, c128 kept; half types through f32; integers become f32.
    Errors: ShapeError for matrices that are not square.
    Source: scaling and squaring, Higham 2005, SIAM J. Matrix Anal. 26(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.expm(rnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("expm", A)
    square("expm", x)
    return narrow(_expm(x, upper_triangular, max_squarings))


def _expm(x: Array, upper: bool = False, max_squarings: int = 16) -> Array:
    shape = type_of(x).shape
    if 0 in shape:
        return x
    degree, limit = DEGREES[real_dtype(type_of(x).dtype)]
    count = _squarings(x, limit)
    squarings = ops.min(count, np.int32(min(max_squarings, 30)))
    scale = ops.cast(ops.shl(ops.fit(np.int32(1), type_of(squarings).shape), squarings), type_of(x).dtype)
    power = _approximant(ops.div(x, stretch(scale, shape)), degree, upper)

    def squared(i: Array, y: Array) -> Array:
        return ops.select(stretch(ops.lt(i, squarings), shape), matmul(y, y), y)

    most = ops.reduce_max(squarings, axes=tuple(range(len(shape) - 2)))
    power = fori_loop(0, most, squared, power)
    too_many = stretch(ops.gt(count, np.int32(max_squarings)), shape)
    return ops.select(too_many, nan_like(power), power)


def _squarings(x: Array, limit: float) -> Array:
    """The number of halvings that bring every matrix's norm below `limit`. i32[*B]"""
    size = ops.abs(ops.stop_gradient(x))
    rank = len(type_of(size).shape)
    norm = ops.reduce_max(ops.reduce_sum(size, axes=(rank - 2,)), axes=(rank - 2,))
    ratio = ops.div(norm, number(limit, norm))
    usable = ops.logical_and(ops.is_finite(ratio), ops.gt(ratio, number(1, ratio)))
    ratio = ops.select(usable, ratio, number(1, ratio))
    return ops.cast(ops.ceil(ops.log2(ratio)), dtypes.i32)


def _approximant(a: Array, degree: int, upper: bool) -> Array:
    """(V - U)⁻¹ (V + U), U the odd and V the even part of Σ b_k A^k."""
    weights = _weights(degree)
    identity, square_ = eye(type_of(a).shape, type_of(a).dtype), matmul(a, a)
    powers = [identity, square_, matmul(square_, square_)]
    powers.append(matmul(powers[1], powers[2]))
    u, v = (_polynomial(powers, weights[k::2]) for k in (1, 0))
    u = matmul(a, u)
    if upper:
        below = upper_triangle(ops.sub(v, u)), upper_triangle(ops.add(v, u))
        return triangular_solve(*below, lower=False, unit_diagonal=False)
    return solve(ops.sub(v, u), ops.add(v, u))


def _weights(m: int) -> list[float]:
    """The coefficients of the [m/m] approximant, the last one 1."""
    return [float(factorial(2 * m - k) // (factorial(k) * factorial(m - k))) for k in range(m + 1)]


def _polynomial(powers: list[Array], weights: list[float]) -> Array:
    """Σ w_k (A²)^k, k up to 6, from the powers up to (A²)³."""
    low = _combined(powers, weights[:4])
    return low if len(weights) <= 4 else ops.add(low, matmul(powers[3], _combined(powers[1:], weights[4:])))


def _combined(powers: list[Array], weights: list[float]) -> Array:
    total = zeros(powers[0])
    for power, weight in zip(powers, weights, strict=False):
        total = ops.add(total, ops.mul(power, number(weight, power)))
    return total


@overload
def expm_frechet(
    A: Nested, E: Nested, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(A: Nested, E: Nested, *, method: str | None = None, compute_expm: Literal[False]) -> Array: ...
@overload
def expm_frechet(A: Nested, E: Nested, *, method: str | None = None, compute_expm: bool) -> Any: ...
def expm_frechet(
    A: Nested, E: Nested, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """exp(A), and its derivative at A in the direction E; the latter alone without compute_expm.

    method:  accepted as in SciPy; the derivative is always that of the algorithm of `expm`.

    Shapes: [*B, N, N] both, leading axes broadcast.
    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square; ArgumentError for an unknown method.
    Source: Al-Mohy & Higham 2009, SIAM J. Matrix Anal. 30(4).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.expm_frechet(rnp.zeros((2, 2)), rnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ArgumentError(f"expm_frechet: cannot use method={method!r} ('SPS' or 'blockEnlarge' required)")
    (a, e), narrow = computing("expm_frechet", *from_sequences(A, E))
    square("expm_frechet", a)
    square("expm_frechet", e)
    a, e = same_batch("expm_frechet", a, e)
    (exponential,), (derivative,) = jvp_flat(lambda x: [_expm(x)], [a], [e])
    return narrow((exponential, derivative)) if compute_expm else narrow(derivative)


# --- circular and hyperbolic functions --------------------------------------------------------


def _pair(name: str, A: ArrayLike) -> tuple[Any, Any]:
    (x,), narrow = computing(name, A)
    square(name, x)
    return x, narrow


def _turned(x: Array) -> Array:
    """exp(i x)."""
    if is_complex(x):
        return _expm(ops.mul(x, number(1j, x)))
    return _expm(complex(zeros(x), x))


def _half(x: Array) -> Array:
    return ops.mul(x, number(0.5, x))


def _cos(x: Array) -> Array:
    if not is_complex(x):
        return real(_turned(x))
    return _half(ops.add(_turned(x), _turned(ops.neg(x))))


def _sin(x: Array) -> Array:
    if not is_complex(x):
        return imag(_turned(x))
    return ops.mul(ops.sub(_turned(x), _turned(ops.neg(x))), number(-0.5j, x))


def _cosh(x: Array) -> Array:
    return _half(ops.add(_expm(x), _expm(ops.neg(x))))


def _sinh(x: Array) -> Array:
    return _half(ops.sub(_expm(x), _expm(ops.neg(x))))


def cosm(A: ArrayLike) -> Array:
    """The cosine of square matrices. Shapes: [*B, N, N] -> [*B, N, N].

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: Higham 2008, Functions of Matrices, §12.1: by exponentials.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.cosm(rnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("cosm", A)
    return narrow(_cos(x))


def sinm(A: ArrayLike) -> Array:
    """The sine of square matrices. Shapes: [*B, N, N] -> [*B, N, N].

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: Higham 2008, Functions of Matrices, §12.1: by exponentials.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.sinm(rnp.array([[0.0, 2.0], [0.0, 0.0]]))
    Array([[0., 2.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("sinm", A)
    return narrow(_sin(x))


def tanm(A: ArrayLike) -> Array:
    """The tangent of square matrices: cos(A)⁻¹ sin(A). Shapes: [*B, N, N] -> [*B, N, N].

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: as `cosm`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.tanm(rnp.array([[0.0, 2.0], [0.0, 0.0]]))
    Array([[0., 2.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("tanm", A)
    return narrow(solve(_cos(x), _sin(x)))


def coshm(A: ArrayLike) -> Array:
    """The hyperbolic cosine of square matrices. Shapes: [*B, N, N] -> [*B, N, N].

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: Higham 2008, Functions of Matrices, §12.5: by exponentials.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.coshm(rnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("coshm", A)
    return narrow(_cosh(x))


def sinhm(A: ArrayLike) -> Array:
    """The hyperbolic sine of square matrices. Shapes: [*B, N, N] -> [*B, N, N].

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: as `coshm`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.sinhm(rnp.array([[0.0, 2.0], [0.0, 0.0]]))
    Array([[0., 2.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("sinhm", A)
    return narrow(_sinh(x))


def tanhm(A: ArrayLike) -> Array:
    """The hyperbolic tangent of square matrices: cosh(A)⁻¹ sinh(A). Shapes: [*B, N, N] the same.

    Types:  complex included; bools and integers become floats.
    Errors: ShapeError for matrices that are not square.
    Source: as `coshm`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.tanhm(rnp.array([[0.0, 2.0], [0.0, 0.0]]))
    Array([[0., 2.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    x, narrow = _pair("tanhm", A)
    return narrow(solve(_cosh(x), _sinh(x)))
