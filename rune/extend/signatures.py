"""The signature and docstring of a user-defined operation, taken from one of its functions.

That function is `form`: the expansion, or else the NumPy meaning, or else the type rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.records import dataclass


class HasForm(Protocol):
    """An operation with a name and the function that lends it a signature."""

    @property
    def name(self) -> str:
        """The name of the operation."""
        ...

    @property
    def form(self) -> Callable[..., object] | None:
        """The function, if there is one."""
        ...


def signature_of(function: Callable[..., object] | None) -> inspect.Signature | None:
    """The signature of a function; None for a C function without one."""
    try:
        return None if function is None else inspect.signature(function)
    except ValueError:
        return None


class Signature:
    """The descriptor behind `__signature__` of an operation."""

    def __get__(self, operation: HasForm | None, owner: type) -> inspect.Signature:
        signature = None if operation is None else signature_of(operation.form)
        if signature is None:
            raise AttributeError("__signature__")
        return signature


@dataclass(frozen=True, slots=True)
class Docstring:
    """The descriptor behind `__doc__`: an operation's call and docstring, or the class's own."""

    of_class: str | None

    def __get__(self, operation: HasForm | None, owner: type) -> str | None:
        if operation is None or operation.form is None:
            return self.of_class
        text = inspect.getdoc(operation.form) or "A user-defined operation."
        return f"{operation.name}{signature_of(operation.form) or '(...)'}\n\n{text}"


def require_operands(name: str, meaning: object, args: Sequence[object], params: Mapping[str, object]) -> None:
    """Errors: ArgumentError for an array among the parameters, whose derivative would be lost, and
    for a number of operands that the NumPy ufunc does not take."""
    for parameter, value in params.items():
        if any(isinstance(leaf, Array | np.ndarray) for leaf in tree.leaves(value)):
            raise ArgumentError(
                f"{name}: cannot take {parameter} by name (it is an array, and arrays are operands)",
                hint="pass operands by position; arguments passed by name are static parameters",
            )
    if isinstance(meaning, np.ufunc) and len(args) != meaning.nin:
        count = _operand_count(len(args))
        raise ArgumentError(f"{name}: cannot be called with {count} ({meaning.__name__} of NumPy takes {meaning.nin})")


def _operand_count(operands: int) -> str:
    return f"{operands} operand{'s' * (operands != 1)}"


def require_callable(
    name: str, functions: Sequence[Callable[..., object] | None], args: Sequence[object], params: Mapping[str, object]
) -> None:
    """Errors: ArgumentError for operands and parameters that one of the functions does not take."""
    for function in functions:
        signature = signature_of(function)
        try:
            _ = signature and signature.bind(*args, **params)
        except TypeError as error:
            call = ", ".join([_operand_count(len(args)), *params])
            raise ArgumentError(
                f"{name}: cannot be called with {call} ({error})", hint=f"it is {name}{signature}"
            ) from None
