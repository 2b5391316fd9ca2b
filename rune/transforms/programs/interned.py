"""Programs that are written alike, line by line, as one: with one set of derivatives and code."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from weakref import WeakValueDictionary

from rune.core.program import Program
from rune.core.same import program_key
from rune.core.staging import is_kept

_alive: WeakValueDictionary[tuple[Hashable, ...], Program] = WeakValueDictionary()


def interned(program: Program) -> Program:
    """The first program that is alive and is written like this one."""
    first = _alive.setdefault(program_key(program), program)
    # A jitted program holds those within it. In eager code nothing would until the next call.
    return first if is_kept() else held(first)


@functools.lru_cache(maxsize=1024)
def held(program: Program) -> Program:
    """The program, kept alive."""
    return program
