"""Branches and loops of Python's, while `disable_jit` is set: what runs is the user's function.

What decides them must be known; a loop whose condition is traced stays a loop of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import config, tree
from rune.control.scan.primitive import stack_rows, take_row
from rune.core.values import Value
from rune.errors import TracerError
from rune.transforms.arguments import as_value


def is_asked_for() -> bool:
    """Whether branches and loops are Python's where they can be."""
    return config.current().disable_jit


def known_number(value: Any) -> int | None:
    """A number that decides a branch, if it has a value."""
    try:
        return int(value)
    except TracerError:
        return None


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: object) -> tuple[Any, bool]:
    """The value behind the last step whose condition is known, and whether the loop has ended."""
    value, goes_on = init_val, known_number(cond_fun(init_val))
    while goes_on:
        value = body_fun(value)
        goes_on = known_number(cond_fun(value))
    return value, goes_on is not None


def scan(
    f: Callable[[Any, Any], Any],
    init: object,
    rows: Sequence[Value],
    rows_tree: tree.TreeDef,
    steps: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """(last carry, stacked ys) of at least one step."""
    rows, carry, ys = [as_value(x) for x in rows], init, []
    for step in reversed(range(steps)) if reverse else range(steps):
        carry, y = f(carry, tree.unflatten(rows_tree, [take_row(x, step) for x in rows]))
        ys.append(y)
    return carry, tree.map(lambda *values: stack_rows([*map(as_value, values)]), *(reversed(ys) if reverse else ys))
