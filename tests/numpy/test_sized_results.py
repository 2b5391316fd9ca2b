"""Results whose shape depends on values, with `size=`: compiled and batched like any other.

Claims, in reading order: with as many elements as there are, a sized call gives what the unsized
one gives; elements past the size are dropped; missing elements are filled, by default with JAX's
fill; each call can be jitted, batched and differentiated; without a size tracing is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from rune.errors import ArgumentError, TracerError
from tests.support.arrays import array

X, Y = np.array([3, 1, 1, 5, 0, 3], np.int32), np.array([1, 5, 5, 9], np.int32)
Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "nonzero": lambda x, y, **kw: rnp.nonzero(x - 1, **kw),
    "flatnonzero": lambda x, y, **kw: rnp.flatnonzero(x - 1, **kw),
    "argwhere": lambda x, y, **kw: rnp.argwhere(x - 1, **kw),
    "where": lambda x, y, **kw: rnp.where(x > 1, **kw),
    "unique": lambda x, y, **kw: rnp.unique(x, True, False, True, **kw),
    "unique_all": lambda x, y, **kw: tuple(rnp.unique_all(x, **kw))[::3],
    "unique_counts": lambda x, y, **kw: tuple(rnp.unique_counts(x, **kw)),
    "unique_inverse": lambda x, y, **kw: rnp.unique_inverse(x, **kw).values,
    "unique_values": lambda x, y, **kw: rnp.unique_values(x, **kw),
    "unique rows": lambda x, y, **kw: rnp.unique(rnp.stack([x, x]).T, axis=0, **kw),
    "union1d": lambda x, y, **kw: rnp.union1d(x, y, **kw),
    "intersect1d": lambda x, y, **kw: rnp.intersect1d(x, y, return_indices=True, **kw),
    "setdiff1d": lambda x, y, **kw: rnp.setdiff1d(x, y, **kw),
    "setxor1d": lambda x, y, **kw: rnp.setxor1d(x, y, **kw),
}
for_every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def same(expected: Any, actual: Any) -> None:
    for a, b in zip(tree.leaves(expected), tree.leaves(actual), strict=True):
        np.testing.assert_array_equal(a, b)


def listed(actual: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in tree.leaves(actual)]


def count(result: Any) -> int:
    return len(tree.leaves(result)[0])


@for_every_call
def test_a_size_that_fits_changes_nothing(call: Call):
    results = call(array(X), array(Y))

    same(results, rune.jit(lambda x, y: call(x, y, size=count(results)))(X, Y))


@for_every_call
def test_elements_beyond_the_size_are_dropped(call: Call):
    results = call(array(X), array(Y))

    results_of_one = rune.jit(lambda x, y: call(x, y, size=1))(X, Y)

    same([leaf[:1] for leaf in tree.leaves(results)][:1], tree.leaves(results_of_one)[:1])


@for_every_call
def test_the_fill_follows_the_last_element(call: Call):
    results = call(array(X), array(Y))

    results_of_eight = rune.jit(lambda x, y: call(x, y, size=8, fill_value=-7))(X, Y)

    first, longer = tree.leaves(results)[0], tree.leaves(results_of_eight)[0]
    same(first, longer[: len(first)])
    assert np.all(np.asarray(longer[len(first) :]) == -7)


@for_every_call
def test_a_sized_call_is_batched_as_the_loop_over_lanes(call: Call):
    xs, ys = np.stack([X, X[::-1], X * 0]), np.stack([Y, Y + 1, Y * 0])
    call_of_five = lambda x, y: call(x, y, size=5)  # noqa: E731

    lanes = rune.jit(rune.vmap(call_of_five))(xs, ys)

    for lane in range(3):
        expected = call_of_five(array(xs[lane]), array(ys[lane]))
        same(expected, tree.map(lambda leaf, lane=lane: leaf[lane], lanes))


@for_every_call
def test_a_traced_call_without_a_size_is_refused(call: Call):
    with pytest.raises(TracerError):
        rune.jit(call)(X, Y)


# The defaults of JAX 0.10.2.
def test_the_default_fills_are_those_of_jax():
    x, y = array(np.array([3, 1, 1, 5])), array(Y)

    assert listed(rnp.unique(x, size=5)) == [[1, 3, 5, 1, 1]]
    assert listed(rnp.nonzero(x > 2, size=4)) == [[0, 3, 0, 0]]
    assert listed(rnp.setxor1d(x, y, size=5)) == [[3, 9, 3, 3, 3]]
    assert listed(rnp.setdiff1d(x, y, size=3)) == [[3, 0, 0]]
    results = rnp.intersect1d(x, y, return_indices=True, size=4)
    assert listed(results) == [[1, 5, 1, 1], [1, 3, 4, 4], [0, 1, 4, 4]]


def test_each_axis_has_its_own_fill_value():
    mask = array(np.eye(2))

    results = rnp.nonzero(mask, size=3, fill_value=(7, 8))

    assert listed(results) == [[0, 1, 7], [0, 1, 8]]


def test_the_distinct_elements_of_an_empty_array_are_fill_values():
    with pytest.raises(ArgumentError, match="the array is empty"):
        rnp.unique(rnp.zeros(0), size=2)


def test_a_size_may_be_symbolic():
    positions = rune.jit(lambda x: rnp.nonzero(x, size=x.shape[0])[0], dims={"n": (1, 8)})

    assert listed(positions(np.array([0, 5, 7]))) == [[1, 2, 0]]
    assert listed(positions(np.array([2, 0]))) == [[0, 0]]
    assert positions.cache_size() == 1


def test_the_derivative_of_distinct_elements_belongs_to_the_first_of_each():
    x = array(np.array([2.0, 1.0, 2.0]))

    gradient = rune.grad(lambda v: (rnp.unique(v, size=2) * array(np.array([5.0, 7.0]))).sum())(x)

    assert listed(gradient) == [[7.0, 5.0, 0.0]]


def test_counts_of_a_given_length_leave_larger_numbers_out():
    count_up_to_3 = rune.jit(lambda x: rnp.bincount(x, length=4))

    same(np.bincount(X)[:4], count_up_to_3(X))


ROWS, COUNTS = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.array([2, 0, 1], np.int32)


@pytest.mark.parametrize(("size", "rows"), [(2, [0, 0]), (3, [0, 0, 2]), (5, [0, 0, 2, 2, 2])])
def test_repeat_to_a_size_cuts_off_or_shows_the_last_element_again(size: int, rows: list[int]):
    def repeated(rows: Any, counts: Any) -> Any:
        return rnp.repeat(rows, counts, axis=0, total_repeat_length=size)

    counts_of_lanes = np.stack([COUNTS, COUNTS[::-1]])
    lanes = rune.vmap(repeated, in_axes=(None, 0))(ROWS, counts_of_lanes)
    gradient = rune.grad(lambda rows: rnp.sum(repeated(rows, COUNTS)))(ROWS)

    same(ROWS[rows], rune.jit(repeated)(ROWS, COUNTS))
    same(np.stack([repeated(array(ROWS), array(c)) for c in counts_of_lanes]), lanes)
    np.testing.assert_array_equal(gradient[:, 0], np.bincount(rows, minlength=3))


@pytest.mark.parametrize("size", range(8))
def test_counts_of_distinct_elements_are_those_of_all_up_to_the_size(size: int):
    x = np.array([3, 0, 4, 2, 4, 4, 0])
    expected = np.zeros(8, int)
    expected[:4] = np.unique(x, return_counts=True)[1]

    _, counts = rnp.unique(array(x), return_counts=True, size=size)

    assert counts.tolist() == expected[:size].tolist()


SETS = ("setdiff1d", "setxor1d", "union1d", "intersect1d")


@pytest.mark.parametrize("fill", [0, 7])
@pytest.mark.parametrize("name", SETS)
def test_sets_of_empty_arrays_are_fill_values(name: str, fill: int):
    nothing = rnp.zeros((0, 3), rnp.int16)

    actual = getattr(rnp, name)(nothing, nothing, size=4, fill_value=fill)

    assert (listed(actual), actual.dtype) == ([[fill] * 4], rnp.int16)


@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize("second", ["int8", "uint8", "int32", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("first", ["int8", "uint8", "int32", "float16", "bfloat16", "float32"])
def test_a_set_difference_has_the_dtype_of_its_first_set(first: str, second: str, size: int | None):
    x, y = rnp.asarray([4, 1, 1, 2, 3], first), rnp.asarray([2, 9], second)

    actual = rnp.setdiff1d(x, y, size=size)

    assert (listed(actual), actual.dtype) == ([[1, 3, 4]], rnp.dtype(first))


def test_elements_are_distinct_in_the_dtype_of_their_set():
    x = rnp.asarray([16_777_216, 16_777_217, 5])  # the first two are one number in f32

    assert listed(rnp.setdiff1d(x, rnp.asarray([5.0]))) == [[16_777_216, 16_777_217]]


def test_fills_of_what_has_no_elements_have_the_dtype_of_the_array_for_good():
    fills = rnp.unique(rnp.zeros((0, 5)), size=3, fill_value=7.0)

    assert (fills.dtype, fills.weak_type) == (np.float32, False)
    np.testing.assert_array_equal(fills, [7, 7, 7])
