"""Polynomials as NumPy writes them: vectors of coefficients, the highest power first.

Shapes must be known while tracing, so leading zeros that arise (in sums and remainders) stay;
`trim_leading_zeros` removes them where the values are known, as in JAX.

polyadd polysub polymul polydiv polyval polyder polyint vander;  polyfit, roots and poly, which
need linear algebra, are in polynomial_roots.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.control import scan
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, rank, static_count, static_size, together, value
from rune.numpy.creation import arange, ones, zeros
from rune.numpy.joining import concatenate
from rune.numpy.reductions import cumprod
from rune.numpy.shapes import broadcast_to
from rune.numpy.signals import convolve
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.promote import broadcast_shape
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested


def coefficients(name: str, p: Nested) -> Array:
    """A polynomial as a vector; a number is a constant. Errors: ShapeError for a higher rank."""
    return _vector(name, value(name, as_array(np.asarray(p)) if isinstance(p, list | tuple) else p))


def _vector(name: str, x: ArrayLike) -> Array:
    if rank(x) > 1:
        raise ShapeError(f"{name}: cannot take {type_of(x)} as a polynomial (rank 1 required)")
    return c.reshape(x, (1,)) if rank(x) == 0 else c.astype(x, type_of(x).dtype)


def _counting(p: ArrayLike) -> Any:
    """p in a dtype that can represent its products with powers: bools become integers."""
    return c.astype(p, dtypes.i32) if type_of(p).dtype == dtypes.bool_ else p


def _size(p: ArrayLike) -> Any:
    return type_of(p).shape[0]


def _columns(name: str, p: Nested) -> Array:
    """A polynomial as a vector, or an array with one polynomial in each column."""
    x = value(name, as_array(np.asarray(p)) if isinstance(p, list | tuple) else p)
    return x if rank(x) > 1 else _vector(name, x)


def _led_by_zeros(p: ArrayLike, size: Size) -> Any:
    """The same polynomials with `size` coefficients."""
    low, no_padding = size - _size(p), (0,) * rank(p)
    zero = np.zeros((), type_of(p).dtype)
    return p if low == 0 else ops.pad(p, zero, low=(low, *no_padding[1:]), high=no_padding, interior=no_padding)


def _aligned(name: str, a: Nested, b: Nested) -> tuple[Array, Array]:
    """Two polynomials of one dtype and number of coefficients, which are along axis 0."""
    x, y = c.same_dtype(name, _columns(name, a), _columns(name, b))
    size = _size(x) if _size(y) <= _size(x) else _size(y)
    return _led_by_zeros(x, size), _led_by_zeros(y, size)


@tiered
def polyadd(a1: Nested, a2: Nested) -> Array:
    """The sum of two polynomials. Shapes: [M], [N] -> [max(M, N)]; of [M, *A] along axis 0.

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.polyadd(rnp.array([1, 2]), rnp.array([9, 5, 4]))
    Array([9, 6, 6], i32[3], cpu:0)
    """
    x, y = _aligned("polyadd", a1, a2)
    return x + y


@tiered
def polysub(a1: Nested, a2: Nested) -> Array:
    """The difference of two polynomials. Shapes: [M], [N] -> [max(M, N)]; of [M, *A] along axis 0.

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.polysub(rnp.array([2, 10, -2]), rnp.array([3, 10, -4]))
    Array([-1,  0,  2], i32[3], cpu:0)
    """
    x, y = _aligned("polysub", a1, a2)
    return x - y


@tiered
def polymul(a1: Nested, a2: Nested, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials. Shapes: [M], [N] -> [M + N - 1].

    trim_leading_zeros: from the factors; only outside transformations.
    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.polymul(rnp.array([1, 2, 3]), rnp.array([9, 5, 1]))
    Array([ 9, 23, 38, 17,  3], i32[5], cpu:0)
    """
    x, y = (_or_zero(coefficients("polymul", p)) for p in (a1, a2))
    if trim_leading_zeros:
        x, y = _trimmed(x, 0.0), _trimmed(y, 0.0)
    x, y = together("polymul", x, y)
    return convolve(x, y, preferred_element_type=type_of(x).dtype)


def _or_zero(p: ArrayLike) -> ArrayLike:
    """The polynomial; without coefficients it is zero."""
    return zeros(1, type_of(p).dtype) if _size(p) == 0 else p


def _trimmed(p: Any, tolerance: float) -> Any:
    """p without leading coefficients that are at most `tolerance`; at least one is left."""
    large = np.abs(np.asarray(p)) > tolerance
    return p[min(int(np.argmax(large)) if large.any() else _size(p), _size(p) - 1) :]


def polydiv(u: Nested, v: Nested, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials, by long division.

    Shapes: [M], [N] -> [max(M - N + 1, 1)], [M]; the remainder begins with zeros, which
            trim_leading_zeros removes, only outside transformations.
    Types:  bools and integers become floats, promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.polydiv(rnp.array([3.0, 5.0, 2.0]), rnp.array([2.0, 1.0]))
    (Array([1.5 , 1.75], f32[2], cpu:0), Array([0.  , 0.  , 0.25], f32[3], cpu:0))
    """
    operands = coefficients("polydiv", u), coefficients("polydiv", v)
    x, y = (inexact("polydiv", p) for p in c.same_dtype("polydiv", *operands))
    dtype, degree = type_of(x).dtype, _size(y) - 1
    steps = _size(x) - degree
    if steps < 1:
        return zeros(1, dtype), x
    divisor = concatenate([y, zeros(steps - 1, dtype)])
    (_, low_terms), quotient = scan(_divide, (divisor, x), length=steps)
    remainder = concatenate([zeros(steps, dtype), low_terms[:degree]])
    if trim_leading_zeros:
        remainder = _trimmed(remainder, float(finfo(dtype).eps) ** 0.5)
    return quotient, remainder


def _divide(carry: tuple[Array, Array], _: None) -> tuple[tuple[Any, Any], Any]:
    """Subtract the multiple of the divisor that cancels the first coefficient, and drop that."""
    divisor, remainder = carry
    factor = remainder[0] / divisor[0]
    low_terms = (remainder - factor * divisor)[1:]
    return (divisor, concatenate([low_terms, zeros(1, type_of(remainder).dtype)])), factor


@tiered
def polyval(p: Nested, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at every element of x, by Horner's rule.

    Shapes: [N], [*S] -> [*S]; [N, *P], [*S] -> *P and *S broadcast: polynomials side by side.
    Types: promoted together.
    unroll: how many coefficients one step of the compiled loop takes.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.polyval(rnp.array([3, 0, 1]), rnp.array([5, 2]))
    Array([76, 13], i32[2], cpu:0)
    """
    p, x = together("polyval", np.asarray(p) if isinstance(p, list | tuple) else p, x)
    p = p if type_of(p).shape else c.reshape(p, (1,))
    shape = broadcast_shape("polyval", type_of(p).shape[1:], type_of(x).shape)
    start = broadcast_to(zeros((), type_of(p).dtype), shape)
    return scan(_horner, (x, start), p, unroll=unroll)[0][1]


def _horner(carry: tuple[Array, Array], coefficient: ArrayLike) -> tuple[tuple[Array, Array], None]:
    x, total = carry
    return (x, total * x + coefficient), None


@tiered
def polyder(p: Nested, m: int = 1) -> Array:
    """The m-th derivative of a polynomial. Shapes: [N] -> [max(N - m, 0)].

    Types:  that of `p`; bools become integers.
    Errors: ArgumentError for a negative m.

    >>> import rune.numpy as rnp
    >>> rnp.polyder(rnp.array([1, 1, 1, 1]))
    Array([3, 2, 1], i32[3], cpu:0)
    """
    x, order = _counting(coefficients("polyder", p)), _order("polyder", m)
    for _ in range(min(order, _size(x))):
        powers = arange(_size(x) - 1, 0, -1)
        x = x[:-1] * c.astype(powers, type_of(x).dtype)
    return c.distinct(x, p)


def _order(name: str, m: int) -> int:
    return static_count(name, "an order", m)


@tiered
def polyint(p: Nested, m: int = 1, k: Any = None) -> Array:
    """The m-th antiderivative of a polynomial. Shapes: [N] -> [N + m].

    k: the constants of integration, m of them or one for all; by default zero.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError for any other rank.

    >>> import rune.numpy as rnp
    >>> rnp.polyint(rnp.array([3.0, 2.0, 1.0]))
    Array([1., 1., 1., 0.], f32[4], cpu:0)
    """
    order = _order("polyint", m)
    x = inexact("polyint", coefficients("polyint", p))
    constants = coefficients("polyint", 0 if k is None else k)
    if _size(constants) not in (1, order):
        raise ArgumentError(f"polyint: cannot use {_size(constants)} constants (1 or {order})")
    x, constants = c.same_dtype("polyint", x, constants)
    for step in range(order):
        powers = arange(_size(x), 0, -1)
        constant = constants[min(step, _size(constants) - 1)][None]
        x = concatenate([x / c.astype(powers, type_of(x).dtype), constant])
    return c.distinct(x, p)


@tiered
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of x, from N-1 down to 0. Shapes: [M] -> [M, N]; N is M by default.

    Types:  that of `x`; bools become integers.
    Errors: ArgumentError if an argument is not an array or `N` is not an integer; ShapeError for
            another rank.

    >>> import rune.numpy as rnp
    >>> rnp.vander(rnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], i32[3,3], cpu:0)
    """
    x = value("vander", x)
    if rank(x) != 1:
        raise ShapeError(f"vander: cannot take powers of {type_of(x)} (rank 1 required)")
    x = _counting(x)
    count = _size(x) if N is None else static_size("vander", "a number of columns", N)
    if count < 0:
        raise ArgumentError(f"vander: cannot make {count} columns")
    first = ones((_size(x), 1), type_of(x).dtype)
    if count == 0:
        return first[:, :0]
    others = broadcast_to(x[:, None], (_size(x), count - 1))
    powers = cumprod(concatenate([first, others], axis=1), axis=1)
    powers = c.astype(powers, type_of(x).dtype)
    return powers if increasing else powers[:, ::-1]
