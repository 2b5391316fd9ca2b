"""How the functions of rune.numpy.linalg prepare their arguments.

Integers and booleans become f32 as everywhere; the half types, which LAPACK does not have, are
computed in f32 and rounded back. Where NumPy raises, because input is not finite or no result
exists, the matrices concerned give NaN and the others their results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.backends.cpu.meanings import LARGE, means
from rune.core.interpreter import is_evaluating, type_of
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, value
from rune.numpy.composites import is_large
from rune.ops import conventions as c
from rune.ops.matrix_helpers import LAPACK, adjoint, number
from rune.ops.promote import broadcast_shape, broadcast_to
from rune.typing import ArrayLike

T = TypeVar("T")


def computing(name: str, *xs: ArrayLike) -> tuple[list[Array], Callable[[T], T]]:
    """The arrays in one dtype that LAPACK has, and a function that rounds results back."""
    operands = [inexact(name, x) for x in c.same_dtype(name, *(value(name, x) for x in xs))]
    dtype = type_of(operands[0]).dtype
    if dtype in LAPACK:
        return [_strong(x) for x in operands], lambda out: out
    wide = [c.astype(x, dtypes.f32) for x in operands]
    return wide, lambda out: _narrowed(out, dtype)


def _strong(x: ArrayLike) -> Array:
    return c.astype(x, type_of(x).dtype)


def _narrowed(out: Any, dtype: np.dtype) -> Any:
    if isinstance(out, tuple):
        parts = [_narrowed(x, dtype) for x in out]
        return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
    return c.astype(out, dtype) if type_of(out).dtype == dtypes.f32 else out


def symmetrised(x: Array) -> Array:
    """(x + xᴴ) / 2."""
    # Where arrays are CPU arrays and no check is on, one routine computes what three operations do.
    if is_evaluating() and is_large((x,), least=LARGE) and means().is_routine(x.buffer):
        return Array(means().means(x.buffer), x.type, x.place)
    return ops.mul(ops.add(x, adjoint(x)), number(0.5, x))


def matrices(name: str, a: ArrayLike) -> ArrayType:
    """The type of `a`. Errors: ShapeError for a rank below 2."""
    a_type = type_of(a)
    if a_type.ndim < 2:
        raise ShapeError(f"{name}: cannot take {a_type} (matrices required: rank 2 at least)")
    return a_type


def pair(name: str, factors: object, description: str) -> tuple[Any, Any]:
    """A pair, as a factorisation returns it. Errors: ArgumentError for anything else."""
    if not isinstance(factors, tuple | list) or len(factors) != 2:
        raise ArgumentError(f"{name}: cannot use {type(factors).__name__} (a pair {description}, required)")
    return factors[0], factors[1]


def square(name: str, a: ArrayLike) -> ArrayType:
    """The type of `a`. Errors: ShapeError unless its last two axes are equal."""
    a_type = matrices(name, a)
    if a_type.shape[-2] != a_type.shape[-1]:
        raise ShapeError(
            f"{name}: cannot take {a_type} (square matrices required: "
            f"{a_type.shape[-2]} rows, {a_type.shape[-1]} columns)"
        )
    return a_type


def same_batch(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Matrices with their leading axes broadcast together."""
    first, second = type_of(a).shape, type_of(b).shape
    lead = broadcast_shape(name, first[:-2], second[:-2])
    return (broadcast_to(name, a, (*lead, *first[-2:])), broadcast_to(name, b, (*lead, *second[-2:])))


def chosen(name: str, subset: tuple[int, int], count: Size) -> tuple[int, int]:
    """The first and the last of the eigenvalues, both included.

    Errors: ArgumentError if they are out of order or out of range.
    """
    first, last = subset
    if not 0 <= first <= last < count:
        raise ArgumentError(
            f"{name}: cannot take the eigenvalues {first} to {last} of {count}",
            hint="subset_by_index=(first, last), with 0 <= first <= last < N",
        )
    return first, last
