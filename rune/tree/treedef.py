"""TreeDef: the structure of a tree without its leaves.

Equality compares the complete structures. It is usually cheap, because a bounded cache of the
TreeDefs of plain containers makes most equal ones the same object.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, NoReturn

from rune.errors import ArgumentError
from rune.records import dataclass
from rune.tree.registry import DICT, LIST, NONE, ORDERED, TUPLE, Kind, keys_of, keystr, kinds


@dataclass(frozen=True, slots=True, eq=False)
class TreeDef:
    """The structure of a tree: immutable, hashable, compared by value.

    It prints like JAX's: PyTreeDef({'a': *, 'b': (*, None)}).

    >>> import rune
    >>> structure = rune.tree.structure({"a": 1, "b": (2, None)})
    >>> structure, structure.num_leaves, structure.unflatten([3, 4])
    (PyTreeDef({'a': *, 'b': (*, None)}), 2, {'a': 3, 'b': (4, None)})
    """

    kind: Kind | None  # None for a leaf
    data: Any
    parts: tuple[TreeDef, ...]
    num_leaves: int
    is_exact: bool  # whether any equal TreeDef can replace it
    _hash: list[int] = field(default_factory=list, repr=False)  # empty until it is computed

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves, including Nones."""
        return _folded(self, lambda _, counts: 1 + sum(counts))

    def children(self) -> list[TreeDef]:
        """The structures one level down."""
        return list(self.parts)

    def node_data(self) -> tuple[type, Any] | None:
        """The class and data of the outermost node (a list of keys for a dict); None for a leaf."""
        if self.kind is None:
            return None
        return self.kind.type, list(self.data) if self.kind is DICT else self.data

    @staticmethod
    def from_node_data_and_children(
        registry: object, node_data: tuple[type, Any] | None, children: Iterable[TreeDef]
    ) -> TreeDef:
        """The structure that `node_data` and `children` describe; `registry` makes no difference.

        Errors: ArgumentError if the class is not registered as a node.
        """
        if node_data is None:
            return LEAF
        kind = kinds[node_data[0]]
        if kind is None:
            raise ArgumentError(f"treedef: cannot make a node of {node_data[0].__name__} (not registered)")
        return node_of(kind, tuple(node_data[1]) if kind is DICT else node_data[1], tuple(children))

    def compose(self, inner: TreeDef) -> TreeDef:
        """The structure with `inner` in place of each leaf.

        >>> import rune
        >>> rune.tree.structure((0, None)).compose(rune.tree.structure([1, 2]))
        PyTreeDef(([*, *], None))
        """
        return _folded(self, functools.partial(_composed, required("compose", inner)))

    def walk(
        self, f_node: Callable[..., object], f_leaf: Callable[..., object] | None, leaves: Iterable[object]
    ) -> Any:
        """Fold leaves along the structure: f_leaf(leaf), then f_node(values of the children, data).

        The data of a namedtuple is its class, that of a dict a list of keys. Without f_leaf, f_node
        gets the leaves themselves. Errors: ArgumentError unless there are `num_leaves` leaves.

        >>> import rune
        >>> rune.tree.structure([1, (2, 3)]).walk(lambda parts, _: sum(parts), None, [1, 2, 3])
        6
        """
        leaf = iter(self._checked_leaves(leaves))
        values: list[object] = []
        for node in _postorder(self):
            if node.kind is None:
                values.append(next(leaf) if f_leaf is None else f_leaf(next(leaf)))
            else:
                start = len(values) - len(node.parts)
                values[start:] = [f_node(tuple(values[start:]), _walked_data(node))]
        return values[0]

    def from_iterable_tree(self, tree: Iterable[object]) -> Any:
        """The tree of this structure with leaves from nested iterables, one iterable per node.

        Errors: ArgumentError if an iterable has another number of children.

        >>> import rune
        >>> rune.tree.structure({"a": 0, "b": (0, 0)}).from_iterable_tree([1, [2, 3]])
        {'a': 1, 'b': (2, 3)}
        """
        leaves: list[object] = []
        pending: list[tuple[TreeDef, object]] = [(self, tree)]
        while pending:
            node, value = pending.pop()
            if node.kind is None:
                leaves.append(value)
                continue
            children = list(value)  # type: ignore[call-overload]
            if len(children) != len(node.parts):
                specifics = f"{len(node.parts)} children needed, {len(children)} given"
                raise ArgumentError(f"from_iterable_tree: cannot build the tree ({specifics}, {node})")
            pending.extend(reversed(list(zip(node.parts, children))))
        return self.unflatten(leaves)

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """The tree with these leaves.

        Errors: ArgumentError unless there are `num_leaves` leaves.
        """
        items = self._checked_leaves(leaves)
        if self.kind is None:
            return items[0]
        return _build(self, iter(items))

    def _checked_leaves(self, leaves: Iterable[object]) -> list[Any]:
        items = list(leaves)
        if len(items) != self.num_leaves:
            specifics = f"{self.num_leaves} leaves needed, {len(items)} given, {self}"
            raise ArgumentError(f"unflatten: cannot build the tree ({specifics})")
        return items

    def flatten_up_to(self, tree: object) -> list[object]:
        """The subtrees of `tree` at the leaves of this structure, which has to be a prefix of it.

        Errors: ArgumentError with both key paths if the two differ.
        """
        subtrees: list[object] = []
        _take_up_to(self, tree, subtrees)
        return subtrees

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return NotImplemented
        pairs: list[tuple[TreeDef, TreeDef]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if a.kind is not b.kind or len(a.parts) != len(b.parts) or differ(a.data, b.data):
                return False
            pairs.extend(zip(a.parts, b.parts))
        return True

    def __hash__(self) -> int:
        if not self._hash:
            unknown: list[TreeDef] = [self]
            for node in unknown:
                unknown.extend(part for part in node.parts if not part._hash)
            for node in reversed(unknown):
                node._hash[:] = [_hash_of(node)]
        return self._hash[0]

    def settled(self) -> TreeDef:
        """The same structure with mutable static data copied, so that it can serve as a key."""
        return _folded(self, _settled)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (None if self.kind is None else self.kind.type, self.data, self.parts)

    def __str__(self) -> str:
        return f"PyTreeDef({_folded(self, _text)})"

    __repr__ = __str__


def _hash_of(node: TreeDef) -> int:
    """The hash of a node whose parts have computed theirs. Unhashable data is left out."""
    try:
        return hash((node.kind, node.data, node.parts))
    except TypeError:
        return hash((node.kind, node.parts))


def _settled(node: TreeDef, parts: list[TreeDef]) -> TreeDef:
    data = node.data
    try:
        hash(data)
    except TypeError:
        data = _copied(data)
    is_same = data is node.data and all(a is b for a, b in zip(parts, node.parts))
    return node if is_same else TreeDef(node.kind, data, tuple(parts), node.num_leaves, False)


def _copied(data: object) -> object:
    """A copy of static data; the data themselves if they cannot be copied.

    Mapping views and locks cannot be copied, and JAX keeps such data unchanged.
    """
    try:
        return copy.deepcopy(data)
    except TypeError:
        return data


def differ(data: object, other: object) -> bool:
    """Whether static data of nodes differ.

    Errors: ArgumentError for data whose comparison fails, such as arrays.
    """
    try:
        return data is not other and not data == other
    except Exception as error:
        raise ArgumentError(
            f"tree: cannot compare static data ({type(data).__name__}; {error})",
            hint="arrays belong among a node's children; its data must compare by ==",
        ) from error


LEAF = TreeDef(None, None, (), 1, True)
_cache: dict[tuple[Any, ...], TreeDef] = {}
_MOST_REMEMBERED = 4096
_WIDEST_REMEMBERED = 1024
_ONLY_STR = frozenset({str})


def required(operation: str, treedef: object) -> TreeDef:
    """`treedef` itself. Errors: ArgumentError if it is not a TreeDef."""
    if not isinstance(treedef, TreeDef):
        raise ArgumentError(
            f"{operation}: cannot use {type(treedef).__name__} as a structure",
            hint="rune.tree.structure(x) is that of x",
        )
    return treedef


def _restore(cls: type | None, data: object, parts: tuple[TreeDef, ...]) -> TreeDef:
    kind = None if cls is None else kinds[cls]
    return LEAF if kind is None else _treedef(kind, data, parts)


def _treedef(kind: Kind, data: object, parts: tuple[TreeDef, ...]) -> TreeDef:
    is_exact = _is_exact(kind, data) and False not in [part.is_exact for part in parts]
    return TreeDef(kind, data, parts, sum([part.num_leaves for part in parts]), is_exact)


def node_of(kind: Kind, data: object, parts: tuple[TreeDef, ...]) -> TreeDef:
    """The structure of a node whose children have the structures `parts`."""
    if not _is_exact(kind, data):
        return _treedef(kind, data, parts)
    for part in parts:
        if not part.is_exact:
            return _treedef(kind, data, parts)
    key = (kind, data, parts)
    return _cache.get(key) or _remember(key, kind, data, parts)


def flat_node(kind: Kind, data: object, count: int) -> TreeDef:
    """The structure of a node whose children are `count` leaves, found without hashing parts."""
    if not _is_exact(kind, data):
        return _treedef(kind, data, (LEAF,) * count)
    key = (kind, data, count)
    return _cache.get(key) or _remember(key, kind, data, (LEAF,) * count)


def _is_exact(kind: Kind, data: Any) -> bool:
    # Whether equal data are interchangeable, so that trees may share a TreeDef. Keys 1, 1.0 and
    # True are equal but not interchangeable: unflattening has to restore the original key.
    return data is None or (kind is DICT and _ONLY_STR.issuperset(map(type, data)))


def _remember(key: tuple[object, ...], kind: Kind, data: object, parts: tuple[TreeDef, ...]) -> TreeDef:
    treedef = _treedef(kind, data, parts)
    if len(_cache) >= _MOST_REMEMBERED:
        _cache.clear()
    if len(parts) <= _WIDEST_REMEMBERED:
        _cache[key] = treedef
    return treedef


def _build(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    around: list[tuple[TreeDef, Iterator[TreeDef], list[Any]]] = []  # open nodes, outer first
    node, parts, children = treedef, iter(treedef.parts), []
    while True:
        for part in parts:
            if part.kind is not None:
                around.append((node, parts, children))
                node, parts, children = part, iter(part.parts), []
                break
            children.append(next(leaves))
        else:
            assert node.kind is not None
            value = node.kind.join(node.data, children)
            if not around:
                return value
            node, parts, children = around.pop()
            children.append(value)


def _folded(treedef: TreeDef, combine: Callable[[TreeDef, list[Any]], Any]) -> Any:
    """The value of a structure, combined from those of its parts."""
    nodes, values = [treedef], {}
    for node in nodes:
        nodes.extend(node.parts)
    for node in reversed(nodes):
        if id(node) not in values:
            values[id(node)] = combine(node, [values[id(part)] for part in node.parts])
    return values[id(treedef)]


def _postorder(treedef: TreeDef) -> list[TreeDef]:
    """All nodes and leaves, each after its children."""
    order, pending = [], [treedef]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(node.parts)
    return order[::-1]


def _walked_data(node: TreeDef) -> object:
    assert node.kind is not None
    if node.kind.name.startswith("namedtuple["):
        return node.kind.type
    return list(node.data) if node.kind is DICT else node.data


def _composed(inner: TreeDef, node: TreeDef, parts: list[TreeDef]) -> TreeDef:
    return inner if node.kind is None else node_of(node.kind, node.data, tuple(parts))


def _text(treedef: TreeDef, parts: list[str]) -> str:
    """The text of a node, made from those of its parts."""
    kind, data = treedef.kind, treedef.data
    inside = ", ".join(parts)
    if kind is None or kind is NONE:
        return "*" if kind is None else "None"
    if kind is TUPLE:
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if kind is LIST:
        return f"[{inside}]"
    if kind is DICT:
        return "{" + ", ".join([f"{key!r}: {part}" for key, part in zip(data, parts)]) + "}"
    label = kind.name if kind.name.startswith("namedtuple[") else f"{kind.name}[{data}]"
    return f"CustomNode({label}, [{inside}])"


def _take_up_to(prefix: TreeDef, tree: object, subtrees: list[object]) -> None:
    around: list[tuple[Any, Iterator[tuple[int, tuple[TreeDef, Any]]]]] = []  # outer nodes first
    path: list[tuple[object, int]] = []  # the nodes from the root, and which child of each
    while True:
        if prefix.kind is None:
            subtrees.append(tree)
        else:
            pairs = zip(prefix.parts, _children_like(prefix, tree, path))
            around.append((tree, enumerate(pairs)))
            path.append((tree, 0))
        while around:
            following = next(around[-1][1], None)
            if following is not None:
                path[-1] = (around[-1][0], following[0])
                prefix, tree = following[1]
                break
            around.pop()
            path.pop()
        else:
            return


def _children_like(prefix: TreeDef, tree: object, path: list[tuple[object, int]]) -> Sequence[Any]:
    """The children of a node that has to match the outermost node of `prefix`."""
    kind = prefix.kind
    if kind is None or kinds[type(tree)] is not kind:
        _refuse(prefix, tree, path)
    children, data = kind.split(tree)
    if len(children) != len(prefix.parts) or differ(data, prefix.data):
        _refuse(prefix, tree, path)
    return children


def _refuse(prefix: TreeDef, tree: object, path: list[tuple[object, int]]) -> NoReturn:
    keys: list[object] = []
    for node, i in path:
        kind: Any = kinds[type(node)]
        keys.append(list(keys_of(kind, node, i + 1))[i])
    place = keystr(tuple(keys))
    kind = kinds[type(tree)]
    children: Any = ()
    data: Any = None
    if kind is not None:
        children, data = kind.split(tree)
    tree_text = _describe(kind, data, len(children), f"a leaf of type {type(tree).__name__}")
    prefix_text = _describe(prefix.kind, prefix.data, len(prefix.parts), "a leaf")
    same = kind is prefix.kind and kind in (DICT, ORDERED)
    raise ArgumentError(
        f"tree: cannot match a tree with its prefix (prefix{place} is {prefix_text}, tree{place} is {tree_text})",
        hint=_key_difference(prefix.data, data) if same else None,
    )


def _describe(kind: Kind | None, data: Any, count: int, leaf: str) -> str:
    if kind is None or kind is NONE:
        return leaf if kind is None else "None"
    if kind is DICT:
        return f"a dict with keys {list(data)}"
    return f"a {kind.name} of {count}" + ("" if data is None else f" with data {data}")


def _key_difference(prefix_keys: tuple[object, ...], tree_keys: tuple[object, ...]) -> str:
    only_in_prefix = [key for key in prefix_keys if key not in tree_keys]
    only_in_tree = [key for key in tree_keys if key not in prefix_keys]
    if not only_in_prefix and not only_in_tree:
        return "the keys are in another order"
    return f"only the prefix has {only_in_prefix}, only the tree has {only_in_tree}"
