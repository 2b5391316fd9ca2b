"""What the functions of rune.numpy.linalg do with their arguments before the real work.

Integers and booleans become f32 as everywhere; the half types, which LAPACK does not know, are
computed in f32 and rounded back. Where NumPy raises for what is not finite, or has no answer, the
matrices concerned give NaN, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, value
from rune.ops import conventions as c
from rune.ops.matrix_helpers import LAPACK
from rune.ops.promote import broadcast_shape, broadcast_to


def computing(name: str, *xs: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The arrays in one dtype that LAPACK knows, and what gives results the dtype asked for."""
    found = c.same_dtype(name, *(inexact(name, value(name, x)) for x in xs))
    dtype = type_of(found[0]).dtype
    if dtype in LAPACK:
        return [_strong(x) for x in found], lambda out: out
    wide = [c.astype(x, dtypes.f32) for x in found]
    return wide, lambda out: _narrowed(out, dtype)


def _strong(x: Any) -> Any:
    return c.astype(x, type_of(x).dtype)


def _narrowed(out: Any, dtype: np.dtype) -> Any:
    if isinstance(out, tuple):
        parts = [_narrowed(x, dtype) for x in out]
        return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
    return c.astype(out, dtype) if type_of(out).dtype == dtypes.f32 else out


def matrices(name: str, a: Any) -> ArrayType:
    """The type of `a`. Errors: ShapeError below rank 2."""
    found = type_of(a)
    if found.ndim < 2:
        raise ShapeError(f"{name}: cannot take {found} (matrices required: rank 2 at least)")
    return found


def pair(name: str, given: Any, what: str) -> tuple[Any, Any]:
    """A tuple of two, as a factorisation gives it. Errors: ArgumentError for anything else."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(f"{name}: cannot use {type(given).__name__} (a pair {what}, required)")
    return given[0], given[1]


def square(name: str, a: Any) -> ArrayType:
    """The type of `a`. Errors: ShapeError unless its last two axes are equal."""
    found = matrices(name, a)
    if found.shape[-2] != found.shape[-1]:
        raise ShapeError(
            f"{name}: cannot take {found} (square matrices required: "
            f"{found.shape[-2]} rows, {found.shape[-1]} columns)"
        )
    return found


def same_batch(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Matrices with their leading axes broadcast together."""
    first, second = type_of(a).shape, type_of(b).shape
    lead = broadcast_shape(name, first[:-2], second[:-2])
    return (
        broadcast_to(name, a, (*lead, *first[-2:])),
        broadcast_to(name, b, (*lead, *second[-2:])),
    )
