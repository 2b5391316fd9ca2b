"""Programs with identical text share one object, with one set of derivatives and code."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from weakref import WeakValueDictionary

from rune.core.program import Program
from rune.core.same import program_key
from rune.core.staging import is_kept

_alive: WeakValueDictionary[tuple[Hashable, ...], Program] = WeakValueDictionary()


def interned(program: Program) -> Program:
    """The first live program with the same text as this one."""
    first = _alive.setdefault(program_key(program), program)
    # A jitted program keeps the programs in it alive. In eager code nothing else would keep this
    # one, with its compiled code, until the next call.
    return first if is_kept() else long_lived(first)


@functools.lru_cache(maxsize=1024)
def long_lived(program: Program) -> Program:
    """The program, kept alive."""
    return program
