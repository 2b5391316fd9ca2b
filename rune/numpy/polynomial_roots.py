"""From the roots of a polynomial to its coefficients, and back through eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.control import scan
from rune.core.interpreter import literal, type_of
from rune.dims import Size
from rune.errors import ShapeError, TracerArrayConversionError
from rune.numpy.arguments import inexact, known_nonzero, rank, value
from rune.numpy.arithmetic import abs
from rune.numpy.creation import arange, zeros
from rune.numpy.joining import concatenate
from rune.numpy.linalg.spectra import eigvals
from rune.numpy.logic import where
from rune.numpy.matrices import eye
from rune.numpy.polynomials import coefficients
from rune.numpy.reductions import argmax
from rune.numpy.sorting import argsort
from rune.ops import conventions as c
from rune.ops.complex_numbers import WHOLE, real_dtype
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested


@tiered
def poly(seq_of_zeros: Nested) -> Array:
    """The polynomial with these roots, or the characteristic polynomial of a square matrix.

    Shapes: [N] or [N, N] -> [N + 1], the first coefficient 1; [] for no roots, as in NumPy.
    Types:  bools and integers become floats.
    Errors: ShapeError for any other rank, or a matrix that is not square.

    >>> import rune.numpy as rnp
    >>> rnp.poly(rnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], f32[3], cpu:0)
    """
    x = value("poly", _array_if_list(seq_of_zeros))
    shape = type_of(x).shape
    if rank(x) == 2 and shape[0] == shape[1] != 0:
        monic = _product(eigvals(x))
        return monic if type_of(x).dtype in dtypes.COMPLEX else c.real(monic)
    if rank(x) > 1:
        raise ShapeError(f"poly: cannot take {type_of(x)} (roots, or a square matrix, required)")
    if rank(x) == 1 and shape[0] <= 0:
        return zeros((), real_dtype(type_of(inexact("poly", x)).dtype)) + 1
    return _product(inexact("poly", c.reshape(x, -1)))


def _array_if_list(x: Nested) -> ArrayLike:
    return as_array(np.asarray(x)) if isinstance(x, list | tuple) else x


def _product(roots: ArrayLike) -> Array:
    """The product of x - z over all roots z."""
    kind = type_of(roots)
    one = ops.pad(zeros((1,), kind.dtype) + 1, literal(0, kind.dtype), low=(0,), high=(kind.shape[0],), interior=(0,))
    return scan(_with_root, one, (roots, arange(kind.shape[0])))[0]


def _with_root(p: Array, root: tuple[Array, Array]) -> tuple[Array, None]:
    """p times x - z for root number `degree`; the coefficients of p come first."""
    z, degree = root
    # Zeros beyond the degree do not take part: with an infinite root they would become NaN.
    takes_part = arange(type_of(p).shape[0] - 1) <= degree
    return concatenate([p[:1], where(takes_part, p[1:] - z * p[:-1], p[1:])]), None


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, the highest power first: eigenvalues of its companion matrix.

    strip_zeros: whether leading zeros, which lower the degree, are removed: the number of roots
            then depends on values, so it fails under transformations. Otherwise there are always
            N - 1 numbers, with NaN in the last places for missing roots.
    Shapes: [N] -> [N - 1] complex numbers, in no order.
    Types:  c64, or c128 of f64, c128 and 64-bit integers.
    Errors: TracerArrayConversionError for a traced polynomial, unless strip_zeros=False.
    Source: Golub & Van Loan 4e, §7.4.6.

    >>> import rune.numpy as rnp
    >>> rnp.roots(rnp.array([1.0, -3.0, 2.0])).real.sort().round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    x = inexact("roots", coefficients("roots", p))
    if not strip_zeros:
        return _roots_of_any_degree(x)
    nonzero_places = _places_of_others_than_0(x)
    if nonzero_places.size == 0:
        return zeros((0,), _complex_dtype(x))
    first, last = int(nonzero_places[0]), int(nonzero_places[-1])
    if (first, last) == (0, x.shape[0] - 1):
        return _of_companion(x)
    at_zero = zeros((x.shape[0] - 1 - last,), _complex_dtype(x))
    return concatenate([_of_companion(x[first : last + 1]), at_zero])


def _complex_dtype(x: ArrayLike) -> np.dtype:
    dtype = type_of(x).dtype
    return WHOLE.get(dtype, dtype if dtype in dtypes.COMPLEX else dtypes.c64)


def _places_of_others_than_0(x: Array) -> np.ndarray:
    try:
        return np.flatnonzero(known_nonzero(x))
    except TracerArrayConversionError:
        raise TracerArrayConversionError(
            f"roots: cannot look for leading zeros of a traced {type_of(x)}",
            hint="roots(p, strip_zeros=False) has a known number of results",
        ) from None


@tiered
def _of_companion(p: Array) -> Any:
    """The roots of a polynomial whose first coefficient is not zero."""
    size: Size = type_of(p).shape[0] - 1
    if size < 1:
        return zeros((0,), _complex_dtype(p))
    below = eye(size, k=-1, dtype=type_of(p).dtype)
    top = -p[1:] / p[0]
    return eigvals(concatenate([top[None], below[1:]]))


def _roots_of_any_degree(p: Any) -> Any:
    """All roots, with leading zeros moved to the end: each makes a root 0, which becomes NaN."""
    size = type_of(p).shape[0]
    is_zero = p == 0
    leading = where(is_zero.all(), size, argmax(~is_zero))
    monic_first = p[(arange(size) + leading) % size]
    monic_first = where(leading == size, arange(size) == 0, monic_first)  # any value if all coefficients are 0
    roots = _of_companion(monic_first)
    roots = roots[argsort(-abs(roots))]  # the additional roots, which are 0, last
    return where(arange(size - 1) < size - 1 - leading, roots, complex(np.nan, np.nan))
