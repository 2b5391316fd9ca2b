"""Bools among indices: as in NumPy each is a new axis; True selects all of it, False nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import NonConcreteBooleanIndexError

X = np.arange(15, dtype=np.float32).reshape(3, 5)
ROWS, MASK = np.array([2, 0, 2]), np.array([True, False, True])
INDICES: list[Any] = [
    True,
    False,
    np.True_,
    np.array(False),
    (None, True),
    (True, None),
    (True, True),
    (True, False),
    (None, False, 0),
    (0, True, -1),
    (True, ..., 0),
    (..., True),
    (..., None, True),
    (..., True, slice(1, 4)),
    (slice(None), True, [0, 3]),
    (ROWS, True),
    (True, ROWS, slice(None, None, -2)),
    (MASK, np.array(True)),
    (False, [1], 1),
    (slice(0, 0), True),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_bool_indices_read_as_in_numpy(index: Any):
    for read in (lambda x: x[index], rune.jit(lambda x: x[index])):
        np.testing.assert_array_equal(read(rnp.array(X)), X[index], strict=True)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_bool_indices_write_as_in_numpy(index: Any):
    expected, sums = X.copy(), X.copy()
    expected[index] = -1
    np.add.at(sums, index, 2)

    np.testing.assert_array_equal(rnp.array(X).at[index].set(-1), expected)
    np.testing.assert_array_equal(rnp.array(X).at[index].add(2), sums)
    np.testing.assert_array_equal(rnp.array(X).at[index].apply(lambda v: v + 2), sums)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_element_gets_a_slope_for_each_time_it_is_read(index: Any):
    counts = np.zeros_like(X)
    np.add.at(counts, index, 1)

    slopes = rune.vmap(rune.grad(lambda x: x[index].sum()))(rnp.array([X, X]))

    np.testing.assert_array_equal(slopes, [counts, counts])


def test_a_number_is_read_and_changed_by_a_bool():
    x = rnp.float32(3.0)

    assert (x[True].shape, x[False].shape, x[True, None, False].shape) == ((1,), (0,), (0, 1))
    assert (x.at[True].set(7.0), x.at[False].set(7.0)) == (7.0, 3.0)


def test_a_traced_bool_among_indices_is_refused():
    with pytest.raises(NonConcreteBooleanIndexError, match=r"traced mask bool\[\] into f32\[3,5\]"):
        rune.jit(lambda b: rnp.array(X)[None, b])(True)
