"""The static and donated arguments of jit, by number from either end or by name.

Static arguments are Python values: they are removed from the tree of arguments, become part of the
key of a trace, and are inserted again when the function is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypedDict

from rune import tree
from rune.backends import Device
from rune.core.value_keys import value_key
from rune.errors import ArgumentError
from rune.records import dataclass
from rune.transforms.arguments import as_value, function_name, require_callable, value_leaves

Names = int | str | Iterable[int | str] | None
Statics = tuple[tuple[int | str, Hashable, Any], ...]  # where; its key, since 1 == True; the value


# For both overloads of `jit`, which would otherwise repeat its keywords.
class Options(TypedDict, total=False):
    """The keywords of `jit`, which documents them."""

    static_argnums: Names
    static_argnames: Names
    donate_argnums: Names
    donate_argnames: Names
    dims: Mapping[str, tuple[int | str, int | str | None]] | None
    in_dims: Any
    device: str | Device | None
    schedule: Mapping[str, object] | None
    in_shardings: object
    out_shardings: object
    keep_unused: bool
    inline: bool
    backend: str | None
    compiler_options: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Marked:
    """The static and donated arguments, by number and by name."""

    function: Callable[..., object]
    static: frozenset[int | str]
    donations: frozenset[int | str]

    @staticmethod
    def of(function: Callable[..., object], static: frozenset[int | str], donations: frozenset[int | str]) -> Marked:
        """The record for the numbers and names in the options of `jit`.

        Errors: ArgumentError for a number or a name that no argument can have, and for an object
                that cannot be called.
        """
        require_callable("jit", function)
        # Most functions have neither, and need no inspection of their signature.
        parameters = _parameters(function) if static or donations else None
        if parameters is not None:
            _require_known(function, "static", static, parameters)
            _require_known(function, "donated", donations, parameters)
        return Marked(function, _with_names(static, parameters or ()), _with_names(donations, parameters or ()))

    def split(self, args: tuple, kwargs: Mapping[str, object]) -> tuple[Any, Statics]:
        """The arguments without the static ones; and the static ones.

        Errors: ArgumentError for a static argument that is not hashable.
        """
        positions = self._positions(self.static, len(args))
        # Sorted, so that equal calls have equal keys, and `with_statics` may insert from the left.
        statics = [(i, args[i]) for i in sorted(positions)]
        statics += [(k, kwargs[k]) for k in sorted(kwargs) if k in self.static]
        for where, value in statics:
            _require_hashable(self.function, where, value)
        dynamic = tuple(x for i, x in enumerate(args) if i not in positions)
        dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in self.static}
        return (dynamic, dynamic_kwargs), tuple((w, value_key(v), v) for w, v in statics)

    def static_test(self, count: int) -> Callable[[int | str], bool]:
        """A test: is the argument with this number, of `count`, or with this name static?"""
        return (self._positions(self.static, count) | self.static).__contains__

    def donated_leaves(self, treedef: tree.TreeDef, offset: int) -> tuple[int, ...]:
        """The numbers of the donated leaves; the very first leaf has number `offset`."""
        numbers = tree.unflatten(treedef, list(range(offset, offset + treedef.num_leaves)))
        args, kwargs = numbers
        donations = [args[i] for i in sorted(self._positions(self.donations, len(args)))]
        donations += [v for k, v in kwargs.items() if k in self.donations]
        return tuple(tree.leaves(donations))

    def _positions(self, names: frozenset[int | str], count: int) -> set[int]:
        """The positions, of `count`, that numbers from either end denote."""
        return {i for i in range(count) if i in names or i - count in names}


def with_statics(dynamic: Any, statics: Statics) -> tuple[list[Any], dict[str, Any]]:
    """All arguments: the inverse of `split`."""
    args, kwargs = list(dynamic[0]), dict(dynamic[1])
    for where, _, value in statics:
        if isinstance(where, int):
            # In ascending order, so that each position is the one in the full list.
            args.insert(where, value)
        else:
            kwargs[where] = value
    return args, kwargs


def call_inline(function: Callable[..., Any], marks: Marked, args: tuple, kwargs: Mapping[str, object]) -> Any:
    """The function's own equations, where `jit` would write one equation that holds them."""
    dynamic, statics = marks.split(args, kwargs)
    leaves, treedef = tree.flatten(dynamic)
    values = [as_value(x) for x in value_leaves("jit", leaves, treedef)]
    args_of_arrays, keywords = with_statics(tree.unflatten(treedef, values), statics)
    return tree.map(as_value, function(*args_of_arrays, **keywords))


def as_set(numbers: Names, names: Names) -> frozenset[int | str]:
    """Numbers and names from two options of `jit`, each of which may be one, several or None."""
    return frozenset((*_each(numbers), *_each(names)))


def _each(names: Names) -> Iterable[int | str]:
    if names is None:
        return ()
    return (names,) if isinstance(names, int | str) else names


Parameters = tuple[inspect.Parameter, ...]


def _parameters(function: Callable[..., object]) -> Parameters | None:
    """The function's parameters; None if it has no signature."""
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _positional(parameters: Parameters) -> tuple[str, ...]:
    """The names of the positional parameters, without those of `*args`."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in kinds)


def _takes_more(parameters: Parameters) -> bool:
    """Whether there are `*args`: a number from the end then depends on the call."""
    return any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _require_known(
    function: Callable[..., object], role: str, static: frozenset[int | str], parameters: Parameters
) -> None:
    """Errors: ArgumentError for an argument that the function cannot take."""
    kinds, names = {p.kind for p in parameters}, {p.name for p in parameters}
    count = len(_positional(parameters))
    for where in static:
        if isinstance(where, str):
            is_known = where in names or inspect.Parameter.VAR_KEYWORD in kinds
        else:
            is_known = -count <= where < count or _takes_more(parameters)
        if not is_known:
            parameter_names = ", ".join(p.name for p in parameters)
            raise ArgumentError(
                f"jit: cannot take argument {where!r} of {function_name(function)} as {role} "
                f"(it takes {parameter_names or 'none'})"
            )


def _with_names(static: frozenset[int | str], parameters: Parameters) -> frozenset[int | str]:
    """Numbers with their parameters' names added, and names with their numbers.

    A call may pass an argument by position or by name, so each mark applies to both; if both
    numbers and names are given, they are taken literally, as in JAX.
    """
    names = _positional(parameters)
    end = 0 if _takes_more(parameters) else len(names)
    numbers = {n + end if n < 0 else n for n in static if isinstance(n, int)}
    words = {w for w in static if isinstance(w, str)}
    if numbers and words:
        return frozenset({*numbers, *words})
    numbered_names = {names[n] for n in numbers if 0 <= n < len(names)}
    return frozenset({*numbers, *words, *numbered_names, *(i for i, name in enumerate(names) if name in words)})


def _require_hashable(function: Callable[..., object], where: int | str, value: object) -> None:
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"jit: cannot take static argument {where!r} of {function_name(function)} "
            f"({type(value).__name__} is not hashable)",
            hint="static arguments are part of the cache key; use a tuple instead of a list",
        ) from None


def as_key(dims: Mapping[str, object] | None, in_dims: object) -> Hashable:
    """The declared sizes, as a part of the key of a trace."""
    patterns, treedef = tree.flatten(in_dims)
    return tuple((dims or {}).items()), tuple(patterns), treedef
