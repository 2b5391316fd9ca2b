"""Polynomials and signals beyond tables of single calls: roots under transformations, long
convolutions, interpolation outside of the points, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError, TracerArrayConversionError
from tests.support.close import near


def test_roots_of_a_fixed_number_come_with_nan_for_those_that_are_missing():
    p = rnp.array([0.0, 0.0, 1.0, -3.0, 2.0, 0.0])

    roots = np.asarray(rune.jit(lambda p: rnp.roots(p, strip_zeros=False))(p))

    near(np.array([2.0, 1.0, 0.0]), np.real(roots[:3]), relative=1e-5, why="eigenvalues in f32")
    assert np.isnan(roots[3:]).all()


def test_roots_move_as_the_coefficients_do():
    p = rnp.array([1.0, -3.0, 2.0], "f64")

    slopes = rune.jacfwd(lambda p: rnp.roots(p, strip_zeros=False).real)(p)[:, 2]

    # d root / d p0 = -1 / p'(root), which is 1 at 2 and -1 at 1
    near(np.array([-1.0, 1.0]), slopes, relative=1e-9, why="f64")


def test_leading_zeros_of_a_traced_polynomial_cannot_be_looked_for():
    with pytest.raises(TracerArrayConversionError, match="roots: cannot look for leading zeros"):
        rune.jit(rnp.roots)(rnp.ones(3))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(100_000, 100), (3000, 3000), (2100, 2001)])
def test_a_long_convolution_agrees_with_numpy(m: int, n: int, mode: str):
    rng = np.random.default_rng(m)
    x, y = (rng.standard_normal(k).astype(np.float32) for k in (m, n))

    convolution = rnp.convolve(rnp.asarray(x), rnp.asarray(y), mode)

    expected = np.convolve(x.astype(float), y.astype(float), mode)  # type: ignore[arg-type]
    limit = 5e-6 * float(np.abs(expected).max())
    near(expected, convolution, relative=0, absolute=limit, why="sums of products in f32")


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_sequences_slide_over_each_other_without_a_matrix_of_windows(name: str):
    x = rnp.asarray(np.ones(6000, np.float32))
    tracemalloc.start()

    correlation = getattr(rnp, name)(x, x, "full")

    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 40 * x.nbytes  # a matrix of windows would be 12,000 times as large
    assert correlation[5999] == 6000


def test_integers_are_convolved_exactly_in_a_dtype_that_is_preferred():
    x = np.arange(1 << 11, dtype=np.int32)

    convolution = rnp.convolve(rnp.asarray(x), rnp.asarray(x), preferred_element_type=np.int32)

    assert (np.asarray(convolution) == np.convolve(x, x)).all()


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_products_of_short_integers_do_not_wrap(name: str, mode: str):
    image, kernel = np.array([200, 17, 255, 3, 90], np.uint8), np.array([1, 254, 7], np.uint8)

    sums = getattr(rnp, name)(rnp.asarray(image), rnp.asarray(kernel), mode)

    np.testing.assert_array_equal(sums, getattr(np, name)(image.astype(float), kernel.astype(float), mode))


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        ("int8", "int8", "float32"),
        ("int32", "uint8", "float32"),
        ("bool", "bool", "float32"),
        ("int32", "float16", "float16"),
        ("int8", "bfloat16", "bfloat16"),
        ("bfloat16", "float16", "float32"),
        ("int32", "complex64", "complex64"),
    ],
)
def test_integers_are_convolved_as_floats_as_in_jax(a: str, b: str, dtype: str):
    x, y = rnp.ones(3, a), rnp.ones(2, b)

    assert (rnp.convolve(x, y).dtype, rnp.correlate(x, y).dtype) == (dtype, dtype)


def test_products_of_polynomials_of_integers_are_integers():
    product = rnp.polymul(rnp.array([1, 2, 3], "int8"), rnp.array([9, 5], "int16"))

    assert (product.dtype, product.tolist()) == ("int16", [9, 23, 37, 15])


def test_a_line_extrapolates_on_request():
    x, y = rnp.array([0.0, 1.0, 3.0]), rnp.array([1.0, 3.0, 4.0])

    values = rnp.interp(rnp.array([-1.0, 5.0]), x, y, left="extrapolate", right="extrapolate")

    near(np.array([-1.0, 5.0]), values, relative=1e-6, why="f32")


def test_interpolation_near_a_step_is_differentiable():
    x, y = rnp.array([0.0, 1.0, 1.0, 2.0]), rnp.array([0.0, 1.0, 5.0, 6.0])

    slopes = rune.vmap(rune.grad(lambda at: rnp.interp(at, x, y)))(rnp.array([0.5, 1.5]))

    near(np.ones(2), slopes, relative=1e-6, why="f32")


def test_remainders_of_division_can_be_trimmed_where_values_are_known():
    u, v = rnp.array([1.0, 2.0, 1.0]), rnp.array([1.0, 1.0])

    _, remainder = rnp.polydiv(u, v, trim_leading_zeros=True)

    assert remainder.shape == (1,)
    assert rnp.polymul(rnp.array([0, 0, 2]), v, trim_leading_zeros=True).shape == (2,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rnp.convolve(rnp.ones(3), rnp.ones(2), "half"), ArgumentError, "mode='half'"),
        (lambda: rnp.convolve(rnp.ones((2, 2)), rnp.ones(2)), ShapeError, "convolve: cannot slide"),
        (lambda: rnp.polyval(rnp.ones((2, 2)), rnp.ones(3)), ShapeError, "polyval: cannot broadcast"),
        (lambda: rnp.polyder(rnp.ones(3), -1), ArgumentError, "order -1"),
        (lambda: rnp.polyint(rnp.ones(3), 2, [1, 2, 3]), ArgumentError, "3 constants"),
        (lambda: rnp.vander(rnp.ones((2, 2))), ShapeError, "vander: cannot take powers"),
        (lambda: rnp.polyfit(rnp.ones(3), rnp.ones(4), 1), ShapeError, "polyfit: cannot fit"),
        (lambda: rnp.polyfit(rnp.ones(3), rnp.ones(3), -1), ArgumentError, "degree -1"),
        (lambda: rnp.poly(rnp.ones((2, 3))), ShapeError, "poly: cannot take"),
        (lambda: rnp.gradient(rnp.ones(1)), ShapeError, "1 samples, 2 required"),
        (lambda: rnp.gradient(rnp.ones(4), edge_order=3), ArgumentError, "edge_order=3"),
        (lambda: rnp.gradient(rnp.ones(4), rnp.ones(3)), ShapeError, "cannot place 4 samples"),
        (lambda: rnp.interp(0.0, rnp.ones(3), rnp.ones(2)), ShapeError, "interp: cannot connect"),
        (lambda: rnp.interp(0.0, rnp.ones(0), rnp.ones(0)), ShapeError, "interp: cannot connect"),
        (lambda: rnp.interp(0.0, rnp.ones(3), rnp.ones(3), left="x"), ArgumentError, "'x' outside"),
    ],
)
def test_bad_input_is_an_error_that_names_it(call, error: type, message: str):
    with pytest.raises(error, match=message):
        call()
