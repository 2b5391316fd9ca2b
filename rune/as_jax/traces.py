"""Interpreters of JAX's: installing one is refused. Haiku defines one, to count products.

Equinox compares the interpreter of a tracer with the current one.
"""

from __future__ import annotations

from typing import NoReturn

from rune.core.interpreter import Interpreter, current
from rune.errors import ArgumentError

HINT = "read the program of jax.make_jaxpr(f)(x) instead: its equations name every operation"


class Trace:
    """A class to derive interpreters of one's own from. Rune has interpreters of its own."""

    def __init__(self, *args: object, **kwargs: object):
        _refuse(type(self).__name__)


class TraceTag:
    """What tells the traces of one transformation from those of another."""


def find_top_trace(values: object) -> Interpreter:
    """The interpreter that answers now."""
    return current()


def set_current_trace(trace: object) -> NoReturn:
    """Errors: ArgumentError, always: an interpreter of JAX's cannot be installed."""
    _refuse("set_current_trace")


def take_current_trace() -> NoReturn:
    """Errors: ArgumentError, always: rune's interpreter is not one of JAX's."""
    _refuse("take_current_trace")


def _refuse(name: str) -> NoReturn:
    raise ArgumentError(f"{name}: cannot use an interpreter of JAX's (rune's transformations do not know it)", HINT)
