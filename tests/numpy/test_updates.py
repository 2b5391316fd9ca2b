"""x[index] out of bounds, and x.at[index]: copies with elements changed.

NumPy's assignment says what an update in bounds does. Out of bounds reading clamps and writing
drops, unless a mode says otherwise; duplicates accumulate in add and are refused where they would
be changed only once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import same

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
INDICES: dict[str, Any] = {
    "an integer": 1,
    "a negative integer": -1,
    "two integers": (1, 2),
    "a slice": slice(None, None, 2),
    "a column": (slice(None), 1),
    "reversed": (slice(None, None, -1), slice(3, 0, -2)),
    "an ellipsis": (..., 2),
    "a new axis": (None, 1),
    "rows": np.array([2, 0]),
    "places": (np.array([0, 2]), np.array([3, 1])),
    "a grid": (np.array([[0], [2]]), np.array([1, 3])),
    "mixed": (np.array([0, 2]), slice(1, 3)),
    "a mask": X > 5,
    "a mask of rows": np.array([True, False, True]),
    "nothing": slice(0, 0),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_reading_is_numpys(index: Any):
    same(X[index], rnp.array(X)[index])


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "max", "min"])
def test_an_update_is_numpys_assignment(index: Any, name: str):
    expected, value = X.copy(), np.float32(4.0)
    function = {
        "set": lambda old: value, "add": lambda old: old + value,
        "subtract": lambda old: old - value, "multiply": lambda old: old * value,
        "divide": lambda old: old / value, "max": lambda old: np.maximum(old, value),
        "min": lambda old: np.minimum(old, value),
    }[name]  # fmt: skip
    expected[index] = function(expected[index])

    same(expected, getattr(rnp.array(X).at[index], name)(4.0))


def test_an_update_leaves_the_array_as_it_was_and_broadcasts_its_values():
    x = rnp.array(X)

    updated = x.at[:, 1:3].set(rnp.array([[7.0], [8.0], [9.0]]))

    assert updated[:, 1].tolist() == updated[:, 2].tolist() == [7.0, 8.0, 9.0]
    same(X, x)


def test_power_and_apply_change_the_elements_in_place():
    x = rnp.arange(4)

    assert x.at[2:].power(3).tolist() == [0, 1, 8, 27]
    assert x.at[1].apply(lambda v: v - 5).tolist() == [0, -4, 2, 3]


def test_values_take_the_dtype_of_the_array():
    assert rnp.zeros(2, "i8").at[0].set(3.7).tolist() == [3, 0]


# --- out of bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize("at", [10, np.array(10), np.array([10])], ids=["int", "rank 0", "array"])
def test_reading_beyond_the_end_gives_the_last_element(at: Any):
    assert np.ravel(rnp.arange(5)[at]).tolist() == [4]


@pytest.mark.parametrize("at", [-7, np.array(-7)], ids=["int", "array"])
def test_a_negative_index_wraps_once_and_is_then_clamped(at: Any):
    assert int(rnp.arange(5)[at]) == 0


@pytest.mark.parametrize("at", [10, -7, np.array([10, -7])], ids=["above", "below", "array"])
def test_writing_out_of_bounds_is_dropped_unless_clipped(at: Any):
    x = rnp.arange(5)

    assert x.at[at].set(9).tolist() == x.at[at].add(9).tolist() == [0, 1, 2, 3, 4]
    assert 9 in x.at[at].set(9, mode="clip").tolist()


def test_get_fills_what_is_out_of_bounds():
    x = rnp.arange(3.0)

    assert x.at[rnp.array([1, 5])].get(mode="fill", fill_value=-1.0).tolist() == [1.0, -1.0]
    assert np.isnan(x.at[5].get(mode="fill"))
    assert rnp.arange(3).at[5].get(mode="fill").tolist() == -(2**31)


# --- duplicates -------------------------------------------------------------------------------


def test_duplicates_accumulate_in_add_and_subtract():
    x, at = rnp.zeros(3), rnp.array([1, 1, 2])

    assert x.at[at].add(1.0).tolist() == [0.0, 2.0, 1.0]
    assert x.at[at].subtract(1.0).tolist() == [0.0, -2.0, -1.0]


def test_an_update_that_would_count_duplicates_once_is_refused():
    x = rnp.ones(3)

    with pytest.raises(NotImplementedError, match="at indices that may repeat"):
        x.at[rnp.array([1, 1])].multiply(2.0)
    with pytest.raises(NotImplementedError, match="at indices that may repeat"):
        rune.jit(lambda i: x.at[i].multiply(2.0))(rnp.array([0, 1]))


def test_one_traced_index_is_distinct():
    x = rnp.ones(3)

    assert rune.jit(lambda i: x.at[i].multiply(2.0))(1).tolist() == [1.0, 2.0, 1.0]


# --- refusals and derivatives -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (1.5, "cannot index with f32"),
        ([0, 1], "cannot index with a list"),
        ((0, 0, 0), r"cannot index f32\[3,4\] with 3 indices"),
        ((..., ...), "cannot use more than one ellipsis"),
    ],
)
def test_an_index_without_meaning_is_refused(index: Any, message: str):
    with pytest.raises((TypeError, IndexError), match=f"index: {message}"):
        rnp.array(X)[index]


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="at: cannot use mode='wrap'"):
        rnp.zeros(3).at[0].set(1.0, mode="wrap")


def test_a_traced_mask_is_refused_with_the_way_out():
    with pytest.raises(IndexError, match=r"rune.numpy.where\(mask, x, other\)"):
        rune.jit(lambda x: x[x > 0])(rnp.ones(3))


def test_derivatives_go_to_the_kept_elements_and_to_the_written_values():
    def function(x: Any, v: Any) -> Any:
        return (x.at[1].set(v) * rnp.array([1.0, 2.0, 3.0])).sum()

    dx, dv = rune.grad(function, (0, 1))(rnp.ones(3), 5.0)

    assert (dx.tolist(), float(dv)) == ([1.0, 0.0, 3.0], 2.0)


def test_the_gradient_of_a_gather_out_of_bounds_is_zero_and_of_a_clipped_one_is_not():
    gathered = rune.grad(lambda x: x[rnp.array([10])].sum())(rnp.ones(3))
    clipped = rune.grad(lambda x: rnp.take(x, 10, mode="clip"))(rnp.ones(3))

    assert (gathered.tolist(), clipped.tolist()) == ([0.0] * 3, [0.0, 0.0, 1.0])
