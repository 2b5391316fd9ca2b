"""The `__init__` files of the public rooms export what they import.

rune is typed (py.typed), so a type checker takes `from a import b` for a private name and refuses
it to users; `from a import b as b` and `__all__` export it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Source, sources

NAMES = ("lax", "nn", "numpy", "optim", "random", "scipy", "sharding", "tree")
ROOMS = ("rune", *(f"rune.{name}" for name in NAMES))
DOORS = [
    s for s in sources() if str(s).endswith("__init__.py") and (s.name in ROOMS or s.name.startswith("rune.scipy."))
]


def listed(tree: ast.Module) -> set[str]:
    """The names of `__all__`, which are exported."""
    lists = (n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    return {str(e.value) for value in lists for e in ast.walk(value) if isinstance(e, ast.Constant)}


def private_imports(source: Source) -> Iterator[str]:
    """Names without an underscore that are imported, but neither listed nor said twice."""
    tree = source.tree
    assert isinstance(tree, ast.Module)
    if listed(tree):
        return  # what is not listed is the door's own
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from (a.name for a in node.names if a.asname is None and not a.name.startswith("_"))


def test_the_package_has_public_modules():
    assert {s.name for s in DOORS} >= set(ROOMS)


@pytest.mark.parametrize("door", DOORS, ids=lambda s: s.name)
def test_a_public_module_exports_what_it_imports(door: Source):
    assert list(private_imports(door)) == []
