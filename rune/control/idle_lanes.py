"""Diverging lanes: the values with which idle lanes compute.

Under vmap a branch or a body runs on all lanes, including those that selected another branch or
have finished; their results are discarded. Two things must not happen in these lanes: an infinity
must not reach a derivative (0 times infinity is NaN), and an inner loop must not run on values that
its author never intended, perhaps for ever.

    guarded    the lane's own value, through a select whose other side stops derivatives; it costs
               nothing in the primal program
    borrowed   the value of an active lane, so that idle lanes compute nothing new
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
from rune.ops.family import stretch, zeros_of
from rune.ops.movement import repeat_lane


def select_lanes(is_active: Value, yes: Value, no: Value) -> Array:
    """`yes` in the active lanes, `no` in the others."""
    return select(broadcast(is_active, shape=type_of(yes).shape, axes=(0,)), yes, no)


def constant(x: Value) -> Value:
    """`x` without a derivative."""
    return stop_gradient(x) if is_differentiable(x) else x


def guarded(is_active: Value, x: Value, is_batched: bool, size: Size) -> tuple[Value, bool]:
    """An operand to which only the active lanes send derivatives, and whether it has lanes."""
    if not is_differentiable(x):
        return x, is_batched
    # An operand without lanes would receive the sum of the cotangents of all lanes, idle ones too.
    lanes = x if is_batched else repeat_lane(x, size)
    return select_lanes(is_active, lanes, stop_gradient(lanes)), True


def borrowed(is_active: Value, values: Sequence[Value], batch_flags: Sequence[bool]) -> list[Value]:
    """Operands in which idle lanes hold the value of the first active lane."""
    if type_of(is_active).shape[0] == 0:  # there is no lane to borrow from
        return list(values)
    # argmax finds the first active lane; lane 0 if none is, and then the results are not used.
    lane = argmax(convert(is_active, dtype=dtypes.i32), axis=0, dtype=dtypes.i32)
    return [
        # An idle lane must not send a derivative to the lane that it borrows from.
        select_lanes(is_active, x, constant(_everywhere(x, lane))) if b else x
        for x, b in zip(values, batch_flags, strict=True)
    ]


def _everywhere(x: Value, lane: Value) -> Array:
    """The value of one lane of x, in all lanes."""
    type = type_of(x)
    size, *shape = type.shape
    if not dims.at_most(1, size):  # a symbolic size may be 0, and a slice needs a row to read
        x = concatenate(x, zeros_of(type.with_shape((1, *shape))), axis=0)
    starts = (lane, *(np.int32(0),) * len(shape))
    first_row = dynamic_slice(x, *starts, sizes=(1, *shape))
    return stretch(first_row, (size, *shape))
