"""Samples of tests that are too many for every run, and too alike.

RUNE_TEST_WHOLE=1 runs all of them. What is chosen depends on the names of cases alone, so that the
same ones run every time.

A test with three parameters or more runs for every *pair* of their values rather than for every
combination: faults depend on one value or on two, hardly ever on three at once (D. R. Kuhn, D. R.
Wallace and A. M. Gallo, Software Fault Interactions and Implications for Software Testing, IEEE
Transactions on Software Engineering 30, 2004).
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

T = TypeVar("T")
Pair = tuple[tuple[int, str], ...]
IS_WHOLE = "RUNE_TEST_WHOLE" in os.environ


def one_in(count: int, cases: Sequence[T]) -> list[T]:
    """About one of `count` cases, the same in every run; all of them with RUNE_TEST_WHOLE=1.

    Of cases whose names choose none of them it is the first, so that no table is tried by nothing.
    """
    if IS_WHOLE:
        return list(cases)
    chosen = [c for c in cases if zlib.crc32(str(c).encode()) % count == 0]
    return chosen or list(cases[:1])


def pairs_of_values(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, of those with three parameters or more as many as have every pair of values."""
    if IS_WHOLE:
        return list(items)
    crossed: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for item in items:
        if len(values := names_of_values(item)) >= 3:
            crossed[item.nodeid.split("[")[0]][item.nodeid] = values
    dropped = {name for rows in crossed.values() for name in rows.keys() - set(covering(rows))}
    return [item for item in items if item.nodeid not in dropped]


def names_of_values(item: pytest.Item) -> list[str]:
    """The name of the value of each `parametrize`, in their order."""
    # pytest has no public name for it: `id` joins the names by dashes, which may stand in them.
    callspec = getattr(item, "callspec", None)
    return [] if callspec is None else list(callspec._idlist)


def covering(rows: Mapping[T, Sequence[str]]) -> list[T]:
    """Rows that have each pair of values that any row has: always the one with most new pairs."""
    pairs = {key: pairs_in(row) for key, row in rows.items()}
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        best = max(pairs, key=lambda key: len(pairs[key] & missing))
        missing -= pairs.pop(best)
        chosen.append(best)
    return chosen


def pairs_in(row: Sequence[str]) -> set[Pair]:
    return set(combinations(enumerate(row), 2))
