"""What reverse mode keeps of a loop whose number of steps is known only at run time.

    Checkpoints(count)    `count` carries, whatever the number of steps; the others are computed
                          again from the nearest one before them
    GrowingResiduals()    what every step's derivative reads, in memory that grows with the steps

The positions kept are the multiples of a stride, a power of two that doubles when `count` of them
have been passed. Nothing is ever moved: position p lies in the slot that is the sum of the digits
of p in base `count`. Where the stride doubles, half of the positions are given up, and those to
come fall into exactly their slots, since they differ from those kept only in a higher digit. What
is not to be kept is written to a row behind the others, which nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.types import ArrayType
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

BITS = 31  # of a step's number, an i32


@dataclass(frozen=True, slots=True, init=False)
class Checkpoints:
    """Keep `count` carries of a loop for its reverse mode, and as many again while it goes back.

    Memory is that of 2 * count carries, whatever the number of steps n. Each step is computed
    again once while n is at most count**2, and log2(n / count**2) times more beyond.
    Errors: ArgumentError for a count that is not a power of two, 2 at least.

    >>> Checkpoints(16)
    Checkpoints(count=16)
    """

    count: int

    def __init__(self, count: int = 64):
        if count < 2 or count & (count - 1):
            raise ArgumentError(
                f"Checkpoints: cannot keep {count} carries (a power of two required, 2 at least)"
            )
        object.__setattr__(self, "count", count)


@dataclass(frozen=True, slots=True)
class GrowingResiduals:
    """Keep what the derivative of every step reads; nothing is computed again.

    The loop runs once to count its steps, and once more to keep their residuals. So it must be
    possible to count them: under jit or vmap, where they are known only at run time, reverse mode
    is an error.

    >>> import rune
    >>> doubled = lambda x: rune.while_loop(
    ...     lambda c: c < 10.0, lambda c: 2.0 * c, x, reverse=rune.GrowingResiduals()
    ... )
    >>> rune.grad(doubled)(1.0)
    Array(16., f32[], cpu:0)
    """


Policy = Checkpoints | GrowingResiduals
DEFAULT = Checkpoints()


def _log2(count: int) -> int:
    return count.bit_length() - 1


def stride(position: Any, count: int) -> Any:
    """The stride in force at a position: the least power of two s with position < s * count."""
    length = sub(np.int32(BITS + 1), clz(position))
    return shl(np.int32(1), max(sub(length, np.int32(_log2(count))), np.int32(0)))


def is_kept(position: Any, stride: Any) -> Any:
    """`position` rounded down to a multiple of the stride, a power of two."""
    return logical_and(position, neg(stride))


def slot(position: Any, count: int) -> Any:
    """Where the carry at a position lies: the sum of the digits of the position in base count."""
    digit, total = np.int32(count - 1), None
    for shift in range(0, BITS, _log2(count)):
        place = shr(position, np.int32(shift)) if shift else position
        found = logical_and(place, digit)
        total = found if total is None else add(total, found)
    return total


def take(rows: Any, number: Any) -> Any:
    """One row."""
    shape = type_of(rows).shape[1:]
    zeros = (np.int32(0),) * len(shape)
    return reshape(dynamic_slice(rows, number, *zeros, sizes=(1, *shape)), shape=shape)


def rows_for(type: ArrayType, count: int) -> ArrayType:
    """The type of an array of `count` values, and of a last row for those that are not kept."""
    return type.with_shape((count + 1, *type.shape))


def put(rows: Any, number: Any, row: Any, where: Any) -> Any:
    """The rows with one of them replaced where the condition holds, else the last one."""
    shape = type_of(row).shape
    place = select(where, number, np.int32(type_of(rows).shape[0] - 1))
    zeros = (np.int32(0),) * len(shape)
    return dynamic_update_slice(rows, reshape(row, shape=(1, *shape)), place, *zeros)
