"""The dynamic context of running code: one immutable record for each thread or task.

The record has at most one entry of each type, the innermost. The owner of an entry defines its type
and only modules that may import the type can read the entry, so no layer depends on one above it.
Besides this record a context carries the current interpreter and the settings (decision 0098).

    errors.Frame                  the user's line to which errors are attributed
    scopes.Scope                  the names of the enclosing scopes
    effects.Handlers              the handlers of effects
    dims.guards.Questions         the recorded comparisons of symbolic sizes
    core.axes.LaneAxis            the batch axis whose batch rule is running
    profiling.Profile             the profile that records events
    sharding.context.Unchecked    whether layouts along Explicit axes are followed
    transforms.references.Frame   the current body, for references from outside it
    transforms.callers.Callers    what carries out calls of jitted functions
    transforms.inspect.cache_misses.Collectors, checkify.calls.State, as_jax.flags.Options

>>> class Depth(int):
...     pass
>>> with inside(Depth, Depth(3)):
...     innermost(Depth)
3
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Generic, TypeVar

T = TypeVar("T")

_entries: ContextVar[Mapping[type, object]] = ContextVar("rune_context", default=MappingProxyType({}))


def innermost(kind: type[T]) -> T | None:
    """The innermost entry of this type, or None."""
    return _entries.get().get(kind)  # type: ignore[return-value]  # each entry has its key's type


def put(kind: type[T], entry: T | None) -> None:
    """Set the entry of this type in this context from now on; None removes it."""
    entries = {**_entries.get(), kind: entry}
    if entry is None:
        del entries[kind]
    _entries.set(entries)


class inside(Generic[T]):
    """A block in which this is the entry of its type; None: in which there is none.

    Leaving the block restores only this type, so blocks of several types may end in any order.
    """

    __slots__ = ("entry", "kind", "outer")

    def __init__(self, kind: type[T], entry: T | None):
        self.kind, self.entry = kind, entry

    def __enter__(self) -> None:
        self.outer = innermost(self.kind)
        put(self.kind, self.entry)

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        put(self.kind, self.outer)
