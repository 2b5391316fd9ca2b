"""x[index], take, put and related functions: indices out of bounds, and values that are no index.

Reading clamps, or fills in the functions that document it; a negative index wraps once. The fill
values of take are those of jax 0.10.2. Updates are in test_updates.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import AxisError, NonConcreteBooleanIndexError
from tests.support.arrays import array
from tests.support.close import same

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
FIVE = np.arange(5.0, dtype=np.float32)

# --- x[index] ---------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [10, np.array(10), np.array([10])], ids=["int", "rank 0", "array"])
def test_reading_beyond_the_end_gives_the_last_element(at: Any):
    assert np.ravel(rnp.arange(5)[at]).tolist() == [4]
    assert np.ravel(rune.jit(lambda x, i: x[i])(rnp.arange(5), at)).tolist() == [4]


@pytest.mark.parametrize("at", [-7, np.array(-7)], ids=["int", "array"])
def test_a_negative_index_wraps_once_and_is_then_clamped(at: Any):
    assert int(rnp.arange(5)[at]) == 0


@pytest.mark.parametrize("dtype", sorted(dtypes.INTEGER, key=dtypes.short), ids=dtypes.short)
def test_indices_of_every_integer_dtype_read_the_same_elements(dtype: np.dtype):
    at = array(np.array([3, 0, 4]).astype(dtype))

    assert rnp.array(FIVE)[at].tolist() == [3, 0, 4]


def test_wide_numbers_stay_out_of_bounds():
    x, wide = rnp.array(FIVE), 2**40 + 1

    assert float(x[wide]) == 4.0
    assert x[np.array([wide, -wide])].tolist() == [4.0, 0.0]
    assert x.at[wide].set(9.0).tolist() == x.at[np.array([wide])].set(9.0).tolist() == x.tolist()


def test_index_arrays_of_several_dtypes_go_together():
    i, j = np.array([0, -1], np.int64), np.array([3, 1], np.uint8)

    same(X[i, j], rnp.array(X)[array(i), array(j)])
    same(X[i, -2], rnp.array(X)[array(i), -2])


def test_the_gradient_of_a_clamped_gather_is_zero_and_of_a_clipped_one_is_not():
    of_gather = rune.grad(lambda x: x[rnp.array([10])].sum())(rnp.ones(3))
    of_clip = rune.grad(lambda x: x.at[rnp.array([10])].get(mode="clip").sum())(rnp.ones(3))

    assert (of_gather.tolist(), of_clip.tolist()) == ([0.0] * 3, [0.0, 0.0, 1.0])


NUMBERS: dict[str, Any] = {"int": int, "NumPy's": np.int32, "rank 0 of NumPy": np.array, "rank 0": rnp.array}
# The elements of a matrix [3, 4] that an index made from a number reads, as by jax.grad of JAX
# 0.10.2 on the CPU: a number among slices is clamped, one with a step or an array has no gradient.
FORMS: dict[str, tuple[Any, bool]] = {
    "alone": (lambda k: k, True),
    "behind a slice": (lambda k: (slice(None), k), True),
    "before a slice": (lambda k: (k, slice(1, 3)), True),
    "before a new axis": (lambda k: (k, None, 1), True),
    "twice": (lambda k: (k, k), True),
    "before a step": (lambda k: (k, slice(None, None, 2)), False),
    "before an array": (lambda k: (k, rnp.array([0, 1])), False),
    "as an array": (lambda k: rnp.asarray(k)[None], False),
}


@pytest.mark.parametrize("at", [7, -9])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_out_of_bounds_is_clamped_for_derivatives_too(number: str, form: str, at: int):
    index_of, has_gradient = FORMS[form]
    last = 2 if at > 0 else 0
    inside = index_of(last) if form != "behind a slice" else index_of(3 if at > 0 else 0)
    inside = (last, 3 if at > 0 else 0) if form == "twice" else inside

    gradient = rune.grad(lambda x: x[index_of(NUMBERS[number](at))].sum())(rnp.array(X))

    expected = rune.grad(lambda x: x[inside].sum())(rnp.array(X))
    same(expected if has_gradient else np.zeros_like(X), gradient)


@pytest.mark.parametrize("form", FORMS)
def test_a_traced_number_has_the_derivatives_of_a_known_one(form: str):
    index_of = FORMS[form][0]
    gradient = rune.jit(rune.grad(lambda x, k: x[index_of(k)].sum()))

    for at in (1, -2, 7, -9):
        eager_gradient = rune.grad(lambda x, at=at: x[index_of(at)].sum())(rnp.array(X))
        same(eager_gradient, gradient(rnp.array(X), at))


def test_numbers_that_are_batched_are_clamped_lane_by_lane():
    at = rnp.array([2, -2, 7, -9])
    x = rnp.array(FIVE)

    gradient = rune.grad(lambda x: rune.vmap(lambda k: x[k])(at).sum())(x)
    lane_gradients = rune.vmap(rune.grad(lambda x, k: x[k]), (None, 0))(x, at)

    assert gradient.tolist() == [1, 0, 1, 1, 1]  # JAX 0.10.2
    assert [row.index(1.0) for row in lane_gradients.tolist()] == [2, 3, 4, 0]


@pytest.mark.parametrize("mode", [None, "promise_in_bounds", "clip", "fill", "drop", "wrap"])
def test_get_at_a_number_has_the_derivative_of_its_mode(mode: str | None):
    def gradient(at: Any) -> list[float]:
        options = {} if mode is None else {"mode": mode}
        return rune.grad(lambda x: x.at[at].get(**options))(rnp.array(FIVE)).tolist()

    last = {"fill": [0.0] * 5, "drop": [0.0] * 5, "wrap": [0.0, 0.0, 1.0, 0.0, 0.0]}
    expected = last.get(str(mode), [0.0, 0.0, 0.0, 0.0, 1.0])  # JAX 0.10.2

    assert gradient(7) == gradient(np.array(7)) == gradient(rnp.array(7)) == expected


def test_an_element_of_nothing_is_refused():
    for at in (0, np.array(0), rnp.array(0)):
        with pytest.raises(IndexError, match=r"cannot read element .* of axis 0 \(size 0\)"):
            rnp.zeros((0, 2))[at]


@pytest.mark.parametrize(
    "index",
    [([0, 2],), (0, [1, -1]), ([0, 1], [3, 2]), (..., [0, 2]), ([[0, 1], [2, 0]], 1), (slice(1, 3), (1, 2)), (1, [])],
)
def test_a_sequence_in_a_tuple_is_an_array_of_positions(index: Any):
    with_zeros = X.copy()
    with_zeros[index] = 0

    np.testing.assert_array_equal(rnp.array(X)[index], X[index])
    np.testing.assert_array_equal(rnp.array(X).at[index].set(0.0), with_zeros)


def test_a_sequence_in_a_tuple_may_hold_traced_positions():
    read = rune.jit(lambda x, i: x[[0, i], [i, 1]])

    np.testing.assert_array_equal(read(rnp.array(X), 2), X[[0, 2], [2, 1]])


# --- values that are no index -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (1.5, "cannot index with f32"),
        (np.float32(1), "cannot index with f32"),
        (np.array([1.0]), "cannot index with f32"),
        ([0, 1], "cannot index with a list"),
        ([], "cannot index with a list"),
        ("a", "cannot index with .a."),
    ],
)
def test_a_float_a_list_and_a_string_are_not_indices(index: Any, message: str):
    with pytest.raises(TypeError, match=f"index: {message}"):
        rnp.array(X)[index]
    with pytest.raises(TypeError, match=f"index: {message}"):
        rnp.array(X).at[index].set(0.0)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 0, 0), r"cannot index f32\[3,4\] with 3 indices"),
        ((..., ...), "cannot use more than one ellipsis"),
        (np.ones(4, bool), r"cannot index f32\[3,4\] with a mask bool\[4\] \(axis 0"),
        ((..., np.ones(3, bool)), r"cannot index f32\[3,4\] with a mask bool\[3\] \(axis 1"),
    ],
)
def test_an_index_that_does_not_fit_the_array_is_refused(index: Any, message: str):
    with pytest.raises(IndexError, match=f"index: {message}"):
        rnp.array(X)[index]


@pytest.mark.parametrize("name", ["get", "set", "add", "multiply"])
def test_a_traced_mask_is_refused_with_the_way_out(name: str):
    values = () if name == "get" else (0.0,)

    with pytest.raises(NonConcreteBooleanIndexError, match=r"numpy.where\(mask, x, other\)"):
        rune.jit(lambda x: getattr(x.at[x > 0], name)(*values))(rnp.ones(3))
    with pytest.raises(IndexError, match=r"rune.numpy.where\(mask, x, other\)"):
        rune.jit(lambda x: x[x > 0])(rnp.ones(3))


@pytest.mark.parametrize("bounds", [lambda i: slice(i, i + 2), lambda i: slice(i), lambda i: slice(None, None, i)])
@pytest.mark.parametrize("name", ["get", "set", "add", "multiply"])
def test_a_traced_bound_of_a_slice_is_refused_with_the_way_out(name: str, bounds: Any):
    values = () if name == "get" else (0.0,)

    with pytest.raises(AxisError, match="dynamic_slice_in_dim takes a traced start"):
        rune.jit(lambda x, i: getattr(x.at[bounds(i)], name)(*values))(rnp.ones(5), 1)
    with pytest.raises(IndexError, match=r"axis of 5 elements with a traced bound i32\*\[\]"):
        rune.jit(lambda x, i: x[bounds(i)])(rnp.ones(5), 1)


def test_assignment_points_to_at():
    x = rnp.array(FIVE)

    with pytest.raises(TypeError, match=r"use y = x.at\[index\].set\(value\)"):
        x[0] = 1.0


# --- take -------------------------------------------------------------------------------------

FILLS: dict[np.dtype, Any] = {
    dtypes.i4: -8,
    dtypes.i8: -128,
    dtypes.i32: -(2**31),
    dtypes.i64: -(2**63),
    dtypes.u4: 15,
    dtypes.u8: 255,
    dtypes.u32: 2**32 - 1,
    dtypes.u64: 2**64 - 1,
    dtypes.bool_: True,
    dtypes.f8_e4m3: np.nan,
    dtypes.bf16: np.nan,
    dtypes.f16: np.nan,
    dtypes.f32: np.nan,
    dtypes.f64: np.nan,
    dtypes.c64: complex(np.nan, 0),
}


@pytest.mark.parametrize("dtype", FILLS, ids=dtypes.short)
def test_take_fills_what_is_out_of_bounds_by_dtype(dtype: np.dtype):
    x, at = array(np.zeros(2, dtype)), np.array([7, 0])
    expected = np.stack([np.array(value).astype(dtype) for value in (FILLS[dtype], 0)])

    same(expected, rnp.take(x, at))
    same(expected, rnp.take_along_axis(x, at, 0))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, [np.nan, np.nan, 4.0]),
        ("fill", [np.nan, np.nan, 4.0]),
        ("clip", [4.0, 0.0, 0.0]),
        ("wrap", [2.0, 3.0, 4.0]),
    ],
)
def test_take_at_positions_out_of_bounds_follows_its_mode(mode: str | None, expected: list[float]):
    at, x = np.array([7, -7, -1]), np.array(expected, np.float32)

    same(x, rnp.take(rnp.array(FIVE), at, mode=mode))
    if mode != "clip":
        same(x, rnp.take_along_axis(rnp.array(FIVE), at, 0, mode=mode))


def test_take_fills_with_the_value_that_it_is_given():
    assert rnp.take(rnp.array(FIVE), np.array([7, 1]), fill_value=-1).tolist() == [-1, 1]


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take_agrees_with_numpy_within_bounds(axis: int | None):
    at = np.array([[0, 2], [1, -1]])

    same(np.take(X, at, axis), rnp.take(rnp.array(X), at, axis))


def test_take_cannot_raise():
    with pytest.raises(NotImplementedError, match="take: cannot use mode='raise'"):
        rnp.take(rnp.array(FIVE), np.array([1]), mode="raise")


# --- put, and along an axis -------------------------------------------------------------------

ALONG: dict[str, tuple[np.ndarray, int | None]] = {
    "axis 0": (np.array([[2, 0, 1, 1]]), 0),
    "axis 1": (np.array([[3, 0], [1, -1], [2, 1]]), 1),
    "broadcast": (np.array([[1]]), -1),
    "flat": (np.array([4, -1, 7]), None),
}
each_along = pytest.mark.parametrize(("at", "axis"), ALONG.values(), ids=ALONG)


@each_along
def test_take_along_axis_agrees_with_numpy(at: np.ndarray, axis: int | None):
    same(np.take_along_axis(X, at, axis), rnp.take_along_axis(rnp.array(X), at, axis))


@each_along
def test_put_along_axis_agrees_with_numpy(at: np.ndarray, axis: int | None):
    expected = X.copy()
    np.put_along_axis(expected, at, np.float32(9), axis)

    same(expected, rnp.put_along_axis(rnp.array(X), at, 9.0, axis, inplace=False))


@pytest.mark.parametrize(
    ("mode", "expected"), [(None, [0, 1, 2, 3, 9]), ("clip", [0, 1, 2, 3, 9]), ("wrap", [0, 1, 9, 3, 9])]
)
def test_writing_along_an_axis_out_of_bounds_follows_its_mode(mode: str | None, expected: list[float]):
    x, at = rnp.array(FIVE), np.array([7, -1])

    assert rnp.put_along_axis(x, at, 9.0, 0, inplace=False, mode=mode).tolist() == expected
    if mode == "wrap":
        assert rnp.put(x, at, 9.0, inplace=False, mode=mode).tolist() == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ([0, 1, 9], [6, 7, 2, 3, 8]),
        ([0, 4, 9], [6, 1, 2, 3, 8]),
        ([0, -9, -1], [7, 1, 2, 3, 8]),
        ([-6, 1, 2], [6, 7, 8, 3, 4]),
    ],
)
def test_put_without_a_mode_wraps_negative_positions_once_and_clamps_as_in_jax(at: list[int], expected: list[float]):
    numbers = np.array([6.0, 7.0, 8.0])

    assert rnp.put(rnp.arange(5.0), np.array(at), numbers, inplace=False).tolist() == expected
    assert rnp.put(rnp.arange(5.0), np.array(at), 9.0, inplace=False, mode="drop").tolist() == [
        9.0 if i in at or i - 5 in at else float(i) for i in range(5)
    ]


def test_clipped_positions_count_from_the_end_along_an_axis_and_not_in_what_numpy_clips():
    x, at = rnp.array(FIVE), np.array([7, -1])

    assert rnp.take_along_axis(x, at, 0, mode="clip").tolist() == [FIVE[4], FIVE[4]]
    assert rnp.take(x, at, mode="clip").tolist() == np.take(FIVE, at, mode="clip").tolist()
    assert rnp.put(x, at, 9.0, inplace=False, mode="clip").tolist() == [9, 1, 2, 3, 9]


@pytest.mark.parametrize("values", [[8.0], [8.0, 9.0], [6.0, 7.0, 8.0, 9.0, 10.0]], ids=len)
def test_put_repeats_its_values_as_numpy_does(values: list[float]):
    expected, at = X.copy(), np.array([[5, -1], [0, 3]])
    np.put(expected, at, values)

    same(expected, rnp.put(rnp.array(X), at, np.array(values), inplace=False))


def test_putting_in_place_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"put\(..., inplace=False\) returns a changed copy"):
        rnp.put(rnp.array(FIVE), np.array([0]), 1.0)
    with pytest.raises(ValueError, match="put_along_axis: cannot write into an array"):
        rnp.put_along_axis(rnp.array(FIVE), np.array([0]), 1.0, 0)


@pytest.mark.parametrize("name", ["take_along_axis", "put_along_axis"])
def test_indices_along_an_axis_are_integers_of_the_same_rank(name: str):
    more = {} if name == "take_along_axis" else {"values": 0.0, "inplace": False}

    with pytest.raises(TypeError, match=rf"{name}: cannot index f32\[3,4\] by i32\[2\] \(ranks"):
        getattr(rnp, name)(rnp.array(X), np.array([0, 1]), axis=0, **more)
    with pytest.raises(TypeError, match=rf"{name}: cannot index with f32\[1,1\]"):
        getattr(rnp, name)(rnp.array(X), np.array([[0.5]]), axis=0, **more)
