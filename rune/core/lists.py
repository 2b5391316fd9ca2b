"""Lists of values, split and joined again: by flags, position by position, or by counts.

Flags say of every value of a list, in order, whether it is known, has lanes, or is not zero. A rule
picks the values that it needs, and scatters its results over the full list.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

Flags = tuple[bool, ...]
T = TypeVar("T")


def pick(values: Iterable[T], flags: Iterable[bool]) -> list[T]:
    """The values that are flagged."""
    return [v for v, f in zip(values, flags, strict=True) if f]


def omit(values: Iterable[T], flags: Iterable[bool]) -> list[T]:
    """The values that are not flagged."""
    return [v for v, f in zip(values, flags, strict=True) if not f]


def scatter(values: Iterable[T], flags: Iterable[bool]) -> list[T | None]:
    """The next value for every flag that is set, None for the others: the inverse of `pick`."""
    following = iter(values)
    return [next(following) if f else None for f in flags]


def merge(flags: Iterable[bool], yes: Iterable[T], no: Iterable[T]) -> list[T]:
    """The next of `yes` for every flag that is set, of `no` for the others."""
    yes_values, no_values = iter(yes), iter(no)
    return [next(yes_values) if f else next(no_values) for f in flags]


def union(*flags: Sequence[bool]) -> Flags:
    """For each position, whether any of the flags there is set."""
    return tuple(any(column) for column in zip(*flags, strict=True))


def nonzero_flags(values: Iterable[object]) -> Flags:
    """Which values are not None, the symbolic zero."""
    return tuple(v is not None for v in values)


def nonzeros(values: Iterable[T | None]) -> list[T]:
    """The values that are not None."""
    return [v for v in values if v is not None]


def parts(values: Sequence[T], *counts: int) -> list[list[T]]:
    """The values cut into pieces of these lengths, and a last piece with all other values."""
    ends = [0, *itertools.accumulate(counts), len(values)]
    return [list(values[a:b]) for a, b in itertools.pairwise(ends)]
