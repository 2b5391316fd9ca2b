"""Symbolic sizes of a program, and what they are in one call of it.

A program traced for f32[n] may be called with f32[3], or inside another program with f32[m]. The
sizes are read off the arguments' types, and parameters that mention them are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from rune.core.program import Program
from rune.core.types import ArrayType
from rune.dims import Dim, Size, coefficient, divides, substitute, symbols

Sizes = Mapping[str, Size]


def match_sizes(declared: Sequence[ArrayType], given: Sequence[ArrayType]) -> dict[str, Size]:
    """What the declared sizes are in the given types; empty where all are what they are.

    An axis that is a size itself decides it; else one that is affine in it, as 2*n + 1.
    """
    found: dict[str, Size] = {}
    pairs = [p for p in _pairs(declared, given) if p[0] != p[1]]
    for dim, size in pairs:
        if str(dim).isidentifier():
            found.setdefault(str(dim), size)
    for dim, size in pairs:
        found.update(_solved(dim, size, found))
    return found


def _pairs(
    declared: Sequence[ArrayType], given: Sequence[ArrayType]
) -> Iterator[tuple[Dim, Size]]:
    for wanted, type in zip(declared, given, strict=True):
        if wanted is not type:
            for dim, size in zip(wanted.shape, type.shape, strict=True):
                if isinstance(dim, Dim):
                    yield dim, size


def _solved(dim: Dim, size: Size, known: Sizes) -> dict[str, Size]:
    """The one size of `dim` that is not known yet, if `dim` is affine in it."""
    names = {s.name for s in symbols(dim)} - known.keys()
    if len(names) != 1:
        return {}
    (name,) = names
    left = substitute(dim, known)
    factor, rest = coefficient(left, name), substitute(left, {name: 0})
    if not isinstance(factor, int) or factor == 0 or not divides(factor, size - rest):
        return {}
    return {name: (size - rest) // factor}


def with_sizes(value: Any, sizes: Sizes) -> Any:
    """A static parameter with the sizes filled in.

    A program stays as it is: it is matched against its own arguments when it is evaluated.
    """
    if isinstance(value, Dim):
        return substitute(value, sizes)
    if isinstance(value, tuple):
        return tuple(with_sizes(item, sizes) for item in value)
    if is_dataclass(value) and not isinstance(value, type | Program):
        return replace(value, **{f.name: with_sizes(getattr(value, f.name), sizes)
                                 for f in fields(value)})  # fmt: skip
    return value


def params_with_sizes(params: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
    """The parameters of an equation with the sizes filled in."""
    return {k: with_sizes(v, sizes) for k, v in params.items()} if sizes else params


def type_with_sizes(type: ArrayType, sizes: Sizes) -> ArrayType:
    """A type with the sizes filled in."""
    return type.with_shape(tuple(substitute(d, sizes) for d in type.shape)) if sizes else type
