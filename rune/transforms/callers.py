"""Who makes the calls of jitted functions, and of functions over a mesh, in their place."""

from __future__ import annotations

from collections.abc import Callable

from rune.context import innermost
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Callers:
    """What makes such calls inside of a function; None: they do. `checkify` has its own.

    of_jitted:  call(jitted, args, kwargs)
    of_sharded: call(sharded, args)
    """

    of_jitted: Callable[..., object] | None = None
    of_sharded: Callable[..., object] | None = None


NOBODY = Callers()


def callers() -> Callers:
    """Who makes the calls here."""
    return innermost(Callers) or NOBODY
