"""Dataclasses whose methods are generated on first use.

`dataclasses.dataclass` compiles six methods for each class in 0.3 ms. A program uses few of rune's
hundreds of classes, yet compiling all would take half the time of `import rune`, and of the modules
that the first compiled function loads. Here the standard decorator makes only the fields and slots.
A method is a descriptor that replaces itself by the generated function on first access; the
function does the same as the standard one.
`replace` is that of dataclasses, by a method `__replace__` that is generated as well.
Most methods differ only in field names, so one template is compiled for each number of fields, and
its names are replaced, which takes a tenth of the time.

`order` and InitVar are not supported. Subclasses have to use this decorator, too.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from types import CodeType, FunctionType, MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING

Method = Callable[..., object]
_FACTORY = object()  # stands for an argument that was not passed, if a factory makes the default
_SAME = object()  # stands for a field that `replace` does not change


class _Late:
    """A method of `owner` that is generated on first access."""

    __slots__ = ("name", "owner", "write")

    def __init__(self, owner: type, name: str, write: Callable[[type], Method]):
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: object, owner: type | None = None) -> Method:
        function = self.write(self.owner)
        setattr(self.owner, self.name, function)  # two threads may do this: the functions are equal
        return function.__get__(instance, owner)


def _record(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,
    init: bool = True,
    slots: bool = False,
    weakref_slot: bool = False,
) -> object:
    """As `dataclasses.dataclass`, with methods that are generated on first use."""

    def make(cls: type) -> type:
        explicit = dict(vars(cls))
        writes_init = init and "__init__" not in explicit
        methods = {"__init__": init, "__repr__": repr, "__eq__": eq, "__replace__": writes_init}
        # With `frozen`, the standard decorator compiles two methods; only subclasses need it, for
        # the check that they are frozen if their base is.
        is_heir = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        standard = dataclasses.dataclass(
            init=False, repr=False, eq=False, frozen=frozen and is_heir, slots=slots, weakref_slot=weakref_slot
        )
        record = _without_texts(cls, standard) if _has_only_fields(explicit) else standard(cls)
        _tell(record, init=init, repr=repr, eq=eq, frozen=frozen)
        for name in methods:
            if methods[name] and name not in explicit:
                setattr(record, name, _Late(record, name, _METHODS[name, frozen]))
        # A class that defines __eq__ has __hash__ None, but still gets a hash if it is frozen.
        if eq and explicit.get("__hash__") is None:
            _put(record, __hash__=_Late(record, "__hash__", _hash) if frozen else None)
        if frozen:
            _freeze(record)
        return record

    return make if cls is None else make(cls)


def _has_only_fields(members: Mapping[str, object]) -> bool:
    """Whether all annotations of a class are texts, and none is other than a field's."""
    texts = members.get("__annotations__")
    if not isinstance(texts, dict):
        return False
    return all(type(t) is str and not any(word in t for word in _SPECIAL) for t in texts.values())


_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")


def _without_texts(cls: type, standard: Callable[[type], type]) -> type:
    """The standard decorator's record of a class of fields.

    It looks for ClassVar and two others in the text of each annotation, which takes a third of its
    time, so it sees none.
    """
    texts = vars(cls)["__annotations__"]
    cls.__annotations__ = dict.fromkeys(texts, object)
    record = standard(cls)
    record.__annotations__ = texts
    fields = getattr(record, "__dataclass_fields__")  # noqa: B009  # which checkers do not know
    for name, text in texts.items():
        fields[name].type = text
    return record


def _tell(record: type, **settings: bool) -> None:
    """Record the decorator's parameters where dataclasses store them."""
    parameters = getattr(record, "__dataclass_params__")  # noqa: B009  # which checkers do not know
    for name, value in settings.items():
        setattr(parameters, name, value)


def _freeze(record: type) -> None:
    """Refuse assignments to instances, but still support copying and pickling."""
    names = tuple(f.name for f in dataclasses.fields(record))

    def assign(self: object, name: str, value: object) -> None:
        if type(self) is record or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(record, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is record or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(record, self).__delattr__(name)

    def state(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def restore(self: object, values: list[object]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    _put(record, __setattr__=assign, __delattr__=delete)
    if "__slots__" in vars(record) and "__getstate__" not in vars(record):
        _put(record, __getstate__=state, __setstate__=restore)


def _put(record: type, **members: object) -> None:
    for name, member in members.items():
        setattr(record, name, member)


# --- the methods ------------------------------------------------------------------------------


def _frozen_init(cls: type) -> Method:
    fields = dataclasses.fields(cls)
    slots = [slot for f in fields if isinstance(slot := getattr(cls, f.name, None), MemberDescriptorType)]
    if len(slots) < len(fields):
        return _init(cls, "_assign(self, {0!r}, {1})")
    names = _names(len(fields)) if _is_plain(cls) else [f.name for f in fields]
    # A slot's own setter takes half the time of one that looks for the slot by its name.
    setters = {f"_set{name}": slot.__set__ for name, slot in zip(names, slots, strict=True)}
    return _init(cls, "_set{0}(self, {1})", setters)


def _init(cls: type, assignment: str, scope: Mapping[str, object] = MappingProxyType({})) -> Method:
    fields = [*dataclasses.fields(cls)]
    if _is_plain(cls):
        function = _renamed(cls, "__init__", _init_template(assignment, len(fields)), fields, scope)
        function.__defaults__ = tuple(f.default for f in fields if f.default is not MISSING) or None
        function.__annotations__ = {f.name: f.type for f in fields} | {"return": None}
        return function
    names: dict[str, object] = {"_FACTORY": _FACTORY, "_assign": object.__setattr__, **scope}
    arguments = [f for f in fields if f.init and not f.kw_only]
    keyword_fields = [f for f in fields if f.init and f.kw_only]
    head = [
        "self",
        *(_argument(f) for f in arguments),
        *(["*"] if keyword_fields else []),
        *(_argument(f) for f in keyword_fields),
    ]
    lines = [*_assignments(fields, assignment, names)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    function = _function(cls, "__init__", ", ".join(head), lines or ["pass"], names)
    function.__annotations__ = {f.name: f.type for f in (*arguments, *keyword_fields)} | {"return": None}
    return function


def _argument(field: Field[object]) -> str:
    if field.default is not MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_FACTORY"


def _assignments(fields: list[Field[object]], assignment: str, names: dict[str, object]) -> Iterator[str]:
    """The lines of __init__; adds the objects they refer to, by name, to `names`."""
    for field in fields:
        name = field.name
        if field.default is not MISSING:
            names[f"_default_{name}"] = field.default
        if field.default_factory is not MISSING:
            names[f"_factory_{name}"] = field.default_factory
            value = f"_factory_{name}()"
            yield assignment.format(name, f"{value} if {name} is _FACTORY else {name}" if field.init else value)
        elif field.init:
            yield assignment.format(name, name)
        elif field.default is not MISSING:
            yield assignment.format(name, f"_default_{name}")


def _repr(cls: type) -> Method:
    names = [f.name for f in dataclasses.fields(cls) if f.repr]

    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    __repr__.__qualname__ = f"{cls.__qualname__}.__repr__"
    return recursive_repr()(__repr__)


def _eq(cls: type) -> Method:
    fields = [f for f in dataclasses.fields(cls) if f.compare]
    return _renamed(cls, "__eq__", _eq_template(len(fields)), fields)


def _hash(cls: type) -> Method:
    fields = [f for f in dataclasses.fields(cls) if f.compare]
    return _renamed(cls, "__hash__", _hash_template(len(fields)), fields)


def _replacement(cls: type) -> Method:
    fields = [*dataclasses.fields(cls)]
    # Every field is passed, so that neither defaults nor factories matter.
    if not all(f.init and not f.kw_only for f in fields):
        return dataclasses.replace
    function = _renamed(cls, "__replace__", _replace_template(len(fields)), fields)
    function.__kwdefaults__ = {f.name: _SAME for f in fields}
    return function


# --- templates --------------------------------------------------------------------------------


def _is_plain(cls: type) -> bool:
    """Whether __init__ only assigns arguments to fields, so that templates fit."""
    fields = dataclasses.fields(cls)
    plain = (f.init and not f.kw_only and f.default_factory is MISSING for f in fields)
    return all(plain) and not hasattr(cls, "__post_init__")


@functools.cache
def _init_template(assignment: str, count: int) -> CodeType:
    names = _names(count)
    return _template("__init__", ", ".join(["self", *names]), [assignment.format(name, name) for name in names])


@functools.cache
def _eq_template(count: int) -> CodeType:
    this, other = ("(" + "".join(f"{of}.{name}, " for name in _names(count)) + ")" for of in ("self", "other"))
    lines = ["if other.__class__ is self.__class__:", f"  return {this} == {other}", "return NotImplemented"]
    return _template("__eq__", "self, other", lines)


@functools.cache
def _hash_template(count: int) -> CodeType:
    fields = "".join(f"self.{name}, " for name in _names(count))
    return _template("__hash__", "self", [f"return hash(({fields}))"])


@functools.cache
def _replace_template(count: int) -> CodeType:
    names = _names(count)
    values = ", ".join(f"self.{name} if {name} is _SAME else {name}" for name in names)
    return _template(
        "__replace__", ", ".join(["self", "*" if names else "", *names]), [f"return self.__class__({values})"]
    )


def _names(count: int) -> list[str]:
    return [f"_field{number}" for number in range(count)]


def _template(name: str, arguments: str, lines: list[str]) -> CodeType:
    return _function(_Late, name, arguments, lines or ["pass"], {}).__code__


def _renamed(
    cls: type,
    name: str,
    code: CodeType,
    fields: list[Field[object]],
    scope: Mapping[str, object] = MappingProxyType({}),
) -> FunctionType:
    """A function with the code of a template, but with the names of the fields.

    scope: global names that the template uses
    """
    real = dict(zip(_names(len(fields)), (f.name for f in fields), strict=True))
    qualname = f"{cls.__qualname__}.{name}"
    function = FunctionType(
        code.replace(
            co_varnames=tuple(real.get(n, n) for n in code.co_varnames),
            co_names=tuple(real.get(n, n) for n in code.co_names),
            co_consts=tuple(real.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
            co_qualname=qualname,
        ),
        {**_SCOPE, **scope} if scope else _SCOPE,
        name,
    )
    function.__qualname__, function.__module__ = qualname, cls.__module__
    return function


# As in `_function`.
_SCOPE: dict[str, object] = {
    "_assign": object.__setattr__,
    "_SAME": _SAME,
    "__file__": __file__,
    "__builtins__": builtins,
}


def _function(cls: type, name: str, arguments: str, lines: list[str], names: Mapping[str, object]) -> FunctionType:
    text = "\n".join([f"def {name}({arguments}):", *(f"  {line}" for line in lines)])
    scope = {**names, "__file__": __file__}  # tells frames.py that the line is not the user's
    exec(text, scope)
    function = scope[name]
    assert isinstance(function, FunctionType)
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    return function


_METHODS: dict[tuple[str, bool], Callable[[type], Method]] = {
    ("__init__", False): lambda cls: _init(cls, "self.{0} = {1}"),
    ("__init__", True): _frozen_init,
    **{("__repr__", frozen): _repr for frozen in (False, True)},
    **{("__eq__", frozen): _eq for frozen in (False, True)},
    **{("__replace__", frozen): _replacement for frozen in (False, True)},
}


def _replace(record: object, /, **changes: object) -> object:
    """As `dataclasses.replace`, which looks at each field again in every call."""
    method = getattr(record, "__replace__", None)
    return dataclasses.replace(record, **changes) if method is None else method(**changes)  # type: ignore[type-var]


if TYPE_CHECKING:  # checkers understand the standard decorator
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:
    dataclass, replace = _record, _replace
