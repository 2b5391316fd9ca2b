"""The functions of `rune.tree` under the names of jax.tree_util.

All registries share one set of registered classes: `default_registry`, and `none_leaf_registry`, to
which None is a leaf.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterable, Sequence
from typing import Any

from rune import tree
from rune.absent import of as _absent
from rune.listing import names as _names
from rune.records import dataclass
from rune.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    IsLeaf,
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
from rune.tree.registry import TUPLE, Flatten, FlattenWithKeys, Unflatten
from rune.tree.treedef import node_of, required

KeyEntry = Any  # DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey, or a user-defined key
PyTreeDef = TreeDef
register_pytree_node = tree.register_node
register_pytree_node_class = tree.register_node_class
register_pytree_with_keys = tree.register_node_with_keys
register_pytree_with_keys_class = tree.register_node_with_keys_class
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
    """Whether the structure is a leaf or an empty container.

    Errors: ArgumentError for anything but a structure.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure([1]))
    (True, False)
    """
    return required("treedef_is_leaf", treedef).num_nodes == 1


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The structure of a tuple of trees with these structures.

    Errors: none for structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([2, 3])])
    PyTreeDef((*, [*, *]))
    """
    return node_of(TUPLE, None, tuple(required("treedef_tuple", t) for t in treedefs))


@dataclass(frozen=True, slots=True)
class Registry:
    """The classes that are nodes of trees, as an object; all registries share the same classes.

    none_is_leaf: whether None is a leaf, and not a node without leaves.
    Errors: ArgumentError for a class that is already registered.

    >>> import rune
    >>> rune.tree_util.none_leaf_registry.flatten([1, None])
    ([1, None], PyTreeDef([*, *]))
    """

    none_is_leaf: bool = False

    def flatten(self, tree: object, leaf_predicate: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
        """The leaves of a tree, and its structure."""
        stops = leaf_predicate
        if self.none_is_leaf:
            stops = lambda node: node is None or (leaf_predicate is not None and leaf_predicate(node))  # noqa: E731
        return tree_flatten(tree, stops)

    def flatten_with_path(
        self, tree: object, leaf_predicate: IsLeaf | None = None
    ) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
        """The (key path, leaf) pairs of a tree, and its structure.

        The predicate takes a key path and a node.
        """
        stops = leaf_predicate or (lambda _, node: False)
        return tree_flatten_with_path(
            tree, lambda path, node: (self.none_is_leaf and node is None) or stops(path, node), True
        )

    def flatten_one_level(self, tree: object) -> tuple[list[Any], Any] | None:
        """The children of a node, and its data; None for a leaf."""
        return flatten_one_level(tree) if self.is_node(type(tree)) else None

    def flatten_one_level_with_keys(self, tree: object) -> tuple[list[tuple[Any, Any]], Any] | None:
        """The (key, child) pairs of a node, and its data; None for a leaf."""
        return flatten_one_level_with_keys(tree) if self.is_node(type(tree)) else None

    def is_node(self, type: type) -> bool:
        """Whether the instances of a class are nodes."""
        return is_tree_node(type) and not (self.none_is_leaf and type is _NONE)

    def register_node(
        self,
        type: type,
        to_iterable: Flatten,
        from_iterable: Unflatten,
        to_iterable_with_keys: FlattenWithKeys | None = None,
    ) -> None:
        """As `register_pytree_node`."""
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str]) -> None:
        """As `register_dataclass`."""
        register_dataclass(type, data_fields, meta_fields)


_NONE = type(None)
default_registry = Registry()
none_leaf_registry = Registry(none_is_leaf=True)

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "Registry"]
__all__ += ["SequenceKey", "all_leaves", "default_registry", "flatten_one_level", "flatten_one_level_with_keys"]
__all__ += ["is_tree_node", "keystr", "none_leaf_registry", "register_dataclass", "register_pytree_node"]
__all__ += ["register_pytree_node_class", "register_pytree_with_keys", "register_pytree_with_keys_class"]
__all__ += ["register_static", "tree_all", "tree_broadcast", "tree_flatten", "tree_flatten_with_path"]
__all__ += ["tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce"]
__all__ += ["tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children"]
__all__ += ["treedef_is_leaf", "treedef_tuple"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
