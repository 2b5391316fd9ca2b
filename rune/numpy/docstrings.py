"""Docstrings of functions made from a table: a sentence, the facts of its kind, an example."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import Any, TypeVar

from rune.ops.elementwise_rows import Row

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORTS = {"rnp": "import rune.numpy as rnp", "lax": "from rune import lax"}


def elementwise(types: str = "", condition: str = "") -> str:
    """The docstring lines shared by all elementwise functions of one array."""
    return _facts("any, unchanged", types, condition)


def broadcast(types: str = "", condition: str = "") -> str:
    """The docstring lines shared by all elementwise functions of several arrays."""
    return _facts("broadcast together", types, condition, "ShapeError if the shapes do not match")


def alike(takes: str) -> str:
    """The docstring lines shared by all functions whose operands have one shape and dtype."""
    conditions = ("DtypeError for other or unequal dtypes", "ShapeError for unequal shapes")
    return _facts("equal, or [] of Python numbers", f"all alike, {takes}", *conditions)


def _facts(shapes: str, types: str, *conditions: str) -> str:
    errors = ["ArgumentError if an argument is not an array", *filter(None, conditions)]
    lines = [f"Shapes: {shapes}." + (f" Types: {types}." if types else "")]
    lines += wrap(f"Errors: {'; '.join(errors)}.", 92, subsequent_indent=" " * 8)
    return "\n    ".join(lines)


def documented(function: Function, name: str, sentence: str, facts: str, example: str, result_text: str) -> Function:
    """`function` under its public name, with a docstring; an example begins with a namespace."""
    imports = _IMPORTS[example.partition(".")[0]]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{sentence}\n\n    {facts}\n\n    >>> {imports}\n    >>> {example}\n    {result_text}\n"
    return function


def documented_row(function: Function, name: str, row: Row, facts: str, namespace: str) -> Function:
    """`function` under its name in a namespace, with the docstring of its row in the table."""
    return documented(function, name, row.sentence, facts, f"{namespace}.{name}({row.arguments})", row.result)
