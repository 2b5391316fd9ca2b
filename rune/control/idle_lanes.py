"""Diverging lanes: the values with which idle lanes compute.

Under vmap a branch or a body runs on all lanes, including those that took another branch or have
finished; their results are thrown away. Two things must not happen there: an infinity must not
reach a derivative (0 times infinity is NaN), and an inner loop must not run on values that its
author never intended, perhaps for ever.

    guarded    the lane's own value, through a select whose other side stops derivatives; it costs
               nothing in the primal program
    borrowed   the value of a lane that does take part, so nothing new is computed
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import dims, dtypes
from rune.array import Array
from rune.core.interpreter import is_differentiable, type_of
from rune.core.values import Value
from rune.dims import Size
from rune.ops import argmax, broadcast, concatenate, convert, dynamic_slice, select, stop_gradient
from rune.ops.family import zeros_of
from rune.ops.movement import repeat_lane


def select_lanes(is_active: Value, yes: Value, no: Value) -> Array:
    """`yes` in the chosen lanes, `no` in the others."""
    return select(broadcast(is_active, shape=type_of(yes).shape, axes=(0,)), yes, no)


def constant(x: Value) -> Value:
    """`x` without a derivative."""
    return stop_gradient(x) if is_differentiable(x) else x


def guarded(is_active: Value, x: Value, batched: bool, size: Size) -> tuple[Value, bool]:
    """An operand to which only the chosen lanes send derivatives, and whether it has lanes."""
    if not is_differentiable(x):
        return x, batched
    # Without lanes, x would add up the derivatives of all of them.
    lanes = x if batched else repeat_lane(x, size)
    return select_lanes(is_active, lanes, stop_gradient(lanes)), True


def borrowed(is_active: Value, values: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
    """Operands in which the lanes that are not chosen hold the value of the first chosen one."""
    if type_of(is_active).shape[0] == 0:
        return list(values)
    # The first lane that is chosen; lane 0 if none is, and then the results are not used.
    lane = argmax(convert(is_active, dtype=dtypes.i32), axis=0, dtype=dtypes.i32)
    return [
        # A borrowed value sends no derivative to the lane that it came from.
        select_lanes(is_active, x, constant(_everywhere(x, lane))) if b else x
        for x, b in zip(values, batched, strict=True)
    ]


def _everywhere(x: Value, lane: Value) -> Array:
    """The value of one lane of x, in all lanes."""
    type = type_of(x)
    size, *shape = type.shape
    if not dims.at_most(1, size):  # there may be no lane to read, and a slice needs one
        x = concatenate(x, zeros_of(type.with_shape((1, *shape))), axis=0)
    starts = (lane, *(np.int32(0),) * len(shape))
    first_row = dynamic_slice(x, *starts, sizes=(1, *shape))
    return broadcast(first_row, shape=(size, *shape), axes=tuple(range(len(shape) + 1)))
