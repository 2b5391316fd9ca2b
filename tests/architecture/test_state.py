"""The context of code: three context variables, and one record by type (decision 0098)."""

from __future__ import annotations

import ast
import contextvars
import itertools
import re

import pytest

from rune.context import innermost, inside, put
from tests.architecture.sources import sources

VARIABLES = {
    "rune/config.py": "rune_config",  # native code reads it and the next one in every cached call
    "rune/core/interpreter.py": "rune_interpreter",
    "rune/context.py": "rune_context",
}


class Line(int):
    """One type of entries."""


class Scope(str):
    """Another."""


def test_a_context_carries_the_interpreter_the_settings_and_one_record():
    variables = {
        str(s): ast.literal_eval(node.args[0])
        for s in sources("rune")
        if "ContextVar" in s.text
        for node in ast.walk(s.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split("[")[0].endswith("ContextVar")
    }

    assert variables == VARIABLES


def test_no_function_writes_a_name_of_its_module():
    files = [s for s in sources("rune") if re.search(r"^\s*global\b|;\s*global\b", s.text, re.MULTILINE)]
    offences = [str(s) for s in files for node in ast.walk(s.tree) if isinstance(node, ast.Global)]

    assert not offences


def test_only_packages_install_one_module_in_another():
    """Loading a module changes no other one: the package passes the language its interpreter."""
    calls = {
        (str(s), ast.unparse(node.value.func))
        for s in sources("rune")
        for node in s.tree.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    }
    installing = {(file, call) for file, call in calls if re.search(r"(^|[._])(install|attach)", call)}

    assert ("rune/__init__.py", "_install_outermost") in installing
    assert {file for file, _ in installing} == {"rune/__init__.py", "rune/as_jax/__init__.py"}


def test_the_innermost_entry_of_a_type_is_found():
    with inside(Line, Line(1)), inside(Scope, Scope("net")):
        with inside(Line, Line(2)):
            assert (innermost(Line), innermost(Scope)) == (2, "net")
        assert innermost(Line) == 1
    assert innermost(Line) is None


def test_a_block_of_nothing_hides_the_entry_outside():
    with inside(Line, Line(1)):
        with inside(Line, None):
            assert innermost(Line) is None
        assert innermost(Line) == 1


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_blocks_of_different_types_end_in_any_order(order: tuple[int, ...]):
    kinds = (Line, Scope, type("Third", (int,), {}))
    blocks = [inside(kind, kind()) for kind in kinds]
    for block in blocks:
        block.__enter__()

    for count, number in enumerate(order, 1):
        blocks[number].__exit__(None, None, None)
        assert [innermost(kind) is None for kind in kinds] == [n in order[:count] for n in range(3)]


def test_a_copy_of_the_context_keeps_its_entries():
    copy = contextvars.copy_context()

    assert copy.run(lambda: (put(Line, Line(3)), innermost(Line))[1]) == 3
    assert innermost(Line) is None
    assert copy.run(innermost, Line) == 3
