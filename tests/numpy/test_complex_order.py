"""Complex numbers have NumPy's order: by real parts, then by imaginary parts; NaN wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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
def test_the_larger_and_the_smaller_of_two_agree_with_numpy(name: str, way: str):
    extrema = np.asarray(WAYS[way](getattr(rnp, name))(array(FIRST), array(SECOND)))

    np.testing.assert_array_equal(extrema, getattr(np, name)(FIRST, SECOND))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_extrema_over_axes_agree_with_numpy(name: str, way: str, axis: Any):
    extrema = WAYS[way](lambda x: getattr(rnp, name)(x, axis=axis, keepdims=True))(array(ROWS))

    same(getattr(np, name)(ROWS, axis=axis, keepdims=True), np.asarray(extrema))


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_rows_with_nan_are_nan(name: str):
    rows = np.array([1 + 1j, complex(0, np.nan), 2], np.complex64)

    assert np.isnan(np.asarray(getattr(rnp, name)(array(rows))))
    assert getattr(rnp, f"nan{name}")(array(rows)) in (1 + 1j, 2)


NUMBERS = HARD[~np.isnan(HARD)]
SHUFFLED: NDArray[np.complex64] = np.random.default_rng(0).permutation(np.tile(NUMBERS, 3))
TABLES = {
    "of numbers": SHUFFLED.reshape(3, -1),
    "of real parts alike": SHUFFLED[SHUFFLED.real == 1],
    "of one": SHUFFLED[:1],
    "with NaN": np.random.default_rng(1).permutation(HARD),
    "with NaN beside numbers": np.array([[1j, complex(5, np.nan)], [complex(np.nan, -9), 7]]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_positions_of_extrema_agree_with_numpy(name: str, table: str, way: str):
    z = TABLES[table].astype(np.complex64)
    axes = [None, *range(z.ndim)]

    positions = WAYS[way](lambda x: [getattr(rnp, name)(x, axis=axis) for axis in axes])(array(z))

    assert [x.tolist() for x in positions] == [getattr(np, name)(z, axis=a).tolist() for a in axes]


def test_no_elements_have_no_extremum():
    with pytest.raises(ShapeError, match=r"max: cannot reduce c64\[0\]"):
        rnp.max(array(np.zeros(0, np.complex64)))
    assert rnp.max(array(np.zeros(0, np.complex64)), initial=2j) == 2j


def test_lax_orders_complex_numbers_in_the_same_way():
    extrema = lax.max(array(FIRST), array(SECOND))

    np.testing.assert_array_equal(np.asarray(extrema), np.maximum(FIRST, SECOND))


def test_the_derivative_of_the_larger_is_that_of_the_one_chosen():
    x, y = array(ROWS[0]), array(ROWS[1])

    slope = rune.grad(lambda x: rnp.maximum(x, y).real.sum())(x)

    assert slope.tolist() == [0, 0, 1]


# jax 0.10.2: jnp.argsort of HARD in the order of default_rng(0).permutation(49). It goes by the
# real parts, NaN last, then by the imaginary; NumPy puts every number before all with a NaN.
JAX_ORDER = """
21 12 6 29 19 47 43 22 41 8 36 28 33 20 11 25 14 23 16 31 32 48 24 46 0 44 7 15 18 45 27 40 35 9 2
34 37 1 13 38 26 39 4 17 3 5 42 10 30
"""


@pytest.mark.parametrize("way", WAYS)
def test_numbers_with_nan_are_sorted_as_by_jax(way: str):
    z = HARD[np.random.default_rng(0).permutation(len(HARD))]
    order = [int(position) for position in JAX_ORDER.split()]

    ascending, places = WAYS[way](lambda z: (rnp.sort(z), rnp.argsort(z)))(array(z))

    assert places.tolist() == order
    np.testing.assert_array_equal(np.asarray(ascending), z[order])


@pytest.mark.parametrize("way", WAYS)
def test_numbers_without_nan_are_sorted_as_by_numpy(way: str):
    order = WAYS[way](lambda z: rnp.argsort(z))(array(SHUFFLED))

    assert order.tolist() == np.argsort(SHUFFLED, kind="stable").tolist()


COMPARISONS = {"less": "__lt__", "less_equal": "__le__", "greater": "__gt__", "greater_equal": "__ge__"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers_are_compared_by_their_real_parts_and_then_the_imaginary(name: str, way: str):
    # Written out, since NumPy's own loops differ between its releases where a part is NaN.
    on_parts = getattr(np, name)
    by_imaginary = on_parts(FIRST.imag, SECOND.imag)
    expected = np.where(FIRST.real == SECOND.real, by_imaginary, on_parts(FIRST.real, SECOND.real))

    for compare in (getattr(rnp, name), lambda x, y: getattr(x, COMPARISONS[name])(y)):
        np.testing.assert_array_equal(WAYS[way](compare)(array(FIRST), array(SECOND)), expected)


def test_complex_numbers_are_compared_with_real_ones_and_in_lanes():
    z = array(NUMBERS)

    np.testing.assert_array_equal(z > 1, NUMBERS > 1)
    np.testing.assert_array_equal(2.0 >= z, 2.0 >= NUMBERS)
    np.testing.assert_array_equal(rune.vmap(lambda v: v < 1j)(z), NUMBERS < 1j)
