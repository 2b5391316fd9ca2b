"""Loops inside the expansion of a primitive: steps of its algorithm on a device.

They exist only while a program is lowered, so they have no derivative, no batch rule and no meaning
in NumPy; control flow of users is in rune/control. Values that the body closes over become operands
of the loop. Compile time does not depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rune.core.interpreter import type_of
from rune.core.staging import Staged
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import CheckError
from rune.ops.family import fit
from rune.ops.loop import COUNTER, bind_loop, scan_as_loop, stage_within

if TYPE_CHECKING:
    from rune.array import Array


def repeat(count: Size, body: Callable[..., Sequence[Value]], *carry: Value) -> list[Array]:
    """The carry after `count` steps; body(i, *carry) -> carry, with i = 0, 1, … an i32 scalar."""
    return bind_loop(_staged_step(body, _types(carry)), None, count, (), carry)


def repeat_while(condition: Callable[..., Value], body: Callable[..., Sequence[Value]], *carry: Value) -> list[Array]:
    """The first carry for which condition(*carry) is false; body(*carry) -> carry."""
    types = _types(carry)
    asks = stage_within(lambda _, *xs: [condition(*xs)], [COUNTER, *types], "condition")
    return bind_loop(_staged_step(lambda _, *xs: body(*xs), types), asks, None, (), carry)


def repeat_rows(
    body: Callable[..., tuple[Sequence[Value], Sequence[Value]]],
    carry: Sequence[Value],
    rows: Sequence[Value],
    *,
    reverse: bool = False,
) -> tuple[list[Value], list[Value]]:
    """The last carry and stacked results; body(carry, one row of each array) -> carry, results.

    Rows run along the leading axis, from the last one if `reverse`. Results are filled in place,
    row by row.
    """
    types, arrays = _types(carry), _types(rows)
    count = len(types)

    def step(*xs: Value) -> list[Value]:
        after, results = body(xs[:count], xs[count:])
        return [*_fitted(after, types), *results]

    staged = stage_within(step, [*types, *(t.with_shape(t.shape[1:]) for t in arrays)], "body")
    _require_carry(staged.program.output_types[:count], types)
    results = scan_as_loop(
        *staged.captured,
        *carry,
        *rows,
        body=staged.program,
        consts=len(staged.captured),
        carries=count,
        length=arrays[0].shape[0],
        reverse=reverse,
        unroll=1,
    )
    return list(results[:count]), list(results[count:])


def _types(values: Sequence[Value]) -> list[ArrayType]:
    """The types of a carry; numbers have their dtypes, without being weak."""
    return [type_of(x).strong() for x in values]


def _staged_step(body: Callable[..., Sequence[Value]], types: Sequence[ArrayType]) -> Staged:
    """The body's program; results broadcast to the shapes of the carry."""
    staged = stage_within(lambda *xs: _fitted(body(*xs), types), [COUNTER, *types], "body")
    _require_carry(staged.program.output_types, types)
    return staged


def _fitted(values: Sequence[Value], types: Sequence[ArrayType]) -> list[Value]:
    return [fit(x, t.shape) for x, t in zip(values, types, strict=True)]


def _require_carry(actual: Sequence[ArrayType], carry_types: Sequence[ArrayType]) -> None:
    for x, y in zip(actual, carry_types, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise CheckError(f"repeat: cannot carry {x} (the carry is {y})")
