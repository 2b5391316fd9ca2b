"""Overrides for calls of jitted functions and of functions over a mesh."""

from __future__ import annotations

from collections.abc import Callable

from rune.context import innermost
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Callers:
    """What makes such calls inside a function; None: the functions themselves. `checkify` sets it.

    of_jitted:  call(jitted, args, kwargs)
    of_sharded: call(sharded, args)
    """

    of_jitted: Callable[..., object] | None = None
    of_sharded: Callable[..., object] | None = None


NOBODY = Callers()


def callers() -> Callers:
    """The override in force here."""
    return innermost(Callers) or NOBODY
