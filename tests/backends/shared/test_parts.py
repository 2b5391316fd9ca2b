"""Launches in parts: together they cover everything once, and no part exceeds the limit on work."""

from __future__ import annotations

import numpy as np
import pytest

from rune.backends.shared.parts import Box, boxes, parts


@pytest.mark.parametrize("limit", [1, 7, 100, 999, 10**6])
@pytest.mark.parametrize("row", [1, 5, 64, 65535])
@pytest.mark.parametrize("groups", [1, 2, 63, 64, 65, 1000])
def test_parts_cover_each_group_once(groups: int, row: int, limit: int):
    counts = np.zeros(groups, int)
    for part in parts(groups, 10 * groups, limit, row):
        wide, high = part.folded(row)
        assert wide <= row
        # Groups beyond the last one have no points: there a launch may be larger than its part.
        counts[part.first : part.first + wide * high] += 1

    assert (counts == 1).all()


def test_no_part_has_more_work_than_it_may_but_one_group():
    assert max(p.work for p in parts(1000, 10**6, 5000, 65535)) <= 5000
    assert [p.count for p in parts(3, 10**6, 5000, 65535)] == [1, 1, 1]


def test_without_a_bound_a_launch_is_not_divided():
    assert [(p.first, p.count) for p in parts(10**9, 10**18, None, 65535)] == [(0, 10**9)]


def test_an_empty_launch_has_no_parts():
    assert [*parts(0, 0, 10, 65535)] == []


@pytest.mark.parametrize("limit", [1, 40, 1000, 10**9])
@pytest.mark.parametrize(("extents", "local"), [((96,), (32,)), ((64, 6), (8, 2)), ((8, 3, 70), (8, 1, 1))])
def test_boxes_cover_each_thread_once_in_whole_workgroups(extents: tuple[int, ...], local: tuple[int, ...], limit: int):
    counts = np.zeros(extents, int)
    for box in boxes(Box((0,) * len(extents), extents, 5000), local, limit):
        assert all(s % t == e % t == 0 for s, e, t in zip(box.start, box.extents, local, strict=True))
        counts[tuple(slice(s, s + e) for s, e in zip(box.start, box.extents, strict=True))] += 1

    assert (counts == 1).all()


def test_no_box_has_more_work_than_it_may_but_one_workgroup():
    launch = Box((0, 0), (4096, 64), 10**9)

    assert max(b.work for b in boxes(launch, (32, 1), 10**6)) <= 10**6
    assert {b.extents for b in boxes(launch, (32, 1), 1)} == {(32, 1)}
