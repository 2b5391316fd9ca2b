"""Bytes that are read through caches: once if they stay in the cache, again if they do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.lowering.costs.footprints import Step, runs_of
from rune.lowering.costs.table import H100
from tests.lowering.costs.kernels import copy, on_h100

N = 512
ROWS = f"for k in {N} serial {{ s add= a[{N}*i + k] * b[{N}*k + j] }}"
PRODUCT = f"for i in {N} grid {{ for j in {N} grid {{ var s: f32 = 0.0_f32 {ROWS} store y[{N}*i + j] = s }} }}"
PARAMS = f"a: read f32[{N * N}], b: read f32[{N * N}], y: write f32[{N * N}]"


def with_caches(first: int, second: int):
    """An H100 with other caches."""
    a, b = H100.caches
    return replace(H100, caches=(replace(a, capacity_bytes=first), replace(b, capacity_bytes=second)))


def test_a_copy_moves_every_byte_once():
    assert copy("i").bytes_through["memory"] == 2 * 4 * (1 << 24)


def test_a_strided_read_moves_whole_sectors():
    traffic = copy("8*i", size=1 << 20).bytes_through["memory"]

    assert traffic == (32 + 4) * (1 << 20)


def test_a_value_for_all_moves_one_sector():
    traffic = copy("7", size=1 << 20).bytes_through["memory"]

    assert traffic == 4 * (1 << 20) + 32


def test_a_product_that_fits_the_last_cache_reads_its_factors_once():
    traffic = on_h100(PRODUCT, PARAMS).bytes_through["memory"]

    assert traffic == 3 * 4 * N * N


def test_a_product_reads_a_factor_for_each_group_of_points():
    traffic = on_h100(PRODUCT, PARAMS).bytes_through["L2"]

    # A group is 64 neighbours of a row (there are few points): they share the row of a.
    groups, row, columns, result = N * N // 256, 4 * N, 4 * N * 256, 4 * 256
    assert traffic == groups * (row + columns + result)


def test_a_second_loop_over_a_row_finds_it_in_a_cache_that_holds_it():
    loops = " ".join(f"for {k} in 64 serial {{ s add= x[64*i + {k}] }}" for k in "kl")
    body = f"for i in 65536 grid {{ var s: f32 = 0.0_f32 {loops} store y[i] = s }}"
    params = "x: read f32[4194304], y: write f32[65536]"
    large, small = with_caches(1 << 20, 50 << 20), with_caches(1 << 10, 50 << 20)

    once = on_h100(body, params, large).bytes_through["L2"]
    assert once == 4 * (4194304 + 65536)
    assert on_h100(body, params, small).bytes_through["L2"] > 1.9 * once


@given(st.integers(10, 18), st.integers(0, 8), st.integers(15, 28), st.integers(0, 8))
def test_a_larger_cache_never_lets_more_through(first: int, more: int, second: int, further: int):
    small, large = with_caches(1 << first, 1 << second), with_caches(1 << first + more, 1 << second + further)
    through = [on_h100(PRODUCT, PARAMS, record).bytes_through for record in (small, large)]

    assert through[0]["L2"] >= through[1]["L2"]
    assert through[0]["memory"] >= through[1]["memory"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([Step(1, 64)], 256),
        ([Step(1, 64), Step(64, 4)], 1024),
        ([Step(1, 3), Step(1024, 4)], 4 * 32),
        ([Step(2, 64)], 512),  # sectors are whole
        ([Step(1, 64), Step(1, 64)], 4 * 127),  # windows overlap
        ([], 32),
    ],
)
def test_a_span_is_made_of_runs(steps: list[Step], expected: float):
    assert abs(runs_of(steps, 4).bytes(32) - expected) < 32


@given(st.lists(st.tuples(st.integers(1, 4096), st.integers(1, 64)), max_size=4), st.integers(1, 64))
def test_a_longer_loop_never_spans_less(steps: list[tuple[int, int]], more: int):
    shorter = [Step(stride, count) for stride, count in steps]
    longer = [Step(s.stride, s.count + more * (place == 0)) for place, s in enumerate(shorter)]

    assert runs_of(longer, 4).bytes(32) >= runs_of(shorter, 4).bytes(32)


def test_rows_at_random_are_drawn_from_all_rows():
    few, many = (runs_of([Step(1, 8), Step(8, count, 1000)], 4).bytes(32) for count in (1, 100_000))

    assert 31 < few <= 32
    assert 31_900 < many <= 32_000


@given(st.integers(1, 4096), st.integers(1, 64), st.sampled_from([1, 64, 1024]))
def test_lines_crowd_as_a_cache_of_these_sets_puts_them(stride: int, count: int, sets: int):
    # Lines apart by a multiple of 16 elements of 4 bytes, each in the set of its address.
    runs = runs_of([Step(16 * stride, count)], 4, least=0)
    fullest = max(Counter(stride * n % sets for n in range(count)).values())

    expected = sets * fullest / count if fullest > 1 else 1.0
    assert 0.5 * expected <= runs.crowding(64, sets) <= max(1.0, 2 * expected)
