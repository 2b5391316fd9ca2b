"""Modules that few programs need, loaded on first use (decision 0008)."""

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


@functools.cache
def groups() -> ModuleType:
    """Loops of groups of threads: for the first device that has them."""
    return locks.load("rune.lowering.build.groups")


@functools.cache
def legal_schedules() -> ModuleType:
    """Which schedules a kernel may have: for the first that is asked for."""
    return locks.load("rune.lowering.build.legal")


@functools.cache
def streams() -> ModuleType:
    """Loops of streams, as of attention: for the first that is built."""
    return locks.load("rune.lowering.build.streams")


@functools.cache
def kernels_check() -> ModuleType:
    """Checks of kernels: for `check_stages`."""
    return locks.load("rune.lowering.kernels_check")


@functools.cache
def plan_types() -> ModuleType:
    """Checks of the types in a plan: likewise."""
    return locks.load("rune.lowering.plan_types")


@functools.cache
def plan_check() -> ModuleType:
    """Checks of the memory in a plan: likewise."""
    return locks.load("rune.lowering.plan_check")


@functools.cache
def plan_text() -> ModuleType:
    """Plans as text: for the first that is shown."""
    return locks.load("rune.lowering.plan_text")


@functools.cache
def scatters() -> ModuleType:
    """What devices do in place of scatters: for the first program that has one."""
    return locks.load("rune.lowering.scatters")


@functools.cache
def sorts() -> ModuleType:
    """Sorts on a device, likewise."""
    return locks.load("rune.lowering.sorting.sorts")


@functools.cache
def cholesky() -> ModuleType:
    """Factorisations by groups of threads: for the first device that has groups."""
    return locks.load("rune.lowering.factorisations.cholesky")


@functools.cache
def triangular() -> ModuleType:
    """Solutions by triangles, likewise."""
    return locks.load("rune.lowering.factorisations.triangular")


@functools.cache
def lu() -> ModuleType:
    """Eliminations, likewise."""
    return locks.load("rune.lowering.factorisations.lu")
