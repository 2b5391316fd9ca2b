"""pad: ramps of integers between the ends of their range, and lengths of statistics."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from tests.support.close import same

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
MODES = ("maximum", "mean", "median", "minimum")


def ramp(end: int, edge: int, width: int) -> list[int]:
    """floor(end + (edge - end) k / width), in whole numbers of any size."""
    return [end + (edge - end) * k // width for k in range(width)]


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 17, 131])
def test_a_ramp_of_integers_goes_either_way_through_the_whole_range(dtype, width, way):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for first, last, end in [(low, high, high), (high, low, low), (0, 5, 3), (high - 1, low + 1, 7)]:
        x = np.array([first, last], dtype)
        expected = np.array([*ramp(end, first, width), first, last, *ramp(end, last, width)[::-1]], dtype)

        pad = way(partial(rnp.pad, pad_width=width, mode="linear_ramp", end_values=end))

        same(expected, pad(rnp.asarray(x, dtype=dtype)))


@pytest.mark.parametrize("length", [0, -1, (2, 0)])
@pytest.mark.parametrize("mode", MODES)
def test_a_statistic_of_no_elements_is_refused(mode, length):
    with pytest.raises(ArgumentError, match="stat_length"):
        rnp.pad(rnp.array([1.0, 2.0, 4.0]), (1, 2), mode, stat_length=length)
