"""x.at[index]: copies with elements changed.

NumPy's assignment and ufunc.at are the oracle, also for repeated elements and for a traced index.
Then modes, dtypes, `apply`, refusals and derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array
from tests.support.close import close, near, same
from tests.support.derivatives import WHY, differences, directions, inner

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
def test_reading_agrees_with_numpy(index: Any):
    same(X[index], rnp.array(X)[index])


@pytest.mark.parametrize("mode", [None, "drop", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("name", ["set", "add", "multiply", "max", "min", "power"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_an_update_of_an_empty_array_changes_nothing(shape: tuple[int, ...], name: str, mode: str | None):
    x = np.zeros(shape, np.float32)

    def update(x: rune.Array, at: rune.Array) -> rune.Array:
        return getattr(x.at[at], name)(2.0, mode=mode)

    same(x, update(rnp.array(x), rnp.array([0, -1, 2])))
    same(x, rune.jit(update)(rnp.array(x), rnp.array([0, -1, 2])))


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "max", "min"])
def test_an_update_agrees_with_numpys_assignment(index: Any, name: str):
    expected, value = X.copy(), np.float32(4.0)
    function = {
        "set": lambda old: value,
        "add": lambda old: old + value,
        "subtract": lambda old: old - value,
        "multiply": lambda old: old * value,
        "divide": lambda old: old / value,
        "max": lambda old: np.maximum(old, value),
        "min": lambda old: np.minimum(old, value),
    }[name]
    expected[index] = function(expected[index])

    same(expected, getattr(rnp.array(X).at[index], name)(4.0))


def test_an_update_does_not_change_the_array_and_broadcasts_its_values():
    x = rnp.array(X)

    result = x.at[:, 1:3].set(rnp.array([[7.0], [8.0], [9.0]]))

    assert result[:, 1].tolist() == result[:, 2].tolist() == [7.0, 8.0, 9.0]
    same(X, x)


def test_power_and_apply_change_the_elements_in_place():
    x = rnp.arange(4)

    assert x.at[2:].power(3).tolist() == [0, 1, 8, 27]
    assert x.at[1].apply(lambda v: v - 5).tolist() == [0, -4, 2, 3]


def test_values_take_the_dtype_of_the_array():
    assert rnp.zeros(2, "int8").at[0].set(3.7).tolist() == [3, 0]


# --- elements named repeatedly, and traced indices --------------------------------------------

UFUNC: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "divide": np.divide,
    "power": np.power,
}
ROWS, COLUMNS = np.array([2, 0, 2, 2], np.int32), np.array([1, -1, 3, 1], np.int32)
REPEATED: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda i, j: i,
    "columns": lambda i, j: (slice(None), j),
    "places": lambda i, j: (i, j),
    "a grid": lambda i, j: (i[:, None], j),
    "rows of a window": lambda i, j: (i, slice(1, 3)),
    "columns of a window": lambda i, j: (slice(1, 3), j),
    "columns of every second row": lambda i, j: (slice(None, None, -2), j),
    "places with a new axis": lambda i, j: (i, None, j),
    "beside an integer": lambda i, j: (-2, j),
}
each_repeated = pytest.mark.parametrize("index", REPEATED.values(), ids=REPEATED)
each_update = pytest.mark.parametrize("name", UFUNC)


def updated(name: str, index: Any) -> Any:
    """The function x, i, j, values -> x updated at index(i, j)."""
    return lambda x, i, j, values: getattr(x.at[index(i, j)], name)(values)


@each_update
@each_repeated
def test_an_element_named_repeatedly_is_changed_as_often(index: Any, name: str):
    expected = X + 1
    values = np.random.default_rng(0).choice([1.0, 1.25], X[index(ROWS, COLUMNS)].shape)
    UFUNC[name].at(expected, index(ROWS, COLUMNS), values)

    result = updated(name, index)(rnp.array(X + 1), ROWS, COLUMNS, values)

    near(expected, result, relative=2e-6, why="quotients and powers are taken once, of the product")


@each_update
@each_repeated
def test_traced_indices_update_what_the_same_indices_do_untraced(index: Any, name: str):
    args = (rnp.array(X + 1), rnp.array(ROWS), rnp.array(COLUMNS), 2.0)

    expected = updated(name, index)(*args)

    close(expected, rune.jit(updated(name, index))(*args), ulps=2, why="fused arithmetic")


@each_update
def test_every_lane_updates_at_its_own_indices(name: str):
    rows = rnp.array([[0, 0, 2], [1, 1, 1]])
    function = updated(name, lambda i, j: i)

    lanes = rune.vmap(lambda i: function(rnp.array(X + 1), i, 0, 2.0))(rows)

    expected = [function(rnp.array(X + 1), i, 0, 2.0) for i in rows]
    same(np.stack(expected), lanes)


def test_indices_that_wrap_or_clip_to_one_element_update_it_twice():
    x = rnp.ones(5)

    assert x.at[np.array([-1, 4])].multiply(3.0).tolist() == [1, 1, 1, 1, 9]
    assert x.at[np.array([7, 8])].multiply(3.0, mode="clip").tolist() == [1, 1, 1, 1, 9]
    assert x.at[np.array([7, 8])].multiply(3.0).tolist() == [1] * 5


def test_a_promise_of_distinct_indices_is_taken_at_its_word():
    x, at = rnp.ones(3), rnp.array([1, 2])

    result = rune.jit(lambda i: x.at[i].multiply(2.0, unique_indices=True))(at)

    assert result.tolist() == [1.0, 2.0, 2.0]


# --- modes ------------------------------------------------------------------------------------

OUTSIDE = {"above": 10, "below": -7, "arrays": np.array([10, -7])}
each_outside = pytest.mark.parametrize("at", OUTSIDE.values(), ids=OUTSIDE)


@pytest.mark.parametrize("mode", [None, "drop", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("name", ["set", *UFUNC])
@each_outside
def test_writing_out_of_bounds_is_dropped(at: Any, name: str, mode: str | None):
    assert getattr(rnp.arange(5.0).at[at], name)(3.0, mode=mode).tolist() == [0, 1, 2, 3, 4]


def test_clipped_writes_out_of_bounds_go_to_the_nearest_element():
    x = rnp.arange(5)

    assert x.at[10].set(9, mode="clip").tolist() == [0, 1, 2, 3, 9]
    assert x.at[-7].add(9, mode="clip").tolist() == [9, 1, 2, 3, 4]
    assert x.at[np.array([7, 8, -9])].max(6, mode="clip").tolist() == [6, 1, 2, 3, 6]


def test_get_fills_what_is_out_of_bounds():
    x = rnp.arange(3.0)

    assert x.at[rnp.array([1, 5])].get(mode="fill", fill_value=-1.0).tolist() == [1.0, -1.0]
    assert np.isnan(x.at[5].get(mode="drop"))
    assert rnp.arange(3).at[5].get(mode="fill").tolist() == -(2**31)


@pytest.mark.parametrize("mode", [None, "clip", "promise_in_bounds"])
def test_get_clamps_in_the_other_modes(mode: str | None):
    assert rnp.arange(3).at[np.array([7, -1, -9])].get(mode=mode).tolist() == [2, 2, 0]


def test_negative_indices_are_out_of_bounds_where_they_do_not_wrap():
    x, at = rnp.arange(3), np.array([-1, 0])

    result = x.at[at].set(9, wrap_negative_indices=False)
    read = x.at[-1].get(mode="fill", fill_value=7, wrap_negative_indices=False)

    assert (result.tolist(), int(read)) == ([9, 1, 2], 7)


@pytest.mark.parametrize("mode", ["one_hot", "raise"])
def test_an_unknown_mode_is_refused(mode: str):
    with pytest.raises(ValueError, match=f"at: cannot use mode='{mode}'"):
        rnp.zeros(3).at[0].set(1.0, mode=mode)
    with pytest.raises(ValueError, match=f"at: cannot use mode='{mode}'"):
        rnp.zeros(3).at[0].get(mode=mode)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match=r"at: cannot use sorted= \(one of mode, unique_indices"):
        rnp.zeros(3).at[0].set(1.0, sorted=True)  # type: ignore[call-arg]


# --- dtypes -----------------------------------------------------------------------------------


def test_values_of_a_wider_kind_are_combined_before_the_result_is_cut():
    x, twice = rnp.array([0, 10]), np.array([1, 1])

    assert x.at[1].add(0.5).tolist() == [0, 10]
    assert x.at[twice].add(0.5).tolist() == [0, 11]
    assert x.at[twice].multiply(0.5).tolist() == [0, 2]


def test_elements_that_are_not_named_keep_all_their_bits():
    odd = 2**30 + 1  # no f32

    assert rnp.array([odd, 10]).at[np.array([1, 1])].add(0.25).tolist() == [odd, 10]


def test_integers_are_divided_as_floats():
    quotients = rnp.arange(4).at[np.array([3])].divide(2)

    assert (quotients.tolist(), str(quotients.dtype)) == ([0.0, 1.0, 2.0, 1.5], "float32")


def test_sums_and_products_of_bools_are_logical():
    x, at = rnp.array([True, False, True]), np.array([0, 1, 1])

    assert x.at[at].add(True).tolist() == [True, True, True]
    assert x.at[at].multiply(False).tolist() == [False, False, True]
    assert x.at[at].max(rnp.array([False, True, False])).tolist() == [True, True, True]


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_complex_elements_are_multiplied_once_per_occurrence_of_their_index(way: Any):
    x, at = np.array([1 + 2j, 3 - 1j, 5], np.complex64), np.array([0, 0, 1, 0, 7], np.int32)
    values = np.array([1j, 2 + 1j, 3, -1, 4], np.complex64)
    expected = x.copy()
    np.multiply.at(expected, at[:4], values[:4])

    products = way(lambda x, i, v: x.at[i].multiply(v))(array(x), array(at), array(values))

    near(expected, products, relative=1e-6, why="the order of four factors")


# --- apply ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_apply_changes_an_element_once_per_occurrence_of_its_index(way: Any):
    function = way(lambda x, i: x.at[i].apply(lambda v: v * v))

    assert function(rnp.arange(5.0), rnp.array([2, 2, -1, 9, 3, 2])).tolist() == [0, 1, 256, 9, 16]


def test_apply_at_known_indices_may_change_an_element_many_times():
    assert rnp.zeros(2).at[np.zeros(40, int)].apply(lambda v: v + 1.0).tolist() == [40.0, 0.0]


def test_apply_at_many_traced_indices_asks_for_a_promise():
    x, at = rnp.arange(50.0), rnp.arange(40)

    with pytest.raises(NotImplementedError, match="unique_indices=True promises"):
        rune.jit(lambda i: x.at[i].apply(rnp.sqrt))(at)

    result = rune.jit(lambda i: x.at[i].apply(rnp.sqrt, unique_indices=True))(at)
    close(rnp.where(x < 40, rnp.sqrt(x), x), result, ulps=1, why="square roots")


# --- derivatives ------------------------------------------------------------------------------


def test_derivatives_go_to_the_kept_elements_and_to_the_written_values():
    def function(x: Any, v: Any) -> Any:
        return (x.at[1].set(v) * rnp.array([1.0, 2.0, 3.0])).sum()

    dx, dv = rune.grad(function, (0, 1))(rnp.ones(3), 5.0)

    assert (dx.tolist(), float(dv)) == ([1.0, 0.0, 3.0], 2.0)


@pytest.mark.parametrize("name", ["set", *UFUNC])
@each_repeated
def test_derivatives_of_updates_are_those_of_differences(index: Any, name: str):
    rng = np.random.default_rng(1)
    x, values = array(rng.uniform(1, 2, (3, 4))), rng.uniform(1, 2, X[index(ROWS, COLUMNS)].shape)

    def function(x: Any, values: Any) -> Any:
        return getattr(x.at[index(ROWS, COLUMNS)], name)(values)

    args = [x, array(values)]
    tangents, (weight,) = directions(rng, args), directions(rng, [x])
    _, push = rune.jvp(function, args, tangents)
    cotangents = rune.vjp(function, *args)[1](weight)

    near(differences(function, args, tangents), push, relative=1e-6, why=WHY)
    assert abs(inner([weight], [push]) - inner(cotangents, tangents)) < 1e-10


@pytest.mark.parametrize("index", [0, slice(None, None, 2), np.array([0, 0])], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "max", "min"])
def test_a_python_number_combines_with_64_bits_unrounded(index: Any, name: str):
    x = np.array([1.1, -2.2, 3.3, 0.7])
    expected = x.copy()
    {"max": np.maximum, "min": np.minimum}.get(name, getattr(np, name, np.add)).at(expected, index, 0.29)

    same(expected, getattr(array(x).at[index], name)(0.29))


# --- nested lists as values -----------------------------------------------------------------------

COMBINED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "set": lambda old, values: values,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [1, 2, 3, 67, 131])
@pytest.mark.parametrize("name", COMBINED)
def test_lists_of_numbers_and_elements_are_values_of_an_update(name: str, size: int, transform: Any):
    x = np.linspace(1, 3, size + 2, dtype=np.float32)
    combine = COMBINED[name]
    positions = np.arange(size)[::-1].copy()

    def update(x: Any, index: Any) -> Any:
        values = [x[0], 2.5, *[1] * size][:size]
        result = getattr(x.at[index], name)(values)
        return result, x + 1  # the operand is read afterwards, too

    values = np.array([x[0], 2.5, *[1] * size][:size], np.float32)
    for index in (slice(1, size + 1), positions):
        expected = x.copy()
        expected[index] = combine(expected[index], values)
        result, successor = transform(lambda x, index=index: update(x, index))(rnp.array(x))
        close(expected, result, ulps=4, why="powers and quotients")
        same(x + 1, successor)


def test_lists_of_lists_are_matrices_and_ragged_ones_are_refused():
    x = rnp.zeros((2, 3))

    same(np.array([[1, 2, 0], [3, 0, 0]], np.float32), x.at[:, :2].set([[1, 2], [3, x[0, 0]]]))
    with pytest.raises(rune.errors.ArgumentError, match="at: cannot make an array of ragged lists"):
        x.at[0].set([[1], [2, 3]])
