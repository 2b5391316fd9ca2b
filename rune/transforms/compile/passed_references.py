"""A jitted function that takes or closes over references: a function of their values is compiled.

f(ref, x)    ->    pure(Box(value), x, values around) -> result, changed values

Only a trace finds the references that the function closes over: it stops there, and the function is
traced again with these among its inputs. Every later call passes their current values. Values that
do not change are not returned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from rune import tree
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.transforms.arguments import function_name
from rune.transforms.callers import callers
from rune.transforms.compile import stages
from rune.transforms.references import (
    Outside,
    Ref,
    Written,
    boxed,
    require_none,
    surroundings,
    unboxed,
    values_of,
    write_all,
)

R = TypeVar("R")
_AROUND = "values of the references around it"  # with spaces: no parameter of a user has this name
Changed = tuple[object, dict[int, Value], dict[int, Value]]  # result, changed arguments and surroundings
Call = Callable[..., Changed]


# A protocol, since jit.py, which has the class, imports this module.
class Compiled(stages.Called, Protocol):
    """The part of what `jit` returns that is used here."""

    passing: Passing | None

    @property
    def function(self) -> Callable[..., object]:
        """The user's function."""
        ...

    def call_with_arrays(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """A call without references."""
        ...

    def alike(self, function: Call) -> CompiledCall:
        """Another function with the same parameters, compiled in the same way."""
        ...


class CompiledCall(Protocol):
    """What is compiled in place of a function with references."""

    def __call__(self, *args: object, **kwargs: object) -> Changed:
        """The results."""
        ...

    def trace(self, *args: object, **kwargs: object) -> stages.Traced:
        """The function, traced for arguments like these."""
        ...


def call_beside(compiled_function: Compiled, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """A call where there are references, among the arguments or around the function."""
    # An override, such as checkify, passes references in its own way.
    if (call := callers().of_jitted) is not None:
        return call(compiled_function, args, kwargs)
    return _beside(compiled_function, args, kwargs, compiled_function.call_with_arrays, lambda passing: passing)


def trace_beside(compiled_function: Compiled, args: tuple[object, ...], kwargs: Mapping[str, object]) -> stages.Traced:
    """A function traced where there are references, among the arguments or around it."""
    plain = functools.partial(stages.trace, compiled_function)
    return _beside(compiled_function, args, kwargs, plain, lambda passing: passing.trace)


def _beside(
    compiled_function: Compiled,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    plain: Callable[[tuple[object, ...], Mapping[str, object]], R],
    with_references: Callable[[Passing], Callable[[tuple[object, ...], Mapping[str, object]], R]],
) -> R:
    try:
        if compiled_function.passing is None and not any(isinstance(x, Ref) for x in tree.leaves((args, dict(kwargs)))):
            return plain(args, kwargs)
    except Outside:
        pass  # it closes over references: from now on they are passed to it
    if compiled_function.passing is None:
        compiled_function.passing = Passing(compiled_function)
    return with_references(compiled_function.passing)(args, kwargs)


class Passing:
    """A jitted function as a function of values, and the references that it closes over."""

    __slots__ = ("around", "call", "compiled_function")

    def __init__(self, compiled_function: Compiled):
        self.around: tuple[Ref, ...] = ()
        self.compiled_function = compiled_function

        def pure(*args: object, **kwargs: object) -> Changed:
            return self.pure(*args, **kwargs)

        # The program has the name of the user's function, not of this wrapper.
        pure.__name__ = function_name(compiled_function.function)
        self.call = compiled_function.alike(pure)

    def __call__(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Call the function, and write the values that it has changed.

        Errors: ArgumentError for a reference that is both an argument and closed over.
        """
        refs, (result, changed_arguments, changed_around) = self._with_values(self.call, args, kwargs)
        for references, values in ((refs, changed_arguments), (self.around, changed_around)):
            write_all([references[k] for k in values], [*values.values()])
        return result

    def trace(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> stages.Traced:
        """The trace of the compiled function, presented as a trace of the user's function.

        Errors: as for a call.
        """
        pure = self._with_values(self.call.trace, args, kwargs)[1]
        # Of the results of `pure` only the first is the user's; values of references follow it.
        return stages.of_trace(self.compiled_function, args, kwargs, pure.trace, pure.out_tree.children()[0])

    def _with_values(
        self, use: Callable[..., R], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[list[Ref], R]:
        """use(arguments with values in place of references), and the references among them."""
        (boxes, named_boxes), refs = boxed("jit", (args, dict(kwargs)))
        # This ends: each round adds references to `around`, and a function closes over few.
        while True:
            _require_apart(refs, self.around)
            try:
                return refs, use(*boxes, **named_boxes, **{_AROUND: values_of(self.around)})
            except Written as signal:
                self.around = (*self.around, *signal.refs)

    def pure(self, *args: object, **kwargs: object) -> Changed:
        """The function that is compiled."""
        values = kwargs.pop(_AROUND)
        assert isinstance(values, list)
        with surroundings("jit", self.around, values) as frame:
            (args, kwargs), refs = unboxed((args, kwargs))
            before = [ref.value for ref in refs]
            result = self.compiled_function.function(*args, **kwargs)
            require_none("jit", result)
            after = [ref.value for ref in refs]
        return result, _changed(before, after), _changed(values, frame.values)


def _changed(before: Sequence[Value], after: Sequence[Value]) -> dict[int, Value]:
    # By identity: a write, even of an equal value, makes another object.
    return {k: x for k, (b, x) in enumerate(zip(before, after, strict=True)) if x is not b}


def _require_apart(refs: Sequence[Ref], around: Sequence[Ref]) -> None:
    for ref in refs:
        if any(ref is other for other in around):
            raise ArgumentError(
                f"jit: cannot take a reference that the function closes over ({ref.type})",
                hint="pass it, or close over it",
            )
