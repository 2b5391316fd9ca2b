"""Branches and loops run by Python, while `disable_jit` is set, calling the user's functions.

The deciding values must be known; a loop with a traced condition stays a loop of the program.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, SupportsInt

from rune import config, tree
from rune.control.scan.primitive import stack_rows, take_row
from rune.core.values import Value
from rune.errors import TracerError
from rune.transforms.arguments import as_value

Pair = tuple[Any, Any]
Function = Callable[..., object]


def is_asked_for() -> bool:
    """Whether Python runs branches and loops where possible."""
    return config.current().disable_jit


def known_number(value: object) -> int | None:
    """A number that decides something, if it has a value."""
    assert isinstance(value, SupportsInt)
    try:
        return int(value)
    except TracerError:
        return None


def branch(number: object, functions: Sequence[Function]) -> Function | None:
    """The function that a number chooses, the first or last beyond them; None if it is traced."""
    position = known_number(number)
    return None if position is None else functions[builtins.max(0, builtins.min(position, len(functions) - 1))]


def while_loop(cond_fun: Function, body_fun: Function, init_val: object) -> Pair:
    """The value after the last step whose condition is known, and whether the loop has ended."""
    value = tree.map(as_value, init_val)
    goes_on = known_number(cond_fun(value))
    while goes_on:
        value = body_fun(value)
        goes_on = known_number(cond_fun(value))
    return value, goes_on is not None


def scan(
    f: Callable[..., Pair], init: object, rows: Sequence[Value], rows_tree: tree.TreeDef, order: Sequence[int]
) -> Pair:
    """(last carry, stacked ys) of at least one step; order: of the rows."""
    arrays, carry, ys = [as_value(x) for x in rows], init, dict[int, object]()
    for step in order:
        carry, ys[step] = f(carry, tree.unflatten(rows_tree, [take_row(x, step) for x in arrays]))
    # Rows of a reversed scan stand where their steps stood, so they are sorted by step.
    stacked = tree.map(lambda *values: stack_rows([*map(as_value, values)]), *(ys[n] for n in sorted(ys)))
    return carry, stacked
