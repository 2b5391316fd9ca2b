"""Modules that few programs need, loaded on first use (decision 0008)."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks


@functools.cache
def bands() -> ModuleType:
    """Steps that run entry by entry: loaded for the first program that calls a product."""
    return locks.load("rune.lowering.bands")


@functools.cache
def costs() -> ModuleType:
    """The model of costs: loaded for the first prediction."""
    return locks.load("rune.lowering.costs")


@functools.cache
def graphs() -> ModuleType:
    """Kernels and plans as graphs: loaded for the first one that is drawn."""
    return locks.load("rune.lowering.graphs")


@functools.cache
def groups() -> ModuleType:
    """Loops of groups of threads: loaded for the first device that has groups."""
    return locks.load("rune.lowering.build.groups")


@functools.cache
def legal_schedules() -> ModuleType:
    """Which schedules a kernel may have: loaded for the first schedule that is requested."""
    return locks.load("rune.lowering.build.legal")


@functools.cache
def streams() -> ModuleType:
    """Loops of streams, such as attention: loaded for the first one that is built."""
    return locks.load("rune.lowering.build.streams")


@functools.cache
def kernels_check() -> ModuleType:
    """Checks of kernels: loaded for `check_stages`."""
    return locks.load("rune.lowering.kernels_check")


@functools.cache
def plan_types() -> ModuleType:
    """Checks of the types in a plan: loaded for `check_stages`."""
    return locks.load("rune.lowering.plan_types")


@functools.cache
def plan_check() -> ModuleType:
    """Checks of the memory in a plan: loaded for `check_stages`."""
    return locks.load("rune.lowering.plan_check")


@functools.cache
def plan_text() -> ModuleType:
    """Plans as text: loaded for the first one that is printed."""
    return locks.load("rune.lowering.plan_text")


@functools.cache
def parts() -> ModuleType:
    """The parts of complex numbers and keys: loaded for the first program with one."""
    return locks.load("rune.lowering.legalize.parts")


@functools.cache
def narrow_storage() -> ModuleType:
    """Narrow dtypes in those of a target: loaded for the first one that a target lacks."""
    return locks.load("rune.lowering.legalize.narrow_storage")


@functools.cache
def scatters() -> ModuleType:
    """Rules of devices in place of scatters: loaded for the first program with a scatter."""
    return locks.load("rune.lowering.scatters")


@functools.cache
def sorts() -> ModuleType:
    """Sorts on a device: loaded for the first program with a sort."""
    return locks.load("rune.lowering.sorting.sorts")


@functools.cache
def cholesky() -> ModuleType:
    """Cholesky factors by groups of threads: loaded for the first device that has groups."""
    return locks.load("rune.lowering.factorisations.cholesky")


@functools.cache
def triangular() -> ModuleType:
    """Triangular solves by groups of threads, likewise."""
    return locks.load("rune.lowering.factorisations.triangular")


@functools.cache
def lu() -> ModuleType:
    """LU factors by groups of threads, likewise."""
    return locks.load("rune.lowering.factorisations.lu")
