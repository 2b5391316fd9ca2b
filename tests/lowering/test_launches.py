"""How many launches a GPU takes for sorts, scatters, scans and extrema: few at any length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import rune
from rune import dtypes, ops
from rune import numpy as rnp
from rune.core.types import ArrayType
from rune.lowering.plan import Copy, Launch
from rune.lowering.stages import stages
from tests.support.lowering import PLAIN, f32, i32

GPU = replace(
    PLAIN,
    language="cuda",
    threads_per_workgroup=1024,
    shared_bytes=1 << 16,
    cores=132,
    dtypes=dtypes.ANY - dtypes.COMPLEX,
)
MILLION = 1 << 20


def launches(function: Callable[..., Any], *types: ArrayType, reproducible: bool = True) -> int:
    """The steps of a plan that is nothing but launches and copies."""
    program = rune.make_program(function)(*(rune.ShapeDtypeStruct(t.shape, t.dtype) for t in types))
    steps = stages(program, GPU, reproducible=reproducible).plan.steps
    assert all(isinstance(s, Launch | Copy) for s in steps)
    return len(steps)


def added(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u)


def test_a_long_scan_is_three():
    assert launches(lambda x: ops.cumsum(x, axis=0, reverse=False), f32(4 * MILLION)) == 3


@pytest.mark.parametrize("sort", [rnp.sort, rnp.argsort])
def test_a_long_sort_is_at_most_thirty(sort: Callable[..., Any]):
    assert launches(sort, f32(MILLION)) <= 30


def test_a_short_sort_is_at_most_four():
    assert launches(rnp.argsort, f32(1000, 100)) <= 4


def test_integers_are_scattered_by_at_most_four():
    assert launches(added, i32(MILLION), i32(4 * MILLION), i32(4 * MILLION)) <= 4


def test_floats_in_any_order_are_scattered_by_at_most_four():
    assert launches(added, f32(MILLION), i32(4 * MILLION), f32(4 * MILLION), reproducible=False) <= 4


def test_floats_in_a_fixed_order_are_scattered_by_few():
    assert launches(added, f32(MILLION), i32(4 * MILLION), f32(4 * MILLION)) <= 22


def test_the_largest_of_a_long_array_is_found_by_two():
    assert launches(rnp.argmax, f32(16 * MILLION)) == 2
