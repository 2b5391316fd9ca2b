"""Trees of arguments and results as JSON, and back.

    leaf                        "*"
    None                        null
    tuple, list                 ["tuple", tree, ...]
    dict, OrderedDict           ["dict", [key, ...], tree, ...]     keys are strings and integers
    a class with a name         ["node", name, text, tree, ...]     by `register_node`

A file does not name Python classes. Both the process that writes a file and the one that reads it
have to register any class that is not in this table, under the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from rune.errors import ArgumentError, CheckError
from rune.records import dataclass
from rune.tree.registry import DICT, LIST, NONE, ORDERED, TUPLE, kinds
from rune.tree.treedef import LEAF, TreeDef, node_of

_SEQUENCES = {"tuple": TUPLE, "list": LIST}
_MAPPINGS = {"dict": DICT, "OrderedDict": ORDERED}
_NAMES = {kind: name for name, kind in (*_SEQUENCES.items(), *_MAPPINGS.items())}


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A class of tree nodes with its name in files, and how its data become a text and back."""

    cls: type
    name: str
    to_text: Callable[..., str]
    from_text: Callable[[str], object]


_by_class: dict[type, StoredNode] = {}
_by_name: dict[str, StoredNode] = {}


def register_node(
    cls: type,
    *,
    name: str,
    to_text: Callable[..., str] = lambda data: "",
    from_text: Callable[[str], object] = lambda text: None,
) -> type:
    """Let files hold trees with nodes of this class: a namedtuple, or a class `rune.tree` knows.

    name:               the name of the class in files
    to_text, from_text: convert the static data of a node to a text and back; a namedtuple has none
    Errors: ArgumentError for a class that `rune.tree` does not know, and for a name in use.

    >>> import rune, typing
    >>> Point = typing.NamedTuple("Point", [("x", float), ("y", float)])
    >>> _ = rune.export.register_node(Point, name="docs.Point")
    >>> exported = rune.export(lambda p: Point(p.y, p.x))(Point(1.0, 2.0))
    >>> rune.export.load(exported.serialize()).call(Point(1.0, 2.0)).x
    Array(2., f32*[], cpu:0)
    """
    if not isinstance(cls, type) or kinds[cls] is None:
        raise ArgumentError(
            f"register_node: cannot register {cls!r} (not a class of tree nodes)", hint="use rune.tree.register first"
        )
    before = _by_name.get(name) or _by_class.get(cls)
    if before is not None:
        raise ArgumentError(f"register_node: cannot register {cls.__name__} as {name!r} ({before.name} is in use)")
    _by_class[cls] = _by_name[name] = StoredNode(cls, name, to_text, from_text)
    return cls


def to_json(treedef: TreeDef) -> object:
    """The structure as JSON. Errors: ArgumentError for a class that has no name in files."""
    kind = treedef.kind
    if kind is None:
        return "*"
    if kind is NONE:
        return None
    parts = map(to_json, treedef.parts)
    if kind in _NAMES:
        name = _NAMES[kind]
        return [name, *parts] if name in _SEQUENCES else [name, [*map(_key, treedef.data)], *parts]
    node = _by_class.get(kind.type)
    if node is None:
        raise ArgumentError(
            f"export: cannot store a tree with {kind.name} (files hold tuples, lists and dicts)",
            hint=f"rune.export.register_node({kind.type.__name__}, name=...) gives the class a name",
        )
    return ["node", node.name, node.to_text(treedef.data), *parts]


def _key(key: object) -> object:
    if type(key) not in (str, int):
        raise ArgumentError(f"export: cannot store a dict with the key {key!r} (keys must be strings or integers)")
    return key


def from_json(value: object) -> TreeDef:
    """The structure that `to_json` wrote. Errors: CheckError."""
    if value == "*":
        return LEAF
    if value is None:
        return node_of(NONE, None, ())
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        _refuse(value)
    name, *parts = value
    if name in _SEQUENCES:
        return node_of(_SEQUENCES[name], None, tuple(map(from_json, parts)))
    if name in _MAPPINGS and parts and isinstance(parts[0], list):
        return _mapping(name, parts[0], parts[1:])
    if name == "node" and len(parts) >= 2 and all(isinstance(p, str) for p in parts[:2]):
        return _registered(parts[0], parts[1], parts[2:])
    _refuse(value)


def _mapping(name: str, keys: list[str], parts: list[object]) -> TreeDef:
    if not all(type(k) in (str, int) for k in keys) or len({*keys}) != len(keys) or len(keys) != len(parts):
        _refuse(keys)
    if name == "dict" and sorted(keys) != keys:
        _refuse(keys)
    return node_of(_MAPPINGS[name], tuple(keys), tuple(map(from_json, parts)))


def _registered(name: str, text: str, parts: list[object]) -> TreeDef:
    node = _by_name.get(name)
    if node is None:
        raise CheckError(
            f"load: cannot build a tree with {name!r} (no class has this name)",
            hint="call rune.export.register_node(cls, name=...) before loading, with the name used in writing",
        )
    kind = kinds[node.cls]
    assert kind is not None
    treedef = node_of(kind, node.from_text(text), tuple(map(from_json, parts)))
    treedef.unflatten(range(treedef.num_leaves))  # lets the class refuse the number of children
    return treedef


def _refuse(value: object) -> NoReturn:
    raise CheckError(f"load: cannot read a tree ({str(value)[:60]!r})")
