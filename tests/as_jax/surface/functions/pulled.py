"""Cotangents of letters at limits, element by element: a sum over results could hide an infinity.

An operation on a column and a row, `jnp.add(X[:, None], Y)`, is tried on all pairs in one array.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.as_jax.surface.functions.letters import Expression, first_lane, is_inexact, scope

_TABLE = re.compile(r"(\w)\[:, None\], (\w)\b(?!\[)")


def pulled(e: Expression) -> list[Any]:
    """The cotangents of the inexact arguments, for the `_cotangent` of each result."""
    function, values = _paired(e)
    places = [k for k, v in enumerate(values) if is_inexact(v)]

    def inexact(*xs: Any) -> list[Any]:
        replacements = dict(zip(places, xs, strict=True))
        leaves = scope()["jax"].tree.leaves(function(*(replacements.get(k, v) for k, v in enumerate(values))))
        return [x for x in map(scope()["jnp"].asarray, leaves) if is_inexact(x)]

    results, pull = scope()["jax"].vjp(inexact, *(values[k] for k in places))
    return [*pull([_cotangent(x) for x in results])]


def _paired(e: Expression) -> tuple[Callable[..., Any], list[Any]]:
    """The function and its arguments; a column and a row become two arrays of one length."""
    table = _TABLE.search(e.text)
    if table is None:
        return e.function, [first_lane(letter) for letter in e.letters]
    column, row = (np.asarray(first_lane(letter)) for letter in table.groups())
    text = _TABLE.sub("column, row", e.text)
    pairs = np.repeat(column, len(row)), np.tile(row, len(column))
    return eval(f"lambda column, row: ({text})", scope()), [*map(scope()["jnp"].asarray, pairs)]


def _cotangent(x: Any) -> Any:
    """Numbers from -1 to 1 without a zero, [*x.shape]; complex ones for complex x."""
    weights = np.cos(1.0 + np.arange(x.size)).reshape(x.shape)
    cotangent = weights * (1 + 0.5j) if np.issubdtype(x.dtype, np.complexfloating) else weights
    return scope()["jnp"].asarray(cotangent.astype(x.dtype))
