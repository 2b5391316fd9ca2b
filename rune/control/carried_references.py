"""Loops and branches whose bodies write references: their values are carried beside the others.

`carried` and its neighbours make, of a function of the user's, the function that is traced: it
takes the values of the references beside its own argument, and returns them beside its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rune.core.values import Value
from rune.transforms.references import Frame, Ref

Refs = Sequence[Ref]
Function = Callable[..., Any]


def step(owner: str, f: Function, refs: Refs) -> Function:
    """(carry, values), x -> (carry, values), y, of carry, x -> carry, y."""

    def of_pair(state: tuple[object, Sequence[Value]], x: object) -> object:
        carry, values = state
        with Frame(owner, refs, values) as frame:
            pair = f(carry, x)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return pair  # which the loop refuses
        return (pair[0], frame.values), pair[1]

    return _named(of_pair, f)


def body(owner: str, f: Function, refs: Refs) -> Function:
    """(value, values) -> (value, values), of value -> value."""

    def of_pair(state: tuple[object, Sequence[Value]]) -> tuple[object, Sequence[Value]]:
        value, values = state
        with Frame(owner, refs, values) as frame:
            result = f(value)
        return result, frame.values

    return _named(of_pair, f)


def condition(owner: str, f: Function, refs: Refs) -> Function:
    """(value, values) -> bool, of value -> bool, which may read references but not write them."""

    def of_pair(state: tuple[object, Sequence[Value]]) -> object:
        value, values = state
        with Frame(f"{owner}: cond_fun", refs, values, refuses=("write",)) as frame:
            result = f(value)
        frame.require_unwritten(values)
        return result

    return _named(of_pair, f)


def branch(owner: str, f: Function, refs: Refs) -> Function:
    """values, *operands -> (result, values), of *operands -> result."""

    def of_values(values: Sequence[Value], *operands: object) -> tuple[object, Sequence[Value]]:
        with Frame(owner, refs, values) as frame:
            result = f(*operands)
        return result, frame.values

    return _named(of_values, f)


def _named(wrapper: Function, f: Function) -> Function:
    """The program bears the name of the user's function."""
    functools.update_wrapper(wrapper, f, assigned=("__name__",), updated=())
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper
