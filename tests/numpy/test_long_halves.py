"""Statistics and ranges of half types: sizes, sums and squares that f16 cannot hold do not matter.

The oracle is NumPy, in f64, for the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array
from tests.support.close import near

EPS = {"f16": 2.0**-10, "bf16": 2.0**-7}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "average": lambda xp, x: xp.average(x, weights=xp.abs(x)),
    "cov": lambda xp, x: xp.cov(xp.stack([x, x[::-1]])),
    "cov, weighted": lambda xp, x: xp.cov(x, aweights=xp.abs(x)),
    "corrcoef": lambda xp, x: xp.corrcoef(xp.stack([x, 50 * x])),
    "linspace": lambda xp, x: xp.linspace(x[0], x[1], len(x)),
    "trapezoid": lambda xp, x: xp.trapezoid(x, dx=8000 / len(x)),
    "unwrap": lambda xp, x: xp.unwrap(x)[-1:],
    "the step of linspace": lambda xp, x: 1 / xp.linspace(x[0], 100 * x[0], len(x), retstep=True)[1],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [257, 66_001])
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_and_sizes_beyond_a_half_type_do_not_matter(name: str, dtype: str, count: int, compiled: bool):
    function = FUNCTIONS[name]
    x = array((3 * np.random.default_rng(count).gamma(2.0, size=count)).astype(np.float32)).astype(dtype)
    program = rune.jit(lambda x: function(rnp, x)) if compiled else lambda x: function(rnp, x)

    expected, actual = function(np, np.asarray(x).astype(np.float64)), program(x)

    near(expected, np.asarray(actual, np.float64), relative=2 * EPS[dtype], why="rounded once, or twice")
    assert actual.dtype == x.dtype
