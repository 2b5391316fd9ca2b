"""Matrices of binomial coefficients and Bernoulli's numbers, beyond the range of 64-bit integers.

Python's integers are the oracle: each number is rounded once, and infinite beyond the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune.scipy import linalg, special
from tests.support.close import near, same

Entry = Callable[[int, int, int], int]


def sign(i: int, j: int) -> int:
    """(-1)^(i + j)."""
    return (-1) ** (i + j)


def of_hilbert(n: int, i: int, j: int) -> int:
    """The inverse of Hilbert's matrix, by Choi 1983."""
    both = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
    return sign(i, j) * (i + j + 1) * both


MATRICES: dict[str, tuple[Callable[[int], Any], Entry]] = {
    "pascal": (linalg.pascal, lambda n, i, j: math.comb(i + j, i)),
    "pascal lower": (lambda n: linalg.pascal(n, "lower"), lambda n, i, j: math.comb(i, j)),
    "pascal upper": (lambda n: linalg.pascal(n, "upper"), lambda n, i, j: math.comb(j, i)),
    "invpascal": (
        linalg.invpascal,
        lambda n, i, j: sign(i, j) * sum(math.comb(k, i) * math.comb(k, j) for k in range(n)),
    ),
    "invpascal lower": (lambda n: linalg.invpascal(n, "lower"), lambda n, i, j: sign(i, j) * math.comb(i, j)),
    "invpascal upper": (lambda n: linalg.invpascal(n, "upper"), lambda n, i, j: sign(i, j) * math.comb(j, i)),
    "invhilbert": (linalg.invhilbert, of_hilbert),
}


def rounded(x: int) -> float:
    """The nearest float, or an infinity."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


@pytest.mark.parametrize("n", [40, 1100])
@pytest.mark.parametrize("name", MATRICES)
def test_integers_are_accurate_to_a_rounding_and_infinite_beyond_the_range(name: str, n: int):
    matrix, entry = MATRICES[name]
    at = sorted({*range(0, 40, 3), 1, 2, *range(500, n, 97), 514, 515, 516, n - 2, n - 1} & {*range(n)})
    expected = np.array([[rounded(entry(n, i, j)) for j in at] for i in at])

    with rune.enable_x64(True):
        numbers = np.asarray(matrix(n))[np.ix_(at, at)]

    finite = np.isfinite(expected)
    same(expected[~finite].tolist(), numbers[~finite].tolist())
    near(expected[finite], numbers[finite], relative=1e-14, why="sums of a thousand products")


def test_bernoulli_numbers_beyond_the_range_are_infinite():
    with rune.enable_x64(True):
        numbers = np.asarray(special.bernoulli(2000))

    assert np.isfinite(numbers[:260]).all()
    same([math.inf, 0.0, -math.inf, 0.0, math.inf], numbers[[262, 263, 264, 265, 1998]].tolist())
    near(np.array([1 / 6, -1 / 30, 1 / 42]), numbers[[2, 4, 6]], relative=1e-15, why="one rounding")


def test_a_matrix_of_thousands_of_rows_is_not_computed_in_python():
    # With Python's integers these took a quarter of an hour, and the largest exceed floats.
    assert np.isinf(np.asarray(linalg.pascal(4000))[2000:, 2000:]).all()
