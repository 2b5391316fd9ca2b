"""Sorts, scatters, long scans and extrema on every executor: NumPy's answer, at any length.

Lengths are odd, prime, at and past the tiles in which a device goes; one program with an open size
serves all short ones. Keys have ties, both zeros, NaN and infinities. What threads of a GPU do
together is run on every executor, whatever its own way is.

RUNE_TEST_WHOLE=1 tries a million elements everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune import numpy as rnp
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.extremes import extreme_of_tiles
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernelize.group_scans import THREADS, TILE, scan_by_groups
from rune.lowering.scatters.atomic import change_atomically
from rune.lowering.scatters.by_sorting import CHUNK, LAST, change_by_sorting
from rune.lowering.sorting.groups import KEY, ORDER
from rune.lowering.sorting.radix import Tiles, Word, sort_words
from tests.support.close import near, same
from tests.support.sampling import IS_WHOLE, each_value, in_turn, without

DEVICES = [d for d in rune.devices() if d.target.backend != "null"]
each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
# Executors that interpret loops are left out: long rows take them seconds.
DRIVERS = [d for d in DEVICES if d.target.backend != "reference"]
each_driver = pytest.mark.parametrize("device", DRIVERS, ids=lambda d: d.name)
GROUPS = [d for d in DEVICES if d.target.threads_per_workgroup >= THREADS]
each_with_groups = pytest.mark.parametrize("device", GROUPS, ids=lambda d: d.name)
# The longest is first: the executors that have a limit of 16 bits have it in turn.
LONG = (65_537, 8191, 257, *((1_000_003,) if IS_WHOLE else ()))
SHORT = (1, 2, 3, 31, 64, 65, 127, 130)
BOTH = (Tiles(1, 96), Tiles(64, 256), Tiles(32, 128))
each_way = pytest.mark.parametrize("how", BOTH, ids=("by one", "by two subgroups", "by one subgroup"))


def keys(size: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers with ties; of floats, NaN, infinities and both zeros among them."""
    rng = np.random.default_rng(size)
    values = rng.integers(-50, 50, size).astype(dtype)
    if values.dtype in dtypes.FLOATING:
        hard = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40], values.dtype)
        values = np.where(rng.random(size) < 0.3, rng.choice(hard, size), values)
    return values


# --- sorts ------------------------------------------------------------------------------------


@in_turn()
@each_device
def test_one_program_sorts_rows_of_every_length(device: Any):
    argsort = rune.jit(partial(rnp.argsort, axis=1), device=device.name, dims={"n": (1, 130)})

    for size in SHORT:
        x = np.stack([keys(size), keys(size)[::-1]])
        np.testing.assert_array_equal(np.argsort(x, axis=1, kind="stable"), argsort(x))


@in_turn("size")
@without(lambda size, device: size > 257 and device not in DRIVERS and not IS_WHOLE)
@each_device
@pytest.mark.parametrize("size", LONG)
def test_long_rows_are_sorted(size: int, device: Any):
    x = keys(size)

    order = rune.jit(rnp.argsort, device=device.name)(x)

    np.testing.assert_array_equal(np.argsort(x, kind="stable"), order)


@in_turn("dtype")
@without(lambda dtype, device: np.dtype(dtype) not in device.target.program_dtypes)
@each_driver
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"])
def test_long_rows_of_every_width_are_sorted(dtype: str, device: Any):
    with rune.configure(x64=True):
        x = keys(1009, dtype)
        if np.dtype(dtype).itemsize == 8 and x.dtype.kind != "f":
            x = x * np.asarray(1 << 40, dtype) + np.arange(1009)[::-1].astype(dtype) % 3

        result = rune.jit(rnp.sort, device=device.name)(x)

        np.testing.assert_array_equal(np.sort(x), result)


@in_turn()
@each_device
def test_several_keys_are_sorted_with_their_values(device: Any):
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 700).astype(np.int8), keys(700)
    numbers = np.arange(700, dtype=np.int32)

    *_, order = rune.jit(lambda keys: rune.lax.sort(keys, num_keys=2), device=device.name)((first, second, numbers))

    np.testing.assert_array_equal(np.lexsort((second, first)), order)


@in_turn()
@each_device
def test_the_largest_elements_of_a_long_row_are_in_order(device: Any):
    x = keys(3001)

    values, positions = rune.jit(partial(rune.lax.top_k, k=40), device=device.name)(x)

    # 0.0 before -0.0, which argsort of -x would not tell apart.
    descending = -np.nan_to_num(x, nan=np.inf, posinf=1e30, neginf=-1e30)
    order = np.lexsort((np.signbit(x), descending))[:40]
    np.testing.assert_array_equal(order, positions)
    np.testing.assert_array_equal(x[order], values)


@in_turn("size")
@without(lambda size, how, **_: size in (95, 97) and how.tile != 96)
@each_with_groups
@each_way
@pytest.mark.parametrize("size", [1, 95, 97, 641])
def test_words_are_sorted_in_either_way(size: int, how: Tiles, device: Any):
    """Words of one whole digit and a part of one, which is every kind of pass."""
    rng = np.random.default_rng(size)
    x = rng.integers(0, 1 << 12, (2, size), dtype=np.uint32)
    x[0] %= 7
    positions = np.tile(np.arange(size, dtype=np.int32), (2, 1))

    def run(x: Any, n: Any) -> tuple[Any, ...]:
        return tuple(sort_words(Word(x, 12), n, how, (KEY, ORDER)))

    words, order = rune.jit(run, device=device.name)(x, positions)

    np.testing.assert_array_equal(np.argsort(x, axis=1, kind="stable"), order)
    np.testing.assert_array_equal(np.sort(x, axis=1), words)


@in_turn("size")
@each_with_groups
@pytest.mark.parametrize("how", BOTH[1:], ids=("two subgroups", "one subgroup"))
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("size", [127, 257, 128, 1031])
def test_groups_sort_keys_bit_for_bit(size: int, dtype: Any, how: Tiles, device: Any):
    x = keys(size, dtype) if dtype == np.float32 else keys(size, dtype) * (1 << 25)

    run = rune.jit(lambda x: tuple(sort_words(Word(x, 32), None, how, (KEY, ORDER))), device=device.name)
    sorted_keys, order = run(x)

    expected = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(expected, order)
    np.testing.assert_array_equal(x[expected].view(np.uint32), np.asarray(sorted_keys).view(np.uint32))


@in_turn("most")
@each_with_groups
@pytest.mark.parametrize("most", [256, 5000])
def test_one_program_of_groups_sorts_every_length(most: int, device: Any):
    def run(x: Any) -> tuple[Any, ...]:
        return tuple(sort_words(Word(x, 32), None, BOTH[1], (KEY, ORDER)))

    sort = rune.jit(run, device=device.name, dims={"n": (1, most)}, in_dims="_,n")

    for size in (1, 63, 255, 256) if most == 256 else (255, 256, 257, 1000):
        x = np.stack([keys(size), keys(size)[::-1]])
        words, order = sort(x)
        expected = np.argsort(x, axis=1, kind="stable")
        np.testing.assert_array_equal(expected, order)
        np.testing.assert_array_equal(np.take_along_axis(x, expected, 1), words)


@in_turn("bits")
@each_with_groups
@pytest.mark.parametrize("bits", [1, 5, 9, 20, 31])
def test_words_take_as_many_passes_as_they_have_bits(bits: int, device: Any):
    x = np.random.default_rng(bits).integers(0, 1 << bits, (3, 333), dtype=np.uint32)
    how = BOTH[1]

    words, order = rune.jit(lambda x: tuple(sort_words(Word(x, bits), None, how, (KEY, ORDER))), device=device.name)(x)

    np.testing.assert_array_equal(np.argsort(x, axis=1, kind="stable"), order)
    np.testing.assert_array_equal(np.sort(x, axis=1), words)


@in_turn()
@each_device
def test_words_of_few_bits_are_restored(device: Any):
    x = np.random.default_rng(1).integers(0, 1 << 11, 300, dtype=np.uint32)

    (words,) = rune.jit(lambda x: tuple(sort_words(Word(x, 11), None, BOTH[0], (KEY,))), device=device.name)(x)

    np.testing.assert_array_equal(np.sort(x), words)


# --- scatters ---------------------------------------------------------------------------------


def changed(combine: str | None, rows: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """NumPy's answer, one update after the other."""
    result, inside = rows.copy(), places < len(rows)
    if combine is None:
        result[places[inside]] = updates[inside]
    else:
        COMBINE[combine].function.at(result, places[inside], updates[inside])
    return result


def scattered(rows: int, width: int, updates: int, dtype: Any) -> tuple[np.ndarray, ...]:
    """Rows, positions (some out of bounds, one very frequent), and updates."""
    rng = np.random.default_rng(updates)
    places = rng.integers(0, rows + 1, updates).astype(np.int32)
    places[updates // 5 : 4 * updates // 5] = rows // 2
    old, new = (rng.integers(-4, 5, (n, width)).astype(dtype) for n in (rows, updates))
    return old, places, new


# Rows, their width, and updates; a sum shows every mistake of chunks, a maximum few of them.
EXTENTS = [(1, 1, 1), (7, 1, LAST + 1), (40, 3, CHUNK + 1), (300, 1, CHUNK * LAST // 2 + 3)]
CHANGES = [(e, c) for k, e in enumerate(EXTENTS) for c in ("add", None, "max") if IS_WHOLE or c == "add" or k == 2]


@in_turn("extents", "combine")
@each_device
@pytest.mark.parametrize(("extents", "combine"), CHANGES)
def test_a_scatter_by_sorting_agrees_with_numpy(extents: tuple[int, int, int], combine: Any, device: Any):
    rows, width, updates = extents
    values = scattered(rows, width, updates, np.float32)

    actual = rune.jit(partial(change_by_sorting, combine, BOTH[0]), device=device.name)(*values)

    np.testing.assert_array_equal(changed(combine, *values), actual)


@in_turn("combine", "dtype")
@without(lambda combine, dtype, device: not has_atomic(device.target, combine, np.dtype(dtype)))
@each_device
@pytest.mark.parametrize("combine", ["add", "min", "max"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_an_atomic_scatter_agrees_with_numpy(dtype: Any, combine: str, device: Any):
    values = scattered(13, 3, 5000, dtype)

    actual = rune.jit(partial(change_atomically, combine), device=device.name)(*values)

    np.testing.assert_array_equal(changed(combine, *values), actual)


@in_turn()
@each_device
def test_one_program_scatters_every_number_of_updates(device: Any):
    def run(rows: Any, places: Any, updates: Any) -> Any:
        return change_by_sorting("add", BOTH[0], rows, places, updates)

    scatter = rune.jit(run, device=device.name, dims={"u": (1, 700)}, in_dims=(None, "u", "u,_"))

    for count in (1, CHUNK, 130, 699):
        values = scattered(9, 2, count, np.float32)
        np.testing.assert_array_equal(changed("add", *values), scatter(*values))


@in_turn()
@each_driver
def test_sums_of_floats_are_the_same_on_every_run(device: Any):
    rng = np.random.default_rng(0)
    at, values = rng.integers(0, 50, 70_001).astype(np.int32), rng.normal(size=70_001).astype(np.float32)
    scatter = rune.jit(lambda x, i, v: x.at[i].add(v), device=device.name)

    first = np.asarray(scatter(np.zeros(50, np.float32), at, values))

    same(first, scatter(np.zeros(50, np.float32), at, values))
    exact = changed("add", np.zeros(50), at, values.astype(np.float64))
    near(exact, first, relative=1e-3, absolute=1e-3, why="about 1,400 terms each, in f32")


@in_turn()
@each_device
def test_sums_in_any_order_are_near_where_the_user_allows_them(device: Any):
    rng = np.random.default_rng(0)
    at, values = rng.integers(0, 50, 9001).astype(np.int32), rng.normal(size=9001).astype(np.float32)

    with rune.configure(reproducible=False):
        sums = rune.jit(lambda x, i, v: x.at[i].add(v), device=device.name)(np.zeros(50, np.float32), at, values)

    exact = changed("add", np.zeros(50), at, values.astype(np.float64))
    near(exact, sums, relative=1e-3, absolute=1e-3, why="about 180 terms each, in f32")


# --- scans and extrema ------------------------------------------------------------------------


# A running sum shows every mistake of a tile; a product is soon 0, and a maximum soon the greatest.
LAYOUTS = [((1,), 0), ((2, 1023), 1), ((2 * TILE + 3,), 0), ((3, TILE + 1, 2), 1)]
SCANS = [(x, how) for k, x in enumerate(LAYOUTS) for how in ("add", "mul", "max") if IS_WHOLE or how == "add" or k == 1]


@in_turn("layout", "combine")
@each_with_groups
@pytest.mark.parametrize(("layout", "combine"), SCANS)
def test_a_scan_by_groups_agrees_with_numpy(layout: tuple[tuple[int, ...], int], combine: str, device: Any):
    (shape, axis), reverse = layout, combine != "add"
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.int32)
    how = {"axis": axis, "combine": combine, "reverse": reverse}

    actual = rune.jit(partial(scan_by_groups, **how), device=device.name)(x)

    along = np.flip(x, axis) if reverse else x
    expected = COMBINE[combine].function.accumulate(along, axis=axis, dtype=np.int32)
    np.testing.assert_array_equal(np.flip(expected, axis) if reverse else expected, actual)


@each_value()
@in_turn("size", "reverse")
@each_device
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [4097, 65_537])
def test_long_scans_agree_with_numpy(size: int, reverse: bool, device: Any):
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.int32)

    actual = rune.jit(partial(ops.cumsum, axis=0, reverse=reverse), device=device.name)(x)

    expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    np.testing.assert_array_equal(expected.astype(np.int32), actual)


@in_turn("case")
@each_with_groups
@pytest.mark.parametrize("combine", ["max", "min"])
@pytest.mark.parametrize(("shape", "lanes"), [((2, 5003, 2), 1), ((3, 5004), 4)])
@pytest.mark.parametrize("case", ["ties", "NaN", "worst", "zeros"])
def test_the_extremum_of_tiles_is_the_first(case: str, shape: tuple[int, ...], lanes: int, combine: str, device: Any):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    if case == "NaN":
        x[0, 4099] = x[0, 5000] = np.nan
    elif case == "worst":
        x[...] = -np.inf if combine == "max" else np.inf
    elif case == "zeros":
        x[...], x[:, ::3] = 0.0, -0.0

    def run(x: Any) -> Any:
        tiles = extreme_of_tiles(x, axis=1, combine=combine, tile=4096, lanes=lanes)
        return extreme_of_tiles(*tiles, axis=1, combine=combine, tile=0, lanes=1)[1]

    positions = rune.jit(run, device=device.name)(x)

    expected = np.argmax(x, 1) if combine == "max" else np.argmin(x, 1)
    np.testing.assert_array_equal(expected[:, None], positions)


@in_turn("size")
@each_device
@pytest.mark.parametrize("size", [70_001, 70_004])
def test_argmax_of_a_long_array_agrees_with_numpy(size: int, device: Any):
    x = np.random.default_rng(0).integers(0, 1000, size).astype(np.float32)
    x[60_000] = np.nan

    assert int(rune.jit(rnp.argmax, device=device.name)(x)) == 60_000
    assert int(rune.jit(rnp.argmin, device=device.name)(x)) == 60_000
