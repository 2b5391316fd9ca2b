"""JAX's interpreters, which can be defined but not installed.

Haiku defines one, to count products; Equinox compares a tracer's interpreter with the current one.
"""

from __future__ import annotations

from typing import NoReturn

from rune.core.interpreter import Interpreter, current
from rune.errors import ArgumentError

HINT = "read the program of jax.make_jaxpr(f)(x) instead: its equations name every operation"


class Trace:
    """The base class of user-defined interpreters. Creating an instance is refused."""

    def __init__(self, *args: object, **kwargs: object):
        _refuse(type(self).__name__)


class TraceTag:
    """A tag that distinguishes the traces of different transformations."""


def find_top_trace(values: object) -> Interpreter:
    """The current interpreter."""
    return current()


def set_current_trace(trace: object) -> NoReturn:
    """Errors: ArgumentError, always: rune cannot install JAX's interpreters."""
    _refuse("set_current_trace")


def take_current_trace() -> NoReturn:
    """Errors: ArgumentError, always: rune's interpreter is not one of JAX's."""
    _refuse("take_current_trace")


def _refuse(name: str) -> NoReturn:
    raise ArgumentError(f"{name}: cannot use an interpreter of JAX's (rune's transformations have their own)", HINT)
