"""Sequences by equal factors, over the whole range of a dtype."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near, same

ENDS = {
    "f16": [(1e-4, 1e4), (6e4, 1e-3), (-2e-5, -6e4), (3.0, 48.0)],
    "bf16": [(1e-30, 1e30), (3e38, 1e-37), (-1e-20, -1e25), (3.0, 48.0)],
    "f32": [(1e-30, 1e30), (3e38, 1e-37), (-1e-20, -1e25), (3.0, 48.0), (1e30, 2e30)],
    "f64": [(1e-300, 1e300), (1e308, 1e-307), (-1e-200, -1e220), (3.0, 48.0), (1e300, 2e300)],
}


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("dtype", "start", "stop"), [(d, *ends) for d, pairs in ENDS.items() for ends in pairs])
def test_ends_may_have_a_ratio_that_their_dtype_does_not_hold(dtype, start, stop, endpoint, way):
    low, high = (rnp.asarray(x, dtype=dtype) for x in (start, stop))
    wide_ends = [np.longdouble(float(x)) for x in (low, high)]
    expected = np.geomspace(wide_ends[0], wide_ends[1], 7, endpoint=endpoint)

    values = way(lambda a, b: rnp.geomspace(a, b, 7, endpoint=endpoint))(low, high)

    assert values.dtype == low.dtype
    # The rounding of a logarithm is an error of the value; half types compute in f32.
    log_ratio, eps = abs(np.log(abs(float(high))) - np.log(abs(float(low)))), float(rnp.finfo(dtype).eps)
    limit = 4 * eps + 2 * log_ratio * min(eps, float(np.finfo(np.float32).eps))
    near(np.ones(7), np.asarray(values, np.float64) / expected, relative=limit, why="logarithms are rounded")


def test_the_first_value_is_the_start_whatever_the_last_one_is():
    for stop in (np.inf, np.nan):
        values = np.asarray(rnp.geomspace(np.float32(3), np.float32(stop), 5))

        same(np.float32(3), values[0])


def test_slopes_are_finite_between_ends_that_are_far_apart():
    slopes = rune.jacrev(lambda a, b: rnp.geomspace(a, b, 3)[1], argnums=(0, 1))(np.float32(1e-15), np.float32(1e25))

    near(np.array([5e19, 5e-21]), np.array(slopes), relative=1e-5, why="the mean is sqrt(a b)")
