"""Loops and branches whose bodies write references: the values of these become part of the carry.

Each function here wraps a user's function for tracing. The wrapper takes the values of the
references beside the function's own arguments, and returns them beside its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import tree
from rune.core.values import Value
from rune.transforms.arguments import is_named
from rune.transforms.references import Frame, Ref, Written, unboxed

Refs = Sequence[Ref]
Function = Callable[..., Any]


def step(owner: str, f: Function, refs: Refs) -> Function:
    """(carry, values), x -> (carry, values), y, from carry, x -> carry, y."""

    def of_pair(state: tuple[object, Sequence[Value]], x: object) -> object:
        carry, values = state
        with Frame(owner, refs, values) as frame:
            pair = f(carry, x)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return pair  # the loop refuses it, with its own message
        return (pair[0], frame.values), pair[1]

    return named_as(of_pair, f)


def body(owner: str, f: Function, refs: Refs) -> Function:
    """(value, values) -> (value, values), from value -> value."""

    def of_pair(state: tuple[object, Sequence[Value]]) -> tuple[object, Sequence[Value]]:
        value, values = state
        with Frame(owner, refs, values) as frame:
            result = f(value)
        return result, frame.values

    return named_as(of_pair, f)


class InCondition(BaseException):
    """A condition has written references. Caught by the loop."""


def condition(owner: str, f: Function, refs: Refs) -> Function:
    """(value, values) -> bool, from value -> bool. Errors: InCondition if it writes references."""

    def of_pair(state: tuple[object, Sequence[Value]]) -> object:
        value, values = state
        try:
            with Frame(f"{owner}: cond_fun", refs, values) as frame:
                result = f(value)
        # References that the loop does not carry yet: carrying them would not help a condition.
        except Written as signal:
            raise InCondition from signal
        if any(before is not after for before, after in zip(values, frame.values, strict=True)):
            raise InCondition
        return result

    return named_as(of_pair, f)


def over_rows(f: Function) -> Function:
    """carry, boxed row -> carry, (y, last values of boxes), from carry, row -> carry, y."""

    def of_boxes(carry: object, x: object) -> object:
        row, refs = unboxed(x)
        pair = f(carry, row)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return pair  # the loop refuses it, with its own message
        return pair[0], (pair[1], [ref.value for ref in refs])

    return named_as(of_boxes, f)


def beside(functions: Sequence[Function], operands: Sequence[object]) -> tuple[list[Function], Sequence[object]]:
    """Branches that close over the references among their operands, and the other operands."""
    leaves, treedef = tree.flatten(tuple(operands))
    # A reference among the operands has no type as an operand: branches use it like an outer one.
    arrays = [x for x in leaves if not isinstance(x, Ref)]
    if len(arrays) == len(leaves):
        return [*functions], operands

    def closed(f: Function) -> Function:
        def of_others(*values: object) -> object:
            following = iter(values)
            return f(*tree.unflatten(treedef, [x if isinstance(x, Ref) else next(following) for x in leaves]))

        return named_as(of_others, f)

    return [*map(closed, functions)], arrays


def branch(owner: str, f: Function, refs: Refs) -> Function:
    """values, *operands -> (result, values), from *operands -> result."""

    def of_values(values: Sequence[Value], *operands: object) -> tuple[object, Sequence[Value]]:
        with Frame(owner, refs, values) as frame:
            result = f(*operands)
        return result, frame.values

    return named_as(of_values, f)


def named_as(wrapper: Function, f: Function) -> Function:
    """The wrapper, with the name of the user's function for the program."""
    if is_named(f):
        wrapper.__name__ = f.__name__
    return wrapper
