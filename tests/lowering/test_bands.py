"""Bands: which steps may run entry by entry, and what memory they need."""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.lowering import bands
from rune.lowering.bands import Band, Extent, Part, divided, find_bands, in_turn, widened
from rune.lowering.kernel.text import parse

SIZES = {"batch": 4, "m": 64, "n": 64, "k": 64}
DENSE = {**SIZES, "trans_a": False, "trans_b": False}
BYTES = 64 * 64 * 4 * 4


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch):
    monkeypatch.setattr(bands, "LEAST_BYTES", 1)


def value(number: int, count: int = BYTES) -> Extent:
    return Extent("value", number, 0, count)


def dot(c: int, a: int, b: int, parameters=DENSE) -> Part:
    return Part(parameters, (value(c), value(a), value(b)))


def kernel(text: str, *numbers: int) -> Part:
    code = parse(text)
    itemsize = dtypes.f32.itemsize
    extents = [value(n, int(p.size) * itemsize) for n, p in zip(numbers, code.params, strict=True)]
    return Part(code, tuple(extents))


def mapped(store: str, loops="for i in 256 grid { for j in 64 grid {") -> Part:
    close = " }" * loops.count("{")
    return kernel(f"code f(x: read f32[16384], y: write f32[16384]) {{ {loops} {store} {close} }}", 2, 3)


SAME = "store y[64*i + j] = x[64*i + j]"


def bands_of(*parts: Part | None) -> list[Band]:
    return find_bands(parts)


def test_products_and_a_kernel_between_them_are_a_band():
    assert bands_of(dot(2, 0, 1), mapped(SAME), dot(5, 3, 4)) == [Band(0, 3, 4)]


@pytest.mark.parametrize(
    "store",
    [
        "store y[64*i + j] = x[16320 - 64*i + j]",
        "store y[16320 - 64*i + j] = x[64*i + j]",
        "store y[64*i + j] = x[64*((i + 1) % 256) + j]",
        "store y[64*i + j] = x[j]",
    ],
)
def test_a_kernel_that_accesses_other_entries_is_in_no_band(store):
    assert bands_of(dot(2, 0, 1), mapped(store), dot(5, 3, 4)) == []


def test_axes_are_split_where_an_entry_ends_within_one():
    one = mapped("store y[i] = x[i]", "for i in 16384 grid {")
    three = mapped(
        "store y[8192*i + 64*j + k] = x[8192*i + 64*j + k]", "for i in 2 grid { for j in 128 grid { for k in 64 grid {"
    )

    for part in (one, three):
        assert bands_of(dot(2, 0, 1), part, dot(5, 3, 4)) == [Band(0, 3, 4)]


def test_a_grid_that_entries_do_not_divide_is_in_no_band():
    part = mapped("store y[i] = x[i]", "for i in 16383 grid {")

    assert divided(part, 4) is None


def test_a_band_ends_before_a_step_that_reads_no_value_of_it():
    apart = Part(mapped(SAME).work, (value(7), value(8)))

    assert bands_of(dot(2, 0, 1), mapped(SAME), dot(5, 3, 4), apart) == [Band(0, 3, 4)]


def test_a_product_of_another_batch_or_a_loop_ends_a_band():
    other = {**DENSE, "batch": 2}

    assert bands_of(dot(2, 0, 1), mapped(SAME), dot(5, 3, 4, other)) == [Band(0, 2, 4)]
    assert bands_of(dot(2, 0, 1), None, dot(5, 2, 4)) == []


def test_memory_that_overlaps_another_value_ends_a_band():
    # In a plan the second product might write where entries of the first one are still read.
    over = Extent("value", 0, 64, BYTES)
    parts = [dot(2, 0, 1), Part(DENSE, (over, value(2), value(4)))]

    assert find_bands(parts) == []


def test_a_view_that_reads_the_current_entry_is_recognised():
    dense = {"a_batch0": 4, "a_batch0_step": 4096, "a_rows0": 64, "a_rows0_step": 64}
    dense |= {"a_inner0": 64, "a_inner0_step": 1, "a_offset": 0, "b_offset": 0}
    dense |= {"b_batch0": 4, "b_batch0_step": 4096, "b_columns0": 64, "b_columns0_step": 1}
    dense |= {"b_inner0": 64, "b_inner0_step": 64}
    backwards = dense | {"a_batch0_step": -4096, "a_offset": 3 * 4096}
    heads = dense | {"a_batch0_step": 64, "a_rows0_step": 256}

    flags = [[u.by_entry for u in divided(dot(2, 0, 1, SIZES | p), 4) or ()] for p in (dense, backwards, heads)]
    assert flags == [[True, True, True], [True, False, True], [True, False, True]]


def test_values_of_a_band_live_as_long_as_it_and_take_over_only_from_each_other():
    ranges = {name: span for name, span in zip("abcd", [(-1, 2), (1, 2), (2, 5), (0, 9)], strict=True)}
    known = [Band(1, 4, 16)]

    assert widened(ranges, known) == {"a": (-1, 3), "b": (1, 3), "c": (1, 5), "d": (0, 9)}  # type: ignore[arg-type]
    assert in_turn(ranges, known) == {"a": (-1, 4), "b": (1, 2), "c": (2, 5), "d": (0, 9)}  # type: ignore[arg-type]


def test_little_that_passes_between_steps_makes_no_band(monkeypatch):
    monkeypatch.setattr(bands, "LEAST_BYTES", 2 * BYTES + 1)
    assert bands_of(dot(2, 0, 1), mapped(SAME), dot(5, 3, 4)) == []

    monkeypatch.setattr(bands, "LEAST_BYTES", 1)
    monkeypatch.setattr(bands, "MOST_BYTES", BYTES // 4)
    assert bands_of(dot(2, 0, 1), mapped(SAME), dot(5, 3, 4)) == []
    assert np.prod([SIZES[n] for n in "mnk"]) >= bands.LEAST_OPERATIONS
