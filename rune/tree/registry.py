"""The classes whose instances are nodes of trees, and the keys that lead to their children.

A Kind splits the instances of one class into children and data, and joins them again. The order of
children is that of a tuple, list or namedtuple; by sorted key for dict and defaultdict; that of
insertion for OrderedDict. Instances of other classes are leaves until the class is registered;
registering a class does not cover its subclasses.

`kinds` is the only registry. It only grows, and keeps alive every class whose instances it has met.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from rune.errors import ArgumentError
from rune.records import dataclass

C = TypeVar("C", bound=type)
Children = Sequence[Any]
Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
Unflatten = Callable[[Any, Any], Any]

# --- key paths --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DictKey:
    """The step to a value in a dict: ['a'].

    >>> import rune
    >>> rune.tree.leaves_with_path({"a": 1})
    [((DictKey(key='a'),), 1)]
    """

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The step to an element of a tuple or list: [0].

    >>> import rune
    >>> rune.tree.leaves_with_path([1])
    [((SequenceKey(idx=0),), 1)]
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The step to a field of a dataclass or namedtuple: .x.

    >>> import rune, typing
    >>> Point = typing.NamedTuple("Point", [("x", float)])
    >>> rune.tree.leaves_with_path(Point(1.0))
    [((GetAttrKey(name='x'),), 1.0)]
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """The step to a child of a class registered without keys: [<flat index 0>].

    >>> import rune
    >>> rune.tree.keystr((rune.tree.FlattenedIndexKey(2),))
    '[<flat index 2>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """The text of a key path; `simple` leaves out brackets, quotes and dots.

    Errors: ArgumentError if the separator is not a string.

    >>> path = (DictKey("a"), SequenceKey(1), GetAttrKey("x"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['a'][1].x", 'a/1/x')
    """
    if not isinstance(separator, str):
        raise ArgumentError(f"keystr: cannot put {separator!r} between keys (a string required)")
    if not simple:
        return separator.join([str(key) for key in keys])
    return separator.join([str(getattr(k, dataclasses.fields(k)[0].name)) for k in keys])


# --- kinds ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """How to split the instances of one class into children and data, and join them."""

    type: type
    name: str
    split: Callable[[Any], tuple[Children, Any]]  # node -> children, data
    join: Callable[[Any, Children], Any]  # data, children -> node
    keys: Callable[[Any], Iterable[Any]] | None  # node -> one key entry per child


class Kinds(dict[type, "Kind | None"]):
    """The kind of each class met so far, None for leaves; adds a namedtuple when it meets one."""

    def __missing__(self, cls: type) -> Kind | None:
        is_namedtuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        self[cls] = _namedtuple_kind(cls) if is_namedtuple else None
        return self[cls]


def _namedtuple_kind(cls: Any) -> Kind:
    keys = [GetAttrKey(name) for name in cls._fields]
    name = f"namedtuple[{cls.__name__}]"
    return Kind(cls, name, lambda t: (t, None), lambda _, xs: cls(*xs), lambda t: keys)


def _split_dict(tree: Mapping[object, object]) -> tuple[Children, Any]:
    try:
        keys = sorted(tree)  # type: ignore[type-var]
    except TypeError as error:
        message = f"flatten: cannot sort the keys of a dict ({error}; keys {list(tree)})"
        raise ArgumentError(message, hint="an OrderedDict keeps its own order") from None
    return [tree[key] for key in keys], tuple(keys)


def _split_defaultdict(tree: defaultdict[object, object]) -> tuple[Children, Any]:
    children, keys = _split_dict(tree)
    return children, (tree.default_factory, keys)


def _sorted_keys(tree: Mapping[object, object]) -> list[DictKey]:
    return [DictKey(key) for key in _split_dict(tree)[1]]


def _sequence_keys(tree: Sequence[object]) -> list[SequenceKey]:
    return [SequenceKey(i) for i in range(len(tree))]


NONE = Kind(type(None), "None", lambda t: ((), None), lambda _, xs: None, lambda t: ())
TUPLE = Kind(tuple, "tuple", lambda t: (t, None), lambda _, xs: tuple(xs), _sequence_keys)
LIST = Kind(list, "list", lambda t: (t, None), lambda _, xs: list(xs), _sequence_keys)
DICT = Kind(dict, "dict", _split_dict, lambda keys, xs: dict(zip(keys, xs)), _sorted_keys)
ORDERED = Kind(
    OrderedDict,
    "OrderedDict",
    lambda t: (list(t.values()), tuple(t)),
    lambda keys, xs: OrderedDict(zip(keys, xs)),
    lambda tree: [DictKey(key) for key in tree],
)
DEFAULT = Kind(
    defaultdict,
    "defaultdict",
    _split_defaultdict,
    lambda data, xs: defaultdict(data[0], zip(data[1], xs)),
    _sorted_keys,
)
kinds = Kinds({k.type: k for k in (NONE, TUPLE, LIST, DICT, ORDERED, DEFAULT)})


def keys_of(kind: Kind, node: object, count: int) -> Iterable[object]:
    """One key entry for each of the `count` children of a node."""
    return [FlattenedIndexKey(i) for i in range(count)] if kind.keys is None else kind.keys(node)


def _require_class(operation: str, cls: object) -> None:
    if not isinstance(cls, type):
        raise ArgumentError(f"{operation}: cannot register {cls!r} (a class required)")


def _register(kind: Kind) -> None:
    if kinds.get(kind.type) is not None:
        raise ArgumentError(f"register: cannot register {kind.name} (it is registered already)")
    kinds[kind.type] = kind


def register_node(
    nodetype: C, flatten_func: Flatten, unflatten_func: Unflatten, flatten_with_keys_func: FlattenWithKeys | None = None
) -> C:
    """Make instances of a class nodes.

    flatten_func(x) returns (children, data), and unflatten_func(data, children) undoes it. The data
    must compare by ==, and become part of every cache key.
    Errors: ArgumentError if the class is already registered.

    >>> from rune import tree
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> _ = tree.register_node(Pair, lambda p: ((p.first, p.second), None), lambda _, c: Pair(*c))
    >>> tree.leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """

    _require_class("register_node", nodetype)

    def split(node: object) -> tuple[Children, Any]:
        children, data = flatten_func(node)
        return tuple(children), data

    flatten_keys = flatten_with_keys_func
    keys = None if flatten_keys is None else (lambda node: [key for key, _ in flatten_keys(node)[0]])
    _register(Kind(nodetype, nodetype.__name__, split, lambda d, xs: unflatten_func(d, tuple(xs)), keys))
    return nodetype


def register_node_with_keys(
    nodetype: C, flatten_with_keys: FlattenWithKeys, unflatten_func: Unflatten, flatten_func: Flatten | None = None
) -> C:
    """As register_node, but flattening returns (key entry, child) pairs.

    Errors: ArgumentError for a class that is already registered.

    >>> from rune import tree
    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> _ = tree.register_node_with_keys(
    ...     Point, lambda p: (((tree.GetAttrKey("x"), p.x),), None), lambda _, c: Point(*c)
    ... )
    >>> [tree.keystr(path) for path, _ in tree.leaves_with_path(Point(1))]
    ['.x']
    """

    def without_keys(node: object) -> tuple[list[Any], Any]:
        pairs, data = flatten_with_keys(node)
        return [child for _, child in pairs], data

    return register_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_node_class(cls: C) -> C:
    """Register a class that has methods tree_flatten and tree_unflatten; for use as a decorator.

    A method tree_flatten_with_keys supplies the keys, too.
    Errors: ArgumentError for a class that is already registered, or lacks the methods.

    >>> from rune import tree
    >>> @tree.register_node_class
    ... class Scaled:
    ...     def __init__(self, x, by):
    ...         self.x, self.by = x, by
    ...     def tree_flatten(self):
    ...         return (self.x,), self.by
    ...     @classmethod
    ...     def tree_unflatten(cls, by, children):
    ...         return cls(*children, by)
    >>> tree.map(lambda x: x + 1, Scaled(1, 10)).x
    2
    """
    flatten, unflatten = _methods("register_node_class", cls, "tree_flatten", "tree_unflatten")
    return register_node(cls, flatten, unflatten, getattr(cls, "tree_flatten_with_keys", None))


def register_node_with_keys_class(cls: C) -> C:
    """As register_node_class, for a class with tree_flatten_with_keys; tree_flatten is optional.

    Errors: ArgumentError for a class that is already registered, or lacks the methods.

    >>> from rune import tree
    >>> @tree.register_node_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((tree.GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children):
    ...         return cls(*children)
    >>> tree.leaves_with_path(Named(1))
    [((GetAttrKey(name='x'),), 1)]
    """
    name = "register_node_with_keys_class"
    flatten_with_keys, unflatten = _methods(name, cls, "tree_flatten_with_keys", "tree_unflatten")
    return register_node_with_keys(cls, flatten_with_keys, unflatten, getattr(cls, "tree_flatten", None))


def _methods(operation: str, cls: type, *names: str) -> tuple[Flatten, Unflatten]:
    """The methods of a class that flatten and unflatten its instances."""
    _require_class(operation, cls)
    if not all(hasattr(cls, name) for name in names):
        raise ArgumentError(f"{operation}: cannot register {cls.__name__} (methods {' and '.join(names)} required)")
    flatten, unflatten = names
    return operator.methodcaller(flatten), getattr(cls, unflatten)


def register_static(cls: C) -> C:
    """Make the instances of `cls` nodes without leaves, which are data only; also a decorator.

    Errors: ArgumentError for a class that is already registered.

    >>> from rune import tree
    >>> @tree.register_static
    ... class Setting:
    ...     pass
    >>> tree.leaves([1, Setting()])
    [1]
    """
    return register_node(cls, lambda node: ((), node), lambda node, _: node)


@overload
def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C: ...
@overload
def register_dataclass(
    nodetype: None = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Callable[[C], C]: ...
def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a node: data fields are children, meta fields are data. Also a decorator.

    Without names, each field that __init__ takes is a child, except those declared with
    field(metadata={"static": True}), for which `static()` is a shorthand.
    Errors: ArgumentError if the names are not exactly those that __init__ takes.

    >>> @register_dataclass(data_fields=["w"], meta_fields=["name"])
    ... @dataclass
    ... class Layer:
    ...     w: float
    ...     name: str
    >>> kinds[Layer].split(Layer(1.0, "dense"))
    ([1.0], ('dense',))
    """
    if nodetype is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    _require_class("register_dataclass", nodetype)
    data, meta = _data_and_meta(nodetype, data_fields, meta_fields, set(drop_fields))
    keys = [GetAttrKey(name) for name in data]

    def split(node: object) -> tuple[Children, Any]:
        return [getattr(node, n) for n in data], tuple([getattr(node, n) for n in meta])

    def join(values: Any, children: Children) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, values)))

    _register(Kind(nodetype, nodetype.__name__, split, join, lambda node: keys))
    return nodetype


def _data_and_meta(
    cls: type, data: Sequence[str] | None, meta: Sequence[str] | None, drop: set[str]
) -> tuple[Sequence[str], Sequence[str]]:
    is_dataclass = dataclasses.is_dataclass(cls)
    init_fields = [f for f in dataclasses.fields(cls) if f.init] if is_dataclass else []
    if data is None and meta is None and is_dataclass:
        meta = [f.name for f in init_fields if f.metadata.get("static")]
        data = [f.name for f in init_fields if f.name not in meta and f.name not in drop]
    if data is None or meta is None:
        specifics = "data_fields and meta_fields go together, and only a dataclass has defaults"
        raise ArgumentError(f"register_dataclass: cannot register {cls.__name__} ({specifics})")
    init_names, names = {f.name for f in init_fields} - drop, {*data, *meta}
    if is_dataclass and init_names != names:
        specifics = f"missing {sorted(init_names - names)}, unknown {sorted(names - init_names)}"
        raise ArgumentError(f"register_dataclass: cannot register {cls.__name__} ({specifics})")
    return tuple(data), tuple(meta)


def static(**kwargs: Any) -> Any:
    """A dataclass field that is data, not a child; arguments are those of `dataclasses.field`.

    Errors: those of `dataclasses.field`.

    >>> from rune import tree
    >>> @tree.register_dataclass
    ... @dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = tree.static(default="dense")
    >>> tree.leaves(Layer(1.0))
    [1.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)
