"""Overrides for calls of jitted functions and of functions over a mesh."""

from __future__ import annotations

from collections.abc import Callable

from rune.context import innermost
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Callers:
    """Functions that make such calls in place of the callee, as checkify's; None for no override.

    of_jitted:  call(jitted, args, kwargs)
    of_sharded: call(sharded, args)
    """

    of_jitted: Callable[..., object] | None = None
    of_sharded: Callable[..., object] | None = None


NOBODY = Callers()


def callers() -> Callers:
    """The override in force here."""
    return innermost(Callers) or NOBODY
