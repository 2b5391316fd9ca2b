"""search_sorted: the positions of values in sorted rows, by binary search.

    x [*B, N] sorted, values [*B, M] -> i32 [*B, M]: how many elements of the row are less than the
    value (side "left"), or not greater (side "right")

The order is that of `sort`: NaN after all numbers, complex numbers by their parts. Derivatives are
zero; for a row that is not sorted the result is some number in 0…N.
Source: binary search, Knuth, The Art of Computer Programming 3, section 6.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Library, lanes_of_rows
from rune.core.primitive import ZERO, Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size, bounds
from rune.errors import ShapeError
from rune.ops.arithmetic import add, logical_and, logical_not, lt, min, select, shr, sub
from rune.ops.family import Batched, fit, require, same_dtype, size_value, types_text
from rune.ops.movement import spread_batches
from rune.ops.repeat import repeat
from rune.ops.sorting import keys, order

if TYPE_CHECKING:
    from rune.array import Array

BLOCK = 16_384  # values that are searched for at a time
MOST_KEYS = 1 << 16  # as many as fit in the cache


def _type(x: ArrayType, values: ArrayType, *, side: Literal["left", "right"]) -> ArrayType:
    require("search_sorted", dtypes.ANY, "numeric or bool", x, values)
    same_dtype("search_sorted", x, values)
    if not x.shape or x.shape[:-1] != values.shape[:-1]:
        raise ShapeError(f"search_sorted: cannot search {types_text((x, values))} (rows differ)")
    return ArrayType(values.shape, dtypes.i32)


def _reference(x: np.ndarray, values: np.ndarray, *, side: Literal["left", "right"]) -> np.ndarray:
    keys, targets = order.search_keys(x), order.search_keys(values)
    positions = np.zeros(values.shape, np.int32)
    for row in np.ndindex(*values.shape[:-1]):
        positions[row] = _searched(keys[row], targets[row], side)
    return positions


def _searched(keys: np.ndarray, targets: np.ndarray, side: Any) -> np.ndarray:
    """np.searchsorted, whose mispredicted branches cost most of its time if many values are
    unsorted.
    """
    plain = keys.dtype.kind in "iuf" and len(targets) >= BLOCK
    if not plain or not 0 < len(keys) <= MOST_KEYS or (targets[1:] >= targets[:-1]).all():
        return np.searchsorted(keys, targets, side)
    width = len(keys).bit_length()
    last = np.nan if keys.dtype.kind == "f" else np.iinfo(keys.dtype).max
    table = np.full((1 << width) - 1, last, keys.dtype)
    table[: len(keys)] = keys
    less = np.less if side == "left" else np.less_equal
    positions = np.zeros(len(targets), np.intp)
    for start in range(0, len(targets), BLOCK):
        values, low = targets[start : start + BLOCK], positions[start : start + BLOCK]
        for bit in reversed(range(width)):
            is_after = less(np.take(table, low + ((1 << bit) - 1)), values)
            low += np.multiply(is_after, 1 << bit, dtype=np.intp)
    nowhere = np.flatnonzero(targets != targets)  # NaN, after all numbers
    positions[nowhere] = np.searchsorted(keys, targets[nowhere], side)
    return np.minimum(positions, len(keys))


def _expand(x: Value, values: Value, *, side: Literal["left", "right"]) -> Value:
    rows, targets = keys.ordered(x), keys.ordered(values)
    shape, size = type_of(values).shape, type_of(x).shape[-1]
    most, one = bounds(size)[1], literal(1, dtypes.i32)

    def step(i: Value, low: Value, high: Value) -> list[Array]:
        middle = add(low, shr(sub(high, low), one))
        # A search that has ended may point past the last element.
        elements = [keys.take_last(row, min(middle, last)) for row in rows]
        goes_on = _is_before(elements, targets, side)
        is_open = lt(low, high)
        after = add(middle, one)
        return [
            select(logical_and(is_open, goes_on), after, low),
            select(logical_and(is_open, logical_not(goes_on)), middle, high),
        ]

    last = size_value(size - 1, dtypes.i32)
    low, high = (fit(size_value(n, dtypes.i32), shape) for n in (0, size))
    return repeat(31 if most is None else most.bit_length(), step, low, high)[0] if most else low


def _is_before(elements: Sequence[Value], values: Sequence[Value], side: Literal["left", "right"]) -> Array:
    if side == "left":
        return keys.less(elements, values)
    return logical_not(keys.less(values, elements))


def _batch(
    batched: Batched, size: Size, x: Value, values: Value, *, side: Literal["left", "right"]
) -> tuple[Array, bool]:
    return search_sorted(*spread_batches(batched, size, (x, values)), side=side), True


# Compiled everywhere: one thread takes a sixth to a third of NumPy's time (7 to 262,144 elements
# in the row, measured), and all cores share the values.
search_sorted: Primitive = Primitive(
    "search_sorted",
    "sorting",
    _type,
    _reference,
    (ZERO, ZERO),
    batch=_batch,
    lower=Library(lanes_of_rows, lambda *types, **params: False, columns=1),
    expand=_expand,
)
