"""Modules that say what a lowering costs and draw it, loaded when that is asked (decision 0008)."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks


@functools.cache
def costs() -> ModuleType:
    """The model of costs: for the first prediction."""
    return locks.load("rune.lowering.costs")


@functools.cache
def graphs() -> ModuleType:
    """Kernels and plans as graphs: for the first that is drawn."""
    return locks.load("rune.lowering.graphs")
