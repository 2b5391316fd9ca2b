"""A scatter by atomic changes: one thread for each update, in any order.

Integers give the same result in every order. Sums of floats differ in their rounding, so they are
done atomically only if the user allows them to differ between runs.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.check import COMBINE
from rune.lowering.written import Loops


def is_atomic(target: Target, combine: str, dtype: np.dtype, reproducible: bool) -> bool:
    """Whether a scatter that combines in this way may be done atomically."""
    order_shows = dtype not in dtypes.INTEGER
    return has_atomic(target, combine, dtype) and not (reproducible and order_shows)


def change_atomically(combine: str, rows: Value, places: Value, updates: Value) -> Value:
    """Rows [S, W] changed at places [U] by updates [U, W], in any order."""
    return scatter_atomically(rows, places, updates, combine=combine)


def _type(rows: ArrayType, places: ArrayType, updates: ArrayType, *, combine: str) -> ArrayType:
    return rows


def _reference(rows: np.ndarray, places: np.ndarray, updates: np.ndarray, *, combine: str) -> np.ndarray:
    result, inside = rows.copy(), places < len(rows)
    COMBINE[combine].function.at(result, places[inside], updates[inside])
    return result


def _loops(rows: ArrayType, places: ArrayType, updates: ArrayType, *, combine: str) -> Loops:
    (size, width), (count,) = rows.shape, places.shape
    return Loops(
        f"""{{
        for u in {count} grid {{ for w in {width} grid {{
          place: i32 in 0..{size} = x1[u]
          if index(place) < index({size}) {{ atomic y0[({width})*place + w] {combine}= x2[({width})*u + w] }}
        }} }} }}""",
        (("x0", "y0"),),
    )


scatter_atomically = Primitive("scatter_atomically", "indexing", _type, _reference, lower=Written(_loops))
