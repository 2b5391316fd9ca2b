"""Scattered sums of floats, added as integers: close to exact, and the same bits in every order.

Exact sums are computed with Python's fractions, or by NumPy in f64 where that is exact. Terms have
all magnitudes, cancel, overflow in intermediate sums, or are not finite.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes
from rune.lowering.scatters.fixed_point import add_in_integers, is_summed_in_integers
from tests.support.close import same
from tests.support.sampling import in_turn

pytestmark = in_turn()

DEVICES = [
    d
    for d in rune.devices()
    if is_summed_in_integers(d.target, np.dtype(np.float32)) or d.target.backend == "reference"
]
each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
# Rows, their width, and updates: one, past a group of threads, past a launch's block of either.
SIZES = ((1, 1, 1), (7, 1, 257), (40, 3, 65), (300, 1, 2049))
HARD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 3e38, -3e38], np.float32)


def added(device: Any, rows: Any, places: Any, updates: Any) -> np.ndarray:
    return np.asarray(rune.jit(add_in_integers, device=device.name)(rows, places, updates))


def terms(rows: int, width: int, updates: int, powers: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, positions (some out of bounds), and updates over this many powers of two."""
    rng = np.random.default_rng(updates)
    places = rng.integers(0, rows + 1, updates).astype(np.int32)
    places[updates // 2 :] = np.where(rng.random(updates - updates // 2) < 0.5, 0, places[updates // 2 :])

    def numbers(*shape: int) -> np.ndarray:
        scale = np.exp2(rng.integers(-powers, powers + 1, shape).astype(np.float64))
        return (rng.normal(size=shape) * scale).astype(np.float32)

    return numbers(rows, width), places, numbers(updates, width)


def exact(rows: np.ndarray, places: np.ndarray, updates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums as fractions, the largest of their terms, and how many there are."""
    fractions = np.vectorize(Fraction, otypes=[object])
    sums, largest, count = fractions(rows.astype(float)), np.abs(rows).astype(float), np.ones(len(rows))
    for place, update in zip(places, updates.astype(float), strict=True):
        if place < len(rows):
            sums[place] += fractions(update)
            largest[place] = np.maximum(largest[place], np.abs(update))
            count[place] += 1
    return sums, largest, count


@each_device
@pytest.mark.parametrize("powers", [0, 8, 120])
@pytest.mark.parametrize("size", SIZES)
def test_a_sum_is_off_by_one_rounding_and_units_of_its_largest_term(size: Any, powers: int, device: Any):
    rows, places, updates = terms(*size, powers=powers)

    actual = added(device, rows, places, updates)

    sums, largest, count = exact(rows, places, updates)
    bound = 2.0 ** (len(updates).bit_length() - 62) * largest * count[:, None]
    for total, number, units in zip(sums.flat, actual.flat, bound.flat, strict=True):
        rounding = Fraction(float(np.spacing(np.abs(number)))) / 2
        assert abs(total - Fraction(float(number))) <= rounding + Fraction(float(units))


@each_device
def test_the_order_of_updates_changes_no_bit(device: Any):
    rows, places, updates = terms(40, 3, 501, 30)
    order = np.random.default_rng(0).permutation(501)

    same(added(device, rows, places, updates), added(device, rows, places[order], updates[order]))


@each_device
def test_sums_have_the_bits_of_the_reference(device: Any):
    rows, places, updates = terms(40, 3, 501, 30)

    expected = np.asarray(rune.jit(add_in_integers, device="reference:0")(rows, places, updates))

    same(expected, added(device, rows, places, updates))


@each_device
def test_terms_that_are_not_finite_or_zero_give_what_addition_gives(device: Any):
    terms = np.append(HARD[:5], np.array([1, -1], np.float32))
    first, second, third = (terms[x.reshape(-1)] for x in np.indices((7, 7, 7)))
    places = np.tile(np.arange(len(first), dtype=np.int32), 2)

    actual = added(device, first[:, None], places, np.concatenate([second, third])[:, None])

    with np.errstate(all="ignore"):
        expected = ((first.astype(float) + second) + third).astype(np.float32)
    np.testing.assert_array_equal(expected, actual[:, 0])
    np.testing.assert_array_equal(np.signbit(expected)[expected == 0], np.signbit(actual[:, 0])[expected == 0])


@each_device
def test_an_element_that_no_update_reaches_keeps_its_bits(device: Any):
    rows = np.concatenate([HARD, np.array([0x7FC12345, 0xFFC00001], np.uint32).view(np.float32)])[:, None]

    actual = added(device, rows, np.full(9, len(rows), np.int32), np.ones((9, 1), np.float32))

    np.testing.assert_array_equal(rows.view(np.uint32), actual.view(np.uint32))


@each_device
def test_a_sum_does_not_overflow_on_the_way(device: Any):
    updates = np.array([3e38, 3e38, 3e38, -3e38, -3e38, -3e38, 1.0], np.float32)[:, None]

    actual = added(device, np.zeros((1, 1), np.float32), np.zeros(7, np.int32), updates)

    assert actual.item() in (0.0, 1.0)  # 1 is far below the units of 3e38


@each_device
def test_sums_below_the_least_normal_number_are_exact(device: Any):
    rng = np.random.default_rng(0)
    counts = rng.integers(-(1 << 22), 1 << 22, 900)
    updates, places = counts * 2.0**-149, np.arange(900, dtype=np.int32) % 7

    actual = added(device, np.zeros((7, 1), np.float32), places, updates.astype(np.float32)[:, None])

    expected = np.array([counts[places == place].sum() for place in range(7)]) * 2.0**-149
    np.testing.assert_array_equal(expected.astype(np.float32), actual[:, 0])


@each_device
def test_a_sum_beyond_the_greatest_float_is_infinite(device: Any):
    updates = np.full((9, 2), 1e38, np.float32) * np.array([1, -1], np.float32)

    actual = added(device, np.zeros((1, 2), np.float32), np.zeros(9, np.int32), updates)

    np.testing.assert_array_equal([[np.inf, -np.inf]], actual)


@each_device
@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16])
def test_half_types_are_summed_as_f32_and_rounded_once(dtype: Any, device: Any):
    places = np.zeros(3001, np.int32)

    actual = added(device, np.zeros((1, 1), dtype), places, np.full((3001, 1), 0.125, dtype))

    same(np.array([[375.125]], np.float32).astype(dtype), actual)


@each_device
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scatter_that_adds_does_not_depend_on_the_order_of_updates(dtype: Any, device: Any):
    if np.dtype(dtype) not in device.target.program_dtypes or device.target.backend == "reference":
        pytest.skip("no such dtype of the device, or one by one")
    with rune.configure(x64=True):
        rng = np.random.default_rng(0)
        at, values = rng.integers(-60, 60, 9001).astype(np.int32), rng.normal(size=9001).astype(dtype)
        scatter = rune.jit(lambda x, i, v: x.at[i].add(v), device=device.name)

        first = np.asarray(scatter(np.zeros(50, dtype), at, values))

        inside = (at >= -50) & (at < 50)
        expected = np.zeros(50)
        np.add.at(expected, at[inside], values[inside].astype(float))
        np.testing.assert_allclose(expected, first, rtol=1e-5, atol=1e-4)
