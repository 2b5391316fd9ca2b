"""What of profiles is loaded when it is first needed: `import rune` neither draws nor writes."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks


@functools.cache
def trace_file() -> ModuleType:
    """The file for Perfetto: for the first profile that is saved."""
    return locks.load("rune.profiling.trace_file")


@functools.cache
def view() -> ModuleType:
    """Tables and timelines: for the first that is shown in a notebook."""
    return locks.load("rune.profiling.view")
