"""What functions of rune.lax take: arrays of one dtype and one shape, without promotion.

A Python scalar adapts to arrays of its kind (a float to floats). Shapes are equal, or of one rank
with sizes 1 that stretch, or there are rank-0 operands beside ranked ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import elementwise, value
from rune.ops.conventions import normalised_axes
from rune.ops.promote import promoted
from rune.typing import ArrayLike

Function = TypeVar("Function", bound=Callable[..., Any])
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
_KINDS = (frozenset({dtypes.bool_}), dtypes.INTEGER, dtypes.FLOATING, dtypes.COMPLEX, dtypes.KEYS)


def _kind(dtype: np.dtype) -> int:
    return next(k for k, members in enumerate(_KINDS) if dtype in members)


def alike(name: str, *xs: ArrayLike) -> list[Array]:
    """Operands of one dtype and one shape or rank 0.

    Errors: DtypeError for dtypes that differ, ShapeError for shapes that do.
    """
    operands = [value(name, x) for x in xs]
    types = [type_of(x) for x in operands]
    strong = {t.dtype for t in types if not t.weak} or {t.dtype for t in types}
    mixed = len(strong) > 1 or len({_kind(t.dtype) for t in types}) > 1
    if mixed:
        raise DtypeError(
            f"{name}: cannot mix dtypes ({', '.join(map(str, types))})",
            hint="functions of rune.lax do not promote; those of rune.numpy do",
        )
    if len({t.ndim for t in types if t.ndim}) > 1:
        raise ShapeError(
            f"{name}: cannot mix ranks ({', '.join(map(str, types))})",
            hint="functions of rune.lax do not add axes; those of rune.numpy do",
        )
    # Beside an array Python's numbers are rounded once, to its dtype, not by way of 32 bits.
    return promoted(name, *(operands if all(t.weak for t in types) else xs))


def given_axes(name: str, x: ArrayLike, axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of `x`, counted from the front. Errors: AxisError for one out of range, or repeated."""
    return normalised_axes(name, numbers(name, axes), type_of(x))


def numbers(name: str, entries: Sequence[int]) -> tuple[int, ...]:
    """A sequence of numbers, as a tuple. Errors: ArgumentError for a number alone."""
    if not isinstance(entries, Iterable):
        raise ArgumentError(
            f"{name}: cannot use {entries!r} (a sequence of numbers required)",
            hint="functions of rune.lax take a tuple also for a single axis",
        )
    return tuple(entries)


def documented(function: Function, name: str, doc: str, call: str, shown: str, facts: str) -> Function:
    """`function` under its public name, with a sentence, facts about its kind, an example."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\n    {facts}\n\n    >>> from rune import lax\n    >>> lax.{call}\n    {shown}\n"
    return function


def alike_facts(takes: str) -> str:
    """The lines of a docstring that hold of each function of operands of one type."""
    return (
        f"Shapes: equal, or [] of Python numbers. Types: all alike, {takes}.\n"
        "    Errors: ArgumentError if an argument is not an array; DtypeError for other or\n"
        "            unequal dtypes; ShapeError for unequal shapes."
    )


def unary(name: str, rule: Unary, doc: str, call: str, shown: str, takes: str = "floats or complex numbers") -> Unary:
    """A function of one array, documented by a sentence and an example."""

    def function(x: ArrayLike) -> Any:
        return rule(value(name, x))

    facts = elementwise(takes, "DtypeError for other dtypes")
    return documented(function, name, doc, f"{name}({call})", shown, facts)


def binary(name: str, rule: Binary, doc: str, call: str, shown: str, takes: str = "numbers") -> Binary:
    """A function of two arrays that are alike, documented by a sentence and an example."""

    def function(x: ArrayLike, y: ArrayLike) -> Any:
        return rule(*alike(name, x, y))

    return documented(function, name, doc, f"{name}({call})", shown, alike_facts(takes))


def weak(text: str) -> str:
    """How a number computed from Python floats prints."""
    return f"Array({text}, f32*[], cpu:0)"


def whole(text: str) -> str:
    """How a number computed from Python integers prints."""
    return f"Array({text}, i32*[], cpu:0)"


def truth(text: str) -> str:
    """How a truth value prints."""
    return f"Array({text}, bool[], cpu:0)"
