"""Branches and loops that Python runs while `disable_jit` is set, calling the user's functions.

The number of a branch and the condition of a loop must be known; a loop whose condition is traced
remains a loop of the program.
"""

from __future__ import annotations

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
    """The number of a branch, or a truth value, unless it is traced."""
    assert isinstance(value, SupportsInt)
    try:
        return int(value)
    except TracerError:
        return None


def branch(number: object, functions: Sequence[Function]) -> Function | None:
    """The function with this number, clamped to the range; None if the number is traced."""
    position = known_number(number)
    return None if position is None else functions[max(0, min(position, len(functions) - 1))]


def while_loop(cond_fun: Function, body_fun: Function, init_val: object) -> Pair:
    """The value when the condition becomes false or traced, and whether the loop has ended."""
    value = tree.map(as_value, init_val)
    goes_on = known_number(cond_fun(value))
    while goes_on:
        value = body_fun(value)
        goes_on = known_number(cond_fun(value))
    return value, goes_on is not None


def scan(
    f: Callable[..., Pair], init: object, rows: Sequence[Value], rows_tree: tree.TreeDef, order: Sequence[int]
) -> Pair:
    """(last carry, stacked ys) of at least one step; order: the numbers of the rows to take."""
    arrays, carry, ys = [as_value(x) for x in rows], init, dict[int, object]()
    for step in order:
        carry, ys[step] = f(carry, tree.unflatten(rows_tree, [take_row(x, step) for x in arrays]))
    # A reversed scan stacks its ys in the order of the rows too, so they are sorted by number.
    return carry, tree.map(lambda *values: stack_rows([*map(as_value, values)]), *(ys[n] for n in sorted(ys)))
