"""rune.ops.segment_sum and related functions: reductions of the rows with the same segment number.

Claims, in reading order: each agrees with a loop over the numbers; segments without a row hold the
identity; numbers out of bounds are dropped, or moved to the nearest segment; they can be
jitted, batched and differentiated; without num_segments they count, outside of transformations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.errors import ArgumentError, DtypeError, ShapeError, TracerIntegerConversionError
from tests.support.arrays import array
from tests.support.close import near

IDS = np.array([2, 0, 2, 4, 0, 9, -1], np.int32)
KINDS: dict[str, tuple[Callable[..., Any], Any, float]] = {
    "sum": (ops.segment_sum, np.sum, 0.0),
    "prod": (ops.segment_prod, np.prod, 1.0),
    "max": (ops.segment_max, np.max, -np.inf),
    "min": (ops.segment_min, np.min, np.inf),
}
for_every_kind = pytest.mark.parametrize("kind", KINDS)


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2.0, shape)


def looped(kind: str, data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    _, reduce, neutral = KINDS[kind]
    empty = np.full(data.shape[1:], neutral)
    segments = (data[ids == k] for k in range(count))
    return np.stack([reduce(rows, axis=0) if len(rows) else empty for rows in segments])


@for_every_kind
@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 2)])
def test_a_segment_is_what_its_rows_make_together(kind: str, shape: tuple[int, ...]):
    data = rows(*shape)

    segments = rune.jit(lambda x, i: KINDS[kind][0](x, i, 5))(array(data), IDS)

    near(looped(kind, data, IDS, 5), segments, relative=1e-12, why="another order")


@pytest.mark.parametrize("dtype", sorted(dtypes.ANY - dtypes.COMPLEX, key=str), ids=str)
def test_an_empty_segment_has_the_least_and_the_greatest_number_of_its_dtype(dtype: np.dtype):
    data, ids = rnp.asarray([1, 0, 1], dtype), rnp.array([2, 0, 2])

    most, least = (np.asarray(f(data, ids, 4)) for f in (ops.segment_max, ops.segment_min))

    np.testing.assert_array_equal(most[[0, 2]].astype(float), [0, 1])
    np.testing.assert_array_equal(least[[0, 2]].astype(float), [0, 1])
    low, high = limits(dtype)
    np.testing.assert_array_equal(most[[1, 3]].astype(float), [low, low])
    np.testing.assert_array_equal(least[[1, 3]].astype(float), [high, high])


def limits(dtype: np.dtype) -> tuple[float, float]:
    """The limits of a dtype by ml_dtypes and NumPy: infinities if it has them."""
    if dtype == dtypes.bool_:
        return 0, 1
    if dtype in dtypes.INTEGER:
        return float(ml_dtypes.iinfo(dtype).min), float(ml_dtypes.iinfo(dtype).max)
    infinity = float(np.array(np.inf).astype(dtype))
    high = float(ml_dtypes.finfo(dtype).max) if np.isnan(infinity) else infinity
    return -high, high


@for_every_kind
def test_empty_segments_of_integers_have_the_identity_of_their_dtype(kind: str):
    neutral = {"sum": 0, "prod": 1, "max": -(2**31), "min": 2**31 - 1}[kind]

    limits = KINDS[kind][0](np.array([5], np.int32), np.array([1]), 2)

    assert np.asarray(limits).tolist() == [neutral, 5]


def test_numbers_out_of_bounds_may_be_taken_to_the_nearest_segment():
    data = np.arange(7.0)

    segments = ops.segment_sum(array(data), IDS, 5, mode="clip")

    near(looped("sum", data, IDS.clip(0, 4), 5), segments, relative=0, why="exact")


@for_every_kind
def test_lanes_are_independent(kind: str):
    data, ids = rows(3, 7), np.stack([IDS, IDS[::-1], IDS * 0])

    segments = rune.vmap(lambda x, i: KINDS[kind][0](x, i, 5))(array(data), ids)

    expected = [looped(kind, d, i, 5) for d, i in zip(data, ids, strict=True)]
    near(np.stack(expected), segments, relative=1e-12, why="another order")


def test_the_derivative_of_a_sum_is_that_of_its_segment():
    weights = array(np.arange(5.0))

    gradient = rune.grad(lambda x: (ops.segment_sum(x, IDS, 5) * weights).sum())(array(rows(7)))

    assert np.asarray(gradient).tolist() == [2.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0]


def test_without_a_number_of_segments_they_are_counted():
    assert ops.segment_sum(rnp.ones(3), np.array([0, 3, 3])).shape == (4,)


def test_no_rows_make_segments_of_identities():
    assert np.asarray(ops.segment_max(rnp.zeros(0), np.zeros(0, np.int32), 1)).tolist() == [-np.inf]


def test_complex_numbers_are_multiplied():
    segments = ops.segment_prod(array(np.array([1j, 1j, 2.0])), np.array([0, 0, 1]), 2)

    near(np.array([-1, 2 + 0j]), segments, relative=1e-12, why="exact")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.segment_sum(rnp.ones(3), rnp.ones(3), 2), DtypeError),
        (lambda: ops.segment_sum(rnp.ones(3), np.zeros(2, np.int32), 2), ShapeError),
        (lambda: ops.segment_sum(rnp.ones(3), np.zeros(3, np.int32), -1), ArgumentError),
        (lambda: ops.segment_sum(rnp.ones(3), np.zeros(3, np.int32), 2, mode="wrap"), ArgumentError),
        (lambda: rune.jit(ops.segment_sum)(rnp.ones(3), np.zeros(3, np.int32)), TracerIntegerConversionError),
    ],
    ids=["float numbers", "fewer numbers", "a negative count", "another mode", "a traced count"],
)
def test_meaningless_arguments_are_refused(call: Callable[[], Any], error: type[Exception]):
    with pytest.raises(error):
        call()


def test_a_number_is_each_of_the_rows():
    ids = np.array([0, 1, 1, 3])

    np.testing.assert_array_equal(ops.segment_sum(2, ids, 5), [2, 4, 0, 2, 0])
    np.testing.assert_array_equal(ops.segment_max(rnp.float32(2), ids, 4), [2, 2, -np.inf, 2])
