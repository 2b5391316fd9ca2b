"""Quantised arrays: their stored form, their accuracy, and products that read it directly.

First the round trip and its error bounds; then sizes, which are exact; then products against those
of floats, and their kernels; then the tree under transformations; last what is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.quantized import FORMATS, Quantized
from tests.support.arrays import array
from tests.support.close import close, near, same
from tests.support.sampling import in_turn

every_format = pytest.mark.parametrize("format", FORMATS, ids=dtypes.short)
DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]
SHARING: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 0, "group": 8}, {"axis": 1}]


def drawn(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return array(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def spread(scale: Any, q: Quantized) -> np.ndarray:
    """The scale of every element, by NumPy."""
    factors = np.asarray(scale)
    if factors.shape:
        factors = np.repeat(factors, q.shape[q.axis] // factors.shape[q.axis], axis=q.axis)
    return np.broadcast_to(factors, np.shape(rune.dequantize(q)))


# --- what is stored ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"axis": 0}], ids=str)
@pytest.mark.parametrize("format", ["int8", "int4"])
def test_numbers_whose_span_exceeds_f32_have_finite_scales(format: str, options: dict[str, Any]):
    x = array(np.array([3e38, -3e38, 1e38, 0.0], np.float32))
    q = rune.quantize(x, format, symmetric=False, **options)

    error = np.abs(np.asarray(rune.dequantize(q), np.float64) - np.asarray(x, np.float64))

    assert (error <= np.asarray(q.scale, np.float64) * 1.01).all()


@pytest.mark.parametrize("sharing", SHARING, ids=str)
@pytest.mark.parametrize("format", ["int8", "int4"])
def test_an_integer_is_off_by_half_a_step_at_most(format: str, sharing: dict[str, Any]):
    x = drawn(16, 24)
    q = rune.quantize(x, format, **sharing)

    error = np.abs(np.asarray(rune.dequantize(q)) - np.asarray(x))

    assert (error <= spread(q.scale, q) * 0.500001).all()


@pytest.mark.parametrize("sharing", SHARING[:3], ids=str)
@pytest.mark.parametrize("format", ["int8", "int4"])
def test_with_a_zero_point_the_whole_range_is_used(format: str, sharing: dict[str, Any]):
    x = rnp.abs(drawn(16, 24))
    q = rune.quantize(x, format, symmetric=False, **sharing)

    error = np.abs(np.asarray(rune.dequantize(q)) - np.asarray(x))

    assert (error <= spread(q.scale, q) * 1.000001).all()
    assert np.asarray(q.scale).max() < 0.6 * np.asarray(rune.quantize(x, format).scale).max()


@pytest.mark.parametrize(("format", "bits"), [("f8_e4m3", 3), ("f8_e5m2", 2)])
def test_an_8_bit_float_is_off_by_half_of_its_last_bit(format: str, bits: int):
    x = drawn(16, 24)
    q = rune.quantize(x, format, axis=0)

    error = np.abs(np.asarray(rune.dequantize(q)) - np.asarray(x))

    smallest = spread(q.scale, q) * float(rnp.finfo(format).smallest_subnormal)
    assert (error <= np.maximum(np.abs(np.asarray(x)) * 2.0 ** -(bits + 1), smallest) * 1.001).all()


@every_format
def test_the_largest_magnitude_is_kept_and_never_becomes_infinite_or_nan(format: np.dtype):
    x = array(np.array([[3e38, -1e30], [-3e38, 2e38]], np.float32))

    copy = rune.dequantize(rune.quantize(x, format))

    near(3e38, float(rnp.max(rnp.abs(copy))), relative=1e-6, why="f32")
    assert np.isfinite(np.asarray(copy)).all()


@every_format
def test_zeros_stay_zeros(format: np.dtype):
    x = rnp.zeros((8, 4))

    same(np.zeros((8, 4), np.float32), rune.dequantize(rune.quantize(x, format, axis=0)))


def test_a_nan_affects_exactly_the_elements_that_share_its_scale():
    x = array(np.array([[1, np.nan], [2, 3], [4, 5], [6, 7]], np.float32))

    is_nan = np.isnan(np.asarray(rune.dequantize(rune.quantize(x, axis=1))))

    assert is_nan.tolist() == [[True, True], [False, False], [False, False], [False, False]]


@given(st.integers(1, 9), st.integers(1, 5), st.sampled_from([0, 1]))
def test_nibbles_of_arrays_of_any_size_are_restored_from_their_bytes(rows: int, columns: int, axis: int):
    numbers = np.random.default_rng(rows * 10 + columns).integers(-7, 8, (rows, columns))
    numbers[0, 0] = 7  # so that the scale is 1
    x = array(numbers.astype(np.float32))

    q = rune.quantize(rnp.concatenate([x * 0 + 7, x], axis), "int4", axis=axis)

    same(np.asarray(x), rnp.split(rune.dequantize(q), 2, axis)[1])


def test_two_nibbles_share_a_byte_the_even_one_in_the_low_half():
    q = rune.quantize(array(np.array([7, -1, 2], np.float32)), "int4")

    assert np.asarray(q.values).view(np.uint8).tolist() == [0xF7, 0x02]


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({}, 8 + 32 / 4096),
        ({"axis": 0}, 8.5),
        ({"axis": 0, "group": 16}, 10.0),
        ({"dtype": "int4"}, 4 + 32 / 4096),
        ({"dtype": "int4", "axis": 0}, 4.5),
        ({"dtype": "int4", "axis": 0, "group": 32}, 5.0),
        ({"dtype": "int4", "axis": 0, "group": 32, "symmetric": False}, 6.0),
        ({"dtype": "f8_e4m3", "axis": 0}, 8.5),
    ],
    ids=str,
)
def test_the_bits_of_an_element_are_counted_exactly(options: dict[str, Any], bits: float):
    assert rune.quantize(drawn(64, 64), **options).bits_per_element == bits


@pytest.mark.parametrize("options", [{}, {"dtype": "int4", "axis": 0, "group": 16}], ids=str)
def test_the_report_of_a_compiled_product_counts_those_bits(options: dict[str, Any]):
    x, q = drawn(4, 64), rune.quantize(drawn(64, 32), **options)

    costs = rune.explain(lambda x, q: x @ q)(x, q).costs

    assert costs.bytes_moved == x.nbytes + q.bits_per_element * 64 * 32 / 8 + 4 * 32 * 4


# --- products ---------------------------------------------------------------------------------

OPTIONS: list[dict[str, Any]] = [
    {},
    {"axis": 0},
    {"axis": 0, "group": 16},
    {"axis": 1},
    {"axis": 0, "symmetric": False},
    {"dtype": "int4"},
    {"dtype": "int4", "axis": 0},
    {"dtype": "int4", "axis": 0, "group": 32},
    {"dtype": "int4", "axis": 0, "group": 16, "symmetric": False},
    {"dtype": "f8_e4m3", "axis": 0},
    {"dtype": "f8_e5m2"},
]
with_every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


@with_every_option
def test_a_product_is_that_of_the_numbers_stored(options: dict[str, Any]):
    x, q = drawn(5, 64), rune.quantize(drawn(64, 32, seed=1), **options)

    expected = np.asarray(x, np.float64) @ np.asarray(rune.dequantize(q), np.float64)

    near(expected, np.asarray(x @ q), relative=2e-5, why="sums of 64 in f32")
    near(expected.T, np.asarray(q.mT @ x.T), relative=2e-5, why="sums of 64 in f32")


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
@with_every_option
def test_a_compiled_product_is_the_eager_one(options: dict[str, Any], device: str):
    x, q = drawn(5, 64), rune.quantize(drawn(64, 32, seed=1), **options)

    product = rune.jit(lambda x, q: x @ q, device=device)(x, q)

    near(np.asarray(x @ q), np.asarray(product), relative=2e-5, why="sums of 64 in f32")


@with_every_option
def test_unpacking_and_the_product_are_one_kernel(options: dict[str, Any]):
    x, q = drawn(8, 64), rune.quantize(drawn(64, 48, seed=1), **options)

    costs = rune.explain(lambda x, q: x @ q)(x, q).costs

    assert (costs.launches, costs.calls, costs.arena_bytes) == (1, 0, 0)


def test_a_vector_times_a_quantised_matrix_is_a_vector():
    x, q = drawn(16), rune.quantize(drawn(16, 3), axis=0)

    near(np.asarray(x @ rune.dequantize(q)), np.asarray(x @ q), relative=2e-5, why="f32")
    assert (q.mT @ x).shape == (3,)


def test_a_batch_of_products_keeps_its_axes():
    x, q = drawn(2, 5, 16), rune.quantize(drawn(16, 3), axis=0)

    near(np.asarray(x @ rune.dequantize(q)), np.asarray(x @ q), relative=2e-5, why="f32")


def test_two_arrays_of_8_bits_multiply_exactly_in_whole_numbers():
    a, b = (rune.quantize(drawn(64, 64, seed=s), axis=k) for s, k in ((0, 1), (1, 0)))

    exact = np.asarray(a.values, np.int64) @ np.asarray(b.values, np.int64)

    product = exact * np.asarray(a.scale, np.float64) * np.asarray(b.scale, np.float64)
    near(product, np.asarray(a @ b), relative=1e-6, why="two scalings in f32")


@pytest.mark.parametrize("count", [131_071, 131_072, 140_001])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_sum_of_more_products_than_32_bits_can_hold_does_not_wrap(count: int, compiled: bool):
    a, b = (rune.quantize(rnp.ones(shape), "int8") for shape in ((1, count), (count, 1)))
    product = rune.jit(lambda a, b: a @ b) if compiled else lambda a, b: a @ b

    near(np.full((1, 1), count), np.asarray(product(a, b)), relative=1e-5, why="sums in f32 from 2**17 on")


def test_a_sum_of_products_of_a_symbolic_size_does_not_wrap():
    def square(x: Any) -> Any:
        return rune.quantize(x[None], "int8") @ rune.quantize(x[:, None], "int8")

    product = rune.jit(square, dims={"n": (1, None)}, in_dims=("n",))(rnp.ones(140_001))

    near(np.full((1, 1), 140_001), np.asarray(product), relative=1e-5, why="sums in f32")


def test_8_bit_floats_multiply_with_their_scales():
    a, b = (rune.quantize(drawn(32, 32, seed=s), "f8_e4m3") for s in (0, 1))

    expected = np.asarray(rune.dequantize(a), np.float64) @ np.asarray(rune.dequantize(b))

    near(expected, np.asarray(a @ b), relative=1e-5, why="sums of 32 in f32")


def test_the_product_has_the_dtype_of_the_activations():
    q = rune.quantize(drawn(16, 3), axis=0)

    assert (drawn(2, 16).astype("bf16") @ q).dtype == dtypes.bf16
    assert rune.dequantize(rune.quantize(drawn(4).astype("bf16"))).dtype == dtypes.bf16


# --- transformations --------------------------------------------------------------------------


@with_every_option
def test_the_derivative_with_respect_to_the_activations_is_that_of_the_numbers_stored(options: dict[str, Any]):
    x, q = drawn(5, 64), rune.quantize(drawn(64, 32, seed=1), **options)

    def loss(multiply: Any) -> Any:
        return rune.grad(lambda x: rnp.sum(rnp.tanh(multiply(x))))

    gradient = rune.jit(loss(lambda x: x @ q))(x)

    expected = loss(lambda x: x @ rune.dequantize(q))(x)
    near(np.asarray(expected), np.asarray(gradient), relative=1e-4, why="sums in another order")


def test_a_scale_can_be_learned():
    x, q = drawn(5, 8), rune.quantize(drawn(8, 3), axis=0)

    def loss(scale: Any) -> Any:
        return rnp.sum(x @ rune.Quantized(q.values, scale, None, q.format, q.axis, 0, q.dtype))

    gradient = rune.grad(loss)(q.scale)

    reference = np.asarray(x).sum(0) @ np.asarray(q.values, np.float32)
    near(reference[None], np.asarray(gradient), relative=1e-5, why="f32")


@pytest.mark.parametrize("format", ["int8", "int4"])
def test_a_stack_of_quantised_matrices_is_batched_over(format: str):
    w, x = drawn(3, 16, 4), drawn(3, 16)

    q = rune.vmap(lambda w: rune.quantize(w, format, axis=0))(w)
    products = rune.vmap(lambda x, q: x @ q)(x, q)

    lanes = [x[k] @ rune.quantize(w[k], format, axis=0) for k in range(3)]
    near(np.stack([np.asarray(v) for v in lanes]), np.asarray(products), relative=1e-5, why="f32")


def test_quantising_compiles():
    x = drawn(32, 16)

    matrix = rune.jit(lambda x: rune.quantize(x, "int4", axis=0, group=8))(x)

    close(np.asarray(rune.quantize(x, "int4", axis=0, group=8).values), np.asarray(matrix.values), ulps=0, why="exact")
    assert (matrix.shape, matrix.axis, matrix.size) == ((32, 16), -2, 32)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rune.quantize(rnp.arange(3)), DtypeError, "floating dtype required"),
        (lambda: rune.quantize(drawn(3), "i16"), DtypeError, "cannot store i16"),
        (lambda: rune.quantize(drawn(3), "f8_e4m3", symmetric=False), DtypeError, "a zero point"),
        (lambda: rune.quantize(drawn(6), axis=0, group=4), ShapeError, "cannot divide axis -1"),
        (lambda: rune.quantize(drawn(6), group=2), ArgumentError, "give axis="),
        (lambda: rune.quantize(rnp.float32(1), "int4"), ShapeError, "cannot pack f32"),
        (lambda: drawn(3) @ rune.quantize(drawn(3)), ShapeError, "of rank 1"),
        (lambda: rnp.arange(3) @ rune.quantize(drawn(3, 2)), DtypeError, "floats required"),
        (lambda: rnp.sum(rune.quantize(drawn(3))), ArgumentError, "cannot take Quantized"),
    ],
)
def test_meaningless_arguments_are_refused_with_the_reason(call: Any, error: type, message: str):
    with pytest.raises(error, match=message):
        call()
