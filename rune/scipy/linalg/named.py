"""Matrices with a name and a size, and products that assemble matrices.

Those that depend only on a size are constants. Whole numbers that fit in 64 bits are computed in
Python, larger ones in NumPy (binomials.py), in f32 where SciPy has f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import rank, require_room, static_int, value
from rune.records import dataclass
from rune.scipy.linalg import binomials
from rune.typing import ArrayLike, DTypeLike


def _size(name: str, n: int, least: int = 0) -> int:
    size = static_int(name, "a size", n)
    if size < least:
        raise ArgumentError(f"{name}: cannot make a matrix of size {size} (at least {least})")
    require_room(name, size, size)
    return size


def _real(numbers: np.ndarray) -> Array:
    return rnp.asarray(np.asarray(numbers, np.float64), dtypes.canonical(dtypes.f64))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix of ones and minus ones with orthogonal rows; n is a power of two.

    Shapes: [n, n]. Types: dtype, i32 by default.
    Errors: ArgumentError for another n.

    >>> from rune.scipy import linalg
    >>> linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], i32[2,2], cpu:0)
    """
    size = _size("hadamard", n, 1)
    if size & (size - 1):
        raise ArgumentError(f"hadamard: cannot make size {size} (a power of 2 required)")
    i, j = np.indices((size, size))
    odd = np.bitwise_count(i & j) % 2
    return rnp.asarray(1 - 2 * odd.astype(int), dtypes.as_dtype(dtype))


def hilbert(n: int) -> Array:
    """1 / (i + j + 1), a matrix of very large condition.

    Shapes: [n, n]. Types: f32.
    Errors: ArgumentError if `n` is not an integer.

    >>> from rune.scipy import linalg
    >>> linalg.hilbert(2)[0]
    Array([1. , 0.5], f32[2], cpu:0)
    """
    size = _size("hilbert", n)
    i, j = np.indices((size, size))
    return _real(1.0 / (i + j + 1))


def invhilbert(n: int, exact: bool = False) -> Array:
    """The inverse of Hilbert's matrix: whole numbers, in a floating dtype unless `exact`.

    Shapes: [n, n]. Types: f32, or i64 if exact.
    Errors: ArgumentError for exact numbers beyond 64 bits, n > 14.
    Source: Choi 1983, American Mathematical Monthly 90(5).

    >>> from rune.scipy import linalg
    >>> linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], f32[2,2], cpu:0)
    """
    size = _size("invhilbert", n)
    if not exact:
        return _in_dtype(binomials.inverse_of_hilbert, size)
    if size > 14:
        raise ArgumentError(f"invhilbert: cannot hold size {size} exactly (at most 14)")
    return _exact([[_inverse_of_hilbert(size, i, j) for j in range(size)] for i in range(size)])


def _inverse_of_hilbert(n: int, i: int, j: int) -> int:
    both = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
    return (-1) ** (i + j) * (i + j + 1) * both


def _exact(numbers: list[list[int]]) -> Array:
    size = len(numbers)
    return rnp.asarray(np.array(numbers, np.int64).reshape(size, size), dtypes.i64)


def _in_dtype(matrix: Callable[[int, np.dtype], np.ndarray], size: int) -> Array:
    """A matrix of floats, in the default floating dtype."""
    dtype = dtypes.canonical(dtypes.f64)
    with np.errstate(over="ignore"):
        return rnp.asarray(matrix(size, dtype), dtype)


@dataclass(frozen=True, slots=True)
class _Kind:
    """An integer of a matrix, from size, row and column, and all of them in a dtype."""

    entry: Callable[[int, int, int], int]
    matrix: Callable[[int, np.dtype], np.ndarray]

    def of_size(self, size: int, is_exact: bool) -> Array:
        """The matrix, of integers if it is exact."""
        if not is_exact:
            return _in_dtype(self.matrix, size)
        return _exact([[self.entry(size, i, j) for j in range(size)] for i in range(size)])


def _of_kind(name: str, kind: str, kinds: Mapping[str, _Kind]) -> _Kind:
    if kind not in kinds:
        raise ArgumentError(f"{name}: cannot use kind {kind!r} ('symmetric', 'lower' or 'upper' required)")
    return kinds[kind]


def _signed(n: int, i: int, j: int) -> int:
    return (-1) ** (i + j) * math.comb(i, j)


def _gram(n: int, i: int, j: int) -> int:
    # The inverse of the lower factor is on the right.
    return sum(_signed(n, k, i) * _signed(n, k, j) for k in range(n))


_PASCAL = {
    "symmetric": _Kind(lambda n, i, j: math.comb(i + j, i), binomials.symmetric),
    "lower": _Kind(lambda n, i, j: math.comb(i, j), binomials.lower),
    "upper": _Kind(lambda n, i, j: math.comb(j, i), lambda n, dtype: binomials.lower(n, dtype).T),
}
_INVPASCAL = {
    "symmetric": _Kind(_gram, binomials.gram_of_signed),
    "lower": _Kind(_signed, binomials.signed),
    "upper": _Kind(lambda n, i, j: _signed(n, j, i), lambda n, dtype: binomials.signed(n, dtype).T),
}


def pascal(n: int, kind: str = "symmetric", exact: bool = True) -> Array:
    """Pascal's matrix of binomial coefficients: "symmetric" (i + j over i), "lower" or "upper".

    Shapes: [n, n].
    Types:  i64, or floating unless `exact` (and beyond 64 bits, n > 34); what leaves that is inf.
    Errors: ArgumentError for an unknown kind.

    >>> from rune.scipy import linalg
    >>> linalg.pascal(3, "lower")
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 2, 1]], i64[3,3], cpu:0)
    """
    size = _size("pascal", n)
    return _of_kind("pascal", kind, _PASCAL).of_size(size, exact and size < 35)


def invpascal(n: int, kind: str = "symmetric", exact: bool = True) -> Array:
    """The inverse of Pascal's matrix.

    Shapes: [n, n].
    Types:  i64, or floating unless `exact` (and beyond 64 bits, n > 30); what leaves that is ±inf.
    Errors: ArgumentError for an unknown kind.

    >>> from rune.scipy import linalg
    >>> linalg.invpascal(2)
    Array([[ 2, -1],
           [-1,  1]], i64[2,2], cpu:0)
    """
    size = _size("invpascal", n)
    return _of_kind("invpascal", kind, _INVPASCAL).of_size(size, exact and size < 31)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: exp(-2πi jk / n).

    scale:  None; "sqrtn" divides by √n, "n" by n.
    Shapes: [n, n]. Types: complex, c64 by default.
    Errors: ArgumentError for an unknown scale; DtypeError for a dtype that is not complex.

    >>> from rune.scipy import linalg
    >>> linalg.dft(2).real.round(4)
    Array([[ 1.,  1.],
           [ 1., -1.]], f32[2,2], cpu:0)
    """
    size = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ArgumentError(f"dft: cannot use scale {scale!r} (None, 'sqrtn' or 'n' required)")
    i, j = np.indices((size, size))
    matrix = np.exp(-2j * np.pi * ((i * j) % max(size, 1)) / max(size, 1))
    matrix = matrix / {None: 1.0, "sqrtn": math.sqrt(max(size, 1)), "n": max(size, 1)}[scale]
    kind = dtypes.canonical(dtypes.c128) if dtype is None else dtypes.as_dtype(dtype)
    if kind not in dtypes.COMPLEX:
        raise DtypeError(f"dft: cannot make a matrix of {dtypes.short(kind)} (complex dtype required)")
    return rnp.asarray(matrix, dtypes.canonical(kind))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of contrasts: orthonormal rows, each orthogonal to ones.

    full:   whether the row of 1/√n stands first.
    Shapes: [n - 1, n], or [n, n] if full. Types: f32.
    Errors: ArgumentError if `n` is not an integer.

    >>> from rune.scipy import linalg
    >>> linalg.helmert(2).round(4)
    Array([[ 0.7071, -0.7071]], f32[1,2], cpu:0)
    """
    size = _size("helmert", n)
    i, j = np.indices((size, size))
    matrix = np.where(j < i, 1.0, np.where(i == j, -i * 1.0, 0.0))
    matrix[:1] = 1.0
    matrix = matrix / np.sqrt(np.where(i == 0, max(size, 1), i * (i + 1)))
    return _real(matrix if full else matrix[1:])


# --- blocks and products ----------------------------------------------------------------------


def block_diag(*arrs: ArrayLike) -> Array:
    """The matrices along the diagonal of a matrix that is zero elsewhere; vectors count as rows.

    Shapes: [*B, M_k, N_k] each -> [*B, ΣM, ΣN].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.block_diag(rnp.ones((1, 1)), rnp.ones((1, 2)))
    Array([[1., 0., 0.],
           [0., 1., 1.]], f32[2,3], cpu:0)
    """
    if not arrs:
        return rnp.zeros((1, 0))
    blocks = [rnp.atleast_2d(value("block_diag", x)) for x in arrs]
    lead = rnp.broadcast_shapes(*(type_of(x).shape[:-2] for x in blocks))
    dtype = rnp.result_type(*blocks)
    width = sum(type_of(x).shape[-1] for x in blocks)
    rows, start = [], 0
    for block in blocks:
        m, n = type_of(block).shape[-2:]
        block = rnp.broadcast_to(block.astype(dtype), (*lead, m, n))
        sides = [(0, 0)] * len(lead) + [(0, 0), (start, width - start - n)]
        rows.append(rnp.pad(block, sides))
        start += n
    return rnp.concatenate(rows, axis=-2)


def khatri_rao(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker products of columns. Shapes: [*B, M, K], [*B, N, K] -> [*B, M N, K].

    Types:  any, unchanged.
    Errors: ShapeError if the numbers of columns differ.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.khatri_rao(rnp.array([[1, 2]]), rnp.array([[3, 4], [5, 6]]))
    Array([[ 3,  8],
           [ 5, 12]], i32[2,2], cpu:0)
    """
    x, y = value("khatri_rao", a), value("khatri_rao", b)
    if rank(x) < 2 or rank(y) < 2 or type_of(x).shape[-1] != type_of(y).shape[-1]:
        raise ShapeError(
            f"khatri_rao: cannot multiply {type_of(x)} and {type_of(y)} "
            "(matrices with equal numbers of columns required)"
        )
    both = rnp.expand_dims(x, -2) * rnp.expand_dims(y, -3)
    *lead, m, n, k = type_of(both).shape
    return rnp.reshape(both, (*lead, m * n, k))


tri, tril, triu = rnp.tri, rnp.tril, rnp.triu
kron = rnp.kron
