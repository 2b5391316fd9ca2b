"""Slices of a known size that start anywhere: `x[ds(i, 3)]`, where i may be traced.

A window out of bounds is moved inside for reading, and is not written at all, as in JAX.
"""

from __future__ import annotations

import numpy as np

from rune import tree
from rune.core.interpreter import type_of
from rune.core.values import Operand
from rune.dims import Size, UndecidedComparison
from rune.errors import ArgumentError, AxisError
from rune.records import dataclass


@tree.register_dataclass(data_fields=["start"], meta_fields=["size", "stride"])
@dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, `stride` apart; `ds` makes it."""

    start: Operand  # a number, an integer array of rank 0, or a traced one
    size: int
    stride: int = 1


def ds(start: Operand | None, size: int | None = None, stride: int | None = None) -> slice | Slice:
    """An index that selects `size` elements from `start` on; `start` may be traced.

    ds(n) selects the first n elements, ds(None) all. A start below 0 counts from the end. A window
    that leaves its axis is moved inside for reading, and is not written at all.
    Errors: ArgumentError unless size is an integer of at least 0, and stride one of at least 1.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda x, i: x[rune.ds(i, 2)])(rnp.arange(5), 3)
    Array([3, 4], i32[2], cpu:0)
    >>> rnp.zeros(4).at[rune.ds(1, 2)].set(7.0)
    Array([0., 7., 7., 0.], f32[4], cpu:0)
    """
    if start is None:
        return slice(None)
    first, count = (0, start) if size is None else (start, size)
    first = int(first) if isinstance(first, np.integer) else first
    return Slice(first, _at_least(0, "size", count), _at_least(1, "stride", 1 if stride is None else stride))


def _at_least(least: int, name: str, number: object) -> int:
    if not isinstance(number, int | np.integer) or number < least:
        raise ArgumentError(f"ds: cannot take {number} as {name} (an integer of at least {least} required)")
    return int(number)


def within(entry: Slice, axis: int, size: Size) -> slice | Slice:
    """A plain slice, if it is known to lie inside an axis of `size`.

    Errors: AxisError for a slice longer than the axis, and for a stride where a window would be
            moved; UndecidedComparison if symbolic sizes decide whether it is longer.
    """
    start, span = entry.start, max(0, (entry.size - 1) * entry.stride + 1)
    try:
        is_longer = span > size
    except UndecidedComparison as error:
        error.during("index", f"a slice of axis {axis}")
        raise
    if is_longer:
        raise AxisError(f"index: cannot take {span} elements of axis {axis} (size {size})")
    if isinstance(start, int) and isinstance(size, int):
        first = start + size if start < 0 else start
        if 0 <= first <= size - span:
            return slice(first, first + span, entry.stride)
    if entry.stride != 1:
        start_text = start if isinstance(start, int) else type_of(start)
        raise AxisError(
            f"index: cannot step by {entry.stride} from {start_text} (axis {axis} of size {size})",
            hint="start + stride * arange(size) is an array of positions",
        )
    return entry
