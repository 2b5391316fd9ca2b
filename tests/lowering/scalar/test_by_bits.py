"""Floats computed from their bits for devices that flush denormals, and integers from words.

Numbers here are arrays whose f32 arithmetic, comparisons and conversions treat denormals as 0. The
results have NumPy's bits nevertheless, because all arithmetic is on integers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from rune import dtypes
from rune.lowering.scalar import floats, integers
from rune.lowering.scalar.number import Number, Plain
from rune.lowering.scalar.table import COMPARISONS
from tests.lowering.scalar.test_divisions import Loose

DTYPES = (dtypes.f16, dtypes.f32, dtypes.f64)
INTEGERS = sorted(dtypes.INTEGER - {dtypes.i4, dtypes.u4}, key=dtypes.short)
MEANING = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
TINY = np.finfo(np.float32).tiny


def flushed(values: np.ndarray) -> np.ndarray:
    """With 0 for the denormal numbers of f32."""
    return np.where(np.abs(values) < TINY, values * 0, values) if values.dtype == np.float32 else values


@dataclass(frozen=True, slots=True)
class Flushing(Loose):
    """An f32 array without denormal numbers, unless its bits are manipulated."""

    ulps: int = 0

    def new(self, values: np.ndarray) -> Flushing:
        return Flushing(np.asarray(values))

    def apply(self, name: str, *others: Number | Plain) -> Loose:
        args = [self.new(flushed(x.values)) for x in (self, *map(self.like, others))]
        return Loose.apply(args[0], name, *args[1:])

    def nearest(self, dtype: np.dtype) -> Loose:
        with np.errstate(all="ignore"):
            return self.new(flushed(flushed(self.values).astype(dtype)))


def edges(dtype: np.dtype) -> np.ndarray:
    """Both signs of 0, of denormal, of normal and of infinite numbers, and NaN."""
    info = np.finfo(dtype)
    least = info.smallest_subnormal
    sizes = [0.0, least, 3 * least, info.tiny - least, info.tiny, 1.0, 2.5, info.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def bits(values: np.ndarray) -> list[int]:
    return values.view(f"u{values.itemsize}").tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
@pytest.mark.parametrize("name", sorted(COMPARISONS))
def test_comparisons_by_bits_are_those_of_ieee_754(name: str, dtype: np.dtype):
    a, b = (np.array(side, dtype) for side in zip(*itertools.product(edges(dtype), repeat=2), strict=True))
    compare = floats.differ if name == "ne" else floats.comparison(name)

    result = compare(Flushing(a), Flushing(b))

    assert isinstance(result, Loose)
    assert result.values.tolist() == MEANING[name](a, b).tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_a_number_is_negated_by_its_sign(dtype: np.dtype):
    result = floats.negative(Flushing(edges(dtype)))

    assert isinstance(result, Loose)
    assert bits(result.values) == bits(-edges(dtype))


def test_denormal_f32_become_the_f64_that_they_are():
    x = np.concatenate([edges(dtypes.f32), np.arange(1, 1 << 23, 9973, dtype=np.int32).view(np.float32)])

    result = floats.widened(Flushing(x))

    assert isinstance(result, Loose)
    assert bits(result.values) == bits(x.astype(np.float64))


def test_f64_below_the_normal_f32_are_rounded_once():
    denormal = np.arange(1, 1 << 23, 9973, dtype=np.int32).view(np.float32).astype(np.float64)
    halfway = denormal + 2.0**-150
    neighbours = [np.nextafter(halfway, 0), np.nextafter(halfway, 1), np.array([2.0**-150, 2.0**-151, 1e-300, 5e-324])]
    x = np.concatenate([edges(dtypes.f64), denormal, halfway, *neighbours])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        expected = x.astype(np.float32)

    result = floats.narrowed(Flushing(x))

    assert isinstance(result, Loose)
    assert bits(result.values) == bits(expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_bits_are_counted_word_by_word(dtype: np.dtype):
    width = 8 * dtype.itemsize
    numbers = [0, 1, 2, 0x55, 0x7F, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 1 << width // 2]
    x = Flushing(np.array(numbers, f"u{dtype.itemsize}").view(dtype))

    ones, zeros = integers.count_ones_by_words(x), integers.leading_zeros_by_words(x)

    assert isinstance(ones, Loose)
    assert isinstance(zeros, Loose)
    assert ones.values.tolist() == [n.bit_count() for n in numbers]
    assert zeros.values.tolist() == [width - n.bit_length() for n in numbers]
