"""Names for parts of a program: `with named_scope("layer"):` names the operations in the block.

The frame of each equation holds the scope in which the equation was traced, and the user's line.
Errors, profiles and the text of programs show it; it has no other effect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import ParamSpec, Self, TypeVar

from rune.context import innermost, inside, put

P = ParamSpec("P")
R = TypeVar("R")


class Scope(str):
    """The names of the enclosing scopes, the outermost first, joined by slashes."""

    __slots__ = ()


def scope() -> str:
    """The names of the current scopes, the outermost first, joined by slashes."""
    return str(innermost(Scope) or "")


def set_scope(name: str) -> None:
    """Put later work in this context into this scope and no other."""
    put(Scope, Scope(name))


class named_scope(ContextDecorator):
    """Name the operations in a block or, as a decorator, in a function; scopes nest.

    Errors, profiles and the lines in a program's text show the name.
    Errors: TypeError for a name that is not a string.

    >>> import rune, rune.numpy as rnp
    >>> @rune.named_scope("net")
    ... def f(x):
    ...     with rune.named_scope("layer"):
    ...         return rnp.sin(x)
    >>> rune.make_program(f)(1.0).equations[0].source_info.name_stack
    'net/layer'
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope: cannot use {name!r} as a name (a string required)")
        self.name = name

    def _recreate_cm(self) -> Self:  # a function may call itself
        return type(self)(self.name)

    def __enter__(self) -> None:
        outer = scope()
        self._block = inside(Scope, Scope(f"{outer}/{self.name}" if outer else self.name))
        self._block.__enter__()

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        self._block.__exit__(error, value, traceback)


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """The function, with each call in a scope of its name, or of `name`.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> program = rune.make_program(rune.named_call(rnp.sin, name="wave"))(1.0)
    >>> program.equations[0].source_info.name_stack
    'wave'
    """
    scope_name = name or getattr(fun, "__name__", type(fun).__name__)

    @functools.wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(scope_name):
            return fun(*args, **kwargs)

    return call
