"""Functions that take only operands: the other arguments of NumPy's ufuncs are refused by name.

    sin(x, out=y)   ArgumentError: sin: cannot write into out= (arrays are immutable)

Python itself would only report an unexpected keyword, without a hint what to write instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from types import CodeType
from typing import ParamSpec, TypeVar

from rune.errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")

# The request behind a keyword, why it is refused, and what to write instead; {call} is the call.
_REFUSED = {
    "out": (
        "write into out=",
        "arrays are immutable",
        "y = {call} is a new array, and y = y.at[...].set({call}) writes into part of one",
    ),
    "where": (
        "leave elements out by where=",
        "every element of a result is computed",
        "rune.numpy.where(mask, {call}, otherwise) chooses",
    ),
    "dtype": (
        "compute in another dtype by dtype=",
        "the dtypes of the operands decide",
        "convert the operands first, or the result: {call}.astype(dtype)",
    ),
    "order": ("lay a result out by order=", "arrays have no visible layout", "leave it out: {call}"),
    "casting": ("cast by casting=", "the dtypes of the operands decide", "convert the operands: x.astype(dtype)"),
}


def refuse_options(name: str, options: Mapping[str, object], parameters: Collection[str] = ()) -> None:
    """Errors: ArgumentError for an option that NumPy's function takes but this one does not."""
    for option in options:
        if option in _REFUSED and option not in parameters:
            action, why, hint = _REFUSED[option]
            call = f"rune.numpy.{name}(...)"
            raise ArgumentError(f"{name}: cannot {action} ({why})", hint=hint.format(call=call))


def parameters_of(function: Callable[..., object]) -> tuple[str, ...]:
    """The names that a function takes."""
    code: CodeType = inspect.unwrap(function).__code__  # type: ignore[attr-defined]
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def operands_alone(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, refusing the other arguments of NumPy's by name; Python refuses all others."""
    parameters = parameters_of(function)

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if options:
            refuse_options(call.__name__, options, parameters)
        return function(*args, **options)

    return call
