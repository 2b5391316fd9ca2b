"""Which kernels sort on a GPU, and how many there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rune
from rune import numpy as rnp
from rune.lowering.plan import Launch, all_steps
from rune.lowering.sorting.radix import Tiles, shared_bytes, tiles
from rune.lowering.stages import stages
from tests.support.gpus import H100
from tests.support.lowering import f32


def launches(function: Any, *shape: int) -> list[str]:
    """The kernels of a call, in order and without their numbers."""
    plan = stages(rune.make_program(function)(f32(*shape)), H100).plan
    return [step.kernel.rpartition("_")[0] for step in all_steps(plan) if isinstance(step, Launch)]


def test_a_long_row_takes_three_kernels_for_each_of_four_digits():
    assert launches(rnp.sort, 1 << 20) == ["count_digits", "digit_starts", "move_by_groups"] * 4


def test_its_order_takes_one_more_that_gathers():
    assert len(launches(rnp.argsort, 1 << 20)) == 13


def test_rows_of_one_tile_are_not_counted():
    assert launches(lambda x: rnp.sort(x, axis=1), 50, 8192) == ["move_by_groups"] * 4


@pytest.mark.parametrize(("limit", "threads"), [(227 << 10, 512), (48 << 10, 256), (32 << 10, 128), (16 << 10, 64)])
def test_a_group_is_as_large_as_its_shared_memory_allows(limit: int, threads: int):
    how = tiles(replace(H100, shared_bytes=limit))

    assert how == Tiles(threads, 16 * threads)
    assert shared_bytes(how) <= limit
