"""Convolutions add only products that overlap: an infinity is never multiplied by the padding.

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
from rune.numpy import overlaps
from rune.scipy import signal
from tests.support.sampling import each_value

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


@each_value()
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("mode", MODES)
def test_sequences_answer_as_numpy_does(case: str, mode: str):
    x, y = (np.array(v, np.float32) for v in PAIRS[case])
    for function, numpys in ((rnp.convolve, np.convolve), (rnp.correlate, np.correlate)):
        expected = numpys(x, y, mode)  # type: ignore[call-overload]
        for run in (function, rune.jit(function, static_argnums=2)):
            np.testing.assert_array_equal(run(x, y, mode), expected)
        rows = rune.vmap(partial(function, mode=mode))(rnp.array([x, x]), rnp.array([y, y]))
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


def whole_numbers(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences whose sums are exact in any order."""
    rng = np.random.default_rng([m, n])
    return tuple(rng.integers(-3, 4, size).astype(np.float32) for size in (m, n))  # type: ignore[return-value]


@each_value()
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("m", "n"), [(1, 7), (7, 1), (5, 9), (16, 16), (33, 8), (100, 31)])
@pytest.mark.parametrize("mode", MODES)
def test_sequences_with_many_windows_add_only_products_that_overlap(
    m: int, n: int, mode: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(overlaps, "_LARGEST", 2 * n)
    x, y = whole_numbers(m, n)
    for at, bad in ((0, INF), (n // 2, NAN), (n - 1, -INF)):
        kernel = y.copy()
        kernel[at] = bad
        for function, numpys in ((rnp.convolve, np.convolve), (rnp.correlate, np.correlate)):
            expected = numpys(x, kernel, mode)  # type: ignore[call-overload]
            np.testing.assert_array_equal(function(x, kernel, mode), expected)
            if at:
                continue
            np.testing.assert_array_equal(rune.jit(function, static_argnums=2)(x, kernel, mode), expected)
            rows = rune.vmap(partial(function, mode=mode), in_axes=(None, 0))(x, rnp.array([y, kernel]))
            np.testing.assert_array_equal(rows, [numpys(x, y, mode), expected])  # type: ignore[call-overload]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_millions_of_products_answer_so_too():
    x, y = whole_numbers(3000, 1501)
    y[700] = INF
    for run in (rnp.convolve, rune.jit(rnp.convolve)):
        np.testing.assert_array_equal(run(x, y), np.convolve(x, y))
