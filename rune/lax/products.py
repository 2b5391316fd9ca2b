"""Products of arrays: dot_general and its short forms.

Sums are accumulated in f32 where elements have fewer bits. `precision` is accepted and has no
effect: every product is computed in the precision of its dtype.
Source: XLA operation semantics, DotGeneral.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal_like, type_of
from rune.errors import ArgumentError, ShapeError
from rune.lax.arguments import given_axes
from rune.numpy.arguments import listed, resolved, value
from rune.ops import scalars
from rune.ops.complex_numbers import real_dtype
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class _Named(enum.Enum):
    """Members that print by their names, as JAX's do."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithmPreset(_Named):
    """Names of ways to compute products, for code that passes them as `precision`.

    They have no effect: operands are not rounded, and sums are accumulated in f32 or wider.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot(rnp.ones(2), rnp.ones(2), precision=lax.DotAlgorithmPreset.F32_F32_F32)
    Array(2., f32[], cpu:0)
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16


class Precision(_Named):
    """Names of precisions, for code that passes them: all of them mean the highest.

    Errors: ValueError for a text that is not a precision in JAX.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot(rnp.ones(2), rnp.ones(2), precision=lax.Precision("highest"))
    Array(2., f32[], cpu:0)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        name = _PRECISIONS.get("default" if value is None else value)
        return None if name is None else cls[name]


_PRECISIONS: dict[object, str] = {
    "default": "DEFAULT",
    "bfloat16": "DEFAULT",
    "fastest": "DEFAULT",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "highest": "HIGHEST",
    "float32": "HIGHEST",
}


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
    preferred_element_type:  the dtype of sums and result; by default that of the operand with the
                             higher precision (bf16 times f32 is f32, int8 times uint8 is int8)
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: the result's axes are the batch axes, the other axes of lhs, the other axes of rhs.
    Types:  any; a sum of bools is true if any of them is.
    Errors: ShapeError for sizes that differ; DtypeError where complex numbers would become real.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.dot_general(rnp.ones((2, 3)), rnp.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    if out_sharding is not None:
        how = {"preferred_element_type": preferred_element_type}
        return resolved(dot_general, out_sharding, lhs, rhs, dimension_numbers, **how)
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
    joint, wide = _dtypes_of_product(type_of(a).dtype, type_of(b).dtype)
    result_dtype = joint if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    dtypes.require_whole("dot_general", wide, result_dtype)
    wide = result_dtype if result_dtype.itemsize > wide.itemsize else wide
    return ops.cast(_batch_first(ops.cast(a, wide), ops.cast(b, wide), numbers), result_dtype)


def _dtypes_of_product(a: np.dtype, b: np.dtype) -> tuple[np.dtype, np.dtype]:
    """The dtype of a product of numbers of two dtypes, and the dtype in which it is computed.

    It is that of the operand with the higher precision, decided in turn by: being complex, larger
    exponents, longer mantissas, more bits, having a sign. Two half types are computed in f32.
    Source: XLA, primitive_util.h, HigherPrecisionType.
    """
    joint = max(a, b, key=_precision)
    return joint, dtypes.f32 if a != b and {a, b} <= scalars.HALVES else joint


def _precision(dtype: np.dtype) -> tuple[bool, int, int, int, bool]:
    part = real_dtype(dtype)
    is_float = part in dtypes.FLOATING
    info = ml_dtypes.finfo(part) if is_float else None
    exponents, mantissa = (int(info.maxexp), int(info.nmant)) if info is not None else (-1, -1)
    bits = 1 if dtype == dtypes.bool_ else scalars.bit_width(part)
    return dtype in dtypes.COMPLEX, exponents, mantissa, bits, dtype not in dtypes.UNSIGNED


def _batch_first(a: ArrayLike, b: ArrayLike, numbers: Any) -> Any:
    """The product; for bools, whether any pair of elements is true."""
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
    """The product of vectors and matrices, or the one that `dimension_numbers` describe.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: [K] or [M, K], times [K] or [K, N] -> [], [M], [N] or [M, N].
    Types:  as dot_general.
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
    how = precision, preferred_element_type
    return dot_general(a, b, dimension_numbers, *how, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrices times matrices; the leading axes are the batch axes of both.

    Shapes: lhs [*B, M, K], rhs [*B, K, N] -> [*B, M, N]. Types: as dot_general.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

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
