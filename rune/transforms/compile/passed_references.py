"""A jitted function that takes references, or closes over some: one of their values is compiled.

    f(ref, x)    ->    pure(Box(value), x, values around) -> result, changed values

What the function closes over is known when it has run: it is traced again with these among its
inputs, and every later call passes what they hold then. What is not changed does not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rune import tree
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.transforms.arguments import function_name
from rune.transforms.references import (
    Outside,
    Ref,
    Written,
    boxed,
    calls_of_jitted,
    require_none,
    surroundings,
    unboxed,
    values_of,
    write_all,
)

_AROUND = "values of the references around it"  # no name of a parameter of a user's function
Changed = tuple[object, dict[int, Value], dict[int, Value]]  # result, changed arguments and surroundings
Call = Callable[..., Changed]


class Compiled(Protocol):
    """What `jit` gives, as far as it is used here."""

    passing: Passing | None

    @property
    def function(self) -> Callable[..., object]:
        """The user's function."""
        ...

    def call_with_arrays(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """A call without references."""
        ...

    def alike(self, function: Call) -> Call:
        """Another function of the same parameters, compiled in the same way."""
        ...


def call_beside(compiled: Compiled, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """A call where there are references, among the arguments or around the function."""
    # Who makes it there has references of its own.
    if (call := calls_of_jitted.get()) is not None:
        return call(compiled, args, kwargs)
    try:
        if compiled.passing is None and not any(isinstance(x, Ref) for x in tree.leaves((args, dict(kwargs)))):
            return compiled.call_with_arrays(args, kwargs)
    except Outside:
        pass  # from now on it is called with what it uses
    if compiled.passing is None:
        compiled.passing = Passing(compiled)
    return compiled.passing(args, kwargs)


class Passing:
    """A jitted function as one of values, and the references around it that it uses."""

    __slots__ = ("around", "call", "function")

    def __init__(self, compiled: Compiled):
        self.around: tuple[Ref, ...] = ()
        self.function = compiled.function

        def pure(*args: object, **kwargs: object) -> Changed:
            return self.pure(*args, **kwargs)

        pure.__name__ = function_name(compiled.function)
        self.call = compiled.alike(pure)

    def __call__(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Call it, and write what it has changed.

        Errors: ArgumentError for two ways to one reference.
        """
        (boxes, named), refs = boxed("jit", (args, dict(kwargs)))
        while True:
            _require_apart(refs, self.around)
            try:
                result, changed, changed_around = self.call(*boxes, **named, **{_AROUND: values_of(self.around)})
                break
            except Written as written:
                self.around = (*self.around, *written.refs)
        for held, values in ((refs, changed), (self.around, changed_around)):
            write_all([held[k] for k in values], [*values.values()])
        return result

    def pure(self, *args: object, **kwargs: object) -> Changed:
        """What is compiled."""
        values = kwargs.pop(_AROUND)
        assert isinstance(values, list)
        with surroundings("jit", self.around, values) as frame:
            (args, kwargs), refs = unboxed((args, kwargs))
            before = [ref.value for ref in refs]
            result = self.function(*args, **kwargs)
            require_none("jit", result)
            after = [ref.value for ref in refs]
        return result, _changed(before, after), _changed(values, frame.values)


def _changed(before: Sequence[Value], after: Sequence[Value]) -> dict[int, Value]:
    return {k: x for k, (b, x) in enumerate(zip(before, after, strict=True)) if x is not b}


def _require_apart(refs: Sequence[Ref], around: Sequence[Ref]) -> None:
    for ref in refs:
        if any(ref is other for other in around):
            raise ArgumentError(
                f"jit: cannot take a reference that the function closes over ({ref.type})",
                hint="pass it, or close over it",
            )
