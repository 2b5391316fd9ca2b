"""Complex numbers stand in NumPy's order: by their real parts, then by the imaginary; NaN wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ShapeError
from tests.support.arrays import array
from tests.support.close import same

PARTS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5)
HARD = np.array([complex(x, y) for x in PARTS for y in PARTS], np.complex64)
FIRST, SECOND = np.repeat(HARD, len(HARD)), np.tile(HARD, len(HARD))
ROWS = np.array([[1 + 2j, 1 - 3j, 2j], [5 - 1j, 5 + 1j, 0]], np.complex64)
WAYS = {"eagerly": lambda f: f, "compiled": rune.jit}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_the_larger_and_the_smaller_of_two_are_numpys(name: str, way: str):
    found = np.asarray(WAYS[way](getattr(rnp, name))(array(FIRST), array(SECOND)))

    np.testing.assert_array_equal(found, getattr(np, name)(FIRST, SECOND))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_extrema_over_axes_are_numpys(name: str, way: str, axis: Any):
    found = WAYS[way](lambda x: getattr(rnp, name)(x, axis=axis, keepdims=True))(array(ROWS))

    same(getattr(np, name)(ROWS, axis=axis, keepdims=True), np.asarray(found))


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_rows_with_nan_are_nan(name: str):
    rows = np.array([1 + 1j, complex(0, np.nan), 2], np.complex64)

    assert np.isnan(np.asarray(getattr(rnp, name)(array(rows))))
    assert getattr(rnp, f"nan{name}")(array(rows)) in (1 + 1j, 2)


def test_no_elements_have_no_extremum():
    with pytest.raises(ShapeError, match=r"max: cannot reduce c64\[0\]"):
        rnp.max(array(np.zeros(0, np.complex64)))
    assert rnp.max(array(np.zeros(0, np.complex64)), initial=2j) == 2j


def test_lax_orders_complex_numbers_likewise():
    found = lax.max(array(FIRST), array(SECOND))

    np.testing.assert_array_equal(np.asarray(found), np.maximum(FIRST, SECOND))


def test_the_derivative_of_the_larger_is_that_of_the_one_chosen():
    x, y = array(ROWS[0]), array(ROWS[1])

    slope = rune.grad(lambda x: rnp.maximum(x, y).real.sum())(x)

    assert slope.tolist() == [0, 0, 1]
