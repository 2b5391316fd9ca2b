"""The signature and the docstring of an operation of one's own: those of its function.

The function is `form`: the expansion, or else the meaning in NumPy, or else the rule of types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rune.errors import ArgumentError


class HasForm(Protocol):
    """An operation with a name and a function that has its signature."""

    @property
    def name(self) -> str:
        """That of the operation."""
        ...

    @property
    def form(self) -> Callable[..., object] | None:
        """The function, if there is one."""
        ...


def signature_of(function: Callable[..., object] | None) -> inspect.Signature | None:
    """The signature of a function; None for functions of C that have none."""
    try:
        return None if function is None else inspect.signature(function)
    except ValueError:
        return None


class Signature:
    """`__signature__` of an operation."""

    def __get__(self, operation: HasForm | None, owner: type) -> inspect.Signature:
        signature = None if operation is None else signature_of(operation.form)
        if signature is None:
            raise AttributeError("__signature__")
        return signature


@dataclass(frozen=True, slots=True)
class Docstring:
    """`__doc__` of an operation: its call and the docstring of its function; else the class's."""

    of_class: str | None

    def __get__(self, operation: HasForm | None, owner: type) -> str | None:
        if operation is None or operation.form is None:
            return self.of_class
        text = inspect.getdoc(operation.form) or "An operation of one's own."
        return f"{operation.name}{signature_of(operation.form) or '(...)'}\n\n{text}"


def require_callable(
    name: str, functions: Sequence[Callable[..., object] | None], args: Sequence[object], params: Mapping[str, object]
) -> None:
    """Errors: ArgumentError for operands and parameters that one of the functions does not have."""
    for function in functions:
        signature = signature_of(function)
        try:
            _ = signature and signature.bind(*args, **params)
        except TypeError as error:
            call = ", ".join([f"{len(args)} operand{'s' * (len(args) != 1)}", *params])
            raise ArgumentError(
                f"{name}: cannot be called with {call} ({error})", hint=f"it is {name}{signature}"
            ) from None
