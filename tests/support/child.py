"""This process as a forked child of one that has loaded its drivers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rune.backends.shared.forks import forks


@contextmanager
def as_a_child() -> Iterator[None]:
    """A block in which drivers that were loaded before must not be used."""
    forks[0] += 1
    try:
        yield
    finally:
        forks[0] -= 1
