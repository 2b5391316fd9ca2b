"""Short ways of eager references: powers by products, and conversions of numbers that all fit.

The oracle is what references do in all other cases: NumPy's power in f64, and Python's integers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import rune.numpy as rnp
from rune import dtypes
from rune.ops.scalars import convert, int_bounds
from rune.ops.transcendental import MOST_BY_PRODUCTS

HARD = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.4e38, -1e-40, 1e-45, 1.5, -2.7, 1e10, -1e-10, 2.0**127]
FLOATS = [dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16]


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
@pytest.mark.parametrize("exponent", [-MOST_BY_PRODUCTS - 1, -MOST_BY_PRODUCTS, -7, -1, 0, 1, 2, 3, 4, 31, 32, 33])
def test_an_eager_power_is_that_of_f64_rounded(dtype, exponent):
    with np.errstate(all="ignore"):
        x = np.array(HARD).astype(dtype)
        expected = np.power(x.astype(np.float64), exponent).astype(dtype)

    for numbers, powers in [(x, expected), (x.reshape(3, 5).T, expected.reshape(3, 5).T), (x[11], expected[11])]:
        actual = np.asarray(rnp.asarray(numbers, dtype) ** exponent)

        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual.astype(np.float64), powers.astype(np.float64))
        plain = powers == powers
        np.testing.assert_array_equal(np.signbit(actual)[plain], np.signbit(powers)[plain])


def integer(x: float, low: int, high: int) -> int:
    """The nearest integer towards 0 within the bounds, and 0 for NaN."""
    if math.isnan(x):
        return 0
    return high if x >= high else low if x <= low else int(x)


NUMBERS = {
    "inside": [0.0, 1.0, 2.9, 6.5],
    "negative": [-2.9, -8.5, 7.9],
    "outside": [127.5, 3e9, -3e9, 1e20],
    "infinite": [math.inf, 1.0],
    "nan": [math.nan, 1.0],
    "empty": [],
}


@pytest.mark.parametrize("target", sorted(dtypes.INTEGER, key=dtypes.short), ids=dtypes.short)
@pytest.mark.parametrize("source", FLOATS, ids=dtypes.short)
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_a_conversion_to_integers_is_the_same_beside_any_numbers(numbers, source, target):
    with np.errstate(all="ignore"):
        x = np.array(numbers).astype(source)
        actual = convert(x, target)
    low, high = map(int, int_bounds(target))

    assert actual.dtype == target
    assert [int(y) for y in actual] == [integer(float(y), low, high) for y in x]
