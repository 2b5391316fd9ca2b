"""Types of arrays: equal types are one object, and unreferenced types are forgotten."""

from __future__ import annotations

import gc
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from weakref import WeakValueDictionary

import pytest

from rune import dtypes
from rune.core import types
from rune.core.types import ArrayType

RECENT = 50


@pytest.fixture(autouse=True)
def _few_are_recent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(types, "MOST_RECENT", RECENT)


def alive() -> int:
    """How many types of 31 columns there are."""
    gc.collect()
    objects = (obj for obj in gc.get_objects() if type(obj) is ArrayType)
    return sum(t.shape[1:] == (31,) for t in objects)


def columns(most: int) -> list[ArrayType]:
    return [ArrayType((rows, 31), dtypes.f32) for rows in range(1, most + 1)]


def test_unreferenced_types_are_forgotten_except_for_the_latest():
    columns(20 * RECENT)

    assert alive() <= RECENT + 1


def test_a_type_that_is_held_is_the_same_object_after_any_number_of_others():
    live_types = columns(7)

    columns(20 * RECENT)

    assert all(a is b for a, b in zip(live_types, columns(7), strict=True))


def test_threads_that_ask_for_equal_types_get_the_same():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(columns, [8 * RECENT] * 4))

    assert all(len({id(t) for t in same}) == 1 for same in zip(*results, strict=True))


def test_finalisers_may_make_types_while_older_ones_are_moved(monkeypatch: pytest.MonkeyPatch):
    numbers = count(1)

    class Interrupted(WeakValueDictionary):
        """Each entry is a moment at which the garbage collector runs a finaliser."""

        def __setitem__(self, key: Hashable, type: ArrayType) -> None:
            super().__setitem__(key, type)
            if (number := next(numbers)) < RECENT:
                ArrayType((number, 37), dtypes.f32)

    monkeypatch.setattr(types, "_older", Interrupted())
    older_types = columns(4 * RECENT)

    assert all(a is b for a, b in zip(older_types, columns(4 * RECENT), strict=True))
