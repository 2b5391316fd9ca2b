"""Lists of arrays and numbers as one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Dim
from rune.errors import ArgumentError
from rune.ops import conventions as c
from rune.ops.movement import concatenate
from rune.ops.promote import stands_for_array


def stacked(name: str, rows: Sequence[Operand]) -> Value:
    """Rows of one shape along a new first axis, in the dtype that they promote to.

    name:   the calling operation
    Errors: ArgumentError for rows of different shapes.
    """
    promoted_rows = c.same_dtype(name, *rows)
    types = list(dict.fromkeys(str(type_of(row)) for row in promoted_rows))
    if len({type_of(row).shape for row in promoted_rows}) != 1:
        raise ArgumentError(f"{name}: cannot stack rows {', '.join(types)} (shapes differ)")
    row_arrays = [c.expand_dims(row, 0) for row in promoted_rows]
    return row_arrays[0] if len(row_arrays) == 1 else concatenate(*row_arrays, axis=0)


def holds_arrays(x: Sequence[object]) -> bool:
    """Whether nested lists contain an array, a traced value or a symbolic size."""
    waiting = [x]
    while waiting:
        for item in waiting.pop():
            is_array = isinstance(getattr(item, "type", None), ArrayType)
            if is_array or isinstance(item, Dim) or stands_for_array(item):
                return True
            if isinstance(item, list | tuple):
                waiting.append(item)
    return False


def joined(name: str, x: Operand | list | tuple) -> Operand:
    """Nested lists as an array; anything else unchanged. Errors: ArgumentError for ragged lists."""
    if not isinstance(x, list | tuple):
        return x
    if holds_arrays(x):
        return stacked(name, [joined(name, row) for row in x])
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ArgumentError(f"{name}: cannot make an array of ragged lists ({error})") from None
