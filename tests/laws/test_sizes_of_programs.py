"""A program does not grow with the number of its weights, counts or terms.

A line of the program for each weight makes the first call of a wide filter take seconds, and of a
wider one minutes, although the arithmetic is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import ndimage, special

IMAGE = np.zeros((200, 3), np.float32)
WEIGHTS = np.ones((128, 128), np.float32)

FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "repeat by counts": lambda x, n: rnp.repeat(x[:n], np.arange(n) % 3, axis=0),
    "delete": lambda x, n: rnp.delete(x[:n], np.arange(0, n, 2), axis=0),
    "insert": lambda x, n: rnp.insert(x[:n], np.arange(0, n, 2), 1.0, axis=0),
    "correlate1d": lambda x, n: ndimage.correlate1d(x, WEIGHTS[0, :n], axis=0),
    "convolve1d": lambda x, n: ndimage.convolve1d(x, WEIGHTS[0, :n], axis=0),
    "correlate": lambda x, n: ndimage.correlate(x, WEIGHTS[:n, :3]),
    "convolve": lambda x, n: ndimage.convolve(x, WEIGHTS[:n, :3]),
    "uniform_filter1d": lambda x, n: ndimage.uniform_filter1d(x, n, axis=0),
    "gaussian_filter1d": lambda x, n: ndimage.gaussian_filter1d(x, n / 8, axis=0),
    "multigammaln": lambda x, n: special.multigammaln(x + n, n),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_twice_as_many_weights_are_a_program_of_as_many_lines(name):
    def lines(count: int) -> int:
        program = rune.make_program(lambda x: FUNCTIONS[name](x, count))(IMAGE)
        return len(str(program).splitlines())

    assert lines(33) == lines(66)
