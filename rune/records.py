"""Dataclasses whose methods are written when they are first used.

`dataclasses.dataclass` compiles six methods for each class, 0.3 ms: half the time of `import rune`,
and of what the first compiled function loads, for hundreds of classes, few of which a program uses.
Here the standard decorator makes the fields and the slots, and a method is a descriptor that
puts the function into its place when somebody asks for it. What the methods do is the same.

`order` and InitVar are not supported. A class that inherits from one of these is made here too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING

Method = Callable[..., object]
_FACTORY = object()  # the value of an argument that was not passed, where a factory makes the default


class _Late:
    """A method of `owner` that is written when it is first asked for."""

    __slots__ = ("name", "owner", "write")

    def __init__(self, owner: type, name: str, write: Callable[[type], Method]):
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: object, owner: type | None = None) -> Method:
        function = self.write(self.owner)
        setattr(self.owner, self.name, function)  # two threads put equal functions there
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
    """As `dataclasses.dataclass`, with methods that are written late."""

    def make(cls: type) -> type:
        wanted = {"__init__": init, "__repr__": repr, "__eq__": eq}
        explicit = dict(vars(cls))
        # It checks that subclasses of frozen classes are frozen, which costs two methods.
        is_heir = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        standard = dataclasses.dataclass(
            init=False, repr=False, eq=False, frozen=frozen and is_heir, slots=slots, weakref_slot=weakref_slot
        )
        record = standard(cls)
        _tell(record, init=init, repr=repr, eq=eq, frozen=frozen)
        for name in wanted:
            if wanted[name] and name not in explicit:
                setattr(record, name, _Late(record, name, _METHODS[name, frozen]))
        # A class with an __eq__ of its own has None there, and still gets a hash if it is frozen.
        if eq and explicit.get("__hash__") is None:
            _put(record, __hash__=_Late(record, "__hash__", _hash) if frozen else None)
        if frozen:
            _freeze(record)
        return record

    return make if cls is None else make(cls)


def _tell(record: type, **settings: bool) -> None:
    """Note how the class was made where dataclasses note it."""
    parameters = getattr(record, "__dataclass_params__")  # noqa: B009  # which checkers do not know
    for name, value in settings.items():
        setattr(parameters, name, value)


def _freeze(record: type) -> None:
    """Refuse assignments to instances, and let them be copied and pickled all the same."""
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


def _plain_init(cls: type) -> Method:
    return _init(cls, "self.{0} = {1}")


def _frozen_init(cls: type) -> Method:
    return _init(cls, "_assign(self, {0!r}, {1})")


def _init(cls: type, assignment: str) -> Method:
    fields = [*dataclasses.fields(cls)]
    names: dict[str, object] = {"_FACTORY": _FACTORY, "_assign": object.__setattr__}
    arguments = [f for f in fields if f.init and not f.kw_only]
    named = [f for f in fields if f.init and f.kw_only]
    head = ["self", *(_argument(f) for f in arguments), *(["*"] if named else []), *(_argument(f) for f in named)]
    lines = [*_assignments(fields, assignment, names)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    function = _function(cls, "__init__", ", ".join(head), lines or ["pass"], names)
    function.__annotations__ = {f.name: f.type for f in (*arguments, *named)} | {"return": None}
    return function


def _argument(field: Field[object]) -> str:
    if field.default is not MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_FACTORY"


def _assignments(fields: list[Field[object]], assignment: str, names: dict[str, object]) -> Iterator[str]:
    """The lines of __init__; the names are what they refer to."""
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
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    __repr__.__qualname__ = f"{cls.__qualname__}.__repr__"
    return recursive_repr()(__repr__)


def _compared(cls: type, of: str) -> str:
    return "(" + "".join(f"{of}.{f.name}, " for f in dataclasses.fields(cls) if f.compare) + ")"


def _eq(cls: type) -> Method:
    test = "if other.__class__ is self.__class__:"
    lines = [test, f"  return {_compared(cls, 'self')} == {_compared(cls, 'other')}", "return NotImplemented"]
    return _function(cls, "__eq__", "self, other", lines, {})


def _hash(cls: type) -> Method:
    return _function(cls, "__hash__", "self", [f"return hash({_compared(cls, 'self')})"], {})


def _function(cls: type, name: str, arguments: str, lines: list[str], names: Mapping[str, object]) -> Method:
    text = "\n".join([f"def {name}({arguments}):", *(f"  {line}" for line in lines)])
    scope = {**names, "__file__": __file__}  # frames.py knows by it that the line is not the user's
    exec(text, scope)
    function = scope[name]
    assert isinstance(function, FunctionType)
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    return function


_METHODS: dict[tuple[str, bool], Callable[[type], Method]] = {
    ("__init__", False): _plain_init,
    ("__init__", True): _frozen_init,
    **{("__repr__", frozen): _repr for frozen in (False, True)},
    **{("__eq__", frozen): _eq for frozen in (False, True)},
}

if TYPE_CHECKING:  # checkers know what the standard one does
    from dataclasses import dataclass as dataclass
else:
    dataclass = _record
