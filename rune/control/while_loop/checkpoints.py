"""The values that reverse mode saves of a loop whose number of steps is known only at run time.

    Checkpoints(count)    `count` carries, whatever the number of steps; the others are recomputed
                          from the nearest checkpoint before them
    GrowingResiduals()    the residuals of every step, in memory that grows with the number of steps

The position of a carry is the number of the step that starts from it. Checkpoints stand at the
multiples of a stride, a power of two that doubles when `count` of them have been passed. For
Checkpoints(4), after 9 steps:

    position    0  1  2  3  4  5  6  7  8
    stride      1  1  1  1  2  2  2  2  4      in force when the loop reaches the position
    slot        0  1  2  3  1     3     2      where the loop writes the carry of a checkpoint
    remains     x           x           x      at the end: every fourth carry

No carry is ever moved: position p is in the slot whose number is the sum of the digits of p in
base `count`. When the stride s doubles, the checkpoints q + s between the remaining ones q are
dropped, and the new ones q + s * count take exactly their slots, since a factor of `count` only
moves the digits of s by one place (4 takes the slot of 1, and 6 that of 3). A carry that is not a
checkpoint is written to a row after the slots, which is never read: this needs no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.ops import (
    add,
    clz,
    dynamic_slice,
    dynamic_update_slice,
    logical_and,
    max,
    neg,
    reshape,
    select,
    shl,
    shr,
    sub,
)
from rune.records import dataclass

BITS = 31  # of a step's number, an i32


@dataclass(frozen=True, slots=True, init=False)
class Checkpoints:
    """Save `count` carries of a loop for its reverse mode, and as many again on the way back.

    Memory is that of 2 * count carries, whatever the number of steps n. Each step is recomputed at
    most once while n is at most count**2, and about once more for every further factor of 4, up to
    count * 2**count steps; beyond that, the recomputation grows faster.
    Errors: ArgumentError if the count is not a power of two, at least 2.

    >>> Checkpoints(16)
    Checkpoints(count=16)
    """

    count: int

    def __init__(self, count: int = 64):
        # The digits of a position in base `count` must be groups of bits: see `slot`.
        if count < 2 or count & (count - 1):
            raise ArgumentError(f"Checkpoints: cannot keep {count} carries (a power of two, at least 2, required)")
        object.__setattr__(self, "count", count)


@dataclass(frozen=True, slots=True)
class GrowingResiduals:
    """Save the residuals of every step; nothing is recomputed on the way back.

    The loop runs once to count its steps, and once more to save their residuals. So the count must
    be known while the function is traced: under jit or vmap, reverse mode is an error.

    >>> import rune
    >>> doubled = lambda x: rune.while_loop(
    ...     lambda c: c < 10.0, lambda c: 2.0 * c, x, reverse=rune.GrowingResiduals()
    ... )
    >>> rune.grad(doubled)(1.0)
    Array(16., f32*[], cpu:0)
    """


Policy = Checkpoints | GrowingResiduals
DEFAULT = Checkpoints()


def _log2(count: int) -> int:
    return count.bit_length() - 1


def stride(position: Value, count: int) -> Array:
    """The stride in force at a position: the least power of two s with position < s * count."""
    # A position of `length` bits is less than 2**length, which is `count` strides of
    # 2**(length - log2(count)).
    length = sub(np.int32(BITS + 1), clz(position))
    return shl(np.int32(1), max(sub(length, np.int32(_log2(count))), np.int32(0)))


def checkpoint_before(position: Value, stride: Value) -> Array:
    """The last checkpoint at or before a position: the position rounded down to the stride."""
    return logical_and(position, neg(stride))


def slot(position: Value, count: int) -> Any:
    """The slot of the carry at a position: the sum of the digits of the position in base count.

    The count is a power of two, so each digit is a group of bits.
    """
    mask, total = np.int32(count - 1), None
    for shift in range(0, BITS, _log2(count)):
        quotient = shr(position, np.int32(shift)) if shift else position
        digit = logical_and(quotient, mask)
        total = digit if total is None else add(total, digit)
    return total


def row_at(rows: Value, number: Value) -> Array:
    """The row of this number, without the axis of rows."""
    shape = type_of(rows).shape[1:]
    zeros = (np.int32(0),) * len(shape)
    return reshape(dynamic_slice(rows, number, *zeros, sizes=(1, *shape)), shape=shape)


def rows_for(type: ArrayType, count: int) -> ArrayType:
    """The type of an array of `count` rows, and a last row for values that are not saved."""
    return type.with_shape((count + 1, *type.shape))


def with_row(rows: Value, number: Value, row: Value, is_kept: Value) -> Array:
    """The rows with one replaced: the row of this number if `is_kept`, else the unread last one.

    A select of the number costs nothing; a select of the rows would copy all of them in each step.
    """
    shape = type_of(row).shape
    target = select(is_kept, number, np.int32(type_of(rows).shape[0] - 1))
    zeros = (np.int32(0),) * len(shape)
    return dynamic_update_slice(rows, reshape(row, shape=(1, *shape)), target, *zeros)
