"""Conditions on sizes, as expressions."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from rune import dtypes
from rune.dims import Size
from rune.lowering.kernel.expr import Expr, Op, of_size


def less(a: Size, b: Size) -> Expr:
    """Whether a size is below another."""
    return Op("lt", (of_size(a), of_size(b)), dtypes.bool_)


def same(a: Size, b: Size) -> Expr:
    """Whether two sizes are equal."""
    return Op("eq", (of_size(a), of_size(b)), dtypes.bool_)


def every(conditions: Iterable[Expr]) -> Expr:
    """Whether all of one or more conditions hold."""
    return functools.reduce(lambda a, b: Op("and", (a, b), dtypes.bool_), conditions)
