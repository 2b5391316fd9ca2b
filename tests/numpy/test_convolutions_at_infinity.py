"""Convolutions add up what overlaps and nothing else: an infinity does not meet the zeros around.

The oracle is NumPy, whose loops run over the overlap, and in two dimensions the same loops here.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import signal

INF, NAN = np.inf, np.nan
PAIRS = {
    "a kernel with an end that is infinite": ([1.0, 2.0, 3.0], [INF, 1.0]),
    "a kernel with an infinite middle": ([1.0] * 7, [1.0, INF, 0.0]),
    "a kernel of NaN": ([1.0, 2.0, 3.0, 4.0, 5.0], [0.0, NAN, 2.0]),
    "infinities in both": ([INF, 0.0, 1.0], [INF, 0.0, 1.0, 2.0]),
    "infinities of both signs": ([1.0, -INF, INF, 3.0], [1.0, 2.0]),
    "one infinity": ([INF], [1.0, 0.0, 2.0]),
}
MODES = ("full", "same", "valid")


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("what", PAIRS)
@pytest.mark.parametrize("mode", MODES)
def test_sequences_answer_as_numpy_does(what: str, mode: str):
    x, y = (np.array(v, np.float32) for v in PAIRS[what])
    for mine, numpys in ((rnp.convolve, np.convolve), (rnp.correlate, np.correlate)):
        expected = numpys(x, y, mode)  # type: ignore[call-overload]
        for run in (mine, rune.jit(mine, static_argnums=2)):
            np.testing.assert_array_equal(run(x, y, mode), expected)
        rows = rune.vmap(partial(mine, mode=mode))(rnp.array([x, x]), rnp.array([y, y]))
        np.testing.assert_array_equal(rows, [expected, expected])


def overlap(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The full convolution of two matrices, by loops over what overlaps."""
    full = np.zeros([p + q - 1 for p, q in zip(x.shape, y.shape, strict=True)], x.dtype)
    for i, j in product(*map(range, x.shape)):
        for k, m in product(*map(range, y.shape)):
            full[i + k, j + m] += x[i, j] * y[k, m]
    return full


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", ["convolve", "convolve2d"])
def test_matrices_answer_as_loops_over_the_overlap_do(name: str):
    x = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    y = np.array([[INF, 2], [0, -INF]], np.float32)
    expected = overlap(x, y)
    function: Any = getattr(signal, name)

    for run in (function, rune.jit(function)):
        np.testing.assert_array_equal(run(x, y), expected)
