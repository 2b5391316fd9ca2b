"""Lists of arrays and numbers as one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Dim
from rune.dtypes import ANY, KEYS, promote
from rune.errors import ArgumentError
from rune.ops import conventions as c
from rune.ops.movement import concatenate
from rune.ops.promote import NUMPY, scalar_kind, stands_for_array


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
        row = waiting.pop()
        if set(map(type, row)) <= _ZEROS.keys():  # long lists mostly hold Python numbers alone
            continue
        for item in row:
            is_array = isinstance(getattr(item, "type", None), ArrayType)
            if is_array or isinstance(item, Dim) or stands_for_array(item):
                return True
            if isinstance(item, list | tuple):
                waiting.append(item)
    return False


def shared_dtype(x: Sequence[object]) -> np.dtype | None:
    """The dtype that nested lists of NumPy data or arrays promote to, with Python numbers weak.

    None for Python numbers alone, and where anything but data and numbers is in the lists.
    """
    python_types: set[type] = set()
    data: list[object] = []
    waiting = [x]
    while waiting:
        row = waiting.pop()
        types = set(map(type, row))
        python_types |= types & _ZEROS.keys()
        if types <= _ZEROS.keys():
            continue
        waiting += [item for item in row if isinstance(item, list | tuple)]
        data += [item for item in row if type(item) not in _ZEROS and not isinstance(item, list | tuple)]
    if not data or not all(isinstance(d, NUMPY) or isinstance(getattr(d, "type", None), ArrayType) for d in data):
        return None
    kinds = tuple(dict.fromkeys(map(scalar_kind, (*data, *(_ZEROS[t] for t in _ZEROS if t in python_types)))))
    return promote(*kinds)[0] if all(dtype in ANY and dtype not in KEYS for dtype, _ in kinds) else None


_ZEROS: dict[type, complex] = {bool: False, int: 0, float: 0.0, complex: 0j}


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
