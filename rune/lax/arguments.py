"""Arguments of functions in rune.lax: arrays of one dtype and one shape, without promotion.

A Python scalar adapts to arrays of its kind (a float to floats). Shapes are equal, or of the same
rank with sizes 1 that stretch; operands of rank 0 go with any shape.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy import docstrings
from rune.numpy.arguments import refuse, static_size, value
from rune.ops.conventions import normalised_axes
from rune.ops.elementwise_rows import Row
from rune.ops.promote import promoted
from rune.typing import ArrayLike

N = TypeVar("N", bound=Size)
Unary = Callable[[ArrayLike], Array]
Binary = Callable[[ArrayLike, ArrayLike], Array]
_KINDS = (frozenset({dtypes.bool_}), dtypes.INTEGER, dtypes.FLOATING, dtypes.COMPLEX, dtypes.KEYS)


def _kind(dtype: np.dtype) -> int:
    return next(k for k, members in enumerate(_KINDS) if dtype in members)


def alike(name: str, *xs: ArrayLike) -> list[Array]:
    """Operands of one dtype and one shape or rank 0.

    Errors: DtypeError if dtypes differ, ShapeError if shapes differ.
    """
    operands = [value(name, x) for x in xs]
    types = [type_of(x) for x in operands]
    strong = {t.dtype for t in types if not t.weak} or {t.dtype for t in types}
    is_mixed = len(strong) > 1 or len({_kind(t.dtype) for t in types}) > 1
    if is_mixed:
        raise DtypeError(
            f"{name}: cannot mix dtypes ({', '.join(map(str, types))})",
            hint="functions of rune.lax do not promote; those of rune.numpy do",
        )
    if len({t.ndim for t in types if t.ndim}) > 1:
        raise ShapeError(
            f"{name}: cannot mix ranks ({', '.join(map(str, types))})",
            hint="functions of rune.lax do not add axes; those of rune.numpy do",
        )
    # Next to an array, Python numbers are rounded once, directly to its dtype and not to 32 bits.
    return promoted(name, *(operands if all(t.weak for t in types) else xs))


def given_axes(name: str, x: ArrayLike, axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of `x`, counted from the front. Errors: AxisError for one out of range, or repeated."""
    return normalised_axes(name, numbers(name, axes), type_of(x))


def numbers(name: str, entries: Sequence[N]) -> tuple[N, ...]:
    """A sequence of integers and sizes, as a tuple; NumPy's integers become Python's.

    Errors: ArgumentError for a bare number, and for an entry that is not an integer.
    """
    if not isinstance(entries, Iterable):
        raise ArgumentError(
            f"{name}: cannot use {entries!r} (a sequence of numbers required)",
            hint="functions of rune.lax take a tuple even for a single axis",
        )
    return tuple(cast(N, static_size(name, "a number", entry)) for entry in entries)


def unary(row: Row) -> Unary:
    """The function of one array that a row of the table describes."""

    def function(x: ArrayLike) -> Array:
        return row.rule(value(row.name, x))

    return _documented_unary(function, row)


def _documented_unary(function: docstrings.Function, row: Row) -> docstrings.Function:
    """The function, with a docstring from its row of the table."""
    facts = docstrings.elementwise(row.takes, "DtypeError for other dtypes")
    return docstrings.documented_row(function, row.name, row, facts, "lax")


class AccuracyMode(enum.Enum):
    """Names of accuracies, for code that passes them; they have no effect.

    >>> from rune import lax
    >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(1., f32*[], cpu:0)
    """

    HIGHEST = 1
    DEFAULT = 2


def inexact_unary(row: Row) -> Callable[..., Array]:
    """As `unary`, for a rounded result: it also accepts JAX's `accuracy`, which has no effect."""

    def function(x: ArrayLike, *, accuracy: AccuracyMode | None = None) -> Array:
        refuse(row.name, accuracy=None if isinstance(accuracy, AccuracyMode) else accuracy)
        return row.rule(value(row.name, x))

    return _documented_unary(function, row)


def binary(row: Row) -> Binary:
    """The function of two arrays of one shape and dtype that a row of the table describes."""

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return row.rule(*alike(row.name, x, y))

    return _documented(function, row)


def named_pair(row: Row) -> Binary:
    """As `binary`, for functions whose arguments JAX also accepts by name."""

    def function(x1: ArrayLike, x2: ArrayLike) -> Array:
        return row.rule(*alike(row.name, x1, x2))

    return _documented(function, row)


def _documented(function: Binary, row: Row) -> Binary:
    return docstrings.documented_row(function, row.name, row, docstrings.alike(row.takes), "lax")
