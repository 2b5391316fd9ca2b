"""Trees under the names of jax.tree_util; `rune.tree` has what they are.

Not here: default_registry, of which there is one and no object.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterable
from typing import Any

from rune import tree
from rune.absent import of as _absent
from rune.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    Partial,
    SequenceKey,
    TreeDef,
    all_leaves,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_dataclass,
    register_static,
)
from rune.tree.registry import TUPLE
from rune.tree.treedef import LEAF, node_of, required

KeyEntry = Any  # DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey, or a key of the user's own
PyTreeDef = TreeDef
register_pytree_node = tree.register_node
register_pytree_node_class = tree.register_node_class
register_pytree_with_keys = tree.register_node_with_keys
register_pytree_with_keys_class = tree.register_node_class
tree_all = tree.all
tree_broadcast = tree.broadcast
tree_flatten = tree.flatten
tree_flatten_with_path = tree.flatten_with_path
tree_leaves = tree.leaves
tree_leaves_with_path = tree.leaves_with_path
tree_map = tree.map
tree_map_with_path = tree.map_with_path
tree_reduce = tree.reduce
tree_reduce_associative = tree.reduce_associative
tree_structure = tree.structure
tree_transpose = tree.transpose
tree_unflatten = tree.unflatten


def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """The structures one level down.

    Errors: none for structures.

    >>> import rune
    >>> [d.num_leaves for d in rune.tree_util.treedef_children(rune.tree.structure([1, (2, 3)]))]
    [1, 2]
    """
    return required("treedef_children", treedef).children()


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Whether the structure is that of a leaf.

    Errors: none for structures.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure(None))
    (True, False)
    """
    return treedef is LEAF


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The structure of a tuple of trees with these structures.

    Errors: none for structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([2, 3])])
    PyTreeDef((*, [*, *]))
    """
    return node_of(TUPLE, None, tuple(required("treedef_tuple", t) for t in treedefs))


__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
