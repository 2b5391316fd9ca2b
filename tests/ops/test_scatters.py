"""Scatters where several updates meet in one element: on every executor, and their derivatives.

NumPy's ufunc.at is the oracle of repeated updates. Derivatives: a product's with zeros and repeats,
to the second order; ties of minima and maxima; what is dropped, what is clipped; NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.errors import TransformError
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import WHY, differences, directions
from tests.support.sampling import in_turn

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
ROWS = ops.IndexDims((), (0,), (0,))
UFUNC: dict[Primitive, Any] = {
    ops.scatter_add: np.add,
    ops.scatter_mul: np.multiply,
    ops.scatter_min: np.minimum,
    ops.scatter_max: np.maximum,
}
each_scatter = pytest.mark.parametrize("primitive", UFUNC, ids=str)


def at(primitive: Primitive, mode: str = "fill") -> Callable[..., Any]:
    """The scatter of single elements: (x [n], indices [k], updates [k]) -> [n]."""

    def function(x: Any, indices: Any, updates: Any) -> Any:
        rows = ops.reshape(indices, shape=(*indices.shape, 1))
        return primitive(x, rows, updates, dims=ROWS, slice_sizes=(1,), mode=mode)

    return function


# --- values -----------------------------------------------------------------------------------


@in_turn()
@each_scatter
@pytest.mark.parametrize("dtype", [dtypes.i32, dtypes.u8, dtypes.f32], ids=dtypes.short)
@pytest.mark.parametrize("device", COMPUTING)
def test_a_thousand_updates_of_seven_elements_all_count(device: str, dtype: np.dtype, primitive: Primitive):
    # Small powers of two, so that float sums and products are exact.
    rng = np.random.default_rng(3)
    x, indices = np.ones(7, dtype), rng.integers(-1, 9, 1000).astype(np.int32)
    updates = rng.choice([0.5, 1.0, 2.0, 4.0], 1000).astype(dtype)
    inside = (indices >= 0) & (indices < 7)

    result = rune.jit(at(primitive), device=device)(array(x), array(indices), array(updates))

    expected = x.copy()
    UFUNC[primitive].at(expected, indices[inside], updates[inside])
    same(expected, np.asarray(result))


@in_turn()
@each_scatter
@pytest.mark.parametrize("device", COMPUTING)
def test_rows_scattered_to_one_place_are_combined_column_by_column(device: str, primitive: Primitive):
    rng = np.random.default_rng(4)
    x = rng.integers(1, 4, (5, 6)).astype(np.int32)
    rows = rng.integers(0, 5, (40, 1)).astype(np.int32)
    updates = rng.integers(1, 4, (40, 6)).astype(np.int32)

    def function(*args: Any) -> Any:
        dims = ops.IndexDims((1,), (0,), (0,))
        return primitive(*args, dims=dims, slice_sizes=(1, 6), mode="clip")

    result = rune.jit(function, device=device)(array(x), array(rows), array(updates))

    expected = x.copy()
    UFUNC[primitive].at(expected, rows[:, 0], updates)
    same(expected, np.asarray(result))


@in_turn()
@pytest.mark.parametrize("device", COMPUTING)
def test_the_last_of_several_writes_to_an_element_wins(device: str):
    indices = array(np.tile(np.arange(4, dtype=np.int32), 50))

    result = rune.jit(at(ops.scatter), device=device)(
        array(np.zeros(4, np.int32)), indices, array(np.arange(200, dtype=np.int32))
    )

    assert np.asarray(result).tolist() == [196, 197, 198, 199]


@in_turn()
@pytest.mark.parametrize("primitive", [ops.scatter_min, ops.scatter_max], ids=str)
@pytest.mark.parametrize("device", COMPUTING)
def test_a_nan_wins_in_the_element_or_among_the_updates(device: str, primitive: Primitive):
    x, updates = np.array([np.nan, 1, 2], np.float32), np.array([5, np.nan, 5, 2], np.float32)

    result = rune.jit(at(primitive), device=device)(array(x), array(np.array([0, 1, 1, 2], np.int32)), array(updates))

    assert np.isnan(np.asarray(result)).tolist() == [True, True, False]


@each_scatter
def test_a_scatter_of_a_dtype_without_the_operation_is_refused(primitive: Primitive):
    dtype = dtypes.bool_ if primitive in (ops.scatter_add, ops.scatter_mul) else dtypes.c64
    x = array(np.zeros(3, dtype))

    with pytest.raises(TypeError, match=f"{primitive}: cannot take"):
        at(primitive)(x, array(np.array([0], np.int32)), array(np.zeros(1, dtype)))


# --- products ---------------------------------------------------------------------------------

FACTORS = [
    [2.0, 3.0, 5.0, 7.0],
    [0.0, 3.0, 5.0, 7.0],
    [0.0, 0.0, 5.0, 7.0],
    [0.0, 0.0, 0.0, 0.0],
    [1e-300, 2.0, 1e-300, 3.0],  # all together they underflow
]


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("x", [11.0, 0.0])
def test_the_derivative_of_a_repeated_factor_is_the_product_of_the_others(x: float, factors: list[float]):
    indices = array(np.zeros(4, np.int32))

    def element(u: Any) -> Any:
        return ops.reduce_sum(at(ops.scatter_mul)(array(np.array([x])), indices, u), axes=(0,))

    gradient = rune.grad(element)(array(np.array(factors)))

    others = [x * np.prod(np.delete(factors, k)) for k in range(4)]
    near(np.array(others), gradient, relative=1e-15, absolute=0.0, why="the order of three products")


@pytest.mark.parametrize("u", [[2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0]], ids=str)
def test_the_second_derivative_of_a_product_is_right_where_factors_are_zero(u: list[float]):
    indices = array(np.array([1, 1, 1], np.int32))

    def element(u: Any) -> Any:
        ones = array(np.array([1.0, 1.0]))
        return ops.reduce_sum(at(ops.scatter_mul)(ones, indices, u), axes=(0,))

    hessian = np.asarray(rune.hessian(element)(array(np.array(u))))

    same(np.array([[0, u[2], u[1]], [u[2], 0, u[0]], [u[1], u[0], 0]], np.float64), hessian + 0.0)


def test_products_of_several_elements_do_not_mix_and_factors_out_of_bounds_are_dropped():
    indices = array(np.array([0, 2, 0, 9, 2, 0, 1], np.int32))
    x, u = array(np.array([2.0, 3.0, 4.0])), array(np.array([1.5, 0.0, 0.5, 7.0, 3.0, 2.0, 5.0]))
    weight = array(np.array([1.0, 10.0, 100.0]))

    def total(x: Any, u: Any) -> Any:
        return ops.reduce_sum(ops.mul(weight, at(ops.scatter_mul)(x, indices, u)), axes=(0,))

    dx, du = rune.grad(total, (0, 1))(x, u)

    assert np.asarray(dx).tolist() == [1.5, 50.0, 0.0]
    assert np.asarray(du).tolist() == [2.0, 1200.0, 6.0, 0.0, 0.0, 1.5, 30.0]


def test_the_derivative_of_a_product_of_many_factors_excludes_each_factor_in_turn():
    rng = np.random.default_rng(6)
    at_, u = rng.integers(0, 3, 37).astype(np.int32), rng.uniform(0.8, 1.25, 37)

    def element(u: Any) -> Any:
        out = at(ops.scatter_mul)(array(np.ones(3)), array(at_), u)
        return ops.reduce_sum(out, axes=(0,))

    gradient = rune.grad(element)(array(u))

    others = [np.prod(np.delete(u, k)[np.delete(at_, k) == at_[k]]) for k in range(37)]
    near(np.array(others), gradient, relative=1e-13, why="the order of twelve factors")


def test_a_product_cannot_be_transposed_in_its_updates():
    indices = array(np.array([[0], [0]], np.int32))

    @rune.custom_jvp
    def total(u: Any) -> Any:
        return u.sum()

    def rule(primals: Any, tangents: Any) -> Any:
        ones = array(np.ones(1))
        params = {"dims": ROWS, "slice_sizes": (1,), "mode": "fill"}
        return total(*primals), ops.scatter_mul(ones, indices, tangents[0], **params).sum()

    total.defjvp(rule)

    with pytest.raises(TransformError, match=r"scatter_mul .*linear in operand 0, not in"):
        rune.grad(total)(array(np.ones(2)))


# --- ties -------------------------------------------------------------------------------------


def gradients(primitive: Primitive, x: list[float], indices: list[int], u: list[float]) -> Any:
    """Derivatives of the sum of a scatter with respect to the element and the updates."""

    def total(x: Any, u: Any) -> Any:
        result = at(primitive)(x, array(np.array(indices, np.int32)), u)
        return ops.reduce_sum(result, axes=(0,))

    dx, du = rune.grad(total, (0, 1))(array(np.array(x)), array(np.array(u)))
    return np.asarray(dx).tolist(), np.asarray(du).tolist()


def test_the_element_and_its_updates_share_a_tie_equally():
    # As jax 0.10.2 has it, up to its rounding: (1/3, 1, 1), (1/3, 1/3, 0) and (1/3, 0, 1), ...
    third = 1 / 3

    lowest = gradients(ops.scatter_min, [1.0, 2.0, 3.0], [0, 0, 1], [1.0, 1.0, 5.0])
    highest = gradients(ops.scatter_max, [1.0, 2.0, 3.0], [0, 0, 1], [1.0, 1.0, 5.0])

    assert lowest == ([third, 1.0, 1.0], [third, third, 0.0])
    assert highest == ([third, 0.0, 1.0], [third, third, 1.0])


def test_only_updates_share_a_tie_if_the_old_element_loses():
    shares = gradients(ops.scatter_max, [0.0, 5.0], [0, 0, 0, 1], [2.0, 1.0, 2.0, 4.0])

    assert shares == ([0.0, 1.0], [0.5, 0.0, 0.5, 0.0])


def test_an_update_out_of_bounds_gets_no_share_of_the_gradient():
    shares = gradients(ops.scatter_max, [0.0, 5.0], [0, 7, -1], [0.0, 0.0, 5.0])

    assert shares == ([0.5, 1.0], [0.5, 0.0, 0.0])


def test_the_gradient_of_a_nan_belongs_to_the_nans_and_that_of_an_untouched_element_to_itself():
    nan = np.nan

    shares = gradients(ops.scatter_max, [nan, 2.0, nan], [0, 0, 1], [1.0, nan, nan])

    assert shares == ([0.5, 0.0, 1.0], [0.0, 0.5, 1.0])


def test_ties_are_counted_exactly_in_the_half_types():
    # 1000 ones have no exact sum in bf16, nor in f16 if each share of 1/1001 is rounded up.
    indices, u = array(np.zeros(1000, np.int32)), array(np.ones(1000, dtypes.bf16))

    def total(u: Any) -> Any:
        out = at(ops.scatter_max)(array(np.zeros(1, dtypes.bf16)), indices, u)
        return ops.reduce_sum(out, axes=(0,))

    share = np.asarray(rune.grad(total)(u)).astype(np.float32)

    near(np.full(1000, 1e-3, np.float32), share, relative=4e-3, why="bf16 has eight bits")


# --- clipping, and what is kept ---------------------------------------------------------------

ALL = (ops.scatter, *UFUNC)


@pytest.mark.parametrize("primitive", ALL, ids=str)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_the_derivative_out_of_bounds_is_that_of_the_mode(primitive: Primitive, mode: str):
    rng = np.random.default_rng(5)
    x, u = array(rng.uniform(1, 2, 4)), array(rng.uniform(1, 2, 6))
    indices = array(np.array([7, 3, -2, 0, 3, 1], np.int32))

    def function(x: Any, u: Any) -> Any:
        return at(primitive, mode)(x, indices, u)

    tangents = directions(rng, [x, u])
    _, tangent = rune.jvp(function, (x, u), tangents)

    near(differences(function, (x, u), tangents), tangent, relative=1e-6, why=WHY)


@pytest.mark.parametrize("primitive", [ops.scatter, ops.scatter_add], ids=str)
def test_only_the_indices_are_kept_for_the_backward_pass(primitive: Primitive):
    x, u = array(np.zeros(1000)), array(np.ones(10))
    indices = array(np.zeros(10, np.int32))

    for active in ([True, True], [True, False], [False, True]):
        _, linear = linearize_flat(lambda x, u: [at(primitive)(x, indices, u)], [x, u], active)

        assert {str(type_of(r)) for r in linear.residuals} <= {"i32[10]", "i32[10,1]"}


@pytest.mark.parametrize("mode", [None, "clip", "fill", "drop", "promise_in_bounds"])
@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_an_update_of_an_array_without_elements_is_that_array_in_every_mode(method: str, mode: str | None):
    index = rnp.array([1, -2, 0])

    def update(x: Any, values: Any) -> Any:
        return getattr(x.at[:, index], method)(values, mode=mode)

    x, values = rnp.zeros((3, 0)), rnp.full((3, 3), 2.0)
    assert update(x, values).shape == (3, 0)
    assert rune.jit(update)(x, values).shape == (3, 0)
    assert rune.vmap(update)(x[None], values[None]).shape == (1, 3, 0)
    slope = rune.grad(lambda x, values: update(x, values).sum(), (0, 1))(x, values)
    assert slope[0].shape == (3, 0)
    assert not np.asarray(slope[1]).any()


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub"])
def test_a_clipped_scatter_into_no_elements_writes_nothing(name: str):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    scatter = getattr(lax, name)

    def write(x: Any) -> Any:
        return scatter(x, rnp.array([[5], [0]]), rnp.ones((2, 4)), numbers, mode="clip")

    assert write(rnp.zeros((0, 4))).shape == (0, 4)
    assert rune.jit(write)(rnp.zeros((0, 4))).shape == (0, 4)
