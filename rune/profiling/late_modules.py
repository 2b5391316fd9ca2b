"""The modules of profiles that load on first use, because `import rune` does not need them."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks


@functools.cache
def trace_file() -> ModuleType:
    """The writer of files for Perfetto; loaded when a profile is first saved."""
    return locks.load("rune.profiling.trace_file")


@functools.cache
def view() -> ModuleType:
    """Tables and timelines; loaded when a notebook first shows a profile."""
    return locks.load("rune.profiling.view")
