"""The difference of two trees, for messages: the path of the first leaf that only one has."""

from __future__ import annotations

from collections.abc import Callable

from rune import tree
from rune.tree import TreeDef

Words = Callable[[str], str]


def mismatch(a: TreeDef, b: TreeDef, only_in_a: Words, only_in_b: Words, otherwise: str) -> str:
    """The difference of two structures, in the caller's words.

    only_in_a, only_in_b: the message about the path of a leaf that only one of them has.
    otherwise: with a `{}` for each structure; used if the containers differ and not their leaves.
    """
    missing, extra = _only_in(a, b), _only_in(b, a)
    if "" not in (missing, extra):  # neither is a leaf alone
        if missing is not None:
            return only_in_a(missing)
        if extra is not None:
            return only_in_b(extra)
    return otherwise.format(structure_text(a), structure_text(b))


def results_differ(expected_tree: TreeDef, actual: TreeDef) -> str:
    """The difference of a rule's results from those of its function, for messages."""
    return mismatch(
        expected_tree,
        actual,
        "it does not give result{}".format,
        "the function has no result{}".format,
        "the function gives {}, the rule {}",
    )


def _only_in(a: TreeDef, b: TreeDef) -> str | None:
    """The key path of the first leaf that only the first structure has."""
    paths_of_other = set(paths(b))
    return next((path for path in paths(a) if path not in paths_of_other), None)


def paths(treedef: tree.TreeDef) -> list[str]:
    """The key path of every leaf, as `['a'][0]`."""
    # The leaves are replaced by numbers, since only their paths matter.
    numbered_tree = tree.unflatten(treedef, range(treedef.num_leaves))
    return [tree.keystr(path) for path, _ in tree.leaves_with_path(numbered_tree)]


def structure_text(treedef: tree.TreeDef) -> str:
    """A structure for messages: `{'a': *}`."""
    text = str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
    return "a single value" if text == "*" else text


def kind_of(value: object) -> str:
    """A value for messages: its array type, or its Python type."""
    return str(getattr(value, "type", type(value).__name__))
