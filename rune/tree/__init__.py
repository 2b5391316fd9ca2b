"""Trees: nested containers as a list of leaves and a TreeDef, the structure without the leaves.

    {"b": (x, None), "a": y}   <->   [y, x]  and  PyTreeDef({'a': *, 'b': (*, None)})

None is a node without leaves. The names and their meanings are those of jax.tree.
registry.py: which classes are nodes. treedef.py: the structure. Here: functions on trees.
rune.tree_util: the same functions under the names of jax.tree_util.

Every jit call runs `flatten`, so some of its code below is unrolled by hand for speed.
Containers may be nested deeper than Python's recursion limit. Not supported: cycles.
"""

from __future__ import annotations

import functools
import typing as _typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rune.absent import of as _absent
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.tree.registry import (
    LIST,
    TUPLE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    Kind,
    SequenceKey,
    keys_of,
    keystr,
    kinds,
    register_dataclass,
    register_node,
    register_node_class,
    register_node_with_keys,
    register_node_with_keys_class,
    register_static,
    static,
)
from rune.tree.treedef import LEAF, TreeDef, flat_node, node_of, required

if _typing.TYPE_CHECKING:
    from rune.array import Array as _Array
    from rune.tree_files import load, save

    # A tree of arrays only, as far as types can express it: without user-defined node classes.
    _Arrays: _typing.TypeAlias = "_Array | tuple[_Arrays, ...] | list[_Array] | Mapping[Any, _Arrays] | None"
    _S = _typing.TypeVar("_S", bound=_Arrays)
    _R = _typing.TypeVar("_R")
    _K = _typing.TypeVar("_K")
    _WithOne: _typing.TypeAlias = Callable[[_Array, Any], _Array]
    _WithTwo: _typing.TypeAlias = Callable[[_Array, Any, Any], _Array]

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyPath", "Partial", "SequenceKey", "TreeDef", "all"]
__all__ += ["all_leaves", "broadcast", "broadcast_prefix", "flatten", "flatten_one_level"]
__all__ += ["flatten_one_level_with_keys", "flatten_up_to", "flatten_with_path", "is_tree_node", "keystr", "leaves"]
__all__ += ["leaves_with_path", "load", "map", "map_with_path", "reduce", "reduce_associative"]
__all__ += ["register_dataclass", "register_node", "register_node_class", "register_node_with_keys"]
__all__ += ["register_node_with_keys_class", "register_static", "save", "static", "structure", "transpose"]
__all__ += ["unflatten"]

IsLeaf = Callable[..., bool]
_MISSING = object()
_DEEPEST_CALL = 64  # of `_walk`, whose recursion is faster than the explicit stack of `_walk_deep`


def flatten(tree: object, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, and its structure. `is_leaf` can make a leaf of any node, even of None.

    Errors: ArgumentError for a dict with keys that cannot be sorted.

    >>> flatten({"b": 1, "a": [2, None]})
    ([2, 1], PyTreeDef({'a': [*, None], 'b': *}))
    """
    if is_leaf is not None:
        leaves, treedef = flatten_with_path(tree, is_leaf)
        return [leaf for _, leaf in leaves], treedef
    kind = kinds[type(tree)]
    if kind is None:
        return [tree], LEAF
    leaves: list[Any] = []
    return leaves, _walk(kind, tree, leaves, 0)


def _walk(kind: Kind, tree: Any, leaves: list[Any], depth: int) -> TreeDef:
    # The hot path: a container that holds only leaves costs one look-up and no tuple of parts.
    if kind is TUPLE or kind is LIST:
        children, data = tree, None
    else:
        children, data = kind.split(tree)
    for child in children:
        if kinds[type(child)] is not None:
            break
    else:
        leaves += children
        return flat_node(kind, data, len(children))
    parts: list[TreeDef] = []
    for child in children:
        inner = kinds[type(child)]
        if inner is None:
            leaves.append(child)
            parts.append(LEAF)
        elif depth < _DEEPEST_CALL:
            parts.append(_walk(inner, child, leaves, depth + 1))
        else:
            parts.append(_walk_deep(child, leaves))
    return node_of(kind, data, tuple(parts))


def _walk_deep(tree: object, leaves: list[Any]) -> TreeDef:
    around: list[tuple[Kind, Any, Iterator[Any], list[TreeDef]]] = []  # open nodes, outer first
    while True:
        kind = kinds[type(tree)]
        if kind is None:
            leaves.append(tree)
            around[-1][3].append(LEAF)
        else:
            children, data = kind.split(tree)
            around.append((kind, data, iter(children), []))
        while (tree := next(around[-1][2], _MISSING)) is _MISSING:
            kind, data, _, parts = around.pop()
            part = node_of(kind, data, tuple(parts))
            if not around:
                return part
            around[-1][3].append(part)


def flatten_with_path(
    tree: object, is_leaf: IsLeaf | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """The (key path, leaf) pairs of a tree, and its structure.

    is_leaf_takes_path: call `is_leaf(path, node)` instead of `is_leaf(node)`.

    Errors: none: anything but a container is a leaf.

    >>> [(keystr(path), leaf) for path, leaf in flatten_with_path({"a": [7, 8]})[0]]
    [("['a'][0]", 7), ("['a'][1]", 8)]
    """
    pairs: list[tuple[KeyPath, Any]] = []
    stops = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        stops = functools.partial(_without_path, is_leaf)
    return pairs, _walk_with_path(tree, (), stops, pairs)


def _without_path(is_leaf: IsLeaf, path: KeyPath, node: object) -> bool:
    return is_leaf(node)


def _walk_with_path(tree: object, path: KeyPath, stops: IsLeaf | None, pairs: list[tuple[KeyPath, Any]]) -> TreeDef:
    around: list[tuple[Kind, Any, KeyPath, Iterator[tuple[Any, Any]], list[TreeDef]]] = []
    while True:
        kind = kinds[type(tree)]
        if (stops is not None and stops(path, tree)) or kind is None:  # `is_leaf` sees leaves, too
            pairs.append((path, tree))
            part = LEAF
        else:
            children, data = kind.split(tree)
            steps = zip(keys_of(kind, tree, len(children)), children)
            around.append((kind, data, path, iter(steps), []))
            part = None
        while around:
            kind, data, path, steps, parts = around[-1]
            if part is not None:
                parts.append(part)
            step = next(steps, None)
            if step is not None:
                path, tree = (*path, step[0]), step[1]
                break
            around.pop()
            part = node_of(kind, data, tuple(parts))
        else:
            assert part is not None
            return part


def unflatten(treedef: TreeDef, leaves: Iterable[object]) -> Any:
    """Build the tree that has this structure and these leaves.

    Errors: ArgumentError for another number of leaves.

    >>> unflatten(structure({"a": 0, "b": (0, None)}), [1, 2])
    {'a': 1, 'b': (2, None)}
    """
    return required("unflatten", treedef).unflatten(leaves)


def leaves(tree: object, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree.

    Errors: none: anything but a container is a leaf.

    >>> from rune import tree
    >>> tree.leaves({"b": 2, "a": (1, None)})
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: object, is_leaf: IsLeaf | None = None) -> TreeDef:
    """The structure of a tree.

    Errors: none: anything but a container is a leaf.

    >>> structure({"a": 1, "b": (2, None)})
    PyTreeDef({'a': *, 'b': (*, None)})
    """
    return flatten(tree, is_leaf)[1]


def leaves_with_path(
    tree: object, is_leaf: IsLeaf | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The (key path, leaf) pairs of a tree.

    Errors: none: anything but a container is a leaf.

    >>> from rune import tree
    >>> [(tree.keystr(path), leaf) for path, leaf in tree.leaves_with_path({"a": [5]})]
    [("['a'][0]", 5)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# Without this overload, checkers would apply the next one to a tree of unknown type.
@_typing.overload
def map(f: Callable[..., object], tree: _typing.Never, *rest: object, is_leaf: IsLeaf | None = None) -> Any: ...
@_typing.overload
def map(f: Callable[[_Array], _Array], tree: _S, *, is_leaf: None = None) -> _S: ...
@_typing.overload
def map(f: _WithOne, tree: _S, second: object, /, *, is_leaf: None = None) -> _S: ...
@_typing.overload
def map(f: _WithTwo, tree: _S, second: object, third: object, /, *, is_leaf: None = None) -> _S: ...
@_typing.overload
def map(f: Callable[[_Array], _R], tree: _Array, *, is_leaf: None = None) -> _R: ...
@_typing.overload
def map(f: Callable[[_Array], _R], tree: dict[_K, _Array], *, is_leaf: None = None) -> dict[_K, _R]: ...
@_typing.overload
def map(f: Callable[[_Array], _R], tree: list[_Array], *, is_leaf: None = None) -> list[_R]: ...
@_typing.overload
def map(f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf | None = None) -> Any: ...
def map(f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf | None = None) -> object:
    """Apply f to each leaf of `tree`, and to the subtrees at its place in the trees of `rest`.

    Errors: ArgumentError with both key paths if `tree` is not a prefix of one of `rest`.

    >>> map(lambda x, y: x + y, {"a": 1, "b": None}, {"a": 10, "b": None})
    {'a': 11, 'b': None}
    """
    first, treedef = flatten(tree, is_leaf)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*row) for row in zip(first, *columns)])


def map_with_path(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: IsLeaf | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As `map`, where f takes the key path as its first argument.

    Errors: ArgumentError for trees that do not match, with the path.

    >>> from rune import tree
    >>> tree.map_with_path(lambda path, x: (tree.keystr(path), x), {"a": 1})
    {'a': ("['a']", 1)}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*pair, *row) for pair, *row in zip(pairs, *columns)])


def reduce(
    function: Callable[[Any, Any], _R], tree: object, initializer: object = _MISSING, is_leaf: IsLeaf | None = None
) -> _R:
    """Fold the leaves from the left.

    Errors: TypeError for a tree without leaves if there is no `initializer`.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
    6
    """
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], _R], tree: object, *, identity: Any = _MISSING, is_leaf: IsLeaf | None = None
) -> _R:
    """Fold the leaves with an associative operation in a balanced tree: log2(leaves) deep.

    Errors: ArgumentError for a tree without leaves if there is no identity.

    >>> reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    row = leaves(tree, is_leaf)
    if not row and identity is _MISSING:
        raise ArgumentError("reduce_associative: cannot fold a tree without leaves (no identity)")
    while len(row) > 1:
        pairs = [operation(*pair) for pair in zip(row[::2], row[1::2])]
        row = [*pairs, *row[2 * len(pairs) :]]
    return row[0] if row else identity


def all(tree: object, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether every leaf is true.

    Shapes: leaves of one element -> a Python bool.
    Errors: ArgumentError for an array of several elements.

    >>> from rune import tree
    >>> tree.all({"a": True, "b": [True, False]})
    False
    """
    return False not in [bool(leaf) for leaf in leaves(tree, is_leaf)]


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: object) -> Any:
    """Turn an outer tree of inner trees inside out; inner None takes the structure of the first.

    Errors: ArgumentError if the tree does not have the inner structure at every outer leaf.

    >>> transpose(structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    subtrees = required("transpose", outer_treedef).flatten_up_to(pytree_to_transpose)
    if inner_treedef is None and not subtrees:
        raise ArgumentError("transpose: cannot find the inner tree (the outer one has no leaves)")
    inner = structure(subtrees[0]) if inner_treedef is None else required("transpose", inner_treedef)
    rows = [inner.flatten_up_to(subtree) for subtree in subtrees]
    for row in rows:
        if not all_leaves(row):
            specifics = f"tree {structure(pytree_to_transpose)}, outer {outer_treedef}, inner {inner}"
            raise ArgumentError(f"transpose: cannot reach leaves ({specifics})")
    columns = [[row[i] for row in rows] for i in range(inner.num_leaves)]
    return inner.unflatten([outer_treedef.unflatten(column) for column in columns])


def all_leaves(iterable: Iterable[object], is_leaf: IsLeaf | None = None) -> bool:
    """Whether all values are leaves.

    Errors: none: anything but a container is a leaf.

    >>> all_leaves([1, "a"]), all_leaves([1, None])
    (True, False)
    """
    return False not in [structure(value, is_leaf) is LEAF for value in iterable]


def flatten_up_to(prefix: TreeDef, tree: object) -> list[Any]:
    """The subtrees of `tree` at the leaves of `prefix`.

    Errors: ArgumentError for trees that do not match, with the path.

    >>> flatten_up_to(structure((0, 0)), ({"a": 1}, [2, 3]))
    [{'a': 1}, [2, 3]]
    """
    return required("flatten_up_to", prefix).flatten_up_to(tree)


def is_tree_node(typ: type) -> bool:
    """Whether instances of a class are nodes: containers, namedtuples, None, registered classes.

    Errors: none: anything but a container is a leaf.

    >>> is_tree_node(dict), is_tree_node(type(None)), is_tree_node(set)
    (True, True, False)
    """
    return kinds[typ] is not None


def flatten_one_level_with_keys(tree: object) -> tuple[list[tuple[Any, Any]], Any]:
    """The (key, child) pairs of a node, and its data. Errors: ArgumentError for a leaf.

    >>> flatten_one_level_with_keys({"a": [1, 2]})
    ([(DictKey(key='a'), [1, 2])], ('a',))
    """
    kind = kinds[type(tree)]
    if kind is None:
        raise ArgumentError(f"flatten_one_level: cannot flatten a leaf ({type(tree).__name__})")
    children, data = kind.split(tree)
    return list(zip(keys_of(kind, tree, len(children)), children)), data


def flatten_one_level(tree: object) -> tuple[list[Any], Any]:
    """The children of a node, and its data. Errors: ArgumentError for a leaf.

    >>> flatten_one_level({"a": [1, 2], "b": {"c": 3}})
    ([[1, 2], {'c': 3}], ('a', 'b'))
    """
    pairs, data = flatten_one_level_with_keys(tree)
    return [child for _, child in pairs], data


def broadcast(prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None = None) -> Any:
    """The full tree, with each leaf replaced by the prefix's leaf above it.

    Errors: ArgumentError with both key paths where one is not a prefix of the other.

    >>> broadcast({"a": 0, "b": 1}, {"a": [7, 8], "b": 9})
    {'a': [0, 0], 'b': 1}
    """
    return structure(full_tree, is_leaf).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None = None) -> list[Any]:
    """For each leaf of the full tree, the prefix's leaf above it, as vmap reads in_axes=(0, None).

    Errors: ArgumentError with both key paths where one is not a prefix of the other.

    >>> broadcast_prefix((0, None), ({"a": 1, "b": 2}, [3]), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    values, treedef = flatten(prefix_tree, is_leaf)
    counts = [structure(subtree).num_leaves for subtree in treedef.flatten_up_to(full_tree)]
    return [value for value, count in zip(values, counts) for _ in range(count)]


class Partial(functools.partial[Any]):
    """A function with some arguments bound: a node whose leaves are those arguments.

    The function is static data, compared by ==. A Partial of a Partial merges into one with all
    arguments; those of a plain functools.partial remain part of the function.

    >>> add_one = Partial(lambda x, y: x + y, 1)
    >>> add_one(2), leaves(add_one)
    (3, [1])
    """

    __slots__ = ()

    def __new__(cls, func: Callable[..., object], /, *args: object, **keywords: object) -> Partial:
        # functools.partial would absorb a plain one; its bound __call__ works and compares alike.
        is_plain = isinstance(func, functools.partial) and not isinstance(func, Partial)
        return super().__new__(cls, func.__call__ if is_plain else func, *args, **keywords)

    def __repr__(self) -> str:
        arguments = [repr(x) for x in self.args] + [f"{k}={x!r}" for k, x in self.keywords.items()]
        return f"Partial({', '.join([repr(self.func), *arguments])})"


def _split_partial(partial: Partial) -> tuple[Sequence[Any], Any]:
    return [(GetAttrKey("args"), partial.args), (GetAttrKey("keywords"), partial.keywords)], partial.func


register_node_with_keys(Partial, _split_partial, lambda func, children: Partial(func, *children[0], **children[1]))

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
