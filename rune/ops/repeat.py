"""Loops inside the expansion of a primitive: steps of its algorithm on a device.

They exist while a program is lowered and at no other time, so they have no derivative, no batch
rule and no meaning in NumPy: control flow of users is in rune/control. What the body closes over
becomes operands of the loop. Compile time does not depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rune import dtypes
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import type_of
from rune.core.lower import Control
from rune.core.program import Program
from rune.core.staging import Staged, stage
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import CheckError
from rune.ops.family import fit

STEP = ArrayType((), dtypes.i32)


def _repeat_type(*types: ArrayType, body: Program, **_: Any) -> tuple[ArrayType, ...]:
    return body.output_types


def _while_type(*types: ArrayType, condition_consts: int, body_consts: int, **_: Any) -> tuple[ArrayType, ...]:
    return types[condition_consts + body_consts :]


def _rows_type(*types: ArrayType, body: Program, carries: int, length: Size, **_: Any) -> tuple[ArrayType, ...]:
    after, results = body.output_types[:carries], body.output_types[carries:]
    return (*after, *(t.with_shape((length, *t.shape)) for t in results))


def _repeat_calls(*args: Any, body: Program, **_: Any) -> tuple[Calls, ...]:
    return (Calls(body, (None, *args), Runs.LOOP),)


def _while_calls(
    *args: Any, condition: Program, body: Program, condition_consts: int, body_consts: int
) -> tuple[Calls, ...]:
    carry = args[condition_consts + body_consts :]
    return (
        Calls(condition, (*args[:condition_consts], *carry), Runs.LOOP),
        Calls(body, args[condition_consts:], Runs.LOOP),
    )


def _rows_calls(*args: Any, body: Program, consts: int, carries: int, **_: Any) -> tuple[Calls, ...]:
    unsliced, arrays = args[: consts + carries], args[consts + carries :]
    return (Calls(body, (*unsliced, *(None for _ in arrays)), Runs.LOOP),)


repeated = HigherOrder(
    "repeat", "control", _repeat_type, calls=_repeat_calls, multiple_results=True, lower=Control.REPEAT
)
repeated_while = HigherOrder(
    "repeat_while", "control", _while_type, calls=_while_calls, multiple_results=True, lower=Control.WHILE
)
repeated_rows = HigherOrder(
    "repeat_rows", "control", _rows_type, calls=_rows_calls, multiple_results=True, lower=Control.SCAN
)


def repeat(count: Size, body: Callable[..., Sequence[Any]], *carry: Any) -> list[Any]:
    """The carry after `count` steps; body(i, *carry) -> carry, with i = 0, 1, … an i32 scalar."""
    types = _types(carry)
    staged = _checked(stage(_shaped(body, types), [STEP, *types], "body"), types)
    # The captured values lead the inputs of a staged program; a loop's step leads them all.
    count_captured = len(staged.captured)
    inputs = staged.program.inputs
    step, uncaptured = inputs[count_captured], inputs[count_captured + 1 :]
    program = replace(staged.program, inputs=(step, *inputs[:count_captured], *uncaptured))
    return repeated(*staged.captured, *carry, body=program, consts=count_captured, count=count)


def repeat_while(condition: Callable[..., Any], body: Callable[..., Sequence[Any]], *carry: Any) -> list[Any]:
    """The first carry for which condition(*carry) is false; body(*carry) -> carry."""
    types = _types(carry)
    test = stage(lambda *xs: [condition(*xs)], types, "condition")
    step = _checked(stage(_shaped(body, types), types, "body"), types)
    return repeated_while(
        *test.captured,
        *step.captured,
        *carry,
        condition=test.program,
        body=step.program,
        condition_consts=len(test.captured),
        body_consts=len(step.captured),
    )


def _types(carry: Sequence[Any]) -> list[ArrayType]:
    """The carry's types; numbers are of the dtype that they have, weak no longer."""
    return [type_of(x).strong() for x in carry]


def _shaped(body: Callable[..., Sequence[Any]], types: Sequence[ArrayType]) -> Callable[..., list]:
    """The body, its results of the carry's shapes where they were left to broadcast."""

    def run(*xs: Any) -> list[Any]:
        return [fit(x, t.shape) for x, t in zip(body(*xs), types, strict=True)]

    return run


def repeat_rows(
    body: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    carry: Sequence[Any],
    rows: Sequence[Any],
    *,
    reverse: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The last carry and stacked results; body(carry, one row of each array) -> carry, results.

    Rows are those of the leading axis, taken from the last one on if `reverse`. Results are filled
    in place, row by row.
    """
    types, arrays = _types(carry), _types(rows)
    count = len(types)

    def step(*xs: Any) -> list[Any]:
        after, results = body(xs[:count], xs[count:])
        return [*(fit(x, t.shape) for x, t in zip(after, types, strict=True)), *results]

    staged = stage(step, [*types, *(t.with_shape(t.shape[1:]) for t in arrays)], "body")
    _same(staged.program.output_types[:count], types)
    out = repeated_rows(
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
    return list(out[:count]), list(out[count:])


def _checked(staged: Staged, types: Sequence[ArrayType]) -> Staged:
    _same(staged.program.output_types, types)
    return staged


def _same(actual: Sequence[ArrayType], expected: Sequence[ArrayType]) -> None:
    for x, y in zip(actual, expected, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise CheckError(f"repeat: cannot carry {x} (the carry is {y})")
