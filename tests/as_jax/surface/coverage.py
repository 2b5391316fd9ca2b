"""The names of a library called jax that expressions and calls of the tests mention."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.as_jax.surface.compare import of_rune, stored
from tests.as_jax.surface.functions.letters import FAMILIES, expressions, scope
from tests.as_jax.surface.objects.expressions import FOLDER, PROGRAMS, import_modules, lines

_NOTHING = object()  # for an expression that is not a chain of names
_SOURCES = [Path(__file__).with_name("calls.py"), *(FOLDER / f"{name}.py" for name in PROGRAMS)]


def untested() -> Iterator[tuple[str, str]]:
    """Names by section that no expression, object or call uses.

    A second name of the same thing is tested with the first; for objects any mention of an
    attribute counts. Modules do not count as names.
    """
    values, attributes = _spoken()
    ours = of_rune()
    for title, names in stored().items():
        for name in names:
            if name in ours.get(title, {}) and not _is_spoken(title, name, values, attributes):
                yield title, name


def _is_spoken(title: str, name: str, values: dict[Any, Any], attributes: frozenset[str]) -> bool:
    if not title.startswith("jax"):
        return name in attributes
    value = getattr(import_module(title), name)
    return inspect.ismodule(value) or _identity(value) in values


def _identity(value: Any) -> Any:
    """A key shared by all names of one object: a method is another object each time it is read."""
    return value if inspect.ismethod(value) else id(value)


@cache
def _spoken() -> tuple[dict[Any, Any], frozenset[str]]:
    """Values by their identities, and names of attributes."""
    import_modules()
    texts = [e.text for family in FAMILIES for e in expressions(family)]
    trees = [*map(ast.parse, [*texts, *lines(), *(path.read_text() for path in _SOURCES)])]
    attributes = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    values = [v for v in map(_value, attributes) if v is not _NOTHING]
    return {_identity(v): v for v in values}, frozenset(n.attr for n in attributes)


def _value(node: ast.expr) -> Any:
    """The value of a chain of names that begins with a module."""
    if isinstance(node, ast.Name):
        return scope().get(node.id, _NOTHING)
    return getattr(_value(node.value), node.attr, _NOTHING) if isinstance(node, ast.Attribute) else _NOTHING
