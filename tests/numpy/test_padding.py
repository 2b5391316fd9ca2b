"""pad: ramps of integers between the ends of their range, statistics' lengths, odd reflections."""

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


EDGES = {
    "whole": lambda n: np.arange(n) ** 2 - 3.0,
    "large last": lambda n: np.append(np.arange(n - 1), 1e8),
    "infinite first": lambda n: np.append(np.inf, np.arange(n - 1)),
    "both infinite": lambda n: np.concatenate([[-np.inf], np.arange(n - 2), [np.inf]])[:n],
}


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
def test_each_end_is_reflected_about_its_own_edge(size, edges, mode):
    x = EDGES[edges](size).astype(np.float32)
    for widths in [(0, 2), (1, 0), (size, size), (3 * size + 1, 2), (1, 4 * size + 3), (40, 33)]:
        with np.errstate(invalid="ignore"):
            expected = np.pad(x, widths, mode=mode, reflect_type="odd")

        for pad in (rnp.pad, rune.jit(rnp.pad, static_argnums=1, static_argnames=("mode", "reflect_type"))):
            same(expected, pad(rnp.asarray(x), widths, mode=mode, reflect_type="odd"))


@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
def test_odd_reflections_of_integers_wrap(dtype):
    x = np.array([[3, 250, 7], [1, 0, 130]]).astype(dtype)
    for mode in ("reflect", "symmetric"):
        expected = np.pad(x, ((3, 2), (7, 9)), mode=mode, reflect_type="odd")

        same(expected, rnp.pad(rnp.asarray(x, dtype=dtype), ((3, 2), (7, 9)), mode=mode, reflect_type="odd"))
