"""The modules that write the calls of a plan, imported for the first plan with a call of the
kind."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks


@functools.cache
def bands() -> ModuleType:
    """Steps that run entry by entry."""
    return locks.load("rune.backends.cpu.bands")


@functools.cache
def dots() -> ModuleType:
    """Matrix products."""
    return locks.load("rune.backends.cpu.dots")


@functools.cache
def factors() -> ModuleType:
    """Factorisations."""
    return locks.load("rune.backends.cpu.factors")


@functools.cache
def transforms() -> ModuleType:
    """Fourier transforms."""
    return locks.load("rune.backends.cpu.transforms")


@functools.cache
def spectra() -> ModuleType:
    """Eigenvalues and singular values."""
    return locks.load("rune.backends.cpu.spectra")


@functools.cache
def talks() -> ModuleType:
    """Collectives, and queries for a device's place."""
    return locks.load("rune.backends.cpu.crew.talk")
