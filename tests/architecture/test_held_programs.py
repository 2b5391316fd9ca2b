"""The parameters that hold programs are named where their primitive is, and nowhere else.

Other files call rune.core.higher.calls to list the programs of an equation, and map_programs to
change them.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Source, sources

OWNERS = {
    "program": (
        "rune/transforms/programs/call_rules.py",
        "rune/transforms/compile/jit_primitive.py",
        "rune/transforms/checkpoint/checkpoint.py",
        "rune/transforms/custom/",
        "rune/transforms/sharding/primitive.py",
        "rune/control/implicit/linear_solve.py",
    ),
    "branches": ("rune/control/branch/", "rune/ops/branch.py"),
    "body": ("rune/control/scan/", "rune/control/while_loop/", "rune/ops/loop.py"),
    "condition": ("rune/control/while_loop/", "rune/ops/loop.py"),
    "linear_step": ("rune/control/while_loop/",),
    "operator": ("rune/control/implicit/linear_solve.py",),
    "transposed": ("rune/control/implicit/linear_solve.py",),
}


def keys(node: ast.AST) -> Iterator[ast.expr | None]:
    """The keys that a node reads or writes: x[key], x.get(key), key in x, {**x, key: value}."""
    match node:
        case ast.Subscript():
            yield node.slice
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[first, *_]):
            yield first
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            yield node.left
        case ast.Dict() if None in node.keys:
            yield from node.keys


@functools.cache  # the tests of all parameters read the same files
def named(source: Source) -> set[str]:
    """The parameters that hold programs which a file names as keys."""
    is_named = re.search(rf"""["'](?:{"|".join(OWNERS)})["']""", source.text)
    return texts(source.tree) & set(OWNERS) if is_named else set()


def texts(tree: ast.AST) -> set[str]:
    """The strings that are used as keys."""
    looked_up = (key for node in ast.walk(tree) for key in keys(node))
    return {str(k.value) for k in looked_up if isinstance(k, ast.Constant)}


@pytest.mark.parametrize("name", OWNERS)
def test_only_the_owners_of_a_parameter_that_holds_a_program_name_it(name: str):
    files = [str(s) for s in sources() if name in named(s)]

    assert [f for f in files if not f.startswith(OWNERS[name])] == []


def test_every_way_to_name_a_parameter_is_detected():
    text = """
params["program"]
params.get("body")
"branches" in params
{**params, "condition": p}
"""

    assert texts(ast.parse(text)) == {"program", "body", "branches", "condition"}
