"""Why jit traced again: which part of the key differs from those of stored traces, in words.

A call is compared with the stored trace that differs least, or the latest of several. A jitted
function that is created anew for every call has no traces: the reason then says that its code was
traced before, unless it is one of rune's own, such as a sampler, jitted for each shape.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from types import CodeType
from typing import Any
from weakref import WeakSet

from rune import tree
from rune.config import Config
from rune.context import innermost, inside
from rune.core.types import ArrayType
from rune.transforms.arguments import function_name, leaf_path
from rune.transforms.tree_difference import paths, structure_text
from rune.tree import TreeDef

Key = tuple[Any, tuple[ArrayType, ...], tuple, Any]  # tree, types, static values, configuration


# A class of its own, since values of the context are found by their class (rune/context.py).
class Collectors(tuple[list[str], ...]):
    """The lists of all enclosing blocks that collect reasons."""

    __slots__ = ()


_traced_code: WeakSet[CodeType] = WeakSet()  # code from which a jitted function has been traced
_ABSENT = object()
_log = logging.getLogger("rune")


@contextmanager
def explain_cache_misses() -> Iterator[list[str]]:
    """Inside the block, report the reason for each trace by jit: in the list, and as a warning.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> f = rune.jit(lambda x: x + 1)
    >>> _ = f(rnp.ones(3))
    >>> with rune.explain_cache_misses() as reasons:
    ...     _ = f(rnp.ones(4))
    >>> reasons
    ['jit: traced lambda again (argument[0]: shape [3] before, [4] now)']
    """
    reasons: list[str] = []
    with inside(Collectors, Collectors((*(innermost(Collectors) or ()), reasons))):
        yield reasons


def note(function: Callable[..., object], key: Key, known: Collection[Key]) -> None:
    """Record the reason for a trace that is about to be made, if a block collects reasons."""
    code = _code(function)
    if collectors := innermost(Collectors):
        why = "; ".join(_differences(key, known)) if known else _first(function, code)
        message = f"jit: traced {function_name(function)} {'again' if known else 'first'} ({why})"
        _log.warning(message)
        for reasons in collectors:
            reasons.append(message)
    # Recorded in any case, for blocks that collect reasons later.
    if code is not None:
        _traced_code.add(code)


def _code(function: object) -> CodeType | None:
    """The code of a function; for a partial, of the function inside it."""
    while isinstance(function, functools.partial | tree.Partial):
        function = function.func
    return getattr(function, "__code__", None)


def _first(function: Callable[..., object], code: CodeType | None) -> str:
    if code not in _traced_code:
        return "it has not been called before"
    if (getattr(function, "__module__", None) or "").startswith("rune."):
        return "rune has one such function for each kind of call, and this kind is new"
    return "jit was applied anew to code that was traced before; keep the jitted function"


def _differences(key: Key, known: Collection[Key]) -> list[str]:
    # The key exists, but the trace does not fit: it was made for other handlers or axes.
    if key in known:
        return ["the handlers of effects around the call differ"]
    # Reversed, since `min` returns the first of several: the latest trace.
    return min((list(_between(old, key)) for old in reversed([*known])), key=len)


def _between(before: Key, key: Key) -> Iterator[str]:
    """The differences, part by part."""
    if before[0] != key[0]:
        yield _of_trees(before[0], key[0])
    else:
        for number, (old, new) in enumerate(zip(before[1], key[1], strict=True)):
            for change in _of_types(old, new):
                yield f"argument{leaf_path(number, key[0])}: {change}"
    yield from _of_values("static argument", _statics(before[2]), _statics(key[2]))
    yield from _of_values("setting", _settings(before[3]), _settings(key[3]))


def _of_trees(old: TreeDef, new: TreeDef) -> str:
    old_paths, new_paths = (dict.fromkeys(paths(treedef)) for treedef in (old, new))
    missing = next((path for path in old_paths if path not in new_paths), None)
    extra = next((path for path in new_paths if path not in old_paths), None)
    # Equal paths in other containers, such as a list for a tuple.
    if missing is None and extra is None:
        return f"the arguments are {structure_text(old)} before, {structure_text(new)} now"
    if missing is None or extra is None:
        return f"{_argument(missing)} is gone" if extra is None else f"{_argument(extra)} is new"
    return f"{_argument(missing)} before, {_argument(extra)} now"


def _argument(path: str | None) -> str:
    """`argument[0]['w']`, of a path in the pair of positional and named arguments."""
    return f"argument{(path or '')[len('[0]') :]}"


def _of_types(old: ArrayType, new: ArrayType) -> Iterator[str]:
    if old.shape != new.shape:
        yield f"shape {_shape(old)} before, {_shape(new)} now"
    if old.dtype != new.dtype:
        yield f"dtype {old.dtype} before, {new.dtype} now"
    if old.weak != new.weak:
        strong, weak = "an array", "a number of Python's (weak type)"
        yield f"{weak} before, {strong} now" if old.weak else f"{strong} before, {weak} now"


def _shape(type: ArrayType) -> str:
    return f"[{', '.join(map(str, type.shape))}]"


def _statics(statics: tuple) -> dict[object, object]:
    return {where: value for where, _, value in statics}


def _settings(config: Config) -> dict[str, object]:
    return {f.name: getattr(config, f.name) for f in fields(config)}


def _of_values(role: str, old: Mapping[Any, object], new: Mapping[Any, object]) -> Iterator[str]:
    for where in {**old, **new}:
        old_value, new_value = old.get(where, _ABSENT), new.get(where, _ABSENT)
        if type(old_value) is not type(new_value) or old_value != new_value:
            texts = ("absent" if x is _ABSENT else repr(x) for x in (old_value, new_value))
            yield "{} {}: {} before, {} now".format(role, where, *texts)
