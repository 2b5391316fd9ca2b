"""Every public name says what it does, and shows it: its example runs and prints what it shows.

Functions made from tables are no functions of their module to doctest, so all are run here.
"""

from __future__ import annotations

import doctest
import inspect
import sys
from typing import Any

import pytest

import rune
from docs.site import ROOMS, members, public_names, room

CALLABLE = [
    (f"{place}.{name}", found)
    for place, name, found in members()
    if inspect.isfunction(found) or (inspect.isclass(found) and not issubclass(found, Exception))
]


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_name_of_a_room_has_a_docstring(place: str):
    found = room(place)
    silent = [n for n in public_names(found) if callable(getattr(found, n))
              and not (inspect.getdoc(getattr(found, n)) or "").strip()]  # fmt: skip

    assert silent == []


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_function_shows_an_example(place: str):
    found = room(place)
    bare = [n for n in public_names(found) if shows_nothing(getattr(found, n))]

    assert bare == []


def shows_nothing(function: Any) -> bool:
    """A function that returns, without an example."""
    if not inspect.isfunction(function):
        return False
    refuses = inspect.signature(function).return_annotation == "NoReturn"
    return not refuses and ">>>" not in (inspect.getdoc(function) or "")


def examples() -> list[Any]:
    """The examples of all public names, each object once."""
    seen: dict[int, tuple[str, Any]] = {}
    for name, found in CALLABLE:
        seen.setdefault(id(found), (name, found))
    finder = doctest.DocTestFinder(recurse=False)
    return [
        test
        for name, found in seen.values()
        for test in finder.find(found, name, globs=dict(vars(sys.modules[found.__module__])))
        if test.examples
    ]


@pytest.mark.parametrize("example", examples(), ids=lambda t: t.name)
def test_an_example_prints_what_it_shows(example: doctest.DocTest):
    printed: list[str] = []

    failed, _ = doctest.DocTestRunner().run(example, out=printed.append)

    assert failed == 0, "".join(printed)


def test_rune_itself_shows_an_example():
    assert ">>>" in (rune.__doc__ or "")
