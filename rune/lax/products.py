"""Products of arrays: dot_general and its short forms.

Sums are kept in f32 where elements have fewer bits. `precision` is taken and has no effect: every
product is computed in the precision of its dtype.
Source: XLA operation semantics, DotGeneral.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal_like, type_of
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.lax.arguments import given_axes
from rune.numpy.arguments import laid_out, listed, value
from rune.numpy.types import finfo
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class DotAlgorithmPreset(enum.Enum):
    """Names of ways to compute products, for code that passes them as `precision`.

    They have no effect: operands are not rounded, and sums are kept in f32 or wider.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot(rnp.ones(2), rnp.ones(2), precision=lax.DotAlgorithmPreset.F32_F32_F32)
    Array(2., f32[], cpu:0)
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 9
    BF16_BF16_F32_X6 = 10
    BF16_BF16_F32_X9 = 11
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 14
    F64_F64_F64 = 15


class Precision(enum.Enum):
    """Names of precisions, for code that passes them: all of them mean the highest.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot(rnp.ones(2), rnp.ones(2), precision=lax.Precision.DEFAULT)
    Array(2., f32[], cpu:0)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


PrecisionLike = Any


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Sums of products over contracted axes, for each position of the batch axes.

    dimension_numbers:  ((contracted of lhs, of rhs), (batch of lhs, of rhs))
    preferred_element_type:  the dtype of sums and result; that of the operands by default
    out_sharding: a sharding that the result is given; None leaves it to others.
    Shapes: the result's axes are the batch axes, the others of lhs, the others of rhs.
    Types:  that of the operand whose dtype holds more, or preferred_element_type; a sum of bools is
            whether any is true.
    Errors: DtypeError for operands of dtypes of which neither holds more, as i8 and f8 do not;
            ShapeError for sizes that differ.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot_general(rnp.ones((2, 3)), rnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    a, b = value("dot_general", lhs), value("dot_general", rhs)
    pairs = [
        listed("dot_general", "dimension_numbers", pair)
        for pair in listed("dot_general", "dimension_numbers", dimension_numbers)
    ]
    if [len(pair) for pair in pairs] != [2, 2]:
        raise ArgumentError(
            f"dot_general: cannot use dimension_numbers={dimension_numbers!r} "
            "(((contracted, contracted), (batch, batch)) required)"
        )
    (ca, cb), (ba, bb) = pairs
    numbers = (
        (given_axes("dot_general", a, ca), given_axes("dot_general", b, cb)),
        (given_axes("dot_general", a, ba), given_axes("dot_general", b, bb)),
    )
    kind = _wider(a, b)
    wanted = kind if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    wide = wanted if wanted.itemsize > kind.itemsize else kind
    return laid_out(ops.cast(_batch_first(ops.cast(a, wide), ops.cast(b, wide), numbers), wanted), out_sharding)


def _wider(a: Array, b: Array) -> np.dtype:
    """The dtype of a product of two: that of the operand with more to hold, as XLA has it.

    Errors: DtypeError for dtypes of which neither holds more than the other.
    """
    first, second = type_of(a).dtype, type_of(b).dtype
    if first == second:
        return first
    if (held := _held(first)) == (other := _held(second)):
        raise DtypeError(f"dot_general: cannot multiply {type_of(a)} by {type_of(b)} (neither dtype holds more)")
    return first if held > other else second


def _held(dtype: np.dtype) -> tuple[int, ...]:
    """What a dtype can hold: imaginary parts, exponents, digits, bits, signs."""
    if dtype in dtypes.INEXACT:
        limits = finfo(dtype)
        return dtype in dtypes.COMPLEX, limits.maxexp, limits.nmant
    bits = 1 if dtype == dtypes.bool_ else dtypes.itemsize_bits(dtype)
    return False, -1, -1, bits, dtype not in dtypes.UNSIGNED


def _batch_first(a: ArrayLike, b: ArrayLike, numbers: Any) -> Any:
    """The product; of bools, whether any pair of elements is true."""
    if type_of(a).dtype == type_of(b).dtype == dtypes.bool_:
        counts = _batch_first(ops.cast(a, dtypes.i32), ops.cast(b, dtypes.i32), numbers)
        return ops.ne(counts, literal_like(0, counts))
    return ops.dot_general(a, b, dimension_numbers=numbers)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The product of vectors and matrices, or what `dimension_numbers` say.

    out_sharding: a sharding that the result is given; None leaves it to others.
    Shapes: [K] or [M, K], times [K] or [K, N] -> [], [M], [N] or [M, N].
    Types:  one numeric dtype, kept, or preferred_element_type.
    Errors: ShapeError for operands that are neither vectors nor matrices.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot(rnp.ones(3), rnp.ones(3))
    Array(3., f32[], cpu:0)
    """
    a, b = value("dot", lhs), value("dot", rhs)
    if dimension_numbers is None:
        ranks = type_of(a).ndim, type_of(b).ndim
        if not all(1 <= r <= 2 for r in ranks):
            raise ShapeError(
                f"dot: cannot multiply {type_of(a)} by {type_of(b)} (vectors or matrices required)",
                hint="dot_general takes batch axes; rune.numpy.matmul broadcasts them",
            )
        dimension_numbers = (((ranks[0] - 1,), (0,)), ((), ()))
    return laid_out(dot_general(a, b, dimension_numbers, precision, preferred_element_type), out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrices times matrices, the leading axes being the same batch axes of both.

    Shapes: lhs [*B, M, K], rhs [*B, K, N] -> [*B, M, N]. Types: one numeric dtype, kept.
    Errors: ArgumentError if an argument is not an array; DtypeError for operands of different
            dtypes; ShapeError for shapes that do not fit.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.batch_matmul(rnp.ones((5, 2, 3)), rnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    a, b = value("batch_matmul", lhs), value("batch_matmul", rhs)
    ndim = type_of(a).ndim
    if ndim < 2 or type_of(b).ndim != ndim:
        raise ShapeError(f"batch_matmul: cannot multiply {type_of(a)} by {type_of(b)} (equal ranks, 2 or more)")
    batch = tuple(range(ndim - 2))
    return dot_general(a, b, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)
