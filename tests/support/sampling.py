"""Samples of tests that are too many for every run, and too similar.

RUNE_TEST_WHOLE=1 runs all of them. A sample depends only on the names of cases, so that the same
cases run every time.

A test with three parameters or more runs for every *pair* of their values rather than for every
combination: faults depend on one value or on two, hardly ever on three at once (D. R. Kuhn, D. R.
Wallace and A. M. Gallo, Software Fault Interactions and Implications for Software Testing, IEEE
Transactions on Software Engineering 30, 2004).

OpenCL, Vulkan and wgpu on a processor share the kernels of groups of threads, and differ by the
language that rune writes and the driver that compiles it, which takes most of their time. The size
of an array changes the kernels only: if a test says so (`in_turn`), each of the three executors
runs every third size, with all dtypes and all ways of computing. With fewer values than executors,
each executor runs one. A test without such a parameter takes turns with the others of its file
(`in_turn()`): what every executor makes of every primitive is held by laws/test_conformance.py, and
these tests hold what kernels compute that are the same on all three. The interpreter of kernels,
`reference`, takes every third value of such tests, too."""

from __future__ import annotations

import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

import rune

T = TypeVar("T")
Pair = tuple[tuple[int, str], ...]
IS_WHOLE = "RUNE_TEST_WHOLE" in os.environ
SHARING = ("opencl", "vulkan", "wgpu")
INTERPRETER = "reference:0"


def one_in(count: int, cases: Sequence[T]) -> list[T]:
    """About one of `count` cases, the same in every run; all of them with RUNE_TEST_WHOLE=1.

    If the names select no case, it is the first one, so that every table is tried.
    """
    if IS_WHOLE:
        return list(cases)
    sample = [c for c in cases if zlib.crc32(str(c).encode()) % count == 0]
    return sample or list(cases[:1])


def without(impossible: Callable[..., bool]) -> pytest.MarkDecorator:
    """Leave out combinations of values, given by name, that the test would skip.

    Otherwise a pair of values might occur only in a test that is skipped.
    """
    return pytest.mark.without.with_args(impossible)


def possible(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests without those of impossible combinations."""
    marks = ((item, item.get_closest_marker("without")) for item in items)
    return [i for i, mark in marks if mark is None or not mark.args[0](**i.callspec.params)]  # type: ignore[attr-defined]


def in_turn(*parameters: str) -> pytest.MarkDecorator:
    """Executors that share kernels divide the values of these parameters, or their combinations,
    among themselves: each runs every third.

    Without parameters they divide all cases of such tests of one file.
    """
    return pytest.mark.in_turn(*parameters)


def sharing_kernels() -> list[str]:
    """The names of executors that run kernels of groups of threads on a processor.

    The first ones get one value more if the values do not divide evenly: OpenCL, whose driver takes
    longest to compile, comes last.
    """
    names = (d.name for d in rune.devices() if d.target.backend in SHARING and d.target.is_processor)
    return sorted(names, reverse=True)


def is_in_turn(place: int, count: int, name: str, group: Sequence[str]) -> bool:
    """Whether an executor runs the value at this place of so many; outside the group it always
    does."""
    return name not in group or place % len(group) == group.index(name) % count


def each_in_turn(items: Sequence[pytest.Item], group: Sequence[str]) -> list[pytest.Item]:
    """The tests without those whose value another executor of the group runs."""
    collection = {item.nodeid for item in items}
    places: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    for item in items:
        table, value = _case_in_turn(item, group)
        if value and (table, value) not in places:
            places[table, value] = counts.setdefault(table, _first_place(table, group))
            counts[table] += 1

    def has_turn(item: pytest.Item) -> bool:
        table, value = _case_in_turn(item, group)
        if not value:
            return True
        executor, place = _executor(item, group), places[table, value]
        if executor == INTERPRETER:
            owners = [INTERPRETER] if place % 3 == 0 else ["cpu:0", *group]
        else:
            owners = [name for name in group if is_in_turn(place, counts[table], name, group)]
        return executor in owners or not any(item.nodeid.replace(executor, owner) in collection for owner in owners)

    return list(items) if IS_WHOLE else [i for i in items if has_turn(i)]


def _case_in_turn(item: pytest.Item, group: Sequence[str]) -> tuple[str, str]:
    """The test whose values are divided, or the file whose tests are, and the value or the case.

    The second is "" if the test runs on every executor, or on none of the group.
    """
    mark, executor = item.get_closest_marker("in_turn"), _executor(item, group)
    if mark is None or not executor:
        return item.nodeid, ""
    if not mark.args:
        return item.nodeid.split("::")[0], item.nodeid.replace(executor, "")
    values = [item.callspec.params[name] for name in mark.args]  # type: ignore[attr-defined]
    return item.nodeid.split("[")[0], repr(values)


def _first_place(table: str, group: Sequence[str]) -> int:
    """The place of the first value of a test, or of the first case of a file.

    A test with fewer values than executors begins at 0, and each executor runs one of them. A file
    begins further on, so that each case is run by one executor, and at a place that its name
    decides: otherwise the first executor would get most cases of short files.
    """
    return 0 if "::" in table else len(group) + zlib.crc32(table.encode()) % len(group)


def _executor(item: pytest.Item, group: Sequence[str]) -> str:
    """The executor of the group, or the interpreter, that the test runs on; "" if it is another."""
    return next((name for name in names_of_values(item) if name in group or name == INTERPRETER), "")


def each_value() -> pytest.MarkDecorator:
    """Run a test, or each of a file, until every value of every parameter has occurred, rather than
    every pair.

    For parameters that another law shows to be independent.
    """
    return pytest.mark.each_value()


def pairs_of_values(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests; of a test with three parameters or more, enough to cover every pair of values, and
    of one marked so, enough to cover every value."""
    if IS_WHOLE:
        return list(items)
    tables: dict[str, dict[str, list[str]]] = defaultdict(dict)
    redundant: set[str] = set()
    singly = {name_of_test(item) for item in items if item.get_closest_marker("each_value")}
    for item in items:
        table, values = name_of_test(item), names_of_values(item)
        if len(values) >= (2 if table in singly else 3):
            tables[table][item.nodeid] = values
    for table, rows in tables.items():
        redundant |= rows.keys() - set(evenly(rows) if table in singly else covering(rows))
    return [item for item in items if item.nodeid not in redundant]


def name_of_test(item: pytest.Item) -> str:
    """The file and the function of a test, without the values of its parameters."""
    return item.nodeid.split("[")[0]


def names_of_values(item: pytest.Item) -> list[str]:
    """The name of the value of each `parametrize`, in their order."""
    # pytest has no public name for it: `id` joins the names by dashes, which names may contain.
    callspec = getattr(item, "callspec", None)
    return [] if callspec is None else list(callspec._idlist)


def covering(rows: Mapping[T, Sequence[str]]) -> list[T]:
    """Rows that cover every pair of values, chosen greedily by the number of new pairs."""
    pairs = {key: pairs_in(row) for key, row in rows.items()}
    missing = set().union(*pairs.values())
    cover = []
    while missing:
        best = max(pairs, key=lambda key: len(pairs[key] & missing))
        missing -= pairs.pop(best)
        cover.append(best)
    return cover


def evenly(rows: Mapping[T, Sequence[str]]) -> list[T]:
    """Rows that cover every value, chosen greedily by the number of new ones.

    Among those of as many, the one whose values are in the fewest rows yet: the shorter axis is
    divided evenly over the longer one.
    """
    values = {key: list(enumerate(row)) for key, row in rows.items()}
    missing = {value for row in values.values() for value in row}
    uses: Counter[tuple[int, str]] = Counter()
    cover = []

    def gain(key: T) -> tuple[int, int]:
        return len(missing.intersection(values[key])), -sum(uses[value] for value in values[key])

    while missing:
        best = max(values, key=gain)
        missing.difference_update(values[best])
        uses.update(values.pop(best))
        cover.append(best)
    return cover


def pairs_in(row: Sequence[str]) -> set[Pair]:
    return set(combinations(enumerate(row), 2))
