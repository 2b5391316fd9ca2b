"""Windows with a non-integer number of points: it is truncated, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.errors import ArgumentError, TracerError
from rune.transforms.compile.tiers import OFTEN

WINDOWS: dict[str, Callable[[Any], Any]] = {
    "bartlett": rnp.bartlett,
    "blackman": rnp.blackman,
    "hamming": rnp.hamming,
    "hanning": rnp.hanning,
    "kaiser": lambda M: rnp.kaiser(M, 3.5),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    "points", [7.0, 7.9, np.float32(7.5), np.float16(7.5), "array", True, np.True_, 0.9, -0.5, 1.5]
)
def test_a_fraction_of_a_number_of_points_does_not_count(name: str, points: Any):
    count = rnp.array(7.75) if points == "array" else points

    window = WINDOWS[name](count)

    np.testing.assert_array_equal(window, WINDOWS[name](int(count)))


def test_an_array_that_is_true_is_one_point():
    assert rnp.hanning(rnp.array(True)).tolist() == [1]


def test_a_fraction_does_not_count_in_calls_that_are_often_made():
    sizes = {rnp.bartlett(points).shape for _ in range(OFTEN + 2) for points in (5.5, rnp.array(5.25))}

    assert sizes == {(5,)}


@pytest.mark.parametrize("points", [np.nan, np.inf, -np.inf, "5", None, 2 + 0j])
def test_a_number_of_points_that_is_not_finite_is_refused(points: Any):
    with pytest.raises(ArgumentError, match=r"bartlett: cannot use .* as a number of points"):
        rnp.bartlett(points)


def test_a_traced_number_of_points_is_refused():
    with pytest.raises(TracerError):
        rune.jit(rnp.bartlett)(5.5)
