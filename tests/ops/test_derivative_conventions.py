"""Conventions for derivatives that do not exist, or whose formula would divide by zero.

Each value is a convention that users of JAX rely on. Kinks, ties, zeros of products, then the
edges of domains, then indices out of bounds and written twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.core.primitive import Primitive
from tests.support.arrays import array
from tests.support.close import near, same

ROWS = ops.IndexDims((), (0,), (0,))


def slope(primitive: Primitive, *at: float, argument: int = 0, **params: Any) -> float:
    """The derivative of a primitive of scalars."""
    values = [array(np.float64(x)) for x in at]
    return float(rune.grad(lambda *xs: primitive(*xs, **params), argument)(*values))


# --- kinks and ties ---------------------------------------------------------------------------


def test_abs_has_slope_one_at_both_zeros():
    assert [slope(ops.abs, 0.0), slope(ops.abs, -0.0), slope(ops.abs, -2.0)] == [1.0, 1.0, -1.0]


STEPS = [ops.sign, ops.floor, ops.ceil, ops.round, ops.trunc]


@pytest.mark.parametrize("primitive", STEPS, ids=str)
def test_steps_have_slope_zero_everywhere(primitive: Primitive):
    assert [slope(primitive, x) for x in (-0.0, 0.0, 0.5, 1.0)] == [0.0] * 4


@pytest.mark.parametrize("primitive", [ops.max, ops.min], ids=str)
def test_max_and_min_share_a_tie_equally(primitive: Primitive):
    assert [slope(primitive, 2.0, 2.0, argument=i) for i in (0, 1)] == [0.5, 0.5]


@pytest.mark.parametrize("primitive", [ops.reduce_max, ops.reduce_min], ids=str)
def test_each_of_n_tied_elements_gets_one_nth_of_the_gradient(primitive: Primitive):
    x = array(np.full((4,), 3.0))

    gradient = rune.grad(lambda v: primitive(v, axes=(0,)))(x)

    same(np.full((4,), 0.25), gradient)


@pytest.mark.parametrize("primitive", [ops.cummax, ops.cummin], ids=str)
def test_a_cumulative_extremum_shares_ties_and_loses_nothing(primitive: Primitive):
    x = array(np.array([1.0, 1.0, 1.0, 1.0, 1.0]))

    jacobian = rune.jacrev(lambda v: primitive(v, axis=0, reverse=False))(x)

    same(np.ones(5), np.asarray(jacobian).sum(axis=1))


@pytest.mark.parametrize("primitive", [ops.cummax, ops.cummin], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_slope_of_a_cumulative_extremum_behind_a_nan_is_that_of_the_nan(primitive: Primitive, reverse: bool):
    x = array(np.array([1.0, np.nan, 3.0, -2.0, 5.0])[:: -1 if reverse else 1].copy())

    jacobian = rune.jacrev(lambda v: primitive(v, axis=0, reverse=reverse))(x)

    expected = np.zeros((5, 5))
    expected[0, 0] = 1.0
    expected[1:, 1] = 1.0
    same(expected[::-1, ::-1] if reverse else expected, jacobian)


# --- products with zeros ----------------------------------------------------------------------

ZEROS = [[2.0, 0.0, 3.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [2.0, 3.0, 4.0], [5.0]]


@pytest.mark.parametrize("values", ZEROS, ids=str)
def test_the_gradient_of_a_product_is_right_where_factors_are_zero(values: list[float]):
    x = array(np.array(values))

    gradient = rune.grad(lambda v: ops.reduce_prod(v, axes=(0,)))(x)

    others = [math.prod(v for j, v in enumerate(values) if j != i) for i in range(len(values))]
    same(np.array(others, np.float64), np.asarray(gradient) + 0.0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("values", ZEROS, ids=str)
def test_the_gradient_of_a_cumulative_product_is_right_where_factors_are_zero(values: list[float], reverse: bool):
    x, n = array(np.array(values)), len(values)

    jacobian = np.asarray(rune.jacfwd(lambda v: ops.cumprod(v, axis=0, reverse=reverse))(x))

    for i in range(n):
        part = range(i, n) if reverse else range(i + 1)
        for j in range(n):
            expected = math.prod(values[k] for k in part if k != j) if j in part else 0.0
            assert jacobian[i, j] == expected


# --- edges of domains -------------------------------------------------------------------------


def test_slopes_at_the_edges_of_domains_are_their_ieee_limits():
    assert slope(ops.sqrt, 0.0) == math.inf
    assert slope(ops.log, 0.0) == math.inf
    assert slope(ops.cbrt, 0.0) == math.inf
    assert slope(ops.asin, 1.0) == math.inf
    assert slope(ops.acos, 1.0) == -math.inf
    assert math.isnan(slope(ops.atan2, 0.0, 0.0))


@pytest.mark.parametrize("primitive", [ops.logistic, ops.tanh, ops.erf, ops.erfc], ids=str)
def test_saturated_functions_have_slope_zero_and_not_nan(primitive: Primitive):
    assert [slope(primitive, x) for x in (-1e4, 1e4, -math.inf, math.inf)] == [0.0] * 4


def test_the_slope_of_a_power_of_zero_is_its_limit_or_nan():
    assert slope(ops.integer_pow, 0.0, exponent=2) == 0.0
    assert slope(ops.integer_pow, 0.0, exponent=1) == 1.0
    assert slope(ops.integer_pow, 0.0, exponent=0) == 0.0
    assert math.isnan(slope(ops.pow, 0.0, 0.0))
    assert slope(ops.pow, 0.0, 2.0, argument=1) == 0.0


def test_an_unselected_branch_passes_its_nan_into_the_gradient():
    def guarded(x: Any) -> Any:
        return ops.select(ops.gt(x, np.float64(0)), ops.sqrt(x), np.float64(0))

    assert math.isnan(float(rune.grad(guarded)(array(np.float64(0.0)))))


# --- indices ----------------------------------------------------------------------------------


def read(mode: str, start: int) -> np.ndarray:
    """The gradient of reading one of three elements."""
    indices = array(np.array([[start]], np.int32))

    def total(x: Any) -> Any:
        zero = np.float64(0)
        read = ops.gather(x, indices, zero, dims=ROWS, slice_sizes=(1,), mode=mode)
        return ops.reduce_sum(read, axes=(0,))

    return np.asarray(rune.grad(total)(array(np.array([1.0, 2.0, 3.0]))))


def tangent(mode: str, start: int) -> float:
    """The tangent of reading one of three elements, whose tangents are 1, 2 and 3."""
    indices, x = array(np.array([[start]], np.int32)), array(np.array([1.0, 2.0, 3.0]))

    def reads(x: Any) -> Any:
        return ops.gather(x, indices, np.float64(9), dims=ROWS, slice_sizes=(1,), mode=mode)

    return float(rune.jvp(reads, (x,), (x,))[1][0])


def test_the_tangent_of_a_read_out_of_bounds_is_that_of_the_element_read():
    assert [tangent("clip", 7), tangent("clip", -7)] == [3, 1]
    assert [tangent("promise_in_bounds", 7), tangent("promise_in_bounds", -7)] == [3, 1]
    assert [tangent("fill", 7), tangent("fill", -7)] == [0, 0]


def test_a_clipped_read_has_its_gradient_at_the_element_it_read():
    assert read("clip", 7).tolist() == [0, 0, 1]
    assert read("clip", -7).tolist() == [1, 0, 0]


def test_a_filled_read_has_no_gradient():
    assert read("fill", 7).tolist() == [0, 0, 0]
    assert read("fill", -1).tolist() == [0, 0, 0]


def test_a_read_that_breaks_its_promise_is_clamped_and_has_no_gradient():
    assert read("promise_in_bounds", 7).tolist() == [0, 0, 0]
    assert read("promise_in_bounds", 2).tolist() == [0, 0, 1]


def gradient_of_indexing(at: np.ndarray) -> list[float]:
    x = array(np.array([1.0, 2.0, 3.0]))
    return np.asarray(rune.grad(lambda v: v[array(at)].sum())(x)).tolist()


def test_one_index_out_of_bounds_has_its_gradient_at_the_element_it_read():
    x = array(np.array([1.0, 2.0, 3.0]))

    assert float(x[array(np.array(10, np.int32))]) == 3
    assert gradient_of_indexing(np.array(10, np.int32)) == [0, 0, 1]


def test_a_list_of_indices_out_of_bounds_reads_clamped_and_has_no_gradient():
    x = array(np.array([1.0, 2.0, 3.0]))

    assert np.asarray(x[array(np.array([10], np.int32))]).tolist() == [3]
    assert gradient_of_indexing(np.array([10], np.int32)) == [0, 0, 0]


def test_only_the_last_of_two_writes_to_an_element_has_a_gradient():
    indices = array(np.array([[1], [1], [0]], np.int32))

    def written(u: Any) -> Any:
        out = ops.scatter(np.zeros(3), indices, u, dims=ROWS, slice_sizes=(1,), mode="clip")
        return ops.reduce_sum(out, axes=(0,))

    gradient = rune.grad(written)(array(np.array([5.0, 6.0, 7.0])))

    assert np.asarray(gradient).tolist() == [0, 1, 1]


def test_an_element_added_twice_has_a_gradient_for_both():
    indices = array(np.array([[1], [1], [9]], np.int32))

    def added(u: Any) -> Any:
        out = ops.scatter_add(np.zeros(3), indices, u, dims=ROWS, slice_sizes=(1,), mode="fill")
        return ops.reduce_sum(out, axes=(0,))

    gradient = rune.grad(added)(array(np.array([5.0, 6.0, 7.0])))

    assert np.asarray(gradient).tolist() == [1, 1, 0]


def test_an_overwritten_operand_has_no_gradient_there():
    indices = array(np.array([[1]], np.int32))

    def written(x: Any) -> Any:
        u = np.array([9.0])
        out = ops.scatter(x, indices, u, dims=ROWS, slice_sizes=(1,), mode="fill")
        return ops.reduce_sum(ops.mul(out, out), axes=(0,))

    gradient = rune.grad(written)(array(np.array([1.0, 2.0, 3.0])))

    assert np.asarray(gradient).tolist() == [2, 0, 6]


def test_the_order_of_grad_and_vmap_does_not_matter_for_a_clamped_window():
    starts = array(np.array([-3, 1, 9], np.int32))
    x = array(np.arange(12.0).reshape(3, 4))

    def window(row: Any, start: Any) -> Any:
        part = ops.dynamic_slice(row, start, sizes=(2,))
        return ops.reduce_sum(ops.mul(part, part), axes=(0,))

    inside = rune.vmap(rune.grad(window))(x, starts)
    outside = rune.grad(lambda v: ops.reduce_sum(rune.vmap(window)(v, starts), axes=(0,)))(x)

    near(inside, outside, relative=1e-6, why="the same sums in f32")


def test_a_tangent_passes_a_conversion_between_floats_and_is_dropped_at_an_integer():
    wide = rune.jvp(lambda x: ops.convert(x, dtype=dtypes.f64), (1.0,), (2.0,))[1]
    cut = rune.jvp(lambda x: ops.convert(x, dtype=dtypes.i32), (1.0,), (2.0,))[1]

    assert (wide.dtype, float(wide)) == (dtypes.f64, 2.0)
    assert np.asarray(cut).dtype == dtypes.float0
