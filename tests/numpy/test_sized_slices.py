"""Slices of known size that start anywhere, ds(start, size): inside they are NumPy's slices; out of
bounds they are what jax 0.10.2 gives, which moves what is read and drops what is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import ds
from rune.errors import ArgumentError, AxisError, DimensionError, DtypeError

X = np.arange(35, dtype=np.float32).reshape(5, 7)
ROWS = np.array([3, 0, 3])
# An index with a start, in NumPy's form and in rune's.
INDICES: dict[str, Any] = {
    "rows": lambda i, part: part(i, 2),
    "nothing": lambda i, part: part(i, 0),
    "columns": lambda i, part: (slice(None), part(i, 3)),
    "last": lambda i, part: (..., part(i, 3)),
    "both": lambda i, part: (part(i, 2), part(i + 1, 4)),
    "with a number": lambda i, part: (part(i, 2), -1),
    "with a slice": lambda i, part: (part(i, 2), slice(1, 6, 2)),
    "with a reversed slice": lambda i, part: (part(i, 2), slice(None, None, -3)),
    "with an array": lambda i, part: (ROWS, part(i, 4)),
    "with a new axis": lambda i, part: (part(i, 2), None, 3),
}


def numpy_part(start: int, size: int) -> slice:
    return slice(start, start + size)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("start", [0, 2])
def test_a_window_inside_is_a_slice_of_numpy(name: str, start: int):
    index = INDICES[name]
    expected = X[index(start, numpy_part)]

    np.testing.assert_array_equal(rnp.array(X)[index(start, ds)], expected, strict=True)
    np.testing.assert_array_equal(rune.jit(lambda x, i: x[index(i, ds)])(X, start), expected, strict=True)
    lanes = rune.vmap(lambda i: rnp.array(X)[index(i, ds)])(rnp.array([start, 1]))
    np.testing.assert_array_equal(lanes, [expected, X[index(1, numpy_part)]])


@pytest.mark.parametrize("name", INDICES)
def test_a_window_is_changed_as_in_numpy(name: str):
    index = INDICES[name]
    expected, sums = X.copy(), X.copy()
    expected[index(2, numpy_part)] = -1
    np.add.at(sums, index(2, numpy_part), 3)

    for i in (2, rnp.array(2)):
        np.testing.assert_array_equal(rnp.array(X).at[index(i, ds)].set(-1), expected)
    np.testing.assert_array_equal(rune.jit(lambda x, i: x.at[index(i, ds)].add(3))(X, 2), sums)


@pytest.mark.parametrize("name", INDICES)
def test_an_element_of_a_window_gets_a_slope_for_each_time_it_is_read(name: str):
    counts = np.zeros_like(X)
    np.add.at(counts, INDICES[name](1, numpy_part), 1)

    slopes = rune.jit(rune.grad(lambda x, i: x[INDICES[name](i, ds)].sum()))(X, 1)

    np.testing.assert_array_equal(slopes, counts)


@pytest.mark.parametrize(("start", "expected"), [(8, [7, 8, 9]), (12, [7, 8, 9]), (-1, [7, 8, 9]), (-12, [0, 1, 2])])
def test_a_window_out_of_bounds_is_moved_where_it_is_read_and_dropped_where_it_is_written(start, expected):
    x = rnp.arange(10)

    for i in (start, rnp.array(start), np.int64(start)):
        np.testing.assert_array_equal(x[ds(i, 3)], expected)
        np.testing.assert_array_equal(x.at[ds(i, 3)].set(-1), x)
        np.testing.assert_array_equal(x.at[ds(i, 3)].get(mode="fill", fill_value=-1), [-1, -1, -1])
    slopes = rune.grad(lambda v: v[ds(rnp.array(start), 3)].sum())(rnp.arange(10.0))
    np.testing.assert_array_equal(slopes, np.isin(np.arange(10), expected))


def test_one_number_is_the_first_elements_and_none_is_all():
    x = rnp.arange(10)

    np.testing.assert_array_equal(x[ds(3)], [0, 1, 2])
    np.testing.assert_array_equal(x[ds(None)], x)
    np.testing.assert_array_equal(x[ds(1, 3, 4)], [1, 5, 9])
    np.testing.assert_array_equal(x[ds(-2, 2)], [8, 9])


@pytest.mark.parametrize("integer", [int, np.int64, np.uint8])
def test_sizes_and_strides_are_integers_of_numpy_as_well(integer):
    x = rnp.arange(10)

    np.testing.assert_array_equal(x[ds(integer(1), integer(3), integer(2))], [1, 3, 5])
    np.testing.assert_array_equal(x.at[ds(integer(8), integer(2))].set(0), [*range(8), 0, 0])


OVER_SIZES = {
    "read": lambda x, i: x[ds(i, 3)],
    "written": lambda x, i: x.at[ds(i, 3)].set(1.0),
    "at a number": lambda x, i: x[ds(0, 3)],
}


@pytest.mark.parametrize("name", OVER_SIZES)
def test_a_window_that_may_be_longer_than_a_symbolic_axis_is_refused(name):
    short = rune.jit(OVER_SIZES[name], dims={"n": (1, 9)}, in_dims=("n", None))
    long = rune.jit(OVER_SIZES[name], dims={"n": (3, 9)}, in_dims=("n", None))
    x = rnp.arange(5.0)

    with pytest.raises(DimensionError, match=r"index: cannot decide n < 3 for a slice of axis 0 \(n in 1\.\.9\)"):
        short(x, 1)
    np.testing.assert_array_equal(long(x, 1), OVER_SIZES[name](x, 1))


def test_a_window_is_an_argument_of_compiled_functions():
    window = rune.jit(lambda x, s: x[s])

    np.testing.assert_array_equal(window(rnp.arange(9), ds(4, 2)), [4, 5])
    np.testing.assert_array_equal(window(rnp.arange(9), ds(6, 2)), [6, 7])


def test_a_reference_is_read_and_written_by_windows():
    def write_and_read(i):
        ref = rune.new_ref(rnp.arange(7))
        ref[ds(i, 2)] = rnp.array([70, 80])
        return ref[ds(i - 1, 4)]

    np.testing.assert_array_equal(rune.jit(write_and_read)(3), [2, 70, 80, 5])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: ds(0, -2), ArgumentError, r"ds: cannot take -2 as size \(an integer of at least 0 required\)"),
        (lambda x: ds(0, 2, 0), ArgumentError, r"ds: cannot take 0 as stride \(an integer of at least 1 required\)"),
        (lambda x: x[ds(0, 12)], AxisError, r"index: cannot take 12 elements of axis 0 \(size 10\)"),
        (lambda x: x[ds(5, 4, 2)], AxisError, r"index: cannot step by 2 from 5 \(axis 0 of size 10\)"),
        (lambda x: x[ds(1.5, 2)], DtypeError, r"index: cannot begin a slice at f32\*\[\] \(an integer"),
    ],
)
def test_a_window_that_cannot_be_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call(rnp.arange(10))
