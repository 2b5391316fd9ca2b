"""What surrounds code where it runs: one immutable record for each thread or task.

The record has at most one entry of each type, the innermost. Its owner defines the type, and so
who may ask is who may import it; a module below cannot depend on what stands above. Besides this
record a context carries the interpreter that is current and the settings (decision 0098).

    errors.Frame                  the user's line that is being worked on
    scopes.Scope                  the names of the scopes around
    effects.Handlers              the handlers of effects
    dims.guards.Questions         the comparisons of symbolic sizes that were asked for
    core.axes.LaneAxis            the axis of lanes whose batch rule runs
    profiling.Profile             the profile that gathers events
    transforms.references.Frame   the body under way, for references from outside of it
    transforms.callers.Callers    who makes the calls of jitted functions
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
    """The innermost entry of this type; None outside of all."""
    return _entries.get().get(kind)  # type: ignore[return-value]  # it is of its kind


def put(kind: type[T], entry: T | None) -> None:
    """From now on this is the entry of its type in this context; None: there is none."""
    entries = {**_entries.get(), kind: entry}
    if entry is None:
        del entries[kind]
    _entries.set(entries)


class inside(Generic[T]):
    """Inside the block this is the entry of its type; None: there is none.

    Leaving it restores this type alone: blocks of several types may end in any order.
    """

    __slots__ = ("entry", "kind", "outer")

    def __init__(self, kind: type[T], entry: T | None):
        self.kind, self.entry = kind, entry

    def __enter__(self) -> None:
        self.outer = innermost(self.kind)
        put(self.kind, self.entry)

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        put(self.kind, self.outer)
