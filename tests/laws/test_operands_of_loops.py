"""Kernels with explicit loops read the elements that their operands would have in memory.

On every executor NumPy's answer for scatters, sorts, scans and extrema whose operands are computed
where they are read: of odd lengths, longer than a device's tiles, by one program for all lengths,
with positions out of bounds and below zero, through views with conditions, and from an array that
the loops change.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.extremes import extreme_of_tiles
from rune.lowering.kernelize.group_scans import THREADS, TILE, scan_by_groups
from rune.lowering.scatters.atomic import change_atomically
from rune.lowering.scatters.by_sorting import CHUNK, LAST, change_by_sorting
from rune.lowering.sorting.groups import KEY, ORDER
from rune.lowering.sorting.radix import Tiles, Word, sort_words
from tests.support.sampling import in_turn

DEVICES = [d for d in rune.devices() if d.target.backend != "null"]
each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
GROUPS = [d for d in DEVICES if d.target.threads_per_workgroup >= THREADS]
each_with_groups = pytest.mark.parametrize("device", GROUPS, ids=lambda d: d.name)


def places_of(count: int, rows: int) -> np.ndarray:
    """Places, some too large, some counted from the end, and some too small."""
    rng = np.random.default_rng(count)
    return rng.integers(-rows - 2, rows + 2, count).astype(np.int32)


def changed(function: Any, rows: np.ndarray, places: np.ndarray, updates: np.ndarray, mode: str) -> np.ndarray:
    """NumPy's answer, one update after the other."""
    result, size = rows.copy(), len(rows)
    places = np.where(places < 0, places + size, places)
    places = np.clip(places, 0, size - 1) if mode == "clip" else places
    inside = (places >= 0) & (places < size)
    function.at(result, places[inside], updates[inside])
    return result


@in_turn()
@each_device
@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_scatter_writes_at_computed_places(dtype: Any, mode: str, device: Any):
    rows, places = np.arange(37, dtype=dtype), places_of(1009, 37)
    run = rune.jit(lambda x, i, u: x.at[i + 1].add(rnp.abs(u), mode=mode), device=device.name)
    updates = np.arange(1009).astype(dtype) % 7 - 3

    expected = changed(np.add, rows, places + 1, np.abs(updates), mode)

    np.testing.assert_array_equal(expected, run(rows, places, updates))


@in_turn()
@each_device
@pytest.mark.parametrize("count", [1, 641])
def test_an_atomic_change_reads_computed_operands(count: int, device: Any):
    if not has_atomic(device.target, "max", np.dtype(np.int32)):
        pytest.skip("no such operation of the device")
    rows, places = np.zeros((13, 3), np.int32), np.arange(count, dtype=np.int32)
    mask, updates = places % 3 == 0, np.arange(3 * count, dtype=np.int32).reshape(3, count)

    def run(rows: Any, mask: Any, places: Any, updates: Any) -> Any:
        chosen_places = rnp.where(mask, places % 13, 13)
        shift_of_updates = rnp.pad(updates[:, 1:], ((0, 0), (0, 1)), constant_values=5)
        return change_atomically("max", rows, chosen_places, shift_of_updates.T + 1)

    shift_of_updates = np.pad(updates[:, 1:], ((0, 0), (0, 1)), constant_values=5).T + 1
    expected = changed(np.maximum, rows, np.where(mask, places % 13, 13), shift_of_updates, "drop")

    np.testing.assert_array_equal(expected, rune.jit(run, device=device.name)(rows, mask, places, updates))


@in_turn()
@each_device
def test_one_program_changes_by_computed_places_of_every_number(device: Any):
    def run(rows: Any, places: Any, updates: Any) -> Any:
        return change_by_sorting("add", Tiles(1, 96), rows, rnp.abs(places), -updates)

    scatter = rune.jit(run, device=device.name, dims={"u": (1, 700)}, in_dims=(None, "u", "u,_"))
    rows = np.zeros((9, 2), np.float32)

    for count in (1, CHUNK, LAST + 1, 699):
        places, updates = places_of(count, 9), np.ones((count, 2), np.float32)
        np.testing.assert_array_equal(
            changed(np.add, rows, np.abs(places), -updates, "drop"), scatter(rows, places, updates)
        )


@in_turn()
@each_device
def test_no_updates_change_nothing(device: Any):
    run = rune.jit(lambda x, i: change_by_sorting("add", Tiles(1, 96), x, i + 1, x[:0] * 2), device=device.name)
    rows = np.ones((5, 2), np.float32)

    np.testing.assert_array_equal(rows, run(rows, np.zeros(0, np.int32)))


@in_turn()
@each_device
def test_places_may_be_computed_from_the_rows_themselves(device: Any):
    if not has_atomic(device.target, "add", np.dtype(np.int32)):
        pytest.skip("no such operation of the device")

    def run(rows: Any) -> Any:
        return change_atomically("add", rows, rnp.reshape(10 - rows, (-1,)), rows * 0 + 1)

    rows = np.arange(11, dtype=np.int32)[:, None]
    expected = changed(np.add, rows, 10 - rows[:, 0], np.ones_like(rows), "drop")

    np.testing.assert_array_equal(expected, rune.jit(run, device=device.name, donate_argnums=0)(rnp.asarray(rows)))


@in_turn()
@each_with_groups
def test_computed_keys_are_sorted(device: Any):
    x = np.random.default_rng(0).integers(0, 1 << 7, (2, 1031), dtype=np.uint32)  # a pass reads what is computed

    def run(x: Any) -> tuple[Any, ...]:
        return tuple(sort_words(Word(128 - x[::-1], 8), None, Tiles(64, 256), (KEY, ORDER)))

    keys, order = rune.jit(run, device=device.name)(x)

    np.testing.assert_array_equal(np.argsort(128 - x[::-1], axis=1, kind="stable"), order)
    np.testing.assert_array_equal(np.sort(128 - x[::-1], axis=1), keys)


@in_turn()
@each_with_groups
def test_running_sums_of_computed_values_agree_with_numpy(device: Any):
    x = np.random.default_rng(0).integers(-3, 4, (3, TILE + 1, 2)).astype(np.int32)

    scan = partial(scan_by_groups, axis=1, combine="add", reverse=False)
    actual = rune.jit(lambda x, y: scan(rnp.where(x > y, x * x, y)), device=device.name)(x, x[..., :1])

    np.testing.assert_array_equal(np.cumsum(np.where(x > x[..., :1], x * x, x[..., :1]), 1, dtype=np.int32), actual)


@in_turn()
@each_with_groups
def test_the_largest_of_computed_values_is_the_first_one(device: Any):
    x = np.random.default_rng(0).integers(0, 9, (3, 5004)).astype(np.float32)
    x[1, 4099] = np.nan

    def run(x: Any) -> Any:
        tiles = extreme_of_tiles(rnp.abs(x - 4), axis=1, combine="max", tile=4096, lanes=4)
        return extreme_of_tiles(*tiles, axis=1, combine="max", tile=0, lanes=1)[1]

    np.testing.assert_array_equal(np.argmax(np.abs(x - 4), 1)[:, None], rune.jit(run, device=device.name)(x))
