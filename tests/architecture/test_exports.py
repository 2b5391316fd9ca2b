"""The `__init__` files of the public rooms export what they import.

rune is typed (py.typed), so a type checker takes `from a import b` for a private name and refuses
it to users; `from a import b as b`, `from a import *` and `__all__` export it. Without `__all__`
in `a` a star also imports what `a` itself imports."""

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
    lists = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    lists += [n.value for n in tree.body if isinstance(n, ast.AugAssign) and ast.unparse(n.target) == "__all__"]
    return {str(e.value) for value in lists for e in ast.walk(value) if isinstance(e, ast.Constant)}


def private_imports(source: Source) -> Iterator[str]:
    """Public names that are imported, but neither in `__all__` nor imported as themselves."""
    tree = source.tree
    assert isinstance(tree, ast.Module)
    if listed(tree):
        return  # what is not listed is the door's own
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from (a.name for a in node.names if a.asname is None and a.name[0] not in "_*")


def modules_behind_stars(source: Source) -> Iterator[str]:
    """The modules that a file imports with a star."""
    imports = (n for n in ast.walk(source.tree) if isinstance(n, ast.ImportFrom))
    yield from (str(n.module) for n in imports if n.names[0].name == "*")


def test_the_package_has_public_modules():
    assert {s.name for s in DOORS} >= set(ROOMS)


@pytest.mark.parametrize("door", DOORS, ids=lambda s: s.name)
def test_a_public_module_exports_what_it_imports(door: Source):
    assert list(private_imports(door)) == []


@pytest.mark.parametrize("module", sorted({m for door in DOORS for m in modules_behind_stars(door)}))
def test_a_module_that_is_imported_by_a_star_lists_its_names(module):
    source = next(s for s in sources() if s.name == module)

    assert listed(source.tree), f"{module} has no __all__"
